"""The first screen: the thesis with its charts, what ran where, the answers, and the ranking of all indexes."""

from dataclasses import dataclass

from .. import indexes
from . import charts, names, provenance, style
from .thesis import thesis

RANKED = ("read", "insert", "scan")
BUSY_SHARE = 0.5  # share of the CPUs, before the run
DISTURBING_CPUS = 0.2  # CPUs of other programs, while a cell runs

HAN21 = ("S. Han, Z. Xiong, D. Jiang, J. Xiong: Rethinking and Optimising Index Design on Persistent Memory "
         "(基于持久化内存的索引设计重新思考与优化, in Chinese). State Key Laboratory of Computer Architecture, Institute of "
         "Computing Technology, Chinese Academy of Sciences. Journal of Computer Research and Development 58(2), 2021.")


@dataclass
class FirstScreen:
    thesis: object  # Thesis, or None
    ranking: object  # Chart, or None

    @property
    def charts(self):
        of_thesis = [self.thesis.overview, *self.thesis.charts] if self.thesis else []
        return [*of_thesis, *([self.ranking] if self.ranking else [])]


def first_screen(results):
    return FirstScreen(thesis(results), ranking(results))


def _kind_of(run):
    """Which runs may stand in one ranking: a clock that is real, before one that is emulated or virtual."""
    for place, kind in enumerate(("pmem", "dram", "emulated", "simulated")):
        if run.medium.startswith(kind):
            return place
    return None  # counted: its times mean nothing


def _ranked_measurements(results):
    """(run, measurement) for each index, phase and number of threads: of the run with the most records, and then of the
    one that measured the most."""
    kinds = {}
    for run in results.runs:
        if _kind_of(run) is not None and not run.options.get("verify"):
            kinds.setdefault(_kind_of(run), []).append(run)
    for kind in sorted(kinds):
        ordered = sorted(kinds[kind], key=lambda r: (-(r.records or 0), -len(r.measurements)))
        chosen = {}
        for run in ordered:
            for m in run.measurements:
                if m.phase in RANKED and m.batch == 1 and m.throughput and _is_an_index(m.index):
                    chosen.setdefault((m.index, m.phase, m.threads), (run, m))
        if len({index for index, phase, _ in chosen if phase == "read"}) > 1:
            return list(chosen.values())
    return []


# The null index keeps nothing: its figures are those of the benchmark.
_MEASURE_PMLAB_ITSELF = {index["name"] for index in indexes.offered()} - {index["name"] for index in indexes.verified()}


def _is_an_index(name):
    return name in style.INDEX_COLOURS and name not in _MEASURE_PMLAB_ITSELF


def ranking(results):
    """One chart of all indexes: finds, inserts and scans, with one thread and with the most; None: nothing to rank."""
    chosen = _ranked_measurements(results)
    if not chosen:
        return None
    ends = {min(m.threads for _, m in chosen), max(m.threads for _, m in chosen)}
    chosen = [(run, m) for run, m in chosen if m.threads in ends]
    finds = {m.index: m.throughput for _, m in chosen if m.phase == "read" and m.threads == min(ends)}
    chosen.sort(key=lambda pair: -finds.get(pair[1].index, 0))
    measurements = [m for _, m in chosen]
    runs = list({run.name: run for run, _ in chosen}.values())
    phases = [p for p in RANKED if any(m.phase == p for m in measurements)]
    records = sorted({run.records for run in runs if run.records})
    shown = " to ".join(map(names.count, dict.fromkeys([records[0], records[-1]]))) if records else None
    return charts.index_bars(runs[0], "ranking", "All indexes", measurements, phases, name_of_file="ranking",
                             source=provenance.footer(runs[0], measurements, shown))


def answers(results):
    """(sentence, whether an answer was wrong)."""
    wrong, checked = results.wrong_answers()
    if wrong:
        return f"{wrong:,} wrong answers in {checked:,} checked operations.", True
    if checked:
        return f"Wrong answers: none, in {checked:,} operations that were checked (--verify).", False
    return "No run of this set checked its answers (--verify).", False


KINDS = (("simulated", "in virtual time, on a simulated machine"), ("counted", "counted, not timed"),
         ("emulated", "in real time, with the delays of a device profile"), ("pmem", "in real time, in a pool"),
         ("dram", "in real time, in DRAM"))


def where(results):
    """(what ran, media, experiments): one row for each kind of medium."""
    experiments = {e.name: e.title for e in results.experiments}
    rows = []
    for kind, text in KINDS:
        found = [r for r in [*results.runs, *results.memories, *results.stores] if r.medium.startswith(kind)]
        if found:
            media = provenance.medium_line([r.medium for r in found])
            titles = list(dict.fromkeys(experiments.get(r.experiment, r.name) for r in found))
            rows.append((f"{text[0].upper()}{text[1:]}", media, titles))
    return rows


def load_warnings(results):
    """What other programs did to figures of a real clock."""
    found = []
    cores = provenance.cores(results.machine) or 1
    if results.has_real_clock and isinstance(results.load, (int, float)) and results.load >= BUSY_SHARE * cores:
        found.append(f"Before the run the machine had a load of {names.number(results.load)} on {cores} CPUs")
    disturbed = {name: cpus for name, cpus in results.disturbed.items() if cpus >= DISTURBING_CPUS}
    if disturbed:
        worst = max(disturbed, key=disturbed.get)
        found.append(f"beside {len(disturbed)} cell{'s' if len(disturbed) != 1 else ''} of a real clock other programs "
                     f"used {names.number(disturbed[worst])} CPUs at most ({worst})")
    if not found:
        return None
    text = "; ".join(found)
    return (f"{text[0].upper()}{text[1:]}: times on pmem, dram and emulated media may be wrong. Simulated and counted "
            "figures are not affected.")
