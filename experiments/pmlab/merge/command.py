"""`pmlab merge`: joins folders of `pmlab run` or of `pmlab verify` into one, as if one machine had done it all."""

from .. import arguments, errors
from ..claims.verdicts import judge_folder
from ..errors import Failure
from ..new_folder import new_folder
from ..run.manifest import canonical_command
from ..spelling import shell_form
from . import campaigns, results
from .parts import read_parts

_DESCRIPTION = "Joins the results of several machines, and decides the claims from all of them"
_EXAMPLES = """\
examples:
  pmlab merge shards/* --out results/all && pmlab report results/all
  pmlab merge ranges/* --out campaign"""


def command_line():
    """The command line, for the command itself and for its description (pmlab.describe)."""
    parser = arguments.Parser(prog="pmlab merge", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("folder", nargs="*", metavar="FOLDER",
                        help="what `pmlab run --shard` or `pmlab verify --seeds` wrote with --out; any number")
    parser.add_argument("--out", metavar="FOLDER", help="a new folder, for all of them together")
    parser.add_argument("--incomplete", action="store_true", help="merge results although cells are missing; the page "
                        "names the gap")
    parser.add_argument("--other-machines", action="store_true",
                        help="merge cells with a real clock although their machines differ; the page has a caveat")
    return parser


def _tell(notes):
    for note in notes:
        print(f"note: {note}")


def _merge_results(given, parts, command):
    merged = results.collect(parts, given.incomplete, given.other_machines)
    with new_folder(given.out) as folder:
        results.write(merged, folder, command)
        _tell([*merged.notes, *merged.caveats])
        if len(merged.cells) > len(merged.failed):
            judge_folder(folder, canonical_command(merged.experiments, parts[0].manifest["scale"]))
    print(f"{len(merged.cells)} cells of {len(parts)} folders; results in {given.out}", flush=True)
    if merged.failed:
        raise Failure(f"{len(merged.failed)} cells failed", f"{given.out}/manifest.json has their commands, "
                      f"{given.out}/log their output", errors.FAILURE)
    return errors.SUCCESS


def _merge_campaigns(given, parts, command):
    notes = []
    document = campaigns.collect(parts, notes)
    with new_folder(given.out) as folder:
        campaigns.write(document, parts, folder, command)
    _tell(notes)
    for line in campaigns.summary(document, given.out):
        print(line)
    return errors.FAILURE if any(i["violations"] for i in document["indexes"]) else errors.SUCCESS


def main(words):
    """Runs `pmlab merge WORDS`; its exit status: 0; 1 a cell had failed, or there are violations; 2 the folders do not
    fit together, and nothing was written."""
    given = command_line().parse_args(words)
    if not given.folder:
        raise Failure("no folders to merge", "name those that the machines wrote")
    if not given.out:
        raise Failure("no folder for the result", "give --out FOLDER")
    parts = read_parts(given.folder)
    merge = _merge_results if parts[0].kind == "results" else _merge_campaigns
    try:
        return merge(given, parts, shell_form(["merge", *words]))
    except (KeyError, TypeError, AttributeError) as problem:
        raise Failure(f"a manifest.json or {campaigns.FILE} of these folders is damaged: {problem!r}",
                      "run that part again, with --resume") from None
