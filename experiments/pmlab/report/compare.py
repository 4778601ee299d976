"""Two result sets side by side: what was measured in both, and the ratio of the second to the first."""

import math
from dataclasses import dataclass

from . import names, provenance, style
from .chart import Chart, Point, Table
from .results import BadResults
from .sections import Section

NOT_SHOWN = {"load"}
SHOWN_CHANGES = 12
SAME = 0.02  # ratios that near to 1 are no change


@dataclass
class Pair:
    """The same measurement in both sets."""

    run: object
    before: object
    after: object

    @property
    def ratio(self):
        return self.after.throughput / self.before.throughput

    @property
    def label(self):
        m = self.before
        threads = f"{m.threads} thread{'s' if m.threads != 1 else ''}"
        return f"{self.run.name}: {names.index_title(m.index)}, {names.noun(m.phase) if m.phase in names.NOUNS else m.phase}, {threads}"


def pairs_of(first, second):
    """What both have, in the order of the first. Throws BadResults if that is nothing."""
    found = []
    others = {(r.name, m.index, m.phase, m.threads, m.batch): m for r in second.runs for m in r.measurements}
    for run in first.runs:
        for m in run.measurements:
            other = others.get((run.name, m.index, m.phase, m.threads, m.batch))
            if m.phase not in NOT_SHOWN and other and m.throughput and other.throughput:
                found.append(Pair(run, m, other))
    if not found:
        raise BadResults(f"{first.folder} and {second.folder} have no measurement in common",
                         "give two runs of the same experiments")
    return found


def _mean(ratios):
    """Geometric: twice and half as fast are as before."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _chart(name, title, pairs, footer):
    by_index = {}
    for p in pairs:
        by_index.setdefault(p.before.index, []).append(p.ratio)
    labels = [names.index_title(i) for i in by_index]
    means = [_mean(r) for r in by_index.values()]
    figure, [axes] = style.panel(1.0 + 0.26 * len(labels))
    points = []
    for y, ratios in enumerate(by_index.values()):
        points.append(Point(labels[y], "second over first", means[y], min(ratios), max(ratios), unit="ratio"))
        axes.plot([min(ratios), max(ratios)], [y, y], color=style.LINE, linewidth=1.2)
        axes.plot([means[y]], [y], marker="o", color=style.BETTER if means[y] >= 1 else style.WORSE, markersize=7)
        axes.text(means[y], y - 0.2, names.times(means[y]), ha="center", va="bottom", fontsize=8)
    axes.axvline(1, color=style.INK, linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.7)
    axes.set_xlabel("throughput, second over first; line: range of phases and threads")
    axes.grid(axis="x")
    style.title(figure, title)
    best, worst = max(zip(means, labels)), min(zip(means, labels))
    sentence = f"In the mean {names.times(_mean([p.ratio for p in pairs]))} of the first set over {len(pairs)} figures"
    sentence += f"; from {names.times(worst[0])} ({worst[1]}) to {names.times(best[0])} ({best[1]})." if len(labels) > 1 else "."
    rows = [["index", "phase", "threads", "first, operations/s", "second, operations/s", "ratio"]]
    rows += [[names.index_title(p.before.index), names.phase_title(p.before.phase), p.before.threads,
              f"{p.before.throughput:,.0f}", f"{p.after.throughput:,.0f}", names.times(p.ratio)] for p in pairs]
    repeats = sorted({m.n for p in pairs for m in (p.before, p.after)})
    return Chart(f"compare-{name}", title, figure, sentence, footer, points, rows=rows, said=(
        f"Dots: geometric mean of the ratios of all phases and threads; lines: lowest and highest; n = "
        f"{' to '.join(map(str, dict.fromkeys((repeats[0], repeats[-1]))))} repeats of each figure."))


def _changes(pairs):
    """The figures that changed most, either way."""
    changed = sorted((p for p in pairs if abs(p.ratio - 1) > SAME), key=lambda p: -abs(math.log(p.ratio)))[:SHOWN_CHANGES]
    rows = [["figure", "first", "second", "ratio"]]
    rows += [[p.label, names.rate(p.before.throughput), names.rate(p.after.throughput), names.times(p.ratio)]
             for p in changed]
    same = sum(abs(p.ratio - 1) <= SAME for p in pairs)
    return Table(rows, "Largest changes", f"{same} of {len(pairs)} figures are within {100 * SAME:.0f} % of each other.")


def _verdicts(first, second):
    """Claims whose verdict is another one."""
    def all_of(results):
        return {(v.medium, c["id"]): c["verdict"] for v in results.verdicts for c in v.claims}
    before, after = all_of(first), all_of(second)
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


def sections_of(first, second):
    """The comparison, as sections of a page."""
    pairs = pairs_of(first, second)
    found = [Section("What changed", f"First: {_origin(first)}. Second: {_origin(second)}.",
                     tables=[t for t in (_verdicts(first, second), _changes(pairs)) if t])]
    titles = {e.name: e.title for e in first.experiments}
    groups = {}
    for p in pairs:
        groups.setdefault(p.run.name, []).append(p)
    for name, of_run in groups.items():
        experiment, _, cell = name.partition("/")
        title = titles.get(experiment, experiment) + (f", {cell}" if cell not in ("", "all") else "")
        footer = provenance.footer(of_run[0].run, [p.before for p in of_run])
        found.append(Section(title, "", [_chart(name, title, of_run, footer)]))
    return found
