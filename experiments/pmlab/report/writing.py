"""Writes the page and its files: into the folder of the results, and in the small form that a repository keeps."""

import csv
import io
import shutil

from matplotlib.backends.backend_pdf import PdfPages

from . import claims, compare as comparing, front
from .chart import COLUMNS
from .page import Drawings, comparison, headline_rows, page
from .results import PUBLISHED, BadResults, load
from .sections import sections_of

CHARTS = "charts"
PDF = "charts.pdf"
CLAIMS = "claims.csv"
MAY_BE_REPLACED = {"index.html", CHARTS, PDF, CLAIMS, PUBLISHED}


def _print_headline(results):
    if results.runs:
        rows = headline_rows(results)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for verdicts in results.verdicts:
        print(claims.summary(verdicts))


def _csv(header, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _write_charts(folder, charts, as_svg):
    """Those of `as_svg` as SVG, and all of them as pages of one PDF, which has each letter once; returns chart name -> page."""
    shutil.rmtree(folder / CHARTS, ignore_errors=True)
    (folder / CHARTS).mkdir()
    for chart in as_svg:
        (folder / CHARTS / f"{chart.name}.svg").write_text(chart.drawing.file())
    with PdfPages(folder / PDF, metadata={"CreationDate": None, "Creator": None, "Producer": None}) as pdf:
        for chart in charts:
            pdf.savefig(chart.figure)
    return {chart.name: number for number, chart in enumerate(charts, 1)}


def _digits(value):
    return "" if value is None else f"{value:.6g}"


def _claims_csv(results):
    rows = []
    for verdicts in results.verdicts:
        for claim in verdicts.claims:
            for c in claim["conditions"]:
                low, high = c.get("spread") or (None, None)
                rows.append([verdicts.medium, claim["id"], claim["verdict"], claim["claim"], c["what"],
                             *map(_digits, (c["measured"], low, high)), c.get("n") or "", c["unit"], c["rule"],
                             _digits(c["published"])])
            if not claim["conditions"]:
                rows.append([verdicts.medium, claim["id"], claim["verdict"], claim["claim"], claim["reason"] or "", *7 * [""]])
    return _csv(["medium", "claim", "verdict", "text", "quantity", "measured", "lowest", "highest", "n", "unit", "must be",
                 "published"], rows)


def _make_room(folder):
    """Empties a folder of what an earlier report left there; any other file in it may be a user's."""
    folder.mkdir(parents=True, exist_ok=True)
    others = sorted(p.name for p in folder.iterdir() if p.name not in MAY_BE_REPLACED)
    if others:
        raise BadResults(f"{folder} holds {', '.join(others[:3])}, which `pmlab report` did not publish",
                         "name an empty folder, or remove it there")
    shutil.rmtree(folder / CHARTS, ignore_errors=True)


def _publish(folder, results, sections, first_screen):
    """Page and charts, the claims table, and one CSV of all that is drawn: no raw files. Charts of the first screen are there
    as SVG, too; the others are in the page, and in the PDF."""
    _make_room(folder)
    charts = _all_charts(sections, first_screen)
    pages = _write_charts(folder, charts, first_screen.charts)
    (folder / PUBLISHED).write_text(_csv(["chart", *COLUMNS], ([c.name, *row] for c in charts for row in c.csv_rows())))
    (folder / CLAIMS).write_text(_claims_csv(results))
    for section in sections:
        section.links = []

    def files_of(chart):
        svg = [("SVG", f"{CHARTS}/{chart.name}.svg")] if chart in first_screen.charts else []
        return [*svg, ("PDF", f"{PDF}#page={pages[chart.name]}"), ("CSV", PUBLISHED)]
    (folder / "index.html").write_text(page(results, sections, first_screen, Drawings(files_of, figures=False)))


def _all_charts(sections, first_screen):
    return [*first_screen.charts, *(c for s in sections for c in s.charts)]


def report(folder, out=None, publish=None, headline=False):
    """The page of `folder`, and its charts beside it; returns where it is."""
    results = load(folder)
    sections, first_screen = sections_of(results), front.first_screen(results)
    charts = _all_charts(sections, first_screen)
    pages = _write_charts(folder, charts, charts)
    for chart in charts:
        (folder / CHARTS / f"{chart.name}.csv").write_text(chart.csv())

    def files_of(chart):
        return [("SVG", f"{CHARTS}/{chart.name}.svg"), ("PDF", f"{PDF}#page={pages[chart.name]}"),
                ("CSV", f"{CHARTS}/{chart.name}.csv")]
    target = out or folder / "index.html"
    target.write_text(page(results, sections, first_screen, Drawings(files_of)))
    if publish:
        _publish(publish, results, sections, first_screen)
        target = publish / "index.html"
    if headline:
        _print_headline(results)
    return target


def compare(first_folder, second_folder, out=None):
    first, second = load(first_folder), load(second_folder)
    target = out or second_folder / "compare.html"
    target.write_text(comparison(first, second, comparing.sections_of(first, second)))
    return target
