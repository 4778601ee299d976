"""pmlab report: makes a page of results: the thesis, a ranking, verdicts, and charts of every experiment."""

import contextlib
from pathlib import Path

from ..arguments import Parser
from ..errors import SUCCESS, Failure, no_module
from ..texts import check_folder, check_writable
from .archive import is_archive, unpacked

EPILOG = """  pmlab report results/mine
  pmlab report results/mine --publish results/quick
  pmlab report results/mine --paper figures
  pmlab report --compare results/before results/after --out compare.html
  pmlab report --compare results/quick results/mine
  pmlab report --compare pmlab-0.2.0-raw.tar.gz results/mine"""


def command_line():
    """The command line, for the command itself and for its description (pmlab.describe)."""
    parser = Parser(prog="pmlab report", epilog=EPILOG, description="Makes a page of results: claims, charts, "
                    "comparisons")
    parser.add_argument("folder", nargs="*", metavar="FOLDER",
                        help="what `pmlab run --out` wrote; the page is its index.html")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"),
                        help="two folders side by side, with ratios of B to A; published ones too, and the archive of "
                        "a release")
    parser.add_argument("--out", type=Path, metavar="FILE",
                        help="the page; if not given index.html of FOLDER, or compare.html of B")
    parser.add_argument("--publish", type=Path, metavar="DIR",
                        help="also write page, charts, claims and figures to DIR, without raw files: small enough for "
                        "a repository")
    parser.add_argument("--paper", type=Path, metavar="DIR",
                        help="instead of the page: each chart as PDF, SVG and CSV in DIR, without title and foot, and "
                        "their captions")
    parser.add_argument("--headline", action="store_true", help="also print the headline figures")
    return parser


def _folder(text):
    folder = Path(text)
    if not folder.is_dir():
        raise Failure(f"no folder {folder}", "name a folder that `pmlab run --out` wrote")
    return folder


def _checked(given):
    if bool(given.folder) == bool(given.compare):
        raise Failure("a report is of one folder of results, or compares two", "give FOLDER, or --compare A B")
    if len(given.folder) > 1:
        raise Failure("a report is of one folder of results", "give one, or --compare A B for two side by side")
    if given.publish and given.compare:
        raise Failure("--publish is for one folder of results", "leave --compare out, or --publish")
    if given.paper and (given.compare or given.publish or given.out):
        raise Failure("--paper writes charts, and no page", "leave out --compare, --publish and --out, or --paper")
    if given.publish and given.publish.resolve() == Path(given.folder[0]).resolve():
        raise Failure(f"--publish {given.publish} is the folder of the results itself", 
                      "name another folder, such as results/quick")
    if given.compare and not given.out and any(map(is_archive,
                                                   given.compare)) and not (Path(given.compare[1]) / "raw").is_dir():
        raise Failure("one of the two is an archive, and B is no folder for the page",
                      "name the page with --out, or give the archive as A")
    return [Path(f) if given.compare and is_archive(f) else _folder(f) for f in given.folder or given.compare]


def _check_places(given, folders):
    """Before charts are drawn, which takes seconds to minutes."""
    if given.out:
        check_writable(given.out)
    for folder in (given.publish, given.paper, None if given.paper or given.compare else folders[0]):
        if folder:
            check_folder(folder)


def _matplotlib():
    """Before anything that draws is imported."""
    try:
        import matplotlib  # noqa: F401  (only whether it is there)
    except ImportError as problem:
        raise no_module(problem, "matplotlib", "which draws the charts") from problem


def main(arguments):
    """Exit status: 0; 1 the results cannot be reported; 2 wrong usage."""
    given = command_line().parse_args(arguments)
    folders = _checked(given)
    _check_places(given, folders)
    _matplotlib()
    from . import writing
    if given.compare:
        with contextlib.ExitStack() as unpackings:
            target = writing.compare(*(unpackings.enter_context(unpacked(f)) for f in folders), given.out)
    elif given.paper:
        target = writing.paper(folders[0], given.paper)
    else:
        target = writing.report(folders[0], given.out, given.publish, given.headline)
    print(f"report: {target}")
    return SUCCESS
