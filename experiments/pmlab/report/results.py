"""Loads the results of a folder: raw/EXPERIMENT/CELL.json as `pmlab bench` and `microbench` write them, claims/MEDIUM.json,
and manifest.json of `pmlab run`."""

import json
import statistics
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import FAILURE, Failure
from . import memory

SCHEMA = 1
PUBLISHED = "results.csv"  # what a folder has instead of raw/ that was published


class BadResults(Failure):
    """Results that cannot be reported; the message names the file, the problem, and the remedy."""

    def __init__(self, problem, remedy="run it again, or take it out of raw/"):
        super().__init__(problem, remedy, FAILURE)


@dataclass
class Measurement:
    """One index on one medium in one phase, over all repeats of a run."""

    run: str
    index: str
    medium: str
    phase: str
    threads: int
    batch: int
    repeats: list = field(default_factory=list)

    def _median(self, value_of):
        values = [v for v in map(value_of, self.repeats) if v is not None]
        return statistics.median(values) if values else None

    @property
    def throughput(self):
        """Operations per second, median of the repeats."""
        return self._median(lambda r: r.get("throughput_ops_per_s"))

    @property
    def throughput_range(self):
        values = [r["throughput_ops_per_s"] for r in self.repeats if r.get("throughput_ops_per_s") is not None]
        return (min(values), max(values)) if values else (None, None)

    @property
    def n(self):
        """How many repeats it was measured in."""
        return len(self.repeats)

    @property
    def invalid(self):
        """Whether the emulation did not hold in any repeat: the figure is not valid for the device."""
        return any(r.get("invalid") or r.get("valid") is False for r in self.repeats)

    def alone(self):
        """A measurement for each repeat."""
        return [replace(self, repeats=[r]) for r in self.repeats]

    def latency_range(self, percentile):
        values = [v for v in (m.latency(percentile) for m in self.alone()) if v is not None]
        return (min(values), max(values)) if values else (None, None)

    def latency(self, percentile):
        """Nanoseconds, median of the repeats' percentile."""
        return self._median(lambda r: (r.get("latency_ns") or {}).get(percentile))

    def per_operation(self, what):
        return self._median(lambda r: (r.get("per_operation") or {}).get(what))

    def bytes_per_key(self, where):
        return self._median(lambda r: (r.get("bytes_per_key") or {}).get(where))

    def of_cache(self, what):
        """Of a cache in front of the index."""
        return self._median(lambda r: (r.get("cache") or {}).get(what))

    def after_restart(self, what):
        return self._median(lambda r: (r.get("restart") or {}).get(what))

    @property
    def operations(self):
        return self._median(lambda r: r.get("operations"))

    @property
    def wrong_answers(self):
        """Over all repeats; None where answers were not checked."""
        counts = [r["wrong_answers"] for r in self.repeats if r.get("wrong_answers") is not None]
        return sum(counts) if counts else None


@dataclass
class Run:
    """One call of `pmlab bench`."""

    name: str
    about: str
    command: str
    machine: dict
    options: dict
    remarks: list  # the program's warnings about its figures
    skipped: list  # {index, threads, phase, reason}
    measurements: list
    experiment: str = ""
    values: dict = field(default_factory=dict)  # of the experiment's matrix

    @property
    def records(self):
        """Entries loaded before the measured phases; None if the run does not say."""
        return self.options.get("records")

    @property
    def medium(self):
        """As the user named it: what pmlab's own indexes ran on."""
        return str(self.machine.get("medium", ""))

    def find(self, index=None, phase=None, threads=None, batch=None):
        return [m for m in self.measurements
                if index in (None, m.index) and phase in (None, m.phase) and threads in (None, m.threads)
                and batch in (None, m.batch)]

    def one(self, **which):
        found = self.find(**which)
        return found[0] if found else None

    def indexes(self):
        return list(dict.fromkeys(m.index for m in self.measurements))

    def phases(self):
        return list(dict.fromkeys(m.phase for m in self.measurements))


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
    runs: list
    memories: list = field(default_factory=list)  # of the microbenchmark
    drives: list = field(default_factory=list)  # of the microbenchmark, with --device
    verdicts: list = field(default_factory=list)  # of the claims
    experiments: list = field(default_factory=list)
    scale: str = ""
    load: float = None  # of the machine before the run
    disturbed: dict = field(default_factory=dict)  # cell -> CPUs that other programs used beside it
    caveats: list = field(default_factory=list)  # of results that several machines made

    @property
    def listed(self):
        """Every run of whatever kind."""
        return [*self.runs, *self.memories, *self.drives, *self.verdicts]

    @property
    def machine(self):
        return self.listed[0].machine

    @property
    def media(self):
        return [*(m.medium for r in self.runs for m in r.measurements), *(m.medium for m in self.memories)]

    @property
    def has_real_clock(self):
        """Whether any figure depends on the moment it was taken."""
        return any(not medium.startswith(("simulated:", "counted:")) for medium in
                   [*(r.medium for r in self.runs), *(m.medium for m in self.memories)])

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
        return wrong, checked


def _read(path):
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise BadResults(f"{path}: not readable as JSON: {problem}") from problem
    if document.get("schema") != SCHEMA:
        raise BadResults(f"{path}: has schema {document.get('schema')!r}; this report reads schema {SCHEMA}",
                         "use a pmlab of the version that wrote it")
    return document


def _run_of(path, document, described):
    options = document.get("options", {})
    measurements = {}
    name = described.get("name", path.stem)
    for number, result in enumerate(document.get("results", [])):
        try:
            key = (result["index"], result["medium"], result["phase"], int(result["threads"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise BadResults(f"{path}: result {number} lacks or spoils {problem}") from problem
        batch = int(result.get("batch") or options.get("batch") or 1)
        m = measurements.setdefault((*key, batch), Measurement(name, *key, batch))
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
    runs, memories, drives, verdicts = [], [], [], []
    for name, path in files:
        told = {"name": name, **described.get(name, {})}
        if told.get("status", 0) != 0:
            continue
        document = _read(path)
        try:
            if document.get("kind") == "microbench":
                memories.append(memory.memory_of(name, document, told))
            elif document.get("kind") == "drive":
                drives.append(memory.memory_of(name, document, told))
            elif document.get("kind") == "claims":
                verdicts.append(memory.verdicts_of(name, document, told))
            else:
                runs.append(_run_of(path, document, told))
        except (KeyError, TypeError, AttributeError) as problem:
            raise BadResults(f"{path}: lacks or spoils {problem}") from problem
    for path in sorted((folder / "claims").glob("*.json")):
        verdicts.append(memory.verdicts_of(path.stem, _read(path), {"name": f"claims/{path.stem}"}))
    if not runs and not memories and not drives and not verdicts:
        if (folder / PUBLISHED).is_file():
            raise BadResults(f"{folder} is published: it holds page and figures, and no raw/ to make them from",
                             "unpack the raw files of the release into it, or run `pmlab run` again")
        raise BadResults(f"{folder}: holds no results below raw/", "`pmlab run --out FOLDER` writes them")
    failed = [r for r in manifest.get("runs", []) if r.get("status", 0) != 0]
    return ResultSet(folder, manifest.get("title", folder.name), manifest.get("about", ""), manifest.get("started", ""),
                     manifest.get("seconds", 0.0), failed, runs, memories, drives, verdicts, _experiments_of(manifest),
                     manifest.get("scale", ""), manifest.get("load"),
                     {r["name"]: r["other_cpus"] for r in manifest.get("runs", []) if r.get("other_cpus") is not None},
                     manifest.get("caveats", []))
