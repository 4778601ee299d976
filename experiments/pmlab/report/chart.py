"""A chart and a table as the page shows them."""

from dataclasses import dataclass, field


@dataclass
class Chart:
    name: str  # of its file
    title: str
    svg: str
    sentence: str  # what it means, computed from the data
    rows: list = field(default_factory=list)  # the figures behind it; the first row is the header

    def __post_init__(self):
        self.name = self.name.replace("/", "-")


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
