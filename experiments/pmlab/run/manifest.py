"""The record of a run: FOLDER/manifest.json. --resume, merge, claims and report read it.

It has all that differs by nature from one run to the next: dates, seconds, hosts, loads. The results have none of
it."""

import dataclasses
import os
import time
from dataclasses import dataclass

from ..errors import Failure
from ..json_files import read_json, write_json
from ..spelling import shell_form

_SCHEMA = 1


@dataclass
class Ending:
    """How a cell ended. `message`: the program's complaint, if there is one. `load`, `other_cpus`: of a cell with a
    real clock (other_load.py), otherwise None. `date`: of its results."""

    status: int
    message: str = ""
    seconds: float = 0
    load: float | None = None
    other_cpus: float | None = None
    date: str = ""


def _host():
    return os.uname().nodename


def canonical_command(experiments, scale):
    """The command that makes these results, wherever and by however many machines they were made: for documents that
    are the same each time."""
    return shell_form(["run", *(e["name"] for e in experiments), "--scale", scale])


def in_order(runs, planned):
    """The runs in the order of the plan, not in that of their endings, which differs from time to time."""
    place = {p["name"]: number for number, p in enumerate(planned)}
    return sorted(runs, key=lambda run: place.get(run["name"], len(place)))


def _are_results(path, cell):
    """Whether the file is whole, and of this cell: a copy may have been cut off, or be of another one."""
    try:
        document = read_json(path)
    except Failure:
        return False
    if not isinstance(document, dict) or "schema" not in document:
        return False
    options = document.get("options")
    command = options.get("command") if isinstance(options, dict) else None
    return command is None or command == shell_form(cell.words)


class Manifest:
    """The file, as an object. `machine`: as `pmlab facts` has it."""

    def __init__(self, folder, document):
        self._folder, self._document = folder, document

    @classmethod
    def begin(cls, folder, scale, command, machine, load):
        """The manifest of a new run. `load`: of the machine before it."""
        return cls(folder, {
            "schema": _SCHEMA, "kind": "results", "title": f"{scale} results",
            "about": f"The results of `pmlab run --scale {scale}`.", "scale": scale, "command": command,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "seconds": 0.0, "pools": "",
            "machine": machine, "hosts": {_host(): machine}, "load": load, "shards": [], "caveats": [],
            "experiments": [], "planned": [], "left_out": [], "runs": []})

    @classmethod
    def resume(cls, folder, scale, command, machine, load):
        """The manifest of the run in this folder, with its load of before (`begins_real_clock`). Raises Failure: the
        file is no manifest, or of another scale."""
        path = folder / "manifest.json"
        if not path.exists():
            # Interrupted before anything was noted.
            return cls.begin(folder, scale, command, machine, load)
        try:
            document = read_json(path)
        except Failure:
            document = None
        if not isinstance(document, dict) or document.get("schema") != _SCHEMA or "runs" not in document:
            raise Failure(f"{path} is no manifest of `pmlab run`", "give --out another folder")
        before = document.get("scale", "")
        if before != scale:
            raise Failure(f"{folder} holds results of scale {before}",
                          f"give --scale {before}, or --out another folder")
        document["machine"] = machine
        document.setdefault("hosts", {})[_host()] = machine
        return cls(folder, document)

    def begins_real_clock(self, load):
        """Cells with a real clock are run now. `load`: of the machine before all of this run's cells."""
        self._document["load"] = load

    def describe(self, experiments, cells, left_out=(), shard=None):
        """Adds the experiments with all of their cells, in the place of those of the same name. `left_out`: [LeftOut]
        of them; `shard`: the part of the cells that is run here; None: all, or some by name."""
        # In the order of this run: a page of some comes before that of all.
        named = {e.name for e in experiments}
        known = {e["name"]: e for e in self._document["experiments"] if e["name"] not in named}
        for e in experiments:
            known[e.name] = {"name": e.name, "title": e.title, "about": e.about, "shows": e.shows, "kind": e.kind,
                             "claims": e.claims, "charts": [dataclasses.asdict(c) for c in e.charts]}
        self._document["experiments"] = list(known.values())
        planned = [p for p in self._document.get("planned", []) if p["experiment"] not in named]
        planned += [{"name": c.name, "experiment": c.experiment, "command": shell_form(c.words),
                     "real_clock": c.has_real_clock} for c in cells]
        order = list(known)
        self._document["planned"] = sorted(planned, key=lambda p: order.index(p["experiment"]))
        others = [one for one in self._document.get("left_out", [])
                  if one["experiment"] not in named]
        self._document["left_out"] = others + [dataclasses.asdict(one) for one in left_out]
        if shard and str(shard) not in self._document.setdefault("shards", []):
            self._document["shards"].append(str(shard))

    @property
    def is_complete(self):
        """Whether each cell of its experiments has been run."""
        return {p["name"] for p in self._document["planned"]} <= {run["name"] for run in self._document["runs"]}

    @property
    def canonical_command(self):
        """See canonical_command."""
        return canonical_command(self._document["experiments"], self._document["scale"])

    def has(self, cell):
        """Whether the cell was run with these words by this build of pmlab, ended well, and left its results."""
        for run in self._document["runs"]:
            if run.get("name") == cell.name:
                return (run.get("status") == 0 and run.get("command") == shell_form(cell.words)
                        and run.get("commit") == self._document["machine"]["commit"]
                        and _are_results(self._folder / "raw" / f"{cell.name}.json", cell))
        return False

    def add(self, cell, ending):
        """Notes how a cell ended, in the place of an earlier note of it, and writes the file."""
        runs = [run for run in self._document["runs"] if run["name"] != cell.name]
        runs.append({"name": cell.name, "experiment": cell.experiment, "values": cell.values,
                     "command": shell_form(cell.words), "commit": self._document["machine"]["commit"],
                     "host": _host(), **dataclasses.asdict(ending)})
        self._document["runs"] = in_order(runs, self._document["planned"])
        self._document["seconds"] = sum(run.get("seconds", 0) for run in runs)
        self.write()

    @property
    def pools(self):
        """The folder for pools that this run, or the one that was interrupted, made."""
        return self._document.get("pools", "")

    @pools.setter
    def pools(self, path):
        self._document["pools"] = str(path)

    def write(self):
        """Replaces the file as a whole. Raises Failure."""
        write_json(str(self._folder / "manifest.json"), self._document)
