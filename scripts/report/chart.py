"""A chart as the page shows it."""

from dataclasses import dataclass, field


@dataclass
class Chart:
    name: str  # of its file
    title: str
    svg: str
    sentence: str  # what it means, computed from the data
    rows: list = field(default_factory=list)  # the figures behind it; the first row is the header
