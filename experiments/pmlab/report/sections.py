"""Which charts and tables a result set gives, grouped as the page shows them."""

from dataclasses import dataclass, field

from . import charts, drives, experiments, names, paper_figures, paper_tables, provenance, stores, targets
from .chart import Table

MANY_CLAIMS = 5


@dataclass
class Section:
    title: str
    text: str
    charts: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    anchor: str = ""
    facts: list = field(default_factory=list)  # (what, text): what it shows, media, machine
    links: list = field(default_factory=list)  # (text, target): raw data


def _verified_section(runs):
    """Runs whose answers were checked: what counts there is the count of wrong ones, not the speed."""
    section = Section("Answers checked", "Every answer of these runs was compared with what must be there. Their speed "
                      "is not shown: some are small, and keeping the answers costs time.")
    rows = [["run", "index", "threads", "operations checked", "wrong"]]
    for run in runs:
        for index in run.indexes():
            for threads in sorted({m.threads for m in run.find(index=index)}):
                found = run.find(index=index, threads=threads)
                rows.append([run.about or run.name, names.index_title(index), threads,
                             f"{sum(r.get('operations', 0) for m in found for r in m.repeats):,}",
                             sum(m.wrong_answers or 0 for m in found)])
    section.tables.append(Table(rows))
    return section


def _operations(run):
    """The phases of single operations, and those of whole workloads, that the run measured."""
    phases = [p for p in run.phases() if p not in ("load", "reopen")
              and any(m.throughput for m in run.find(phase=p))]
    workloads = [p for p in phases if p.startswith("ycsb") or p == "trace"]
    return [p for p in phases if p not in workloads], workloads


def _throughput_section(run):
    section = Section(run.about or run.name, "")
    single, workloads = _operations(run)
    for name, title, phases in (("operations", "Single operations", single), ("workloads", "Workloads", workloads)):
        if phases:
            if any(m.batch > 1 for m in run.measurements):
                title += f", batches of {max(m.batch for m in run.measurements)}"
            section.charts.append(charts.index_bars(run, name, title, run.measurements, phases))
    for phase in ("read", "insert"):
        measurements = [m for m in run.find(phase=phase, threads=1) if m.latency("p50")]
        if measurements:
            section.charts.append(charts.latency(run, phase, measurements))
    loaded = [m for m in run.find(phase="load", threads=min(m.threads for m in run.measurements))
              if m.bytes_per_key("pm") or m.bytes_per_key("dram")]
    if loaded:
        section.charts.append(charts.space(run, loaded))
    reopened = [m for m in run.find(phase="reopen") if m.latency("max")]
    if reopened:
        section.charts.append(charts.reopen(run, reopened))
    return section


def _counted_section(runs):
    section = Section("Counted: lines, flushes and fences per operation",
                      "Figures of the algorithm, not of the machine: a run elsewhere gives the same.")
    for run in runs:
        for phase in run.phases():
            measurements = [m for m in run.find(phase=phase) if m.per_operation("flushes") is not None]
            if measurements and phase not in ("load", "reopen"):
                section.charts.append(charts.counts(run, phase, measurements))
    return section


def _emulated_section(runs):
    section = Section("Emulated devices", "The same run on one device profile after the other. The reference is the "
                      "profile dram, emulated too, so that what is compared is the device and not the emulator.")
    ordered = sorted(runs, key=lambda r: 0 if "emulated:dram" in r.medium else 1)
    columns = [(names.short_medium(run.medium).removeprefix("emulated:"), run) for run in ordered]
    section.charts.append(charts.media(columns) if len(columns) > 1 else charts.index_bars(
        ordered[0], "operations", f"On {ordered[0].medium}", ordered[0].measurements, _operations(ordered[0])[0]))
    rows = [["medium", "access tested before the run", "target ns", "reached ns", "error %"]]
    for run in ordered:
        for test in (run.machine.get("emulation") or {}).get("calibration", []):
            rows.append([names.short_medium(run.medium), test["what"],
                         *(names.number(test[key]) for key in ("target_ns", "reached_ns", "error_percent"))])
    if len(rows) > 1:
        section.tables.append(Table(rows))
    return section


def _simulated_section(runs):
    section = Section("Simulated machines", "Virtual time: as many cores as threads, whatever this machine has.")
    for run in runs:
        for phase in run.phases():
            measurements = [m for m in run.find(phase=phase) if m.throughput]
            if not measurements or phase in ("load", "reopen"):
                continue
            many = len({m.threads for m in measurements}) > 1
            section.charts.append(charts.scaling(run, phase, measurements) if many else charts.index_bars(
                run, phase, names.phase_title(phase), measurements, [phase]))
    return section


def _batch_section(pairs):
    section = Section("find_batch: many finds at once", "Independent finds overlap their cache misses.")
    by_run = {}
    for run, _, single, many in pairs:
        by_run.setdefault(run.name, (run, []))[1].append((single, many))
    for run, of_run in by_run.values():
        section.charts.append(charts.batch(run, of_run))
    return section


def _memory_section(memory):
    drawn = paper_figures.figures(memory)
    shown = {int(chart.name.rsplit("-", 1)[1]) for chart in drawn}
    missing = [str(n) for n in range(1, 15) if n not in shown]
    text = ("The paper's own pictures did not survive: each chart is drawn from what its text says that it shows. "
            "Hollow markers are published figures of the first Optane generation, where there are any. Table 1 of the "
            "paper compares media by what others wrote about them, and is no measurement.")
    if missing:
        reasons = {memory.why_skipped(name) for name in memory.cases} - {None}
        text += (f" Nothing was measured for {'figures' if len(missing) > 1 else 'figure'} "
                 f"{names.enumerate_words(missing)}"
                 + (f"; what was skipped: {'; '.join(sorted(reasons))}." if reasons else "."))
    return Section(f"The memory itself: {names.short_medium(memory.medium)}", text,
                   [*drawn, *paper_figures.beside_published(memory)],
                   paper_tables.tables(memory))


def _drives_section(found):
    section = Section("Block devices", "Modelled drives run on a virtual clock, in the state in which datasheets are "
                      "measured: full, and steady before random writes. The drive of this machine is as it was found.")
    section.charts, section.tables = drives.charts_and_tables(found)
    return section


def _stores_section(found):
    section = Section("Stores", "Each store has drives of its own, all of one kind; they take turns, and each answer "
                      "is checked. rocksdb_meta and rocksdb_meta_deferred are the algorithm of BlueStore, and not "
                      "BlueStore.")
    section.tables = stores.all_cases(found)
    return section


def _of_runs(runs, memories, of_drives, of_stores):
    """Sections of runs that no experiment describes: their content determines their kind."""
    verified = [r for r in runs if r.options.get("verify")]
    counted = [r for r in runs if r.medium.startswith("counted")]
    emulated = [r for r in runs if r.medium.startswith("emulated")]
    simulated = [r for r in runs if r.medium.startswith("simulated")]
    pairs = targets.batch_pairs(runs)
    batched = [r for r in runs if any(m.batch > 1 for m in r.measurements)]
    # Runs that are there only for the batches to be compared with.
    partners = [single_run for _, single_run, _, _ in pairs if set(single_run.phases()) <= {"load", "read"}]
    elsewhere = [*verified, *counted, *emulated, *simulated, *batched, *partners]
    found = [_throughput_section(r) for r in runs if r not in elsewhere]
    found.append(_batch_section(pairs))
    if counted:
        found.append(_counted_section(counted))
    if emulated:
        found.append(_emulated_section(emulated))
    if simulated:
        found.append(_simulated_section(simulated))
    if verified:
        found.append(_verified_section(verified))
    if of_drives:
        found.append(_drives_section(of_drives))
    if of_stores:
        found.append(_stores_section(of_stores))
    return [*found, *map(_memory_section, memories)]


def _standard_sections(runs):
    """The charts that every comparison of indexes gets."""
    counted = [r for r in runs if r.medium.startswith("counted")]
    emulated = [r for r in runs if r.medium.startswith("emulated")]
    found = [_throughput_section(r) for r in runs if r not in [*counted, *emulated]]
    if counted:
        found.append(_counted_section(counted))
    if emulated:
        found.append(_emulated_section(emulated))
    return found


def anchor_of(experiment):
    return f"experiment-{experiment}"


def _feeds(claims):
    return ", ".join(claims) if len(claims) <= MANY_CLAIMS else f"{claims[0]} to {claims[-1]}"


def _experiment_section(experiment, left_out, runs, memories, of_drives, of_stores):
    section = Section(experiment.title, experiment.about, anchor=anchor_of(experiment.name))
    if any(c["kind"] == "standard" for c in experiment.charts):
        parts = _standard_sections(runs)
    elif runs and not experiment.charts:
        parts = [_verified_section(runs)]
    else:
        parts = [_memory_section(m) for m in memories] + ([_drives_section(of_drives)] if of_drives else [])
        parts += [_stores_section(of_stores)] if of_stores else []
    section.charts = experiments.charts_of(experiment, [*runs, *of_stores]) + [c for p in parts for c in p.charts]
    section.tables = [t for p in parts for t in p.tables]
    for text in (p.text for p in parts if p.text):
        section.text += f" {text}"
    everything = [*runs, *memories, *of_drives, *of_stores]
    media = [m.medium for r in runs for m in r.measurements] + [m.medium for m in [*memories, *of_drives, *of_stores]]
    records = list(dict.fromkeys(names.count(r.records) for r in runs if r.records))
    section.facts = [("Shows", experiment.shows), ("Feeds", _feeds(experiment.claims)),
                     ("Media", provenance.medium_line(media)), ("Records", ", ".join(records)),
                     ("Left out", "; ".join(f"{', '.join(one.names)} (pmlab was built without {one.title})"
                                            for one in left_out)),
                     ("Machine", provenance.machine_line(everything[0].machine))]
    section.links = [(r.name, f"raw/{r.name}.json") for r in everything]
    return section


def _place_of(experiment):
    """The paper's figures first, by their numbers; then its text; then experiments beyond it."""
    shows = experiment.shows
    if shows.startswith("figure"):
        return 0, int("".join(c for c in shows.split()[1] if c.isdigit())), experiment.name
    return (1, 0, shows) if shows.startswith("section") else (2, 0, experiment.name)


def sections_of(results):
    """The sections that have something to show, in the order of the page."""
    found = []
    for experiment in sorted(results.experiments, key=_place_of):
        runs = [r for r in results.runs if r.experiment == experiment.name]
        memories = [m for m in results.memories if m.experiment == experiment.name]
        of_drives = [d for d in results.drives if d.experiment == experiment.name]
        of_stores = [s for s in results.stores if s.experiment == experiment.name]
        if runs or memories or of_drives or of_stores:
            left_out = [one for one in results.left_out if one.experiment == experiment.name]
            found.append(_experiment_section(experiment, left_out, runs, memories, of_drives, of_stores))
    described = {e.name for e in results.experiments}
    found += _of_runs([r for r in results.runs if r.experiment not in described],
                      [m for m in results.memories if m.experiment not in described],
                      [d for d in results.drives if d.experiment not in described],
                      [s for s in results.stores if s.experiment not in described])
    return [s for s in found if s.charts or s.tables]
