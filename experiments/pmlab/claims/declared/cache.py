"""I5 to I10: an asynchronous cache in front of an index."""

from itertools import pairwise

from ..claim import PERCENT, TIMES, Claim, Condition
from ..index_cases import ZIPFIAN, of_index
from ..limits import at_least, at_most, between, exactly
from ..quantity import Quantity, extreme, highest, percent_below, ratio, times

_FIGURE_19 = "[Han21], section 3, figure 19"
_FIGURE_20 = "[Han21], section 3, figure 20"
_INDEXES = {"fast_fair": "FAST-FAIR", "fp_tree": "FP-tree", "skip_list": "skip list"}


def _mean(distribution, index, phase):
    """Nanoseconds of an operation in experiment cache, one thread."""
    return of_index(f"cache/distribution={distribution}", index, "1", phase, "latency_ns/mean")


def _gain(distribution, index, phase, cache="cache"):
    return percent_below(_mean(distribution, f"{cache}({index})", phase), _mean(distribution, index, phase))


def _loss(index, phase, cache="cache"):
    return times(-1, _gain(ZIPFIAN, index, phase, cache))


def _least_step_of_gain():
    """From each index to the next slower one, by how many percentage points the gain rises: the least of these."""
    parts = [(_mean(ZIPFIAN, i, "read"), _gain(ZIPFIAN, i, "read")) for i in _INDEXES]

    def of(evidence, figure):
        by_speed = sorted((bare.of(evidence, figure), gain.of(evidence, figure)) for bare, gain in parts)
        return extreme(min, (slower[1] - faster[1] for faster, slower in pairwise(by_speed)))
    return Quantity(tuple(name for _, gain in parts for name in gain.cases), of)


def _for_each_index(what, make, must_be, published=None):
    return [Condition(f"{title}: {what}", PERCENT, make(index), must_be, published=published)
            for index, title in _INDEXES.items()]


def _over(distribution, above, below, phase):
    """The time of an operation on FAST-FAIR in experiment cache_parallel, one way over another."""
    ways = {"bare": "fast_fair", "serial": "cache(fast_fair)", "parallel": "cache(fast_fair,mode=parallel)"}
    return ratio(*(of_index(f"cache_parallel/distribution={distribution}", ways[way], "1", phase, "latency_ns/mean")
                   for way in (above, below)))


CLAIMS = [
    Claim("I5", "With a cache of 10 % of the data, zipfian reads take 20 to 50 % less time, up to 40 %.", _FIGURE_19,
          ["cache"], [
              *_for_each_index("zipfian reads faster with the cache by", lambda i: _gain(ZIPFIAN, i, "read"),
                               at_least(20), between(20, 50)),
              Condition("the largest of them", PERCENT, highest(_gain(ZIPFIAN, i, "read") for i in _INDEXES),
                        at_least(32), published=exactly(40))]),
    Claim("I6", "With uniform keys the serial cache gains nothing, or makes reads slower.", _FIGURE_19, ["cache"],
          _for_each_index("uniform reads faster with the cache by", lambda i: _gain("uniform", i, "read"),
                          at_most(10))),
    Claim("I7", "The slower the index, the larger the gain.", _FIGURE_19, ["cache"], [
        Condition("zipfian reads: from an index to the next slower one the gain rises by, at least", PERCENT,
                  _least_step_of_gain(), at_least(0))]),
    Claim("I8", "Inserts are not affected by the cache.", _FIGURE_19, ["cache"],
          _for_each_index("inserts slower with the cache by", lambda i: _loss(i, "insert"), at_most(10))),
    Claim("I9", "Updates are 20 to 30 % slower with the cache, because both copies change before they answer.",
          _FIGURE_19, ["cache"], _for_each_index("zipfian updates slower with the paper's cache by",
                                                 lambda i: _loss(i, "update", "locked_cache"),
                                                 between(15, 40), between(20, 30)),
          "locked_cache, a chained table under one LRU list and one lock, for the paper's own program; updates through "
          "pmlab's cache, in the chart beside it, cost less"),
    Claim("I10", "Searching cache and index at once takes the price of a miss away from reads and updates, and costs "
          "processor time: it pays where few lookups hit.", _FIGURE_20, ["cache_parallel"], [
              Condition("uniform reads: parallel over the bare index", TIMES,
                        _over("uniform", "parallel", "bare", "read"),
                        at_most(1.1)),
              Condition("uniform updates: parallel over the bare index", TIMES,
                        _over("uniform", "parallel", "bare", "update"), at_most(1.1)),
              Condition("uniform reads: parallel over serial", TIMES, _over("uniform", "parallel", "serial", "read"),
                        at_most(1)),
              Condition("zipfian reads: parallel over serial", TIMES, _over(ZIPFIAN, "parallel", "serial", "read"),
                        at_least(1))]),
]
