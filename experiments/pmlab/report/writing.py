"""Writes the page and its files: into the folder of the results, and in the small form that a repository keeps."""

import csv
import io
import shutil

from matplotlib.backends.backend_pdf import PdfPages

from ..texts import write_text
from . import claims, compare as comparing, front, published, style
from .chart import COLUMNS
from .page import Drawings, comparison_page, headline_rows, page
from .results import PUBLISHED, BadResults, is_published, load
from .sections import sections_of

CHARTS = "charts"
PDF = "charts.pdf"
CAPTIONS = "captions.txt"
MAY_BE_REPLACED = {"index.html", CHARTS, PDF, published.CLAIMS, PUBLISHED}


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


def _write_charts(folder, charts, csv_of=None):
    """Each as SVG, and as CSV unless `csv_of` names one file for all, and all of them as pages of one PDF, which has
    each letter once. Returns, for the page: of a chart, its files."""
    shutil.rmtree(folder / CHARTS, ignore_errors=True)
    (folder / CHARTS).mkdir()
    for chart in charts:
        write_text(folder / CHARTS / f"{chart.name}.svg", chart.drawing.file())
        if csv_of is None:
            write_text(folder / CHARTS / f"{chart.name}.csv", chart.csv())
    with PdfPages(folder / PDF, metadata={"CreationDate": None, "Creator": None, "Producer": None}) as pdf:
        for chart in charts:
            pdf.savefig(chart.figure)
    pages = {chart.name: number for number, chart in enumerate(charts, 1)}
    return lambda chart: [("SVG", f"{CHARTS}/{chart.name}.svg"), ("PDF", f"{PDF}#page={pages[chart.name]}"),
                          ("CSV", csv_of or f"{CHARTS}/{chart.name}.csv")]


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
                             c.get("stated", ""), _digits(claims.public(c))])
            if not claim["conditions"]:
                rows.append([verdicts.medium, claim["id"], claim["verdict"], claim["claim"], claim["reason"] or "",
                             *8 * [""]])
    return _csv(["medium", "claim", "verdict", "text", "quantity", "measured", "lowest", "highest", "n", "unit",
                 "must be", "stated", "published"], rows)


def _make_room(folder):
    """Empties a folder of what an earlier report left there; any other file in it may be a user's."""
    folder.mkdir(parents=True, exist_ok=True)
    others = sorted(p.name for p in folder.iterdir() if p.name not in MAY_BE_REPLACED)
    if others:
        raise BadResults(f"{folder} holds {', '.join(others[:3])}, which `pmlab report` did not publish",
                         "name an empty folder, or remove it there")
    shutil.rmtree(folder / CHARTS, ignore_errors=True)


def _publish(folder, results, sections, first_screen):
    """The page, each chart as SVG, the claims table, and one CSV of all that is drawn: no raw files."""
    _make_room(folder)
    charts = published.all_charts(sections, first_screen)
    files_of = _write_charts(folder, charts, PUBLISHED)
    write_text(folder / PUBLISHED, _csv(["chart", *COLUMNS], ([c.name, *row] for c in charts for row in c.csv_rows())))
    write_text(folder / published.CLAIMS, _claims_csv(results))
    for section in sections:
        section.links = []
    write_text(folder / "index.html", page(results, sections, first_screen, Drawings(files_of, figures=False)))


def report(folder, out=None, publish=None, headline=False):
    """The page of `folder`, and its charts beside it; returns where it is."""
    results = load(folder)
    sections, first_screen = sections_of(results), front.first_screen(results)
    files_of = _write_charts(folder, published.all_charts(sections, first_screen))
    target = out or folder / "index.html"
    write_text(target, page(results, sections, first_screen, Drawings(files_of)))
    if publish:
        _publish(publish, results, sections, first_screen)
        target = publish / "index.html"
    if headline:
        _print_headline(results)
    return target


def paper(folder, out):
    """The charts of `folder` for a paper, in the folder `out`: each as PDF, SVG and CSV, without title, origin and
    page. What the title, the caption and the foot of a chart say is in one text."""
    results = load(folder)
    charts = published.all_charts(sections_of(results), front.first_screen(results))
    out.mkdir(parents=True, exist_ok=True)
    for chart in charts:
        style.take_chrome(chart.figure)
        write_text(out / f"{chart.name}.svg", chart.drawing.file())
        write_text(out / f"{chart.name}.csv", chart.csv())
        chart.figure.savefig(out / f"{chart.name}.pdf", metadata={"CreationDate": None, "Creator": None,
                                                                  "Producer": None})
    write_text(out / CAPTIONS, "\n".join(f"{c.name}\n{c.title}. {c.caption}\n{c.footer}\n" for c in charts))
    return out


def compare(first_folder, second_folder, out=None):
    """The page that compares two folders: by their raw files, or by the figures of their charts where one is
    published."""
    folders = (first_folder, second_folder)
    with_raw = [folder for folder in folders if not is_published(folder)]
    if not with_raw and out is None:
        raise BadResults("both folders are published, and a page of theirs lies in neither", "name the page with --out")
    if len(with_raw) == len(folders):
        comparison = comparing.of_results(*map(load, folders))
    else:
        comparison = comparing.of_figures(*map(published.figures_of, folders))
    target = out or with_raw[-1] / "compare.html"
    write_text(target, comparison_page(*(folder.name for folder in folders), comparing.sections_of(comparison)))
    return target
