"""Whether two measurements of one figure differ by more than chance.

With four repeats or more on both sides a rank test decides (Mann and Whitney 1947, two-sided, exact for few repeats);
where only their ranges are known, whether these overlap. With fewer repeats no test can tell: each figure is taken to
lie within 10 % of its median at least, as claims are judged. Counts are exact."""

import statistics
from dataclasses import dataclass

from ..claims.figure import MARGIN_OF_ONE
from ..errors import no_module

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


def rank_test(first, second):
    """How probable ranks are that lie at least as far apart as these, if nothing but chance divides the values: by
    SciPy. Raises Failure: it is not there."""
    try:
        from scipy import stats  # takes most of a second: here, where a comparison needs it
    except ImportError as problem:
        raise no_module(problem, "scipy", "which tests whether repeats differ by chance") from problem
    n, all_of_them = len(first), len(first) + len(second)
    if all_of_them > _EXACT_UP_TO:
        if len({*first, *second}) == 1:
            return 1.0
        return float(stats.mannwhitneyu(first, second, method="asymptotic").pvalue)
    # SciPy's exact test of Mann and Whitney knows no equal values: all ways to divide the ranks do.
    ranks = stats.rankdata([*first, *second])
    middle = n * (all_of_them + 1) / 2
    tested = stats.permutation_test((ranks[:n], ranks[n:]), lambda one, other, axis: abs(one.sum(axis) - middle),
                                    vectorized=True, n_resamples=float("inf"), alternative="greater")
    return float(tested.pvalue)


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
