"""M12 to M18: bandwidth by size, order, threads and fences."""

from ..claim import GB_PER_S, MEMORY, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..paper_cases import (BANDWIDTH_SIZES, COPY_SIZES, THEN_FENCE_SIZES, copy, load, readable_size, share_of_highest,
                           store, store_then_fence)
from ..quantity import highest, measured, ratio, times
from ..words import FALLS, GB_PER_GIB, SAME

_SOURCE = "[Han21], section 2"
_SEVERAL = 4
_MANY = 16


def _highest_of(group, sizes):
    return times(GB_PER_GIB, highest(measured(f"{group}/access_bytes={size}/threads={threads}")
                                     for size in sizes for threads in (1, 2, 4, 8, 12, 24)))


def _share(side, bandwidth, pattern, size, threads, sizes, must_be):
    return Condition(f"{pattern} {side}, {threads} threads: {readable_size(size)} over the best of all sizes", TIMES,
                     share_of_highest(bandwidth, pattern, size, threads, sizes), must_be)


def _waste(side, bandwidth):
    return Condition(f"random {side}, 4 threads: bandwidth at 64 B over that at 256 B", TIMES,
                     ratio(bandwidth("random", "64", _SEVERAL), bandwidth("random", "256", _SEVERAL)), at_most(0.5))


def _amplified(side, group, path):
    return Condition(f"{side} at 64 B: bytes that the media moved over those asked for", TIMES,
                     measured(f"{group}/pattern=random/access_bytes=64/threads=4", path), at_least(2),
                     where_counted=True)


def _fenced_every_256(size):
    return measured(f"ntstore-fenced-by-size/access_bytes={size}/threads=16")


CLAIMS = [
    Claim("M12", "One DIMM reads at most about 7 GB/s and writes at most about 2 GB/s.", _SOURCE, [MEMORY], [
        Condition("highest read bandwidth of any size and number of threads", GB_PER_S,
                  _highest_of("load-random", ("64", "256", "4K")), between(6.5, 7.5), published=exactly(7)),
        Condition("highest write bandwidth of any size and number of threads", GB_PER_S,
                  _highest_of("ntstore-random", ("64", "256")), between(1.5, 2.5), published=exactly(2))]),
    Claim("M13", "With several threads, random access reaches its highest bandwidth at 256 B.", _SOURCE, [MEMORY], [
        _share("reads", load, "random", "256", _SEVERAL, BANDWIDTH_SIZES, at_least(FALLS)),
        _share("reads", load, "random", "128", _SEVERAL, BANDWIDTH_SIZES, at_most(FALLS)),
        _share("writes", store, "random", "256", _SEVERAL, BANDWIDTH_SIZES, at_least(FALLS)),
        _share("writes", store, "random", "128", _SEVERAL, BANDWIDTH_SIZES, at_most(FALLS))]),
    Claim("M14", "Accesses below 256 B are amplified and waste bandwidth.", _SOURCE, [MEMORY], [
        _waste("reads", load), _waste("writes", store),
        _amplified("reads", "load-by-size", "media/read_amplification"),
        _amplified("writes", "ntstore-by-size", "media/write_amplification")]),
    Claim("M15", "Beyond some size, read and write bandwidth fall.", _SOURCE, [MEMORY], [
        _share("copies", copy, "random", COPY_SIZES[-1], _MANY, COPY_SIZES, at_most(FALLS)),
        _share("writes", store_then_fence, "random", "64K", _MANY, THEN_FENCE_SIZES, at_most(FALLS))]),
    Claim("M16", "A fence every 256 B stops the fall of write bandwidth with many threads.", _SOURCE, [MEMORY], [
        Condition("random writes, 16 threads, a fence every 256 B: 64 KB over 256 B", TIMES,
                  ratio(_fenced_every_256("64K"), _fenced_every_256("256")), at_least(FALLS)),
        Condition("random writes of 64 KB, 16 threads: a fence every 256 B over one at the end", TIMES,
                  ratio(_fenced_every_256("64K"), store_then_fence("random", "64K", _MANY)), at_least(SAME)),
        Condition("sequential writes, 16 threads: a fence every 256 B over none", TIMES,
                  ratio(measured("fence-every/threads=16/fence=256"), measured("fence-every/threads=16/fence=never")),
                  at_least(SAME))]),
    Claim("M17", "Sequential access reaches its highest bandwidth at 64 B already.", _SOURCE, [MEMORY], [
        _share("reads", load, "sequential", "64", _SEVERAL, BANDWIDTH_SIZES, at_least(FALLS)),
        _share("writes", store, "sequential", "64", _SEVERAL, BANDWIDTH_SIZES, at_least(FALLS))]),
    Claim("M18", "Large sequential accesses degrade too.", _SOURCE, [MEMORY], [
        _share("copies", copy, "sequential", COPY_SIZES[-1], _MANY, COPY_SIZES, at_most(FALLS)),
        _share("writes", store_then_fence, "sequential", "64K", _MANY, THEN_FENCE_SIZES, at_most(FALLS))]),
]
