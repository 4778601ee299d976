"""Whether two measurements of one figure differ by more than chance.

With four repeats or more on both sides a rank test decides (Mann and Whitney 1947, two-sided, exact for few repeats);
where only their ranges are known, whether these overlap. With fewer repeats no test can tell: each figure is taken to
lie within 10 % of its median at least, as claims are judged. Counts are exact."""

import itertools
import math
import statistics
from dataclasses import dataclass

from ..claims.figure import MARGIN_OF_ONE

SAME = 0.02  # ratios that near to 1 are no change
LEVEL = 0.05  # level of the rank test
ENOUGH_REPEATS = 4  # two times three can be ordered in 20 ways: no order of them is rarer than 5 %
_EXACT_UP_TO = 16  # repeats of both sides together: 12,870 ways to divide them


@dataclass
class Side:
    """A figure in one of the results: median, lowest and highest of `n` repeats; `samples`: the value of each repeat,
    where it is known."""

    value: float
    low: float
    high: float
    n: int
    samples: tuple = ()

    @classmethod
    def of(cls, samples):
        return cls(statistics.median(samples), min(samples), max(samples), len(samples), tuple(samples))


def _ranks(values):
    """From 1; equal values have the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(v) + (ordered.count(v) + 1) / 2 for v in values]


def rank_test(first, second):
    """How probable ranks are that lie at least as far apart as these, if nothing but chance divides the values."""
    ranks = _ranks([*first, *second])
    n, m = len(first), len(second)
    middle = n * (n + m + 1) / 2
    distance = abs(sum(ranks[:n]) - middle)
    if n + m <= _EXACT_UP_TO:
        sums = [sum(chosen) for chosen in itertools.combinations(ranks, n)]
        return sum(abs(s - middle) >= distance - 1e-9 for s in sums) / len(sums)
    deviation = math.sqrt(n * m / (n + m - 1) * statistics.pvariance(ranks))
    if deviation == 0:
        return 1.0
    return math.erfc(max(0.0, distance - 0.5) / deviation / math.sqrt(2))


def _range(side, exact):
    if exact or side.n >= ENOUGH_REPEATS:
        return side.low, side.high
    margin = abs(side.value) * MARGIN_OF_ONE
    return min(side.low, side.value - margin), max(side.high, side.value + margin)


def probability(before, after):
    """The rank test's; None: there are too few repeats for one, or they are not known."""
    if min(len(before.samples), len(after.samples)) < ENOUGH_REPEATS:
        return None
    return rank_test(before.samples, after.samples)


def is_alike(before, after, exact=False, level=LEVEL):
    """Whether chance may have made the difference. `exact`: chance has no part in the figures."""
    larger = max(abs(before.value), abs(after.value))
    if abs(after.value - before.value) <= SAME * larger:
        return True
    chance = None if exact else probability(before, after)
    if chance is not None:
        return chance > level
    (low, high), (other_low, other_high) = _range(before, exact), _range(after, exact)
    return low <= other_high and other_low <= high
