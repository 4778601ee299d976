"""M6, M11, M26: which sizes of access suit the memory."""

from ..claim import MEMORY, NS, TIMES, Claim, Condition
from ..limits import at_least, at_most, between
from ..paper_cases import (COPY_SIZES, THEN_FENCE_SIZES, copy, read_latency, readable_size, store_then_fence,
                           write_latency)
from ..quantity import highest, lowest, ratio
from ..words import FALLS, MICROSECOND, MILLISECOND, SAME

_SOURCE = "[Han21], section 2"


def _latency(side, latency, size, must_be):
    """The rule is the source's order of magnitude."""
    return Condition(f"{readable_size(size)} at random, {side}", NS, latency("random", size), must_be,
                     published=must_be)


def _step(side, latency, above, below, must_be):
    return Condition(f"{side}: {readable_size(above)} over {readable_size(below)}", TIMES,
                     ratio(latency("random", above), latency("random", below)), must_be)


def _copies(size):
    """At the number of threads that suits the size: the source has 1 to 16."""
    return highest(copy("random", size, threads) for threads in (4, 8, 16))


def _writes(size):
    return highest(store_then_fence("random", size, threads) for threads in (4, 16))


def _share(bandwidth, size, sizes):
    return ratio(bandwidth(size), highest(bandwidth(s) for s in sizes))


def _worst_of_the_range(bandwidth, sizes):
    """From 256 B to 4 KB: the worst of them over the best of all sizes."""
    return lowest(_share(bandwidth, size, sizes) for size in ("256", "1K", "4K"))


CLAIMS = [
    Claim("M6", "The best size is 256 B, and up to 1 KB latency stays in nanoseconds.", _SOURCE, [MEMORY], [
        _step("reads", read_latency, "256", "64", at_most(SAME)),
        _step("reads", read_latency, "1K", "256", at_least(SAME)),
        _step("writes", write_latency, "256", "64", at_most(SAME)),
        _step("writes", write_latency, "1K", "256", at_least(SAME)),
        _latency("read", read_latency, "1K", at_most(MICROSECOND)),
        _latency("written", write_latency, "1K", at_most(MICROSECOND))]),
    Claim("M11", "Below 512 B an access takes hundreds of nanoseconds, kilobytes take microseconds, megabytes "
          "milliseconds.",
          _SOURCE, [MEMORY], [
              _latency("read", read_latency, "256", between(100, MICROSECOND)),
              _latency("written", write_latency, "256", between(100, MICROSECOND)),
              _latency("read", read_latency, "4K", between(MICROSECOND, MILLISECOND)),
              _latency("written", write_latency, "4K", between(MICROSECOND, MILLISECOND)),
              _latency("read", read_latency, "16M", at_least(MILLISECOND)),
              _latency("written", write_latency, "16M", at_least(MILLISECOND))]),
    Claim("M26", "The best range of sizes is 256 B to 4 KB.", _SOURCE, [MEMORY], [
        Condition("copies, at each size's best number of threads: worst of 256 B to 4 KB over the best of all sizes",
                  TIMES, _worst_of_the_range(_copies, COPY_SIZES), at_least(1 / SAME)),
        Condition("writes, at each size's best number of threads: worst of 256 B to 4 KB over the best of all sizes",
                  TIMES, _worst_of_the_range(_writes, THEN_FENCE_SIZES), at_least(1 / SAME)),
        Condition("copies, at each size's best number of threads: 64 B over the best of all sizes", TIMES,
                  _share(_copies, "64", COPY_SIZES), at_most(1 / SAME)),
        Condition("writes, at each size's best number of threads: 64 B over the best of all sizes", TIMES,
                  _share(_writes, "64", THEN_FENCE_SIZES), at_most(1 / SAME)),
        Condition("copies, 16 threads: 64 KB over 4 KB", TIMES,
                  ratio(copy("random", "64K", 16), copy("random", "4K", 16)), at_most(FALLS)),
        Condition("writes, 16 threads: 64 KB over 4 KB", TIMES,
                  ratio(store_then_fence("random", "64K", 16), store_then_fence("random", "4K", 16)), at_most(FALLS))]),
]
