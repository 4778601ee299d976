"""M1 to M5: latency of one access at a time, by size and order."""

from ..claim import MEMORY, PERCENT, TIMES, Claim, Condition
from ..limits import at_least, at_most
from ..paper_cases import read_latency, write_latency
from ..quantity import largest_difference, measured, ratio
from ..words import MUCH, SAME, SAME_PERCENT

_SOURCE = "[Han21], section 2"


def _difference(latency, sizes):
    return largest_difference((latency("random", s), latency("sequential", s)) for s in sizes)


def _random_over_sequential(size):
    return ratio(read_latency("random", size), read_latency("sequential", size))


def _over_64_bytes(size):
    return ratio(write_latency("random", size), write_latency("random", "64"))


CLAIMS = [
    Claim("M1", "A random read below 256 B has about the latency of a 256 B read.", _SOURCE, [MEMORY], [
        Condition("random reads of 8 to 128 B against 256 B: largest difference", PERCENT,
                  largest_difference((read_latency("random", s), read_latency("random", "256"))
                                     for s in ("8", "16", "32", "64", "128")), at_most(SAME_PERCENT))]),
    Claim("M2", "A sequential read below 256 B is much faster than a random one.", _SOURCE, [MEMORY], [
        Condition("8 B, nothing in the CPU's caches: random over sequential", TIMES,
                  ratio(measured("idle-read/medium=given/pattern=random"),
                        measured("idle-read/medium=given/pattern=sequential")), at_least(MUCH)),
        Condition("64 B: random over sequential", TIMES, _random_over_sequential("64"), at_least(MUCH)),
        Condition("128 B: random over sequential", TIMES, _random_over_sequential("128"), at_least(SAME))]),
    Claim("M3", "Large reads take as long at random as in order.", _SOURCE, [MEMORY], [
        Condition("1 KB to 16 MB: largest difference of random and sequential", PERCENT,
                  _difference(read_latency, ("1K", "4K", "16K", "64K", "1M", "16M")), at_most(SAME_PERCENT))]),
    Claim("M4", "Fenced writes take as long at random as in order, at every size.", _SOURCE, [MEMORY], [
        Condition("8 B to 16 MB: largest difference of random and sequential", PERCENT,
                  _difference(write_latency, ("8", "16", "32", "64", "128", "256", "512", "1K", "4K", "16K", "64K",
                                              "1M", "16M")), at_most(SAME_PERCENT))]),
    Claim("M5", "A non-temporal store of less than 64 B is slower than one of 64 B.", _SOURCE, [MEMORY], [
        Condition(f"{size} B over 64 B", TIMES, _over_64_bytes(size), at_least(1.05)) for size in ("8", "16", "32")]),
]
