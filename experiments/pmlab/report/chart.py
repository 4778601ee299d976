"""A chart and a table as the page shows them."""

import csv
import io
import re
from dataclasses import dataclass, field
from functools import cached_property

from . import svg
from .style import foot

COLUMNS = ("panel", "series", "x", "value", "lowest", "highest", "n", "unit", "invalid")


@dataclass(frozen=True)
class Point:
    """One bar or one marker, as it is drawn."""

    x: str
    series: str
    value: float
    low: float = None  # lowest of the repeats
    high: float = None
    n: int = 1
    unit: str = ""
    invalid: bool = False
    panel: str = ""

    @property
    def spread(self):
        return self.low is not None and self.high is not None and self.low != self.high


def overlap(a, b):
    """Whether the ranges of two points overlap. Two figures without a range do not."""
    return (a.spread or b.spread) and _low(a) <= _high(b) and _low(b) <= _high(a)


def _low(point):
    return point.value if point.low is None else point.low


def _high(point):
    return point.value if point.high is None else point.high


def _plain(value):
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


@dataclass
class Chart:
    name: str  # name of its files
    title: str
    figure: object
    sentence: str  # the finding, computed from the data
    footer: str  # medium, profile, records, commit
    points: list  # what is drawn
    marks: str = "Bars"  # what stands for a figure
    exact: bool = False  # the medium repeats to the digit
    rows: list = field(default_factory=list)  # the figures behind it for a reader; the first row is the header
    said: str = ""  # in the place of `meaning`
    parts: list = field(default_factory=list)  # figures in the place of `figure` on the page, each as narrow as a phone
    key: object = None  # figure: the key of the parts

    def __post_init__(self):
        self.name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name)
        foot(self.figure, self.footer)

    @cached_property
    def drawing(self):
        return svg.drawn(self.figure)

    @cached_property
    def part_drawings(self):
        return list(map(svg.drawn, self.parts))

    @cached_property
    def key_drawing(self):
        return self.key and svg.drawn(self.key)

    @property
    def meaning(self):
        """How many repeats, and what bars and whiskers are."""
        if self.said:
            return self.said
        counts = sorted({p.n for p in self.points})
        n = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
        if counts[-1] == 1:
            text = f"{self.marks}: the one run (n = 1)"
            return text + ("; virtual time and counts repeat to the digit." if self.exact else "; no spread is known.")
        whiskers = "; whiskers: lowest and highest" if any(p.spread for p in self.points) else ""
        # On two cores a third of the medians of a second run lay outside the whole range of the first one.
        hour = "" if self.exact else " On a real clock, and one after the other: another hour's may lie outside."
        return f"{self.marks}: median of {n} repeats{whiskers}.{hour if whiskers else ''}"

    @property
    def caption(self):
        text = f"{self.sentence} {self.meaning}"
        if any(p.invalid for p in self.points):
            text += " INVALID: the emulation did not hold there; the figure is not valid for the device."
        return text

    def csv_rows(self):
        """The data behind it: one row for each thing drawn."""
        return [[p.panel, p.series, p.x, *map(_plain, (p.value, *((p.low, p.high) if p.spread else (None, None)), p.n)),
                 p.unit, "INVALID" if p.invalid else ""] for p in self.points]

    def csv(self):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self.csv_rows())
        return text.getvalue()


@dataclass
class Link:
    """A cell of a table that leads somewhere."""

    text: str
    target: str


@dataclass
class Table:
    rows: list  # the first row is the header
    title: str = ""
    sentence: str = ""
    prose: bool = False  # cells are text, not figures; a line break in one is kept
