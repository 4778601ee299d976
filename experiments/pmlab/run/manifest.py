"""The record of a run: FOLDER/manifest.json. --resume, claims and report read it."""

import dataclasses
import json
import time
from dataclasses import dataclass

from ..errors import Failure
from ..json_files import write_json
from ..spelling import shell_form

_SCHEMA = 1


@dataclass
class Ending:
    """How a cell ended. `message`: the program's complaint, if there is one. `load`, `other_cpus`: of a cell with a
    real clock (other_load.py), otherwise None."""

    status: int
    message: str = ""
    seconds: float = 0
    load: float | None = None
    other_cpus: float | None = None


class Manifest:
    """The file, as an object. `machine`: as `pmlab facts` has it."""

    def __init__(self, folder, document):
        self._folder, self._document = folder, document

    @classmethod
    def begin(cls, folder, scale, command, machine, load):
        """Of a new run. `load`: of the machine before it."""
        return cls(folder, {
            "schema": _SCHEMA, "kind": "results", "title": f"{scale} results",
            "about": f"The results of `pmlab run --scale {scale}`.", "scale": scale, "command": command,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "seconds": 0.0, "pools": "",
            "machine": machine, "load": load, "experiments": [], "runs": []})

    @classmethod
    def resume(cls, folder, scale, command, machine, load):
        """Of the run whose folder this is. Raises Failure: the file is no manifest, or of another scale."""
        path = folder / "manifest.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            # Interrupted before anything was noted.
            return cls.begin(folder, scale, command, machine, load)
        except (OSError, ValueError):
            document = None
        if not isinstance(document, dict) or document.get("schema") != _SCHEMA or "runs" not in document:
            raise Failure(f"{path} is no manifest of `pmlab run`", "give --out another folder")
        before = document.get("scale", "")
        if before != scale:
            raise Failure(f"{folder} holds results of scale {before}",
                          f"give --scale {before}, or --out another folder")
        document["machine"], document["load"] = machine, load
        return cls(folder, document)

    def describe(self, experiments):
        """Adds the experiments, in the place of those of the same name."""
        known = {e["name"]: e for e in self._document["experiments"]}
        for e in experiments:
            known[e.name] = {"name": e.name, "title": e.title, "about": e.about, "shows": e.shows, "kind": e.kind,
                             "claims": e.claims, "charts": [dataclasses.asdict(c) for c in e.charts]}
        self._document["experiments"] = list(known.values())

    def has(self, cell):
        """Whether the cell was run with these words by this build of pmlab, ended well, and left its results."""
        for run in self._document["runs"]:
            if run.get("name") == cell.name:
                return (run.get("status") == 0 and run.get("command") == shell_form(cell.words)
                        and run.get("commit") == self._document["machine"]["commit"]
                        and (self._folder / "raw" / f"{cell.name}.json").exists())
        return False

    def add(self, cell, ending):
        """Notes how a cell ended, in the place of an earlier note of it, and writes the file."""
        runs = [run for run in self._document["runs"] if run["name"] != cell.name]
        runs.append({"name": cell.name, "experiment": cell.experiment, "values": cell.values,
                     "command": shell_form(cell.words), "commit": self._document["machine"]["commit"],
                     **dataclasses.asdict(ending)})
        self._document["runs"] = runs
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
