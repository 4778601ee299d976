"""From a quantity of figures that spread to a value with its spread.

Cases of one benchmark cell were measured in turns, repeat by repeat, so that a change of the machine falls on all alike:
the quantity is taken of each repeat, and the spread is from the least to the most of these. Figures that were measured
apart do not change together: each is put to its least and to its most while the others keep their medians, and the
changes add up in squares, as errors of independent measurements do."""

import math

from .limits import Measured


def measure(quantity, evidence):
    """A quantity of measured figures. Raises as Evidence.figure does."""
    used = {}

    def median(name, path):
        used[name, path] = evidence.figure(name, path)
        return used[name, path].value

    value = quantity.of(evidence, median)
    n = min((f.n for f in used.values()), default=1)
    inexact = {key: f for key, f in used.items() if not f.low == f.value == f.high}
    if not inexact:
        return Measured(value, value, value, n)

    def with_changed(changed):
        """The value where these figures are others."""
        return quantity.of(evidence, lambda name, path: changed.get((name, path), used[name, path].value)
                           if (name, path) in used else median(name, path))

    low, high = (_of_turns if _in_turns(inexact.values()) else _of_independent)(inexact, value, with_changed)
    return Measured(value, min(low, value), max(high, value), n)


def _in_turns(figures):
    """Whether all were measured in the turns of one cell."""
    return len({f.cell for f in figures}) == 1 and len({len(f.repeats) for f in figures}) == 1 and all(
        f.cell is not None and f.repeats for f in figures)


def _of_turns(figures, _, with_changed):
    count = len(next(iter(figures.values())).repeats)
    values = [with_changed({key: f.repeats[i] for key, f in figures.items()}) for i in range(count)]
    return min(values), max(values)


def _of_independent(figures, value, with_changed):
    down = up = 0.0
    for key, f in figures.items():
        changes = [with_changed({key: changed}) - value for changed in (f.low, f.high)]
        down += min(0, *changes) ** 2
        up += max(0, *changes) ** 2
    return value - math.sqrt(down), value + math.sqrt(up)
