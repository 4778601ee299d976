"""`pmlab run`: reads the command line, runs the experiments, and decides the claims from their results."""

import os
import sys
from pathlib import Path

from .. import arguments, errors, indexes, processes, programs
from ..claims.catalogue import every_claim
from ..claims.verdicts import judge_folder
from ..errors import Failure
from ..program_facts import facts
from ..spelling import nearest, shell_form
from .experiment import SCALES, experiment_names, load_experiment
from .export import ENGINES, export, read_campaign
from .left_out import lines, without
from .plan import plan
from .runner import Runner, RunSettings
from .share import cells_of, read_shard

_DESCRIPTION = "Runs experiments, and decides the claims from their results"
_EXAMPLES = """\
examples:
  pmlab run --scale quick --out results/mine && pmlab report results/mine
  pmlab run hybrid cache --scale smoke --out /tmp/smoke
  pmlab run my-experiment.toml --out results/my --resume
  pmlab run --scale full --shard 3/64 --out shards/3    # on one of 64 machines; then `pmlab merge shards/* --out all`
  pmlab run --scale full --export snakemake --out jobs  # then `snakemake --profile slurm` there"""


def command_line():
    """The command line, for the command itself and for its description (pmlab.describe)."""
    parser = arguments.Parser(prog="pmlab run", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("experiment", nargs="*", metavar="NAME | FILE.toml",
                        help="experiments; all that come with pmlab if not given")
    parser.add_argument("--scale", default="quick",
                        help="smoke | quick | full: seconds, minutes, hours; quick if not given")
    parser.add_argument("--out", metavar="FOLDER", help="folder for the results")
    parser.add_argument("--pools", metavar="FOLDER", help="folder for pool files; PMLAB_POOLS or /dev/shm if not given")
    parser.add_argument("--resume", action="store_true",
                        help="continue in a folder: keep the results of this build with the same arguments")
    parser.add_argument("--shard", metavar="I/N", help="only part I of N, for one of N machines; `pmlab merge` joins "
                        "them")
    parser.add_argument("--cell", action="append", metavar="NAME", help="only this cell; may be repeated")
    parser.add_argument("--export", metavar="snakemake", help="write a Snakefile with the cells as jobs to --out, and "
                        "run nothing")
    parser.add_argument("--campaign", action="append", metavar="WORDS",
                        help="with --export: options of `pmlab verify` with --seeds A..B, in one word; may be "
                        "repeated. Without "
                             "an experiment's name, only campaigns are exported")
    parser.add_argument("--ranges", metavar="N", help="with --campaign: so many jobs; 64 if not given")
    parser.add_argument("--list", action="store_true", help="name the experiments, and run nothing")
    parser.add_argument("--dry-run", action="store_true", help="show each cell's command, and run nothing")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _check_scale(scale):
    if scale not in SCALES:
        raise Failure(f"there is no scale '{scale}'", f"did you mean {nearest(scale, SCALES)}?")


def _chosen_experiments(names, known):
    chosen = {}
    for name in names or experiment_names():
        experiment = load_experiment(name, known)
        if experiment.name in chosen:
            raise Failure(f"two experiments are called {experiment.name}", "name each once")
        chosen[experiment.name] = experiment
    return list(chosen.values())


def _check_claims(experiments):
    """A misspelt name is refused before anything is run."""
    known = [claim.id for claim in every_claim()]
    for e in experiments:
        for claim in e.claims:
            if claim not in known:
                raise Failure(f"experiment {e.name}: there is no claim '{claim}'",
                              f"did you mean {nearest(claim, known)}? `pmlab claims --list` names them")


def _check_indexes(cells):
    lists = {cell.value("--index"): cell for cell in cells if cell.words[0] == "bench" and cell.value("--index")}
    for names, problem in facts(lists)["problems"].items():
        raise Failure(f"experiment {lists[names].experiment}: {problem}")


def _fed_claims(experiment):
    """ "(I1, I2)"; of many: "(M1 to M26)"."""
    claims = experiment.claims
    if not claims:
        return ""
    return f" ({', '.join(claims)})" if len(claims) <= 5 else f" ({claims[0]} to {claims[-1]})"


def _show_list(experiments, scale, told):
    for e in experiments:
        cells = len(without(plan(e, scale, indexes.swept()), told["left_out"])[0])
        print(f"{e.name:<20} {e.shows:<30} {cells:>2} cell{'' if cells == 1 else 's':<1}  {e.title}{_fed_claims(e)}")


def _pools_folder(given):
    """Memory that every Linux machine has, mapped like persistent memory, unless a device is named."""
    return Path(given or os.environ.get("PMLAB_POOLS") or "/dev/shm")


def _check_pools(pools, cells):
    wanted = any("{pool}" in word for cell in cells for word in cell.words)
    if wanted and not os.access(pools, os.W_OK):
        raise Failure(f"cannot make pools in {pools}", "give --pools a folder on a tmpfs or an fsdax device")


def _chosen_cells(given, cells, left_out):
    """(cells to run, the Shard that they are or None)."""
    if given.shard and given.cell:
        raise Failure("--shard and --cell both choose the cells", "give one of them")
    if given.shard:
        shard = read_shard(given.shard)
        return cells_of(shard, cells), shard
    names = [cell.name for cell in cells]
    for name in given.cell or ():
        for one in left_out:
            if name in one.cells:
                raise Failure(f"cell '{name}' is left out: pmlab was built without {one.title}", one.remedy)
        if name not in names:
            raise Failure(f"there is no cell '{name}' in these experiments",
                          f"did you mean {nearest(name, names)}? `pmlab run --dry-run` names them")
    return [cell for cell in cells if not given.cell or cell.name in given.cell], None


def _number_of_ranges(text):
    if not text.isdecimal() or not 1 <= int(text) <= 10**6:
        raise Failure(f"--ranges '{text}' is no number of jobs", "give 1 to 1000000")
    return int(text)


def _check_export(given):
    if given.export is None:
        for option in ("campaign", "ranges"):
            if getattr(given, option):
                raise Failure(f"--{option} is for jobs of an engine", "give --export snakemake, too")
        return
    if given.export not in ENGINES:
        raise Failure(f"there is no engine '{given.export}' to export for", f"give --export {' or '.join(ENGINES)}")
    for option in ("shard", "cell", "resume", "list", "dry_run"):
        if getattr(given, option):
            raise Failure(f"--export writes all cells as jobs, so --{option.replace('_', '-')} has no effect",
                          "leave it out")
    if not given.out:
        raise Failure("no folder for the Snakefile", "give --out FOLDER")


def _export(given, experiments, cells):
    campaigns = [read_campaign(text, _number_of_ranges(given.ranges or "64")) for text in given.campaign or ()]
    names = [] if not experiments else given.experiment or experiment_names()
    options = ["--pools", given.pools] if given.pools else []
    export(given.out, experiments, names, cells, campaigns, given.scale, options)
    print(f"jobs of {len(cells)} cells and {len(campaigns)} campaigns: cd {given.out} && snakemake --cores "
          f"{os.cpu_count()}, or snakemake --profile slurm", flush=True)
    return errors.SUCCESS


def _tell(summary, folder):
    print(f"{summary.done} cells ran, {summary.kept} were there, {summary.failed} failed; results in {folder}",
          flush=True)
    if not summary.failed:
        return errors.SUCCESS
    raise Failure(f"{summary.failed} cells failed",
                  f"{folder}/manifest.json has their commands, {folder}/log their output", errors.FAILURE)


def main(words):
    """Runs `pmlab run WORDS`; its exit status."""
    given = command_line().parse_args(words)
    _check_scale(given.scale)
    _check_export(given)
    told = facts()
    none = given.campaign and not given.experiment
    experiments = [] if none else _chosen_experiments(given.experiment, told["options"])
    _check_claims(experiments)
    if given.list:
        _show_list(experiments, given.scale, told)
        return errors.SUCCESS
    cells, left_out = without([cell for e in experiments for cell in plan(e, given.scale, indexes.swept())],
                              told["left_out"])
    _check_indexes(cells)
    for line in () if given.quiet else lines(left_out):
        print(f"pmlab: note: {line}", file=sys.stderr, flush=True)
    if given.export:
        return _export(given, experiments, cells)
    chosen, shard = _chosen_cells(given, cells, left_out)
    if given.dry_run:
        for cell in chosen:
            print(f"{cell.name}: {shell_form(cell.words)}")
        return errors.SUCCESS
    if not given.out:
        raise Failure("no folder for the results", "give --out FOLDER, or --dry-run to list the commands")
    folder, pools = Path(given.out), _pools_folder(given.pools)
    _check_pools(pools, chosen)
    machine, command = told["machine"], shell_form(["run", *words])
    runner = Runner(experiments, cells, chosen, RunSettings(
        program=programs.pmlab(), folder=folder, pools=pools, source=programs.source(), scale=given.scale,
        command=command, machine=machine, left_out=left_out, shard=shard, resume=given.resume, quiet=given.quiet,
        jobs=machine["cores"]))
    summary = runner.run()
    if not runner.manifest.is_complete:
        print("part of the cells: `pmlab merge` judges the claims, from all parts")
    elif summary.done + summary.kept:
        judge_folder(folder, runner.manifest.canonical_command)
    processes.run([programs.pmlab(), "doctor"], output=folder / "doctor.txt")
    return _tell(summary, folder)
