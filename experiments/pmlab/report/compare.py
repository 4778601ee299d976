"""Two result sets side by side: what was measured in both, and the ratio of the second to the first."""

import math
from dataclasses import dataclass

from ..compare.judging import SAME, Side, is_alike
from . import names, provenance, style
from .chart import Chart, Point, Table
from .charts import bar_height, name_axis, name_rows, threads_text
from .results import BadResults
from .sections import Section

NOT_SHOWN = {"load"}
SHOWN_CHANGES = 12


@dataclass
class Pair:
    """The same figure in both sets."""

    group: str  # what stands in one chart
    series: str
    of: list  # columns of the table, below `columns` of its comparison
    before: Side
    after: Side
    unit: str  # "/s": more is better

    @property
    def ratio(self):
        return self.after.value / self.before.value

    @property
    def alike(self):
        """Chance may have made the difference."""
        return is_alike(self.before, self.after)

    @property
    def label(self):
        return f"{self.group}: {', '.join(filter(None, [self.series, *map(str, self.of)]))}"


@dataclass
class Comparison:
    """`of`: what the charts are about; `columns`: names of what tells the figures of one series apart."""

    pairs: list
    verdicts: list  # verdicts of the first, of the second
    origins: list
    columns: list
    titles: dict  # group -> title
    footers: dict  # group -> where its figures come from


def _side(m):
    return Side.of([r.throughput for r in m.alone() if r.throughput])


def _keys(m):
    """What a measurement of a store has more to be told apart by."""
    return getattr(m, "keys", {})


def _identity(run, m):
    return run.name, m.index, m.phase, m.threads, m.batch, tuple(_keys(m).items())


def of_results(first, second):
    """Two sets with raw files: all that `pmlab bench` and `stores` measured. Raises BadResults: nothing in common."""
    pairs, footers = [], {}
    experiments = {e.name: e.title for e in first.experiments}
    others = {_identity(r, m): m for r in [*second.runs, *second.stores] for m in r.measurements}
    for run in [*first.runs, *first.stores]:
        for m in run.measurements:
            other = others.get(_identity(run, m))
            if m.phase not in NOT_SHOWN and other and m.throughput and other.throughput:
                of_store = [value for key, value in _keys(m).items() if key != "store"]
                pairs.append(Pair(run.name, names.index_title(m.index),
                                  [" ".join([names.short_phase(m.phase), *of_store]),
                                   threads_text(m.threads)], _side(m), _side(other), "/s"))
                footers.setdefault(run.name, provenance.footer(run, [m]))

    def title(name):
        experiment, _, cell = name.partition("/")
        return experiments.get(experiment, experiment) + (f", {cell}" if cell not in ("", "all") else "")
    return _checked(Comparison(pairs, [first.verdicts, second.verdicts], [_origin(first), _origin(second)],
                               ["phase", "threads"],
                               {name: title(name) for name in footers}, footers))


def of_figures(first, second):
    """Two sets one of which is published: all that is drawn in charts of both."""
    pairs = []
    for (chart, panel, series, x), before in first.drawn.items():
        after = second.drawn.get((chart, panel, series, x))
        if after and before.value > 0 and after.value > 0 and not chart.startswith(names.CHARTS_OF_FIRST_SCREEN):
            pairs.append(Pair(chart, series, [panel, x], *(Side(d.value, d.low, d.high, d.n) for d in (before, after)),
                              before.unit))
    charts, both = {p.group: p.group for p in pairs}, f"{first.folder.name} · {second.folder.name}"
    return _checked(Comparison(pairs, [first.verdicts, second.verdicts], [str(first.folder), str(second.folder)],
                               ["panel", "x"],
                               charts, dict.fromkeys(charts, both)))


def _checked(comparison):
    if not comparison.pairs:
        raise BadResults("the two folders have no figure in common", "give two runs of the same experiments")
    return comparison


def _mean(ratios):
    """Geometric: twice and half as fast are as before."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _text(value, unit):
    return names.rate(value) if unit == "/s" else f"{names.number(value)} {unit}".strip()


def _chart(comparison, name, pairs):
    by_series = {}
    for p in pairs:
        by_series.setdefault(p.series, []).append(p.ratio)
    labels, means = list(by_series), [_mean(r) for r in by_series.values()]
    figure, [axes] = style.panel(bar_height(labels, 1) + 0.2)
    points = []
    more_is_better = pairs[0].unit.endswith("/s")
    for y, ratios in enumerate(by_series.values()):
        points.append(Point(labels[y], "second over first", means[y], min(ratios), max(ratios), unit="ratio"))
        colour = style.INK if not more_is_better else style.BETTER if means[y] >= 1 else style.WORSE
        axes.plot([min(ratios), max(ratios)], [y, y], color=style.LINE, linewidth=1.2)
        axes.plot([means[y]], [y], marker="o", color=colour, markersize=7)
        axes.text(means[y], y - 0.2, names.times(means[y]), ha="center", va="bottom", fontsize=8)
    axes.axvline(1, color=style.INK, linewidth=0.8, linestyle="--")
    name_rows(axes, labels)
    axes.set_ylim(len(labels) - 0.4, -0.7)
    name_axis(axes, f"{pairs[0].unit.removeprefix('/s') or 'operations/s'}, second over first")
    axes.grid(axis="x")
    style.title(figure, comparison.titles[name])
    best, worst = max(zip(means, labels)), min(zip(means, labels))
    sentence = f"In the mean {names.times(_mean([p.ratio for p in pairs]))} of the first set over {len(pairs)} figures"
    extremes = f"; from {names.times(worst[0])} ({worst[1]}) to {names.times(best[0])} ({best[1]})"
    sentence += (extremes if len(labels) > 1 else "") + "."
    rows = [["series", *comparison.columns, "first", "second", "ratio"]]
    rows += [[p.series, *p.of, _text(p.before.value, p.unit), _text(p.after.value, p.unit),
              "alike" if p.alike else names.times(p.ratio)]
             for p in pairs]
    repeats = sorted({side.n for p in pairs for side in (p.before, p.after)})
    return Chart(f"compare-{name}", comparison.titles[name], figure, sentence, comparison.footers[name], points,
                 rows=rows, said=(
        f"Dots: geometric mean of the ratios; lines: lowest and highest of the {' and '.join(comparison.columns)}; n = "
        f"{' to '.join(map(str, dict.fromkeys((repeats[0], repeats[-1]))))} repeats of each figure."))


def _changes(pairs):
    """The figures that changed most, either way."""
    changed = sorted((p for p in pairs if not p.alike), key=lambda p: -abs(math.log(p.ratio)))[:SHOWN_CHANGES]
    rows = [["figure", "first", "second", "ratio"]]
    rows += [[p.label, _text(p.before.value, p.unit), _text(p.after.value, p.unit), names.times(p.ratio)]
             for p in changed]
    same = sum(abs(p.ratio - 1) <= SAME for p in pairs)
    overlapping = sum(p.alike for p in pairs) - same
    text = f"{same} of {len(pairs)} figures are within {100 * SAME:.0f} % of each other"
    return Table(rows, "Largest changes", text + (f"; {overlapping} others differ by no more than chance may make them."
                                                  if overlapping else "."))


def _verdicts(first, second):
    """Claims whose verdict is another one."""
    before, after = ({(v.medium, c["id"]): c["verdict"] for v in verdicts for c in v.claims}
                     for verdicts in (first, second))
    both = [k for k in before if k in after]
    if not both:
        return None
    rows = [["claim", "medium", "first", "second"]]
    rows += [[claim, medium, before[medium, claim], after[medium, claim]] for medium, claim in both
             if before[medium, claim] != after[medium, claim]]
    return Table(rows, "Claims", f"{len(both) - len(rows) + 1} of {len(both)} verdicts are the same.", prose=True)


def _origin(results):
    machine = results.machine
    return (f"{results.folder.name}: {provenance.machine_line(machine)}, commit {machine.get('commit', '?')}, "
            f"{machine.get('compiler', '?')}")


def sections_of(comparison):
    """The comparison, as sections of a page."""
    first, second = comparison.origins
    found = [Section("What changed", f"First: {first}. Second: {second}.",
                     tables=[t for t in (_verdicts(*comparison.verdicts), _changes(comparison.pairs)) if t])]
    groups = {}
    for p in comparison.pairs:
        groups.setdefault(p.group, []).append(p)
    for name, pairs in groups.items():
        found.append(Section(comparison.titles[name], "", [_chart(comparison, name, pairs)]))
    return found
