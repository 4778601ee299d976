"""The figures of a result: of a file that `pmlab bench`, `stores` or `microbench` wrote with --json, of a folder of
`pmlab run`, or of a published one."""

from dataclasses import dataclass
from pathlib import Path

from ..errors import Failure, no_module
from ..report import names, provenance, results
from ..report.quantities import QUANTITIES
from .judging import Side

# In which direction a figure is better.
MORE, LESS, NEITHER = "more", "less", "neither"
# Quantities that are counted: the same program counts the same.
COUNTS = ("flushes", "fences", "lines_read", "lines_written", "device_reads", "device_writes", "media_bytes_read",
          "media_bytes_written")
# Quantities that mean nothing on a medium that counts.
TIMES = ("throughput", "thousand", "latency", "p99", "microseconds", "microseconds_p99", "cpu", "milliseconds",
         "first_find", "first_scan")
DEFAULT = ("throughput", "flushes", "fences", "lines_read", "lines_written", "device_writes")
_TIMED = ("ns", "us", "ms", "s")


@dataclass
class Figure:
    """`text`: function of a value; `exact`: chance has no part in it; `is_single`: of one repeat on a real clock, whose
    spread is unknown."""

    side: Side
    better: str
    text: object
    exact: bool = False
    is_single: bool = False


@dataclass
class Figures:
    """`found`: {key: Figure}, where the key is words: the run, the medium, the rest of its name; `origin`: a clause
    about machine and commit."""

    found: dict
    origin: str
    machine: str = ""  # none: it is not known
    has_real_clock: bool = False


def _of_measurement(run, m, quantities):
    words = [names.index_title(m.index), names.short_phase(m.phase),
             *(v for k, v in getattr(m, "keys", {}).items() if k != "store"),
             *([f"{m.hosts} hosts"] if getattr(m, "hosts", 1) > 1 else []),
             "1 thread" if m.threads == 1 else f"{m.threads} threads", *([f"batch {m.batch}"] if m.batch > 1 else [])]
    counts = m.medium.startswith("counted")
    for name in quantities:
        quantity = QUANTITIES[name]
        samples = [v for v in map(quantity.of, m.alone()) if v is not None]
        if not samples or (counts and name in TIMES):
            continue
        is_single = len(samples) == 1 and name in TIMES and results.has_real_clock(m.medium)
        yield (run.name, names.short_medium(m.medium), *words, name), Figure(
            Side.of(samples), MORE if quantity.more_is_better else LESS, quantity.text, name in COUNTS, is_single)


def _better(unit):
    if unit in _TIMED or unit.split(" ")[0] in _TIMED:
        return LESS
    return MORE if unit.endswith("/s") else NEITHER


def _of_memory(memory):
    for name, case in memory.cases.items():
        if memory.value(name) is None:
            continue
        low, high = memory.range_of_value(name)
        values = case.get("values") or []
        side = Side(memory.value(name), low, high, len(values) or 1,
                    tuple(values))  # samples: unscaled, which ranks allow
        unit = case.get("unit", "")
        yield (memory.name, names.short_medium(memory.medium), name), Figure(
            side, _better(unit), lambda v, u=unit: f"{names.number(v)} {u}".strip(),
            is_single=side.n == 1 and results.has_real_clock(memory.medium))


def _of_results(loaded, quantities):
    found = {}
    for run in [*loaded.runs, *loaded.stores]:
        for m in run.measurements:
            found.update(_of_measurement(run, m, quantities))
    for memory in [*loaded.memories, *loaded.drives]:
        found.update(_of_memory(memory))
    machine = loaded.machine
    return Figures(found, f"{provenance.machine_line(machine)}, commit {machine.get('commit', '?')}",
                   machine.get("cpu", ""),
                   loaded.has_real_clock)


def _of_drawn(folder):
    try:
        from ..report import published
    except ImportError as problem:
        raise no_module(problem, "matplotlib", "by which the figures of a published folder are found",
                        ", or compare folders of `pmlab run`") from problem
    figures = published.figures_of(folder)
    found = {key: Figure(Side(d.value, d.low, d.high, d.n), _better(d.unit),
                         lambda v, u=d.unit: f"{names.number(v)} {u}".strip())
             for key, d in figures.drawn.items() if not key[0].startswith(names.CHARTS_OF_FIRST_SCREEN)}
    return Figures(found, "the figures of its charts")


def _named_alike(both):
    """Names a medium in keys only where a result has several: two files may be of two media."""
    media = [{key[1] for key in figures.found} for figures in both]
    if all(len(names_of_media) == 1 for names_of_media in media):
        for figures, [medium] in zip(both, media):
            figures.origin += f", on {medium}"
            figures.found = {(key[0], "", *key[2:]): figure for key, figure in figures.found.items()}
    return both


def load_both(first, second, quantities):
    """Both results as Figures. If one is published, both have the figures that their charts show. Raises Failure: a
    path holds no results."""
    paths = [Path(first), Path(second)]
    for path in paths:
        if not path.exists():
            raise Failure(f"there is no {path}", "name a file of --json, or a folder of `pmlab run`")
    if any(map(results.is_published, paths)):
        if not all(path.is_dir() for path in paths):
            raise Failure("a published folder is compared with a folder",
                          "give the folder that `pmlab run --out` wrote")
        return [_of_drawn(path) for path in paths]
    if paths[0].is_dir() != paths[1].is_dir():
        raise Failure("a file and a folder have no figure in common",
                      "give two files of --json, or two folders of `pmlab run`")
    return _named_alike([_of_results(results.load(path) if path.is_dir() else results.load_file(path), quantities)
                         for path in paths])
