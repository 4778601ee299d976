"""The thesis of [Han21], that placement must follow the device, as a run measured it: which half of a hybrid index lies
in persistent memory, finds and inserts, on a device with slow reads, on one with slow writes, and on CXL memory."""

from dataclasses import dataclass, field

from . import charts, names, provenance, style
from .chart import Chart
from .panels import Panels

HASH_IN_PM, HASH_IN_DRAM = "hybrid_index", "hybrid_index_plus"
PHASES = ("read", "insert")
LEAD = 1.1  # less than a tenth is no lead

# What a device profile stands for.
SLOW_READS, LIKE_DRAM, CXL = "aep", "classic", "cxl"
DEVICES = {SLOW_READS: "Optane as it was measured: reads slowly, writes almost like DRAM",
           LIKE_DRAM: "what older work assumed: reads like DRAM, writes slowly",
           CXL: "memory over CXL"}


@dataclass
class Contest:
    """Both places of the hash in one phase with one number of threads."""

    phase: str
    threads: int
    run: object  # run of the hash in DRAM
    in_pm: object  # Measurement
    in_dram: object

    @property
    def ratio(self):
        return self.in_dram.throughput / self.in_pm.throughput

    @property
    def range(self):
        """The ratio, from the ranges of both."""
        (low, high), (other_low, other_high) = self.in_dram.throughput_range, self.in_pm.throughput_range
        return low / other_high, high / other_low


@dataclass
class Thesis:
    sentence: str
    overview: Chart  # both phases on all devices
    charts: list = field(default_factory=list)  # finds by threads, one for each device


def _profile(run):
    return provenance.profile_line([run.medium]).removeprefix("profile ")


def _groups(results):
    """Runs whose indexes may be compared: cells of one experiment on one medium, without a platform that saves caches.
    The two named indexes come first."""
    groups = {}
    for run in results.runs:
        if run.values.get("persistence", "adr") == "adr":
            groups.setdefault((run.experiment or run.name, run.medium), []).append(run)
    return sorted(groups.values(), key=lambda runs: not any(run.find(index=HASH_IN_PM) for run in runs))


def _contests(runs):
    """Both places of the hash, where both were measured. Where there are several trees in persistent memory, the last
    one counts: that of HybridIndex+."""
    found = {}
    for run in runs:
        for m in run.measurements:
            base = style.base_of(m.index)
            if base in (HASH_IN_PM, HASH_IN_DRAM) and m.phase in PHASES and m.throughput and not m.invalid:
                found.setdefault((m.phase, m.threads), {})[base] = run, m
    return [Contest(phase, threads, both[HASH_IN_DRAM][0], both[HASH_IN_PM][1], both[HASH_IN_DRAM][1])
            for (phase, threads), both in sorted(found.items(), key=lambda item: (PHASES.index(item[0][0]), item[0][1]))
            if len(both) == 2]


def _measured(results):
    """device -> contests of the first group of runs that has finds of both."""
    found = {}
    for runs in _groups(results):
        contests = _contests(runs)
        if any(c.phase == "read" for c in contests):
            profile = _profile(runs[0])
            device = CXL if profile.startswith(CXL) else profile
            found.setdefault(device, contests)
    return {device: found[device] for device in DEVICES if device in found}


def alike(contests):
    """Whether neither place leads: not with every number of threads, or by less than a tenth."""
    lows, highs = zip(*(c.range for c in contests))
    lead = max(max(c.ratio, 1 / c.ratio) for c in contests)
    return min(lows) <= 1 <= max(highs) or lead < LEAD


def _from_to(values, text):
    return " to ".join(dict.fromkeys(text(value) for value in (min(values), max(values))))


def _clause(phase, contests):
    """"makes finds 2.03x to 3.54x as fast", "costs 40 % of inserts", "leaves finds alike"."""
    noun, ratios = names.noun(phase), [c.ratio for c in contests]
    if alike(contests):
        return f"leaves {noun} alike"
    if min(ratios) > 1:
        return f"makes {noun} {_from_to(ratios, names.times)} as fast"
    return f"costs {_from_to([100 * (1 - r) for r in ratios], lambda share: f'{share:.0f}')} % of {noun}"


def _of_device(contests):
    by_phase = {phase: [c for c in contests if c.phase == phase] for phase in PHASES}
    clauses = [_clause(phase, of_phase) for phase, of_phase in by_phase.items() if of_phase]
    return f"on {names.short_medium(contests[0].in_dram.medium)} it {names.enumerate_words(clauses)}"


def _finds(contests):
    return [c for c in contests if c.phase == "read"]


def _follows(measured):
    """Whether finds depend on the device: the hash in DRAM leads where reads are slow, and by more than where they are
    not."""
    slow, like_dram = (_finds(measured[device]) for device in (SLOW_READS, LIKE_DRAM))
    return not alike(slow) and min(c.ratio for c in slow) > 1 and max(c.ratio for c in slow) > max(c.ratio
                                                                                                   for c in like_dram)


def _sentence(measured):
    threads = sorted({c.threads for contests in measured.values() for c in contests})
    many = f"{threads[0]} to {threads[-1]} threads" if len(threads) > 1 else charts.threads_text(threads[0])
    if not {SLOW_READS, LIKE_DRAM} <= set(measured):
        lead = "[Han21] states that placement must follow the device"
    elif _follows(measured):
        lead = "Placement must follow the device [Han21]"
    else:
        lead = "[Han21] states that placement must follow the device, and this run does not show it"
    return (f"{lead}. A hash in DRAM over a tree in persistent memory (HybridIndex+), in the place of the reverse "
            f"(HybridIndex), with {many}: {'; '.join(map(_of_device, measured.values()))}.")


SERIES = {HASH_IN_PM: "hash in PM", HASH_IN_DRAM: "hash in DRAM"}


def _overview(measured):
    """Finds and inserts of both places on each device, with as many threads as were measured there."""
    most = {device: max(c.threads for c in contests) for device, contests in measured.items()}
    shown = [c for device, contests in measured.items() for c in contests if c.threads == most[device]]
    series = list(SERIES.values())
    looks = dict(zip(series, style.looks_of_indexes(SERIES).values()))
    same = charts.threads_text(most[next(iter(most))]) if len(set(most.values())) == 1 else ""
    points = [charts.throughput_point(m, names.short_medium(m.medium)
                                      + ("" if same else f", {charts.threads_text(c.threads)}"), text,
                                      names.short_phase(c.phase))
              for c in shown for m, text in zip((c.in_pm, c.in_dram), series)]
    places, phases = (list(dict.fromkeys(getattr(p, what) for p in points)) for what in ("x", "panel"))

    def draw(axes, number, with_names):
        charts.draw_bars(axes, places, series, [p for p in points if p.panel == phases[number]], lambda _, s: looks[s])
        charts.name_rows(axes, places, with_names)
        charts.name_axis(axes, "million operations per second")
    title = "A hybrid index with its hash in persistent memory, and in DRAM" + (f", {same}" if same else "")
    drawn = Panels(title, phases, draw, charts.bar_height(places, len(series)), lambda _: style.patches(looks)).drawn()
    ratios = [f"{names.noun(c.phase)} on {names.short_medium(c.in_dram.medium)} "
              f"{'alike' if alike([c]) else names.times(c.ratio)}" for c in shown]
    measurements = [m for c in shown for m in (c.in_pm, c.in_dram)]
    return Chart("thesis", title, drawn.whole, f"The hash in DRAM over the hash in PM: {', '.join(ratios)}.",
                 provenance.footer(shown[0].run, measurements), points, exact=provenance.exact(measurements),
                 rows=charts.figures(points, "device, million/s", charts.with_range(names.number)), parts=drawn.parts,
                 key=drawn.key)


def _by_threads(device, contests, top):
    finds = _finds(contests)
    chart = charts.scaling(finds[0].run, "read", [m for c in finds for m in (c.in_pm, c.in_dram)],
                           name=f"thesis-{device}", title=f"Finds: {DEVICES[device].split(':')[0]}", top=top)
    chart.sentence = f"{DEVICES[device][0].upper()}{DEVICES[device][1:]}. The hash in DRAM {_clause('read', finds)}."
    return chart


def thesis(results):
    """None: the run has not measured both places of the hash on any of the devices."""
    measured = _measured(results)
    if not measured:
        return None
    lines = {device: contests for device, contests in measured.items() if len(_finds(contests)) > 1}
    top = 1.08 * max((m.throughput for contests in lines.values() for c in _finds(contests)
                      for m in (c.in_pm, c.in_dram)), default=0) / 1e6
    return Thesis(_sentence(measured), _overview(measured), [_by_threads(device, contests, top)
                                                             for device, contests in lines.items()])
