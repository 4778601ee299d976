"""From figures that spread to a quantity with its spread.

Figures that were measured in turns change together, since a change of the machine falls on all of a repeat: the
quantity is taken of each repeat of theirs. A figure that was measured apart is put to its least and to its most. In
both cases all other figures keep their medians, and the changes add up in squares, as errors of independent
measurements do."""

import math
from collections import defaultdict

from .limits import Measured
from .quantity import extreme


def _together(figures):
    """Places of figures that change together."""
    groups = defaultdict(list)
    for place, f in enumerate(figures):
        if not f.low == f.value == f.high:
            groups[(f.turns, len(f.repeats)) if f.turns else place].append(place)
    return groups.values()


def _states(figures, places):
    """The values that these figures take together."""
    first = figures[places[0]]
    if first.turns:
        return [{place: figures[place].repeats[i] for place in places} for i in range(len(first.repeats))]
    return [{places[0]: first.low}, {places[0]: first.high}]


def of_figures(figures, function):
    """`function` of the values of these figures, as a Measured."""
    medians = [f.value for f in figures]
    value = function(*medians)
    down = up = 0.0
    for places in _together(figures):
        changes = [function(*(state.get(i, m) for i, m in enumerate(medians))) - value
                   for state in _states(figures, places)]
        down += extreme(min, (0, *changes)) ** 2
        up += extreme(max, (0, *changes)) ** 2
    return Measured(value, value - math.sqrt(down), value + math.sqrt(up), min((f.n for f in figures), default=1))


def measure(quantity, evidence):
    """A quantity of measured figures. Raises as Evidence.figure does."""
    used = {}

    def median(name, path):
        used[name, path] = evidence.figure(name, path)
        return used[name, path].value

    quantity.of(evidence, median)

    def of_values(*values):
        # A figure that is not among them had another reason than its value: it is looked up again, and raises again.
        changed = dict(zip(used, values))
        return quantity.of(evidence, lambda name, path: changed[name, path] if (name, path) in changed
                           else evidence.figure(name, path).value)
    return of_figures(list(used.values()), of_values)
