"""The form of results that a repository keeps (`pmlab report --publish`): the figures of all charts, and the claims, as
CSV. Two result sets are compared by them where one has no raw files."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import FAILURE, Failure
from ..texts import read_text
from . import front, memory, results, sections

CLAIMS = "claims.csv"


@dataclass
class Drawn:
    """One thing that a chart shows."""

    value: float
    low: float
    high: float
    n: int
    unit: str


@dataclass
class Figures:
    """What the charts of one result set show."""

    folder: Path
    drawn: dict  # (chart, panel, series, x) -> Drawn
    verdicts: list = field(default_factory=list)  # Verdicts, as a result set has them


def all_charts(made, first_screen):
    """Every chart once: of the first screen, and of the sections."""
    return [*first_screen.charts, *(chart for section in made for chart in section.charts)]


def _drawn(rows):
    """`rows`: chart, then the columns of a chart's CSV. Figures that are not valid are left out."""
    found = {}
    for chart, panel, series, x, value, low, high, n, unit, invalid in rows:
        if not invalid and value:
            found[chart, panel, series, x] = Drawn(float(value), float(low or value), float(high or value), int(n),
                                                   unit)
    return found


def _rows(path):
    return list(csv.reader(io.StringIO(read_text(path, "figures"), newline="")))[1:]


def _verdicts(folder):
    of_medium = {}
    for medium, claim, verdict, *_ in _rows(folder / CLAIMS) if (folder / CLAIMS).is_file() else []:
        of_medium.setdefault(medium, {})[claim] = {"id": claim, "verdict": verdict}
    return [memory.Verdicts(medium, "", "", {"medium": medium}, list(claims.values()))
            for medium, claims in of_medium.items()]


def figures_of(folder):
    """Those of a published folder, or of one with raw files."""
    if not results.is_published(folder):
        loaded = results.load(folder)
        charts = all_charts(sections.sections_of(loaded), front.first_screen(loaded))
        return Figures(folder, _drawn([c.name, *row] for c in charts for row in c.csv_rows()), loaded.verdicts)
    try:
        return Figures(folder, _drawn(_rows(folder / results.PUBLISHED)), _verdicts(folder))
    except ValueError as problem:
        raise Failure(f"{folder / results.PUBLISHED} is no table of figures: {problem}",
                      "make it again with `pmlab report --publish`", FAILURE) from problem
