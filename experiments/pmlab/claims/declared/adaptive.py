"""I11: choosing at run time."""

from ..claim import PERCENT, Claim, Condition
from ..index_cases import ZIPFIAN, of_index
from ..limits import at_most
from ..quantity import highest, percent_below

_AS_GOOD_AS = 10  # percent


def _near_the_best(what, experiment, adaptive, fixed, phase):
    """By how much the index that chooses is slower than the best of those that it can choose from."""
    best = highest(of_index(experiment, index, "most", phase) for index in fixed)
    return Condition(what, PERCENT, percent_below(of_index(experiment, adaptive, "most", phase), best),
                     at_most(_AS_GOOD_AS))


def _hybrid_choice(phase):
    def name(how):
        return f"hybrid(hash=cceh@dram,tree=fast_fair@pmem,update={how})"
    return _near_the_best(f"HybridIndex+, {phase}: adaptive below the better of sync and async", "adaptive_hybrid",
                          name("adaptive"), (name("sync"), name("async")), phase)


def _cache_choice(distribution):
    def name(mode):
        return f"cache(fast_fair,mode={mode})"
    return _near_the_best(f"cache, {distribution} reads: adaptive below the better of serial and parallel",
                          f"adaptive_cache/distribution={distribution}", name("adaptive"),
                          (name("serial"), name("parallel")), "read")


CLAIMS = [
    Claim("I11", "Synchronous or asynchronous updates, serial or parallel lookups can be chosen from the load seen at "
          "run time.", "[Han21], section 3", ["adaptive_hybrid", "adaptive_cache"], [
              _hybrid_choice("update"), _hybrid_choice("read"), _hybrid_choice("ycsb-a"), _cache_choice(ZIPFIAN),
              _cache_choice("uniform")]),
]
