"""I1 to I4: a hash and a tree over the same data, and which of them belongs into persistent memory."""

from ..claim import PERCENT, TIMES, Claim, Condition
from ..index_cases import of_index
from ..limits import at_least, at_most, between, exactly
from ..quantity import highest, lowest, percent_below, ratio
from ..words import around

_SOURCE = "[Han21], section 3, figure 17"
_PLAIN, _PLUS = "hybrid_index", "hybrid_index_plus"


def _throughput(index, threads, phase):
    return of_index("hybrid", index, threads, phase)


def _gap(threads):
    return ratio(_throughput(_PLUS, threads, "read"), _throughput(_PLAIN, threads, "read"))


def _slower_writes(threads, phase):
    return Condition(f"{phase}s, {'1 thread' if threads == '1' else 'most threads'}: HybridIndex+ below HybridIndex",
                     PERCENT, percent_below(_throughput(_PLUS, threads, phase), _throughput(_PLAIN, threads, phase)),
                     around(30), published=exactly(30))


def _restart(index, figure):
    return of_index("hybrid_restart", index, "1", "reopen", figure)


CLAIMS = [
    Claim("I1", "HybridIndex+ (hash in DRAM, tree in PM) reads up to 1.8 times as fast as HybridIndex (hash in PM, "
          "tree in DRAM).", _SOURCE, ["hybrid"], [
              Condition("reads: HybridIndex+ over HybridIndex, highest of 1 thread and most threads", TIMES,
                        highest([_gap("1"), _gap("most")]), between(1.5, 2.25), published=exactly(1.8)),
              Condition("reads: the lowest of them", TIMES, lowest([_gap("1"), _gap("most")]), at_least(1))]),
    Claim("I2", "Its writes, which change both halves before they answer, are 30 % slower than HybridIndex's "
          "asynchronous ones.", _SOURCE, ["hybrid"], [
              _slower_writes("1", "update"), _slower_writes("most", "update"),
              _slower_writes("1", "insert"), _slower_writes("most", "insert")]),
    Claim("I3", "The gap between their reads grows with the number of threads.", _SOURCE, ["hybrid"], [
        Condition("reads: HybridIndex+ over HybridIndex, most threads over 1 thread", TIMES,
                  ratio(_gap("most"), _gap("1")), at_least(1.1))]),
    Claim("I4", "After a restart HybridIndex+ answers finds and scans as soon as its tree is open; HybridIndex must "
          "rebuild its tree first.", "[Han21], section 3", ["hybrid_restart"], [
              Condition("HybridIndex+: first find after a restart, over HybridIndex's first scan", TIMES,
                        ratio(_restart(_PLUS, "restart/find_ns"), _restart(_PLAIN, "restart/scan_ns")), at_most(0.1)),
              Condition("HybridIndex+: first scan, over HybridIndex's", TIMES,
                        ratio(_restart(_PLUS, "restart/scan_ns"), _restart(_PLAIN, "restart/scan_ns")), at_most(0.1)),
              Condition("HybridIndex: first scan, over its first find", TIMES,
                        ratio(_restart(_PLAIN, "restart/scan_ns"), _restart(_PLAIN, "restart/find_ns")),
                        at_least(10))]),
]
