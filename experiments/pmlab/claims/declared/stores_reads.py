"""U4, U10, U11: what UStore reads."""

from ..claim import PERCENT, TIMES, Claim, Condition
from ..limits import at_least, at_most, between
from ..quantity import percent_below, ratio
from ..store_cases import BLUESTORE, DRIVE, OURS, PAIRS_DEVICE, READS, of_store

_SOURCE = "[UStore], section 4.3, figures 11 and 12"
_ON_DRIVE = "block_reads/container=blocks"


def _reads(prefix, store, pattern, size):
    return of_store(prefix, store, "read", pattern, size, 32)


def _lead(pattern):
    return Condition(f"4 KB {pattern} reads, 32 in flight: chunk_store over rocksdb_meta", TIMES,
                     ratio(_reads(READS, OURS, pattern, "4K"), _reads(READS, "rocksdb_meta", pattern, "4K")), at_least(1.5))


def _falls(large, small):
    """ "By 39 %" and "by 43 %": both within 25 to 55 %. """
    return Condition(f"records on the drive, random reads: {large} below {small}", PERCENT,
                     percent_below(_reads(_ON_DRIVE, OURS, "random", large), _reads(_ON_DRIVE, OURS, "random", small)),
                     between(25, 55))


def _on_pm_over(share):
    """4 KB at random: records on PM over records on a key-value device, of which DRAM has this share."""
    return ratio(_reads("record_cache/cache=0/container=pmem", OURS, "random", "4K"),
                 _reads(f"record_cache/cache={share}/container=kv", OURS, "random", "4K"))


CLAIMS = [
    Claim("U4", "4 KB random reads are 4.2 times, sequential ones 4.4 times as many as BlueStore's.", _SOURCE, ["block_reads"],
          [_lead("random"), _lead("sequential")], BLUESTORE),
    Claim("U10", "Records in a DRAM cache are read faster than records on PM; where the cache misses, reads fall by up to 50 %, and "
                 "PM is faster.", _SOURCE, ["record_cache"], [
                     Condition("4 KB random reads: records on PM over all of them in DRAM", TIMES, _on_pm_over("100%"), at_most(1)),
                     Condition("4 KB random reads: records on PM over 10 % of them in DRAM", TIMES, _on_pm_over("10%"),
                               at_least(1))], PAIRS_DEVICE),
    Claim("U11", "With the records on the NVMe drive, 8 KB random reads are 39 % fewer than 4 KB ones, and 16 KB a further 43 %.",
          _SOURCE, ["block_reads"], [_falls("8K", "4K"), _falls("16K", "8K")], DRIVE),
]
