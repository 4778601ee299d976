"""M7 to M10: the effect of threads on the latency of one access."""

from ..claim import BYTES, MEMORY, TIMES, Claim, Condition
from ..limits import at_least, at_most, between
from ..paper_cases import slowed_by_threads, write_latency
from ..quantity import largest_size_near_lowest, ratio
from ..words import SAME

_SOURCE = "[Han21], section 2"
_MANY = 16
# "Little affected", "about twice": a memory that shared its time evenly would take 16 times as long.
_TWICE_LOW, _TWICE_HIGH = 1.5, 2.5


def _reads(size, must_be):
    return Condition(f"{size} B reads: latency of 16 threads over that of 1", TIMES,
                     slowed_by_threads("read", size, _MANY), must_be)


def _large_reads(must_be):
    return Condition("64 KB reads: latency of 16 threads over that of 1", TIMES, slowed_by_threads("read", "64K", _MANY),
                     must_be)


def _sensitivity(size):
    return Condition(f"{size} B: what 16 threads do to writes, over what they do to reads", TIMES,
                     ratio(slowed_by_threads("write", size, _MANY), slowed_by_threads("read", size, _MANY)),
                     at_least(SAME))


def _fastest_write_of_one_thread():
    sizes = {8: "8", 16: "16", 32: "32", 64: "64", 128: "128", 256: "256", 512: "512", 1024: "1K", 4096: "4K"}
    return largest_size_near_lowest([(size, write_latency("random", name)) for size, name in sizes.items()], 1.05)


CLAIMS = [
    Claim("M7", "Read latency rises with threads, and more so for large reads.", _SOURCE, [MEMORY], [
        _large_reads(at_least(SAME)),
        Condition("the same over that of 256 B reads", TIMES,
                  ratio(slowed_by_threads("read", "64K", _MANY), slowed_by_threads("read", "256", _MANY)),
                  at_least(SAME))]),
    Claim("M8", "Random reads of up to 256 B are little affected by threads.", _SOURCE, [MEMORY], [
        _reads("64", at_most(_TWICE_HIGH)), _reads("256", at_most(_TWICE_HIGH))]),
    Claim("M9", "Write latency is more sensitive to threads than read latency, and lowest near 256 B.", _SOURCE, [MEMORY], [
        _sensitivity("64"), _sensitivity("256"),
        Condition("1 thread: largest write within 5 % of the fastest", BYTES, _fastest_write_of_one_thread(),
                  between(128, 512))]),
    Claim("M10", "From 1 to 16 threads, reads of 256 B and less take about twice as long, large ones about 16 times.",
          _SOURCE, [MEMORY], [
              _reads("64", between(_TWICE_LOW, _TWICE_HIGH)), _reads("256", between(_TWICE_LOW, _TWICE_HIGH)),
              _large_reads(between(_MANY / 2, _MANY * 1.5))]),
]
