"""`pmlab compare`: which figures of two results differ by more than chance, for a reader and for CI."""

from ..arguments import Parser
from ..errors import FAILURE, SUCCESS, Failure
from ..json_files import write_json
from ..report.quantities import QUANTITIES
from ..spelling import nearest
from ..texts import check_writable, is_standard_output
from . import figures, table
from .judging import LEVEL

_THRESHOLD = 5.0
EPILOG = """\
A and B are two files of --json (bench, stores, microbench), or two folders of `pmlab run`, one of which may be
published. Status: 0 nothing is worse; 1 a figure of B is worse than A's by more than the threshold (in percent of A's),
and by more than chance; 2 wrong usage.

examples:
  pmlab compare before.json after.json
  pmlab compare results/quick results/mine --threshold 10
  pmlab compare before.json after.json --quantity p99 --all"""


def command_line():
    """The command line, for the command itself and for its description (pmlab.describe)."""
    parser = Parser(prog="pmlab compare", epilog=EPILOG, description="Shows which figures of two results differ by "
                    "more than chance")
    add = parser.add_argument
    add("A", help="PATH: a file of --json, or a folder of results")
    add("B", help="PATH: the other one, of the same kind")
    add("--quantity", metavar="NAME,...", help=f"{' | '.join(QUANTITIES)}; throughput and counts if not given")
    add("--threshold", metavar="PERCENT", help="of A's figure: what is worse by no more does not change the status; "
        f"{_THRESHOLD:g} if not given")
    add("--level", metavar="PERCENT", help=f"level of the rank test; {100 * LEVEL:g} if not given")
    add("--all", action="store_true", help="show figures that are alike, too")
    add("--json", metavar="FILE", help="write the comparison there (docs/results-schema.md); -: to standard output")
    return parser


def _percent(text, option, otherwise, below):
    if text is None:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < below:
        raise Failure(f"{option} '{text}' is no percentage from 0 to less than {below}",
                      f"give a number such as {otherwise:g}")
    return value


def _quantities(text):
    chosen = text.split(",") if text else figures.DEFAULT
    for name in chosen:
        if name not in QUANTITIES:
            raise Failure(f"there is no quantity '{name}'",
                          f"did you mean {nearest(name, QUANTITIES)}? There are {', '.join(QUANTITIES)}")
    return chosen


def _say(given, first, second, rows, level):
    for side, name, of in (("A", given.A, first), ("B", given.B, second)):
        print(f"{side}: {name}: {of.origin}")
    if first.has_real_clock and first.machine and second.machine and first.machine != second.machine:
        print(f"A and B were measured on different machines: {first.machine}; {second.machine}")
    print()
    table.print_table(rows, given.all)
    for line in table.summary(rows, first, second, level):
        print(line)


def main(arguments):
    """Exit status: 0; 1 a figure is worse, or the results cannot be read; 2 wrong usage."""
    given = command_line().parse_args(arguments)
    quantities = _quantities(given.quantity)
    threshold = _percent(given.threshold, "--threshold", _THRESHOLD, 1000) / 100
    level = _percent(given.level, "--level", 100 * LEVEL, 100) / 100
    if given.json:
        check_writable(given.json, is_json=True)
    first, second = figures.load_both(given.A, given.B, quantities)
    rows = table.rows_of(first, second, level)
    if not rows:
        raise Failure(f"{given.A} and {given.B} have no figure in common",
                      "give results of the same indexes, phases, threads and medium", FAILURE)
    shows_table = not is_standard_output(given.json)
    if given.json:
        write_json(given.json, table.document(rows, first, second, (given.A, given.B)))
    if shows_table:
        _say(given, first, second, rows, level)
    return FAILURE if any(row.is_worse_by(threshold) for row in rows) else SUCCESS
