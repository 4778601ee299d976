"""Merging the parts of `pmlab run`: each cell once, and nothing that does not belong together."""

import shlex
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..claims.evidence import KNOWN_SCHEMA
from ..errors import Failure
from ..json_files import read_json, write_json
from ..run.manifest import in_order
from ..run.plan import Cell
from ..run.share import shares
from .parts import refuse_other_builds

_NAMED = 3  # cells in a message
# Facts of a machine: where two differ in these, a clock tells different things on them.
_OF_MACHINE = ("cpu", "cores", "numa_nodes", "kernel", "flush_instruction", "simd", "transparent_huge_pages")


@dataclass(frozen=True)
class _Measured:
    """A cell as one part has it. `run`: its entry of the manifest."""

    part: object
    run: dict

    @property
    def file(self):
        return self.part.folder / "raw" / f"{self.run['name']}.json"

    @property
    def log(self):
        return self.part.folder / "log" / f"{self.run['name']}.txt"

    @property
    def machine(self):
        return self.part.manifest.get("hosts", {}).get(self.run.get("host"), self.part.machine)


@dataclass
class Merged:
    """`cells`: of each cell that was run, the place of its results. `notes`: to be told; `caveats`: to stand on the
    page."""

    parts: list
    planned: list
    experiments: list
    left_out: list
    cells: dict = field(default_factory=dict)
    missing: list = field(default_factory=list)
    failed: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    caveats: list = field(default_factory=list)


def _some(names):
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _plan_of(parts):
    """(experiments, planned cells, what they leave out) of all parts together. Raises Failure: they do not fit."""
    experiments, planned, left_out, source = {}, {}, {}, {}
    for part in parts:
        if not isinstance(part.manifest.get("planned"), list):
            raise Failure(f"{part.folder} has no list of planned cells: it is of an older pmlab",
                          "run it again, with --resume, by this one")
        for e in part.manifest["experiments"]:
            lacking = [one for one in part.manifest.get("left_out", []) if one["experiment"] == e["name"]]
            if left_out.setdefault(e["name"], lacking) != lacking:
                raise Failure(f"experiment {e['name']} has other indexes or stores in {part.folder} than in "
                              f"{source[e['name']]}: one pmlab was built without "
                              f"{_some(sorted({one['title'] for one in lacking + left_out[e['name']]}))}",
                              "build both with the same packages, and run one of them again")
            cells = [p for p in part.manifest["planned"] if p["experiment"] == e["name"]]
            known = experiments.setdefault(e["name"], e)
            if known != e or planned.setdefault(e["name"], cells) != cells:
                raise Failure(f"experiment {e['name']} is another one in {part.folder} than in {source[e['name']]}",
                              "run both from one file")
            source.setdefault(e["name"], part.folder)
    return (list(experiments.values()), [p for cells in planned.values() for p in cells],
            [one for lacking in left_out.values() for one in lacking])


def _refuse_other_scales(parts):
    for part in parts[1:]:
        one, other = parts[0].manifest.get("scale"), part.manifest.get("scale")
        if one != other:
            raise Failure(f"{parts[0].folder} is of scale {one}, and {part.folder} of scale {other}",
                          "merge results of one scale")


def _check_result(measured):
    """Raises Failure: the file is not what `pmlab run` left there."""
    again = f"run the cell again: pmlab run --cell {measured.run['name']} --resume --out {measured.part.folder}"
    if not measured.file.exists():
        raise Failure(f"{measured.file} is missing, and its manifest has it", again)
    try:
        document = read_json(measured.file)
    except Failure as problem:
        raise Failure(problem.problem, again) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != KNOWN_SCHEMA:
        raise Failure(f"{measured.file} is of schema {schema!r}, and this pmlab merges schema {KNOWN_SCHEMA}",
                      "merge it with the pmlab that wrote it")


def _one_of(name, found, merged):
    """One of several results of a cell. Raises Failure: they differ."""
    first, *others = found
    for other in others:
        if first.file.read_bytes() != other.file.read_bytes():
            raise Failure(f"two results of cell {name} differ: {first.file} and {other.file}",
                          "leave one of the folders out, or move one of the files and its log away and "
                          "take the cell out of that manifest.json")
    if others:
        merged.notes.append(f"{name} is in {len(found)} folders, the same in each")
    return first


def _collect(merged):
    found, failed = {}, {}
    known = {p["name"]: p for p in merged.planned}
    for part in merged.parts:
        for run in part.manifest["runs"]:
            if run["name"] not in known:
                continue
            measured = _Measured(part, run)
            if run["command"] != known[run["name"]]["command"]:
                # The run has an earlier plan: --resume would have run it again.
                continue
            if run["commit"] != part.machine.get("commit"):
                raise Failure(f"cell {run['name']} of {part.folder} is of another build, commit {run['commit']}",
                              f"run it again: pmlab run --resume --out {part.folder}")
            if run["status"] != 0:
                failed.setdefault(run["name"], measured)
                continue
            _check_result(measured)
            found.setdefault(run["name"], []).append(measured)
    for p in merged.planned:
        name = p["name"]
        if name in found:
            merged.cells[name] = _one_of(name, found[name], merged)
        elif name in failed:
            merged.cells[name] = failed[name]
            merged.failed.append(name)
        else:
            merged.missing.append(name)


def _missing_shards(merged):
    """["7/64"]: the shards whose cells are missing, where the parts are shards of one division."""
    counts = Counter(text.split("/")[1] for part in merged.parts for text in part.manifest.get("shards", []))
    if len(counts) != 1:
        return []
    count = int(next(iter(counts)))
    cells = [Cell(p["experiment"], p["name"], {}, _words_of(p["command"])) for p in merged.planned]
    owner = shares(cells, count)
    return [f"{number}/{count}" for number in sorted({owner[name] for name in merged.missing})]


def _words_of(command):
    return shlex.split(command)[1:]


def _refuse_missing(merged):
    if not merged.missing:
        return
    shards = _missing_shards(merged)
    remedy = f"run {'shards' if len(shards) > 1 else 'shard'} {_some(shards)}" if shards else "run them"
    raise Failure(f"{len(merged.missing)} of {len(merged.planned)} cells are missing: {_some(merged.missing)}",
                  f"{remedy} (with --resume, if the folder is there) and name that folder, too; "
                  "or give --incomplete for what there is")


def _judge_machines(merged, accept):
    """Cells with a real clock that ran on several machines: a caveat; on several kinds of machine: an error, or a
    caveat if it is accepted."""
    clocked = {p["name"] for p in merged.planned if p["real_clock"]}
    runs = [m for name, m in merged.cells.items() if name in clocked and name not in merged.failed]
    hosts = {}
    for m in runs:
        hosts.setdefault(m.run.get("host", "unknown"), m)
    if len(hosts) < 2:
        return
    first, *others = hosts.values()
    for other in others:
        for key in _OF_MACHINE:
            one, two = first.machine.get(key), other.machine.get(key)
            if one != two and not accept:
                raise Failure(
                    f"cells with a real clock ran on different machines: {first.run['name']} on "
                    f"{first.run.get('host')} ({key} {one!r}), {other.run['name']} on {other.run.get('host')} ({key} "
                    f"{two!r})", "run all of them on one machine; or give --other-machines, and the page has a caveat")
    kind = "different machines" if any(first.machine.get(k) != o.machine.get(k) for o in others
                                       for k in _OF_MACHINE) else (
        f"{len(hosts)} machines of one kind")
    merged.caveats.append(f"Cells with a real clock ran on {kind} ({', '.join(sorted(hosts))}): differences between "
                          "their figures may be differences of the machines. Simulated and counted figures are not "
                          "affected.")


def collect(parts, incomplete=False, other_machines=False):
    """The Merged of these parts. Raises Failure: other builds, scales, plans; cells that differ or are missing; cells
    with a real clock from machines that differ."""
    caveat = refuse_other_builds(parts)
    _refuse_other_scales(parts)
    experiments, planned, left_out = _plan_of(parts)
    merged = Merged(parts, planned, experiments, left_out)
    if caveat:
        merged.notes.append(caveat)
    _collect(merged)
    if not incomplete:
        _refuse_missing(merged)
    elif merged.missing:
        merged.caveats.append(f"{len(merged.missing)} of {len(planned)} cells are missing: {_some(merged.missing)}.")
    if not merged.cells:
        raise Failure("these folders hold no results", "see the logs of the parts for why")
    _judge_machines(merged, other_machines)
    return merged


def _highest(values):
    return max((v for v in values if v is not None), default=None)


def _manifest_of(merged, command):
    first = merged.parts[0].manifest
    clocked = {p["name"] for p in merged.planned if p["real_clock"]}
    timed = {m.part.folder for name, m in merged.cells.items() if name in clocked}
    runs = in_order([m.run for m in merged.cells.values()], merged.planned)
    hosts = {}
    for part in merged.parts:
        hosts |= part.manifest.get("hosts", {})
    machine = next((m.machine for name, m in merged.cells.items() if name in clocked), first["machine"])
    return first | {
        "command": command, "machine": machine, "started": min(p.manifest["started"] for p in merged.parts),
        "seconds": sum(run.get("seconds", 0) for run in runs), "pools": "", "hosts": hosts, "shards": [],
        "load": _highest(p.manifest.get("load") for p in merged.parts if p.folder in timed),
        "caveats": [*dict.fromkeys(c for p in merged.parts for c in p.manifest.get("caveats", [])), *merged.caveats],
        "experiments": merged.experiments, "planned": merged.planned, "left_out": merged.left_out, "runs": runs}


def _copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _copy_doctors(merged, folder):
    """What `pmlab doctor` said: of one machine as doctor.txt, of several each by its name."""
    by_host = {}
    for part in merged.parts:
        if (part.folder / "doctor.txt").exists():
            for host in part.manifest.get("hosts", {"unknown": None}):
                by_host.setdefault(host, part.folder / "doctor.txt")
    for host, file in by_host.items():
        _copy(file, folder / ("doctor.txt" if len(by_host) == 1 else f"doctor/{host}.txt"))


def write(merged, folder, command):
    """Raises OSError, Failure: not all of it could be written."""
    for name, measured in merged.cells.items():
        if name not in merged.failed:
            _copy(measured.file, Path(folder) / "raw" / f"{name}.json")
        if measured.log.exists():
            _copy(measured.log, Path(folder) / "log" / f"{name}.txt")
    _copy_doctors(merged, Path(folder))
    write_json(str(Path(folder) / "manifest.json"), _manifest_of(merged, command))
