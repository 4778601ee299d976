"""`pmlab claims`: measures the cases that the claims need, judges each claim, and shows the verdicts."""

import os
import tempfile

from .. import arguments, errors, processes, programs
from ..errors import Failure
from ..json_files import read_json, table_beside, write_json
from ..spelling import nearest, shell_form
from ..texts import check_writable, is_standard_output
from .catalogue import every_claim
from .drive import CASES, measure_drive
from .evidence import Evidence
from .judging import NOT_MEASURED, judge
from .tables import rules_markdown, rules_table, verdicts_table, verdicts_to_json
from .verdicts import judge_result_set

# A figure of a simulated memory that chance decides has a spread then.
_LAYOUTS = 5
_DESCRIPTION = "Measures and decides published claims about persistent memory"
_EXAMPLES = """\
examples:
  pmlab claims --medium simulated:aep
  pmlab claims --medium pmem:/mnt/pmem/test.pool --json verdicts.json
  pmlab claims --from aep.json M1 M8
  pmlab claims --from results/quick I1 I2"""


def command_line():
    """The command line, for the command itself and for its description (pmlab.describe)."""
    parser = arguments.Parser(prog="pmlab claims", description=_DESCRIPTION, epilog=_EXAMPLES)
    add = parser.add_argument
    add("claims", nargs="*", metavar="CLAIM", help="only these: M1 M8 ...; all if not given")
    add("--medium", help="dram | pmem:PATH | emulated:PROFILE[@PATH] | simulated:PROFILE; dram if not given")
    add("--overwrite", action="store_true", help="overwrite an existing pool")
    add("--reuse", action="store_true", help="use the free space of an existing pool; its contents stay as they are")
    add("--quiet", action="store_true", help="no progress on stderr")
    add("--suite", help="paper | FILE.toml: the suite that has the cases; paper if not given")
    add("--from", dest="results_of", metavar="FILE | FOLDER",
        help="judge the results of `pmlab microbench --json` or `pmlab run`, and measure nothing")
    add("--results", metavar="FILE", help="write the measurements there, for --from and for the report")
    add("--json", metavar="FILE", help="write the verdicts there (docs/claims.md); -: to standard output")
    add("--spread", metavar="PERCENT", help="repeat until repetitions agree so well; 5 if not given")
    add("--prefetchers", metavar="off | on", help="off: switch the CPU's prefetchers off for the run (root); on: leave "
        "them")
    add("--list", action="store_true", help="show the claims and their rules, and measure nothing")
    add("--markdown", action="store_true", help="with --list: as docs/claims.md has it")
    return parser


def _chosen_claims(ids):
    known = [claim.id for claim in every_claim()]
    for name in ids:
        if name not in known:
            raise Failure(f"there is no claim '{name}'",
                          f"did you mean {nearest(name, known)}? `pmlab claims --list` names them")
    return [claim for claim in every_claim() if not ids or claim.id in ids]


def _memory_claims(chosen, ids):
    """Claims about indexes are judged from a folder of `pmlab run`: this command does not measure them."""
    for claim in chosen:
        if ids and not claim.of_memory:
            raise Failure(f"claim {claim.id} is about indexes",
                          "run its experiments with `pmlab run`, and give that folder: --from FOLDER")
    return [claim for claim in chosen if claim.of_memory]


def _check_options(given):
    if given.results_of and (given.medium or given.suite):
        raise Failure("--from decides from existing results, so --medium and --suite have no effect", "leave them out")
    if given.markdown and not given.list:
        raise Failure("--markdown is a form of --list", "give both")
    for path in (given.json, given.results):
        if path:
            check_writable(path, is_json=True)
    if given.json and given.results and os.path.realpath(given.json) == os.path.realpath(given.results):
        raise Failure(f"--json and --results would both write {given.json}", "give each a file of its own")


class _ChildFailed(Exception):
    """`pmlab microbench` refused or failed, and has complained on stderr itself."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


def _microbench(given, suite):
    """The words of `pmlab microbench` that choose memory and suite."""
    words = [programs.pmlab(), "microbench", "--medium", given.medium or "dram", "--suite", suite]
    words += [option for option, wanted in (("--reuse", given.reuse), ("--overwrite", given.overwrite)) if wanted]
    return words


def _case_names(given, suite):
    """The suite's cases. The program, which knows them, refuses a bad medium or suite here, before it measures."""
    status, listed = processes.capture([*_microbench(given, suite), "--list"])
    if status != 0:
        raise _ChildFailed(status)
    lines = listed.splitlines()[1:]  # a title, the cases, a blank line, their number
    return [line.split()[0] for line in lines[:lines.index("")]] if "" in lines else []


def _filter_for(given, chosen, suite):
    """The cases of the suite that the claims need, as the expression that `pmlab microbench --filter` takes."""
    needed = {name for claim in chosen for name in claim.cases}
    names = [name for name in _case_names(given, suite) if name in needed]
    if not names:
        raise Failure(f"suite {suite} has none of the cases that these claims need", "use --suite paper")
    return f"^({'|'.join(names)})$"


def _measure(given, chosen):
    """The document that `pmlab microbench` wrote of the cases of these claims, and its exit status: a run that ends
    early leaves the figures that it has. Raises _ChildFailed: it left none."""
    suite = given.suite or "paper"
    words = [*_microbench(given, suite), "--filter", _filter_for(given, chosen, suite)]
    for option, value in (("--spread", given.spread), ("--prefetchers", given.prefetchers)):
        words += [option, value] if value else []
    words += ["--layouts", str(_LAYOUTS)] if (given.medium or "").startswith("simulated:") else []
    words += ["--quiet"] if given.quiet else []
    with tempfile.NamedTemporaryFile(prefix="pmlab-claims-") as written:
        status = processes.run([*words, "--json", written.name], output=os.devnull)
        if os.path.getsize(written.name) == 0:
            raise _ChildFailed(status or errors.FAILURE)
        return read_json(written.name), status


def _add_drive(document, chosen):
    """M22 needs a device that is no memory."""
    cases = document.get("cases") if isinstance(document, dict) else None
    if isinstance(cases, list) and any(set(CASES) & set(claim.cases) for claim in chosen):
        document["cases"] = cases + measure_drive()


def _judge_folder(given, chosen, command):
    if given.json or given.results:
        raise Failure("the verdicts on a folder of results are written into it, one file for each medium",
                      "leave --json and --results out")
    verdicts = judge_result_set(given.results_of, chosen, command)
    for table in verdicts.tables:
        print(table)
    print(verdicts.summary)
    return errors.FAILURE if verdicts.unmeasured else errors.SUCCESS


def _judge_memory(given, chosen, command):
    chosen = _memory_claims(chosen, given.claims)
    status = errors.SUCCESS
    if not given.results_of:
        document, status = _measure(given, chosen)
        _add_drive(document, chosen)
    else:
        document = read_json(given.results_of)
    if given.results:
        write_json(given.results, document)
    evidence = Evidence(document, given.results_of or "the result of `pmlab microbench`")
    judgements = [judge(claim, evidence) for claim in chosen]
    if given.json:
        write_json(given.json, verdicts_to_json(judgements, evidence, command, given.results_of))
    table = table_beside(given.json if is_standard_output(given.json) else given.results)
    print(verdicts_table(judgements, evidence), end="", file=table)
    lacking = [j.claim.id for j in judgements if j.verdict == NOT_MEASURED]
    if not lacking:
        return status
    print(f"not measured: run `pmlab claims --medium MEDIUM {' '.join(lacking)}`", file=table)
    return errors.FAILURE


def main(words):
    """Runs `pmlab claims WORDS`; its exit status."""
    given = command_line().parse_args(words)
    command = shell_form(["claims", *words])
    chosen = _chosen_claims(given.claims)
    _check_options(given)
    if given.list:
        print((rules_markdown if given.markdown else rules_table)(chosen), end="")
        return errors.SUCCESS
    if given.results_of and os.path.isdir(given.results_of):
        return _judge_folder(given, chosen, command)
    try:
        return _judge_memory(given, chosen, command)
    except _ChildFailed as failed:
        return failed.status
