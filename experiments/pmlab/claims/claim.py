"""A claim about a memory or an index, as something that measurements decide.

A claim holds if all of its conditions do. A condition is a quantity and the range that it must lie in: the rule that a
reader sees, the cases that must be measured and the judgement all come from that one place."""

import math
import re
from dataclasses import dataclass

from ..errors import Failure
from .limits import Range
from .quantity import Quantity

# Units of quantities, as the JSON names them.
NS, GB_PER_S, TIMES, PERCENT, BYTES, COUNT = "ns", "GB/s", "x", "%", "B", ""

# The experiment that runs suite `paper`. `pmlab claims` measures it by itself, without a folder of results.
MEMORY = "memory"


@dataclass(frozen=True)
class Condition:
    """`what` names the quantity for readers: "64 KB, latency of 16 threads over that of 1". `published`: the figure or
    the range that the source states of it; None: it states a direction only."""

    what: str
    unit: str
    quantity: Quantity
    must_be: Range
    where_counted: bool = False  # left out where the memory does not count the quantity
    published: Range | None = None


@dataclass(frozen=True)
class Claim:
    """`id`: a letter and a number, which is its place in tables. `source`: where it was claimed, a key of
    docs/references.md first. `needs`: the experiments that measure its cases. `stand_in`: the part of the published
    measurement that something else stands for here. `missing`: why no experiment measures some of its cases; it is then
    not measured, and stays on the scorecard. `by_construction`: why it is true of any measurement here; it is then not
    counted as reproduced. `partner`: the source compares with it, and it is not here; the claim is then not applicable,
    with the figures of its substitute beside that. Raises Failure: the id has another form."""

    id: str
    text: str
    source: str
    needs: tuple[str, ...]
    conditions: tuple[Condition, ...]
    stand_in: str = ""
    missing: str = ""
    by_construction: str = ""
    partner: str = ""

    def __post_init__(self):
        if not re.fullmatch(r"[A-Z]\d+", self.id):
            raise Failure(f"'{self.id}' is no id of a claim", "give it a capital letter and a number: X1")
        object.__setattr__(self, "needs", tuple(self.needs))
        object.__setattr__(self, "conditions", tuple(self.conditions))

    @property
    def of_memory(self):
        """Whether `pmlab claims` can measure it on its own."""
        return self.needs == (MEMORY,)

    @property
    def cases(self):
        """The names of the cases that it needs, each once, in alphabetical order."""
        return sorted({name for c in self.conditions for name in c.quantity.cases})


def _readable_bytes(value):
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.4g} {unit}"
        value /= 1000


def text_of(value, unit):
    """With its unit: "356 ns", "1.66x", "236 MB". "x/0": it is no number."""
    if math.isnan(value):
        return "x/0"
    if unit == NS:
        if value < 1e3:
            return f"{value:.0f} ns"
        return f"{value / 1e3:.2f} us" if value < 1e6 else f"{value / 1e6:.2f} ms"
    if unit == GB_PER_S:
        return f"{value:.2f} GB/s"
    if unit == PERCENT:
        return f"{value:.1f} %"
    if unit == COUNT:
        return f"{value:,.10g}"
    return _readable_bytes(value) if unit == BYTES else f"{value:.2f}x"


def text_of_range(limits, unit):
    """ "at most 2.50x", "1000 ns to 2000 ns". """
    if math.isinf(limits.low):
        return f"at most {text_of(limits.high, unit)}"
    if math.isinf(limits.high):
        return f"at least {text_of(limits.low, unit)}"
    if limits.low == limits.high:
        return text_of(limits.low, unit)
    return f"{text_of(limits.low, unit)} to {text_of(limits.high, unit)}"


def text_of_published(condition):
    """The statement of the source, of this quantity."""
    return text_of_range(condition.published, condition.unit) if condition.published else "direction only"
