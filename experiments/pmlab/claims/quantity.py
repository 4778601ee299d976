"""Quantities computed from the figures of cases, for comparison with limits.

A quantity knows the cases that it needs, so a claim's cases are listed once. It can be taken of measured figures, of
published ones, and of the figures of a single repeat."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .evidence import NotApplicable


@dataclass(frozen=True)
class Quantity:
    """`of(evidence, figure)` is its value, where `figure(name, path)` looks a figure up and raises as Evidence.figure
    does; `evidence` is for facts that are no figures: which memory a case ran on."""

    cases: tuple[str, ...]
    of: Callable


def measured(name, path="value"):
    """The figure of a case: nanoseconds, GiB/s, or the figure at `path`."""
    return Quantity((name,), lambda evidence, figure: figure(name, path))


def made_of(quantities, function):
    """`function` of the values of these quantities."""
    quantities = tuple(quantities)
    return Quantity(tuple(name for q in quantities for name in q.cases),
                    lambda evidence, figure: function(*(q.of(evidence, figure) for q in quantities)))


def over(above, below):
    """No number, NaN, where `below` is 0: a memory that answered nothing in a phase must not end the judging of the
    others, and passes no limit."""
    return above / below if below != 0 else math.nan


def extreme(pick, values):
    """`pick`: min or max. NaN if one of the values is none, in whatever place."""
    values = tuple(values)
    return math.nan if any(map(math.isnan, values)) else pick(values)


def ratio(above, below):
    return made_of((above, below), over)


def times(factor, quantity):
    return made_of((quantity,), lambda value: factor * value)


def highest(quantities):
    return made_of(quantities, lambda *values: extreme(max, values))


def lowest(quantities):
    return made_of(quantities, lambda *values: extreme(min, values))


def percent_below(first, second):
    """By how many percent `first` is below `second`; negative: above it."""
    return made_of((first, second), lambda a, b: 100 * (1 - over(a, b)))


def largest_difference(pairs):
    """By how many percent the two of a pair differ, of the pair that differs most: the larger over the smaller."""
    def difference(first, second):
        value = over(first, second)
        return 100 * (extreme(max, (value, over(1, value))) - 1)
    return highest(made_of(pair, difference) for pair in pairs)


def over_dram(given, dram):
    """Case `given` over case `dram`. Not applicable where both ran on the same memory."""
    def of(evidence, figure):
        value = over(figure(given, "value"), figure(dram, "value"))
        if evidence.memory_of(given) == evidence.memory_of(dram):
            raise NotApplicable(f"the memory is {evidence.memory_of(dram)} itself, and this is a comparison with it")
        return value
    return Quantity((given, dram), of)


def either(first, second):
    """`first`, or where this memory has not got it, `second`."""
    def of(evidence, figure):
        try:
            return first.of(evidence, figure)
        except NotApplicable:
            return second.of(evidence, figure)
    return Quantity(first.cases + second.cases, of)
