"""M19 to M22: against DRAM, and against a solid-state drive."""

from ..claim import MEMORY, TIMES, Claim, Condition
from ..limits import at_most, between, exactly
from ..quantity import either, measured, over_dram, ratio
from ..words import MUCH, SAME, around

_SOURCE = "[Han21], section 2"


def _slower_reads(size):
    return Condition(f"dependent reads of {size} B over DRAM's", TIMES,
                     over_dram(f"dependent-read/medium=given/access_bytes={size}",
                               f"dependent-read/medium=dram/access_bytes={size}"), between(3, 5),
                     published=between(3, 5))


def _share_of_dram(six, one, dram):
    """Where the memory is one simulated DIMM, six of them are compared with DRAM of six channels."""
    return either(over_dram(six, dram), over_dram(one, dram))


def _drive(side, of_memory, published):
    """ "Far below": less than half. `published`: the peaks of the drive and of the memory. """
    return Condition(f"bandwidth of the modelled P4610 over the memory's, {side}", TIMES,
                     ratio(measured(f"drive-{side}"), measured(of_memory)), at_most(0.5), published=exactly(published))


CLAIMS = [
    Claim("M19", "Read latency is 3 to 5 times that of DRAM.", _SOURCE, [MEMORY], [
        _slower_reads("64"), _slower_reads("256"), _slower_reads("512")]),
    Claim("M20", "Near 256 B, write latency is about that of DRAM.", _SOURCE, [MEMORY], [
        Condition("a line now and then, non-temporal: over DRAM's", TIMES,
                  over_dram("idle-ntstore/medium=given", "idle-ntstore/medium=dram"), at_most(SAME)),
        Condition("256 B one after the other, non-temporal and fenced: over DRAM's", TIMES,
                  over_dram("write-by-size/pattern=random/access_bytes=256", "dram-write-by-size/access_bytes=256"),
                  at_most(MUCH))]),
    Claim("M21", "It has about 1/3 of DRAM's read bandwidth and 1/6 of its write bandwidth.", _SOURCE, [MEMORY], [
        Condition("reads: six simulated DIMMs over DRAM of six channels; a real memory over DRAM", TIMES,
                  _share_of_dram("six-dimms-load", "load-random/access_bytes=256/threads=24", "dram-load/threads=24"),
                  around(1 / 3), published=exactly(1 / 3)),
        Condition("writes: the same", TIMES,
                  _share_of_dram("six-dimms-ntstore", "ntstore-random/access_bytes=256/threads=12",
                                 "dram-store/store=ntstore/threads=24"), around(1 / 6), published=exactly(1 / 6))]),
    Claim("M22", "An NVMe drive is far below it: the paper's peaks at 870 MB/s read and 680 MB/s written.", _SOURCE,
          [MEMORY], [_drive("read", "load-random/access_bytes=256/threads=4", 0.87 / 7),
                     _drive("write", "ntstore-random/access_bytes=256/threads=1", 0.68 / 2)]),
]
