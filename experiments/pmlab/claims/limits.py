"""Limits, and whether a measured quantity keeps them. Claims and the targets of the report are judged by this alone."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both included."""

    low: float = -math.inf
    high: float = math.inf


def at_least(low):
    return Range(low=low)


def at_most(high):
    return Range(high=high)


def between(low, high):
    return Range(low, high)


def exactly(value):
    return Range(value, value)


@dataclass(frozen=True)
class Measured:
    """A quantity with its spread: `low` to `high` is what its repeats allow, `n` how many repeats there were (the
    fewest, where its figures differ). Where the repeats agree to the digit, `low` and `high` are its value."""

    value: float
    low: float
    high: float
    n: int = 1

    @property
    def exact(self):
        return self.low == self.value == self.high

    @property
    def is_number(self):
        """False: x/0, in one repeat at least."""
        return all(map(math.isfinite, (self.value, self.low, self.high)))


def keeps(measured, limits):
    """True: the whole spread is within the limits. False: all of it is outside, so more repeats would not mend it.
    None: the spread crosses a limit, and the value's side of it is luck; or it is no number, whatever the limit."""
    if not measured.is_number:
        return None
    if limits.low <= measured.low and measured.high <= limits.high:
        return True
    if measured.high < limits.low or measured.low > limits.high:
        return False
    return None
