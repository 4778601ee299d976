"""python3 -m report FOLDER: reads what `pmlab run` left in FOLDER, writes FOLDER/index.html and FOLDER/charts/*.svg.
python3 -m report A B --compare: writes B/compare.html."""

import argparse
import sys
from pathlib import Path

from . import compare
from .claims import summary
from .page import comparison, headline_rows, page
from .results import BadResults, load
from .sections import sections_of


def _print_headline(results):
    if results.runs:
        rows = headline_rows(results)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    for verdicts in results.verdicts:
        print(summary(verdicts))


def _report(options):
    folder = options.folders[0]
    results = load(folder)
    sections = sections_of(results)
    pictures = folder / "charts"
    pictures.mkdir(exist_ok=True)
    for chart in (c for s in sections for c in s.charts):
        (pictures / f"{chart.name}.svg").write_text(chart.svg)
    target = options.out or folder / "index.html"
    target.write_text(page(results, sections))
    if options.headline:
        _print_headline(results)
    return target


def _compare(options):
    first, second = map(load, options.folders)
    target = options.out or options.folders[1] / "compare.html"
    target.write_text(comparison(first, second, compare.sections_of(first, second)))
    return target


def main():
    parser = argparse.ArgumentParser(prog="report", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--compare", action="store_true", help="two folders, side by side")
    parser.add_argument("--out", type=Path, help="file of the page")
    parser.add_argument("--headline", action="store_true", help="also print the headline figures")
    options = parser.parse_args()
    if len(options.folders) != (2 if options.compare else 1):
        parser.error("give one folder, or two with --compare")
    try:
        target = (_compare if options.compare else _report)(options)
    except BadResults as problem:
        print(f"report: {problem}", file=sys.stderr)
        return 1
    print(f"report: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
