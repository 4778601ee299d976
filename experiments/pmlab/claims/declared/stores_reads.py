"""U4, U10, U11: what UStore reads."""

from ..claim import PERCENT, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..quantity import percent_below, ratio
from ..store_cases import BLUESTORE, BLUESTORE_PARTNER, DRIVE, OURS, PAIRS_DEVICE, PEER, READS, of_store
from ..words import around

_SOURCE = "[UStore], section 4.3, figures 11 and 12"
_ON_DRIVE = "block_reads/container=blocks"


# In flight where the drive is to be the limit: at 32 its latency is.
_MANY = 128


def _reads(prefix, store, pattern, size, depth=32):
    return of_store(prefix, store, "read", pattern, size, depth)


def _lead(pattern, published):
    return Condition(f"4 KB {pattern} reads, 32 in flight: chunk_store over {PEER}", TIMES,
                     ratio(_reads(READS, OURS, pattern, "4K"), _reads(READS, PEER, pattern, "4K")),
                     around(published), published=exactly(published))


def _falls(large, small, published):
    """ "By 39 %" and "by 43 %": both within 25 to 55 %. """
    return Condition(f"records on the drive, random reads, {_MANY} in flight: {large} below {small}", PERCENT,
                     percent_below(*(_reads(_ON_DRIVE, OURS, "random", size, _MANY) for size in (large, small))),
                     between(25, 55), published=exactly(published))


def _on_pm():
    return _reads("record_cache/cache=0/container=pmem", OURS, "random", "4K")


def _in_dram(share):
    """Records on a key-value device, of which DRAM has this share."""
    return _reads(f"record_cache/cache={share}/container=kv", OURS, "random", "4K")


CLAIMS = [
    Claim("U4", "4 KB random reads are 4.2 times, sequential ones 4.4 times as many as BlueStore's.", _SOURCE,
          ["block_reads"],
          [_lead("random", 4.2), _lead("sequential", 4.4)], BLUESTORE, partner=BLUESTORE_PARTNER),
    Claim("U10", "Records in a DRAM cache are read faster than records on PM; where the cache misses, reads fall by up "
          "to 50 %, and "
                 "PM is faster.", _SOURCE, ["record_cache"], [
                     Condition("4 KB random reads: records on PM over all of them in DRAM", TIMES,
                               ratio(_on_pm(), _in_dram("100%")), at_most(1)),
                     Condition("4 KB random reads: 10 % of the records in DRAM below all of them", PERCENT,
                               percent_below(_in_dram("10%"), _in_dram("100%")), between(30, 60),
                               published=exactly(50)),
                     Condition("4 KB random reads: records on PM over 10 % of them in DRAM", TIMES,
                               ratio(_on_pm(), _in_dram("10%")), at_least(1))], PAIRS_DEVICE),
    Claim("U11", "With the records on the NVMe drive, 8 KB random reads are 39 % fewer than 4 KB ones, and 16 KB a "
          "further 43 %.", _SOURCE, ["block_reads"], [_falls("8K", "4K", 39), _falls("16K", "8K", 43)], DRIVE),
]
