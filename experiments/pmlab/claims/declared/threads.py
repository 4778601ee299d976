"""M7 to M10: the effect of threads on the latency of one access."""

from ..claim import MEMORY, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..paper_cases import slowed_by_threads, write_latency
from ..quantity import lowest, ratio
from ..words import SAME, around

_SOURCE = "[Han21], section 2"
_MANY = 16
# "Little affected", "about twice": a memory that shared its time evenly would take 16 times as long.
_TWICE_LOW, _TWICE_HIGH = 1.5, 2.5
_SLOWER = 1.05  # as in M5


def _reads(size, must_be, published=None):
    return Condition(f"{size} B reads: latency of 16 threads over that of 1", TIMES,
                     slowed_by_threads("read", size, _MANY), must_be, published=published)


def _large_reads(must_be, published=None):
    return Condition("64 KB reads: latency of 16 threads over that of 1", TIMES,
                     slowed_by_threads("read", "64K", _MANY),
                     must_be, published=published)


def _sensitivity(size):
    return Condition(f"{size} B: what 16 threads do to writes, over what they do to reads", TIMES,
                     ratio(slowed_by_threads("write", size, _MANY), slowed_by_threads("read", size, _MANY)),
                     at_least(SAME))


def _above_the_minimum(what, sizes):
    """The latency has a minimum near 256 B if it is higher on both sides of it."""
    def fastest(of):
        return lowest(write_latency("random", size) for size in of)
    return Condition(f"1 thread, writes: the fastest of {what} over the fastest of 128 to 512 B", TIMES,
                     ratio(fastest(sizes), fastest(("128", "256", "512"))), at_least(_SLOWER))


CLAIMS = [
    Claim("M7", "Read latency rises with threads, and more so for large reads.", _SOURCE, [MEMORY], [
        _large_reads(at_least(SAME)),
        Condition("the same over that of 256 B reads", TIMES,
                  ratio(slowed_by_threads("read", "64K", _MANY), slowed_by_threads("read", "256", _MANY)),
                  at_least(SAME))]),
    Claim("M8", "Random reads of up to 256 B are little affected by threads.", _SOURCE, [MEMORY], [
        _reads("64", at_most(_TWICE_HIGH)), _reads("256", at_most(_TWICE_HIGH))]),
    Claim("M9", "Write latency is more sensitive to threads than read latency, and lowest near 256 B.", _SOURCE,
          [MEMORY], [
        _sensitivity("64"), _sensitivity("256"),
        _above_the_minimum("8 to 64 B", ("8", "16", "32", "64")), _above_the_minimum("1 KB and 4 KB", ("1K", "4K"))]),
    Claim("M10", "From 1 to 16 threads, reads of 256 B and less take about twice as long, large ones about 16 times.",
          _SOURCE, [MEMORY], [
              *(_reads(size, between(_TWICE_LOW, _TWICE_HIGH), exactly(2)) for size in ("64", "256")),
              _large_reads(at_least(around(_MANY).low), exactly(_MANY))]),
]
