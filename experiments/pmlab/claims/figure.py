"""A measured number with its repeats."""

from dataclasses import dataclass
from statistics import median

# A single repeat does not show its spread: on a real clock of the machine's mood, on a virtual one of another layout.
# It is assumed to lie within this part of the figure: 10 %, the distance that seven of ten repeats of a cell on a real
# clock keep from their median (results of scale quick, a quiet machine of two CPUs).
MARGIN_OF_ONE = 0.1


@dataclass(frozen=True)
class Figure:
    """`low` and `high`: the least and the most of its `n` repeats; `value` where it repeats to the digit. `turns`:
    figures of the same turns were measured one after the other in each repeat, so their repeats belong together; None:
    measured apart from all others."""

    value: float
    low: float
    high: float
    n: int = 1
    repeats: tuple[float, ...] = ()
    turns: str | None = None

    @classmethod
    def exact(cls, value, n=1):
        """A count, which no repeat would change."""
        return cls(value, value, value, n)

    @classmethod
    def of_repeats(cls, values, turns=None, value=None):
        """A figure of repeats, whatever their clock. `value`: their median, where a result already has it."""
        value = median(values) if value is None else value
        if len(values) == 1:
            margin = abs(value) * MARGIN_OF_ONE
            return cls(value, value - margin, value + margin)
        return cls(value, min(*values, value), max(*values, value), len(values), tuple(values), turns)
