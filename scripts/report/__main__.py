"""python3 -m report FOLDER: reads FOLDER/raw/*.json, writes FOLDER/index.html and FOLDER/charts/*.svg."""

import argparse
import sys
from pathlib import Path

from .page import headline_rows, page
from .paper_tables import summary
from .results import BadResults, load
from .sections import sections_of


def main():
    parser = argparse.ArgumentParser(prog="report", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--headline", action="store_true", help="also print the headline figures")
    options = parser.parse_args()
    try:
        results = load(options.folder)
    except BadResults as problem:
        print(f"report: {problem}", file=sys.stderr)
        return 1

    sections = sections_of(results)
    pictures = options.folder / "charts"
    pictures.mkdir(exist_ok=True)
    for chart in (c for s in sections for c in s.charts):
        (pictures / f"{chart.name}.svg").write_text(chart.svg)
    target = options.folder / "index.html"
    target.write_text(page(results, sections))

    if options.headline and results.runs:
        rows = headline_rows(results)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    if options.headline:
        for verdicts in results.verdicts:
            print(summary(verdicts))
    print(f"report: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
