"""Loads the results of a folder: raw/EXPERIMENT/CELL.json as `pmlab bench` and `microbench` write them,
claims/MEDIUM.json, and manifest.json of `pmlab run`."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import FAILURE, Failure
from ..run.left_out import LeftOut
from ..texts import read_text
from . import memory, stores
from .measurements import Measurement, Run

SCHEMA = 1
_GIVE_RESULTS = "give what `pmlab bench`, `stores` or `microbench` wrote with --json; `pmlab run` writes it again"
PUBLISHED = "results.csv"  # what a folder has instead of raw/ that was published


def is_published(folder):
    """Whether the folder has figures, and no raw files to make them from."""
    return (folder / PUBLISHED).is_file() and not (folder / "raw").is_dir()


def has_real_clock(medium):
    """Whether its figures depend on the moment they were taken."""
    return not medium.startswith(("simulated:", "counted:"))


class BadResults(Failure):
    """Results that cannot be reported; the message names the file, the problem, and the remedy."""

    def __init__(self, problem, remedy="run it again, or take it out of raw/"):
        super().__init__(problem, remedy, FAILURE)


@dataclass
class Experiment:
    """A file of experiments/, as the manifest has it."""

    name: str
    title: str
    about: str
    shows: str
    claims: list
    charts: list  # {kind, x, y, series, panels}


@dataclass
class ResultSet:
    """All runs of one folder."""

    folder: Path
    title: str
    about: str
    started: str
    seconds: float
    failed: list
    runs: list = field(default_factory=list)
    memories: list = field(default_factory=list)  # results of the microbenchmark
    drives: list = field(default_factory=list)  # results of the microbenchmark with --device
    stores: list = field(default_factory=list)  # results of pmlab stores
    verdicts: list = field(default_factory=list)  # verdicts of the claims
    experiments: list = field(default_factory=list)
    scale: str = ""
    load: float = None  # load of the machine before the run
    disturbed: dict = field(default_factory=dict)  # cell -> CPUs that other programs used beside it
    caveats: list = field(default_factory=list)  # caveats of results that several machines made
    left_out: list = field(default_factory=list)  # peers that pmlab was built without (run/left_out.py)

    @property
    def listed(self):
        """Every run of whatever kind."""
        return [*self.runs, *self.memories, *self.drives, *self.stores, *self.verdicts]

    @property
    def machine(self):
        return self.listed[0].machine

    @property
    def media(self):
        return [*(m.medium for r in self.runs for m in r.measurements), *(m.medium for m in self.memories)]

    @property
    def has_real_clock(self):
        """Whether any figure depends on the moment it was taken."""
        return any(has_real_clock(medium) for medium in
                   [*(r.medium for r in [*self.runs, *self.stores]), *(m.medium for m in self.memories)])

    def run(self, name):
        return next((r for r in self.runs if r.name == name), None)

    def wrong_answers(self):
        """(wrong, checked operations) over everything that was verified."""
        wrong = checked = 0
        for run in self.runs:
            for m in run.measurements:
                if run.options.get("verify") and m.wrong_answers is not None:
                    wrong += m.wrong_answers
                    checked += sum(r.get("operations", 0) for r in m.repeats)
        for run in self.stores:
            wrong += run.wrong
            checked += run.checked
        return wrong, checked


def _read(path):
    try:
        document = json.loads(read_text(path, "results"))
    except Failure as failure:
        raise BadResults(failure.problem, failure.remedy) from failure
    except (ValueError, RecursionError) as problem:
        raise BadResults(f"{path}: not readable as JSON: {problem}", _GIVE_RESULTS) from problem
    if not isinstance(document, dict):
        raise BadResults(f"{path}: holds no results of pmlab", _GIVE_RESULTS)
    for name in ("machine", "options"):
        if not isinstance(document.get(name, {}), dict):
            raise BadResults(f"{path}: '{name}' is no object", _GIVE_RESULTS)
    if document.get("schema") != SCHEMA:
        raise BadResults(f"{path}: has schema {document.get('schema')!r}; this report reads schema {SCHEMA}",
                         "use a pmlab of the version that wrote it")
    return document


# Members of one result: texts, numbers, and groups of numbers. All but the texts may be null, or lack.
_TEXTS = ("index", "medium", "phase")
_NUMBERS = ("threads", "hosts", "batch", "operations", "seconds", "throughput_ops_per_s", "entries", "wrong_answers",
            "cpu_cache_bytes")
_GROUPS = ("latency_ns", "per_operation", "between_hosts", "media_bytes", "bytes_per_key", "restart")


def _is_number(value):
    try:
        return value is None or (isinstance(value, (int, float)) and math.isfinite(value))
    except OverflowError:  # an integer beyond every float
        return False


def _check_result(path, number, result):
    """Raises BadResults: a value is of another kind than `pmlab bench` writes."""
    def refuse(name):
        raise BadResults(f"{path}: result {number} lacks or spoils '{name}'", _GIVE_RESULTS)
    for name in _TEXTS:
        if not isinstance(result[name], str):
            refuse(name)
    for name in _NUMBERS:
        if not _is_number(result.get(name)):
            refuse(name)
    groups = {name: result.get(name) or {} for name in _GROUPS}
    groups["cache"] = {"hit_ratio": (result.get("cache") or {}).get("hit_ratio")}
    for name, group in groups.items():
        if not isinstance(group, dict) or not all(map(_is_number, group.values())):
            refuse(name)


def _run_of(path, document, described):
    options = document.get("options", {})
    measurements = {}
    name = described.get("name", path.stem)
    for number, result in enumerate(document.get("results", [])):
        try:
            _check_result(path, number, result)
            key = (result["index"], result["medium"], result["phase"], int(result["threads"]))
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise BadResults(f"{path}: result {number} lacks or spoils {problem}") from problem
        batch = int(result.get("batch") or options.get("batch") or 1)
        hosts = int(result.get("hosts") or 1)
        m = measurements.setdefault((*key, batch, hosts), Measurement(name, *key, batch, hosts=hosts))
        m.repeats.append(result)
    return Run(name, described.get("about", ""), described.get("command", ""), document.get("machine", {}), options,
               document.get("remarks") or [], document.get("skipped") or [], list(measurements.values()),
               described.get("experiment", ""), described.get("values", {}))


def _experiments_of(manifest):
    return [Experiment(e["name"], e["title"], e["about"], e["shows"], e["claims"], e["charts"])
            for e in manifest.get("experiments", [])]


def _described(manifest):
    """name -> the manifest's entry of that run, in the order of the experiments."""
    order = [e["name"] for e in manifest.get("experiments", [])]
    titles = {e["name"]: e["title"] for e in manifest.get("experiments", [])}
    runs = sorted(manifest.get("runs", []),
                  key=lambda r: order.index(r["experiment"]) if r.get("experiment") in order else len(order))
    return {r["name"]: {"about": titles.get(r.get("experiment"), ""), **r} for r in runs}


# What the JSON of a command becomes, by its kind: the field of a ResultSet, and the function that makes one.
_KINDS = {"microbench": ("memories", memory.memory_of), "drive": ("drives", memory.memory_of),
          "stores_bench": ("stores", stores.run_of), "claims": ("verdicts", memory.verdicts_of)}


def _add(found, name, path, told):
    """Reads a file of results into `found`: {field of a ResultSet: list}. Raises BadResults."""
    document = _read(path)
    try:
        if document.get("kind") in _KINDS:
            kind, make = _KINDS[document["kind"]]
            found.setdefault(kind, []).append(make(name, document, told))
        else:
            found.setdefault("runs", []).append(_run_of(path, document, told))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise BadResults(f"{path}: lacks or spoils {problem}") from problem


def load_file(path):
    """What one command wrote with --json. Throws BadResults: it is nothing of the kind, or has no figures."""
    path, found = Path(path), {}
    _add(found, "", path, {"name": ""})
    loaded = ResultSet(path, path.name, "", "", 0.0, [], **found)
    if not any([loaded.drives, *(m.cases for m in loaded.memories),
                *(r.measurements for r in [*loaded.runs, *loaded.stores])]):
        raise BadResults(f"{path} has no figures", _GIVE_RESULTS)
    return loaded


def load(folder):
    """The results below `folder`. Throws BadResults: nothing there, or something that is not schema 1."""
    folder = Path(folder)
    manifest_path = folder / "manifest.json"
    manifest = _read(manifest_path) if manifest_path.is_file() else {}
    described = _described(manifest)
    order = {name: place for place, name in enumerate(described)}
    raw = folder / "raw"
    found = {str(p.relative_to(raw).with_suffix("")): p for p in sorted(raw.rglob("*.json"))}
    files = sorted(found.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
    found = {}
    for name, path in files:
        told = {"name": name, **described.get(name, {})}
        if told.get("status", 0) == 0:
            _add(found, name, path, told)
    for path in sorted((folder / "claims").glob("*.json")):
        found.setdefault("verdicts", []).append(memory.verdicts_of(path.stem, _read(path),
                                                                   {"name": f"claims/{path.stem}"}))
    if not found:
        if (folder / PUBLISHED).is_file():
            raise BadResults(f"{folder} is published: it holds page and figures, and no raw/ to make them from",
                             "unpack the raw files of the release into it, or run `pmlab run` again")
        raise BadResults(f"{folder}: holds no results below raw/", "`pmlab run --out FOLDER` writes them")
    failed = [r for r in manifest.get("runs", []) if r.get("status", 0) != 0]
    return ResultSet(folder, manifest.get("title", folder.name), manifest.get("about", ""), manifest.get("started", ""),
                     manifest.get("seconds", 0.0), failed, experiments=_experiments_of(manifest),
                     scale=manifest.get("scale", ""), load=manifest.get("load"),
                     disturbed={r["name"]: r["other_cpus"] for r in manifest.get("runs", [])
                                if r.get("other_cpus") is not None},
                     caveats=manifest.get("caveats", []), left_out=[LeftOut(**one)
                                                                    for one in manifest.get("left_out", [])], **found)
