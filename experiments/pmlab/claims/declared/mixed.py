"""M23 to M25: readers beside writers, 256 B each."""

from ..claim import MEMORY, NS, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..quantity import highest, measured, ratio
from ..words import MICROSECOND, SAME, SHARPLY_LESS

_SOURCE = "[Han21], section 2"
_NEAR_A_MICROSECOND = between(MICROSECOND / 2, MICROSECOND * 2)


def _reads_beside(writers):
    return measured(f"mix-by-writers/writers={writers}", "reads/gib_per_s")


def _writes_beside(readers):
    return measured(f"mix-by-readers/readers={readers}", "writes/gib_per_s")


def _highest_latency(side):
    """The highest mean latency of a side, over every number of readers and writers."""
    return highest(measured(f"mix-latency/readers={readers}/writers={writers}", f"{side}/latency_ns/mean")
                   for readers in (1, 4, 8) for writers in (1, 4, 8))


CLAIMS = [
    Claim("M23", "The first writer lowers the bandwidth of readers sharply; then it levels off.", _SOURCE, [MEMORY], [
        Condition("8 readers: bandwidth beside 1 writer over that without", TIMES,
                  ratio(_reads_beside(1), measured("load-random/access_bytes=256/threads=8")), at_most(SHARPLY_LESS)),
        Condition("8 readers: bandwidth beside 8 writers over that beside 4", TIMES,
                  ratio(_reads_beside(8), _reads_beside(4)), at_least(1 / SAME))]),
    Claim("M24", "Readers lower the bandwidth of writers; then it levels off.", _SOURCE, [MEMORY], [
        Condition("8 writers: bandwidth beside 8 readers over that without", TIMES,
                  ratio(_writes_beside(8), measured("ntstore-fenced/threads=8")), at_most(SHARPLY_LESS)),
        Condition("8 writers: bandwidth beside 8 readers over that beside 4", TIMES,
                  ratio(_writes_beside(8), _writes_beside(4)), at_least(1 / SAME))]),
    Claim("M25", "Both latencies stay near 1 us in the mix.", _SOURCE, [MEMORY], [
        Condition("highest read latency of 1 to 8 readers and writers", NS, _highest_latency("reads"),
                  _NEAR_A_MICROSECOND, published=exactly(MICROSECOND)),
        Condition("highest write latency of 1 to 8 readers and writers", NS, _highest_latency("writes"),
                  _NEAR_A_MICROSECOND, published=exactly(MICROSECOND))]),
]
