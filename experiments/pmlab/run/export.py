"""`pmlab run --export snakemake`: the cells, and ranges of seeds, as jobs of an engine that has a scheduler.

The Snakefile is the same for all: it reads plan.json, which lists the jobs with their times and memory."""

import math
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from .. import errors, processes, programs
from ..errors import Failure
from ..json_files import write_json
from ..new_folder import new_folder
from ..spelling import shell_form
from .experiment import path_of
from .time_left import count_of, guess

ENGINES = ("snakemake",)
_TEMPLATES = Path(__file__).resolve().parent / "snakemake"
# Limits are for jobs that hang: a job that reaches one is run again, and goes on.
_LEAST_MINUTES = 10
_TIMES_GUESS = 6
_MEGABYTES = 1000  # megabytes of any cell: the programs and the simulated machine
_BYTES_OF_RECORD = 600  # with its index's share of the structure, on a medium and in the simulated caches
_MEGABYTES_OF_RANGE = 1500
_MINUTES_OF_RANGE = 60


@dataclass(frozen=True)
class Campaign:
    """`words`: of `pmlab verify`, without the range; seeds `first` to `last` in `ranges` parts."""

    words: list
    first: int
    last: int
    ranges: int


def split(first, last, count):
    """[(first, last), ...]: so many ranges, or one for each seed if there are fewer seeds, as even as can be."""
    seeds = last - first + 1
    count = min(count, seeds)
    ends = [first + seeds * number // count for number in range(count + 1)]
    return [(a, b - 1) for a, b in zip(ends, ends[1:])]


def read_campaign(text, ranges):
    """ "--index cceh --seeds 1..6400": one round of it is tried, so that mistakes show here. Raises Failure."""
    words = shlex.split(text)
    given = [w for w in words if w.split("=")[0] in ("--out", "--resume", "--quiet")]
    if given:
        raise Failure(f"--campaign '{text}' has {given[0]}, which each job has of its own", "leave it out")
    if words.count("--seeds") != 1 or words[-1] == "--seeds":
        raise Failure(f"--campaign '{text}' has no seeds", "give it --seeds A..B")
    at = words.index("--seeds")
    seeds = words[at + 1]
    rest = words[:at] + words[at + 2:]
    first, _, last = seeds.partition("..")
    tried = f"{first}..{first}" if last.isdecimal() and first.isdecimal() and int(first) <= int(last) else seeds
    status, _ = processes.capture([programs.pmlab(), "verify", *rest, "--seeds", tried, "--quiet"])
    if status not in (errors.SUCCESS, errors.FAILURE):
        raise Failure(f"--campaign '{text}': `{shell_form(['verify', *rest, '--seeds', tried])}` does not work",
                      "see its complaint above")
    return Campaign(rest, int(first), int(last), ranges)


def _minutes(seconds):
    return max(_LEAST_MINUTES, math.ceil(_TIMES_GUESS * seconds / 60))


def _megabytes(cell):
    indexes = 1 + cell.value("--index").count(",")
    records = count_of(cell.value("--records", "1M"), "--records")
    return _MEGABYTES + math.ceil(records * indexes * _BYTES_OF_RECORD / 1e6)


def _plan(experiments, cells, campaigns, scale, options):
    clocked = [cell for cell in cells if cell.has_real_clock]
    return {
        "schema": 1, "kind": "plan", "program": str(Path(programs.pmlab()).resolve()), "scale": scale,
        "options": options, "experiments": [e.name for e in experiments],
        "cells": [{"name": c.name, "priority": math.ceil(guess(c)), "minutes": _minutes(guess(c)),
                   "mem_mb": _megabytes(c)}
                  for c in cells if not c.has_real_clock],
        "clocked": None if not clocked else {
            "cells": [c.name for c in clocked], "minutes": _minutes(sum(map(guess, clocked))),
            "mem_mb": max(map(_megabytes, clocked))},
        "campaigns": [{"name": str(number), "words": c.words, "ranges": split(c.first, c.last, c.ranges),
                       "minutes": _MINUTES_OF_RANGE, "mem_mb": _MEGABYTES_OF_RANGE}
                      for number, c in enumerate(campaigns, 1)]}


def export(out, experiments, names, cells, campaigns, scale, options):
    """Writes the folder: Snakefile, plan.json, experiments/, and slurm/, a profile. `names`: of the experiments, as
    they were given; `options`: of each `pmlab run`. Raises Failure: the folder holds something, or cannot be
    written."""
    with new_folder(out) as folder:
        shutil.copytree(_TEMPLATES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        # Where pmlab is installed, files have lost their permissions.
        (folder / "slurm" / "status.py").chmod(0o755)
        (folder / "experiments").mkdir()
        for experiment, name in zip(experiments, names):
            shutil.copyfile(path_of(name), folder / "experiments" / f"{experiment.name}.toml")
        write_json(str(folder / "plan.json"), _plan(experiments, cells, campaigns, scale, options))
