"""What a chart shows, in one sentence made from its figures. No sentence says more than they do."""

from . import names
from .chart import Point, overlap


def _subject_and_peers(measurements):
    ours = [m for m in measurements if not names.is_peer(m.index) and m.throughput]
    peers = [m for m in measurements if names.is_peer(m.index) and m.throughput]
    return ours, peers


def _leaders(points, places, threads):
    """panel -> (indexes, their lead over the next one or None), of those figures that are valid. Indexes whose ranges
    overlap that of the first one lead together, without a lead."""
    found = {}
    for panel in places:
        ranked = sorted((p for p in points if p.panel == panel and p.series == threads and not p.invalid),
                        key=lambda p: -p.value)
        together = tuple(p.x for p in ranked if p is ranked[0] or overlap(p, ranked[0]))
        if together:
            alone = len(together) == 1 and len(ranked) > 1
            found[panel] = together, ranked[0].value / ranked[1].value if alone else None
    return found


def _of_leaders(leaders):
    by_index = {}
    for panel, (together, lead) in leaders.items():
        by_index.setdefault(together, []).append((panel, lead))
    parts = []
    for together, won in by_index.items():
        index = names.enumerate_words(together)
        leads = [names.times(lead) for _, lead in won if lead]
        shown = names.enumerate_words(names.lower_first(panel) for panel, _ in won)
        text = f"{index} are alike and lead {shown}" if len(together) > 1 else f"{index} leads {shown}"
        parts.append(text + (f" ({names.enumerate_words(leads)} the next)" if leads else ""))
    return names.enumerate_words(parts)


def fastest(points, measurements):
    """Which index is fastest at what, with the fewest threads and with the most."""
    panels = list(dict.fromkeys(p.panel for p in points))
    counts = sorted({m.threads for m in measurements})
    series = [f"{c} thread{'s' if c != 1 else ''}" for c in counts]
    first = _leaders(points, panels, series[0])
    if not first:
        return "No figure of this chart is valid."
    text = f"With {series[0]} {_of_leaders(first)}"
    if len(counts) > 1:
        most = _leaders(points, panels, series[-1])
        if {k: v[0] for k, v in most.items()} == {k: v[0] for k, v in first.items()}:
            text += f"; the same lead with {series[-1]}"
        elif most:
            text += f"; with {series[-1]} {_of_leaders(most)}"
    return text + "."


def throughput(phase, measurements):
    """For lines of several indexes over numbers of threads."""
    least = min(m.threads for m in measurements)
    base = [m for m in measurements if m.threads == least]
    ours, peers = _subject_and_peers(base)
    parts = []
    for m in ours:
        ratios = [f"{names.times(m.throughput / p.throughput)} {p.index}" for p in peers]
        text = (f"{names.index_title(m.index)} does {names.count_in_words(m.throughput)} {names.noun(phase)} per "
                f"second on {least} thread{'s' if least != 1 else ''}")
        if ratios:
            text += f": {names.enumerate_words(ratios)}"
        more = [w for w in measurements if w.index == m.index and w.threads > least and w.throughput]
        if more:
            most = max(more, key=lambda w: w.threads)
            text += f"; {most.threads} threads do {names.times(most.throughput / m.throughput)} that"
        parts.append(text + ".")
    if not parts:
        best = max(base, key=lambda m: m.throughput or 0)
        parts.append(f"{names.index_title(best.index)} has the highest throughput here: {names.rate(best.throughput)}.")
    return " ".join(parts)


def _figures(measurements, value_of):
    """label -> Point of a figure with its range, where it was measured."""
    found = {}
    for m in measurements:
        if (value := value_of(m)) is not None:
            label = names.index_title(m.index)
            found[label] = Point(label, "", value, *m.range_of(value_of), m.n)
    return found


def _extremes(figures, text):
    """"A with 3 ns, last B with 9 ns (3.00x)"; "A and C, alike, with 3 ns" where their ranges overlap. `figures`:
    {label: Point}, less is better."""
    ranked = sorted(figures.values(), key=lambda point: point.value)
    best, worst = ranked[0], ranked[-1]
    together = [point for point in ranked if point is best or overlap(point, best)]
    who = names.enumerate_words(point.x for point in together) + (", alike," if len(together) > 1 else "")
    if len(together) == len(ranked):
        return f"{who} with {text(best.value)}"
    return (f"{who} with {text(best.value)}, last {worst.x} with {text(worst.value)}"
            + (f" ({names.times(worst.value / best.value)})" if best.value else ""))


def latency(phase, measurements, percentile, label):
    figures = _figures([m for m in measurements if not m.invalid], lambda m: m.latency(percentile))
    if not figures:
        return "No figure of this chart is valid."
    return f"Lowest time that {label} of the {names.noun(phase)} keep: {_extremes(figures, names.duration)}."


def counts(phase, measurements, quantities):
    """The cheapest and the dearest index by what the device must do."""
    parts = []
    for key, label in quantities:
        figures = _figures(measurements, lambda m: m.per_operation(key))
        if key in ("device_lines_read", "flushes") and any(point.value for point in figures.values()):
            parts.append(f"fewest {label}: {_extremes(figures, names.number)}")
    title = names.phase_title(phase)
    return f"{title}, {'; '.join(parts)}." if parts else f"{title} costs none of these: 0."


def media(points, series):
    """How much slower each medium is than the first one, over all indexes, by phase."""
    reference = {(p.x, p.panel): p.value for p in points if p.series == series[0] and not p.invalid}
    parts = []
    for medium in series[1:]:
        ratios = [(reference[p.x, p.panel] / p.value, p) for p in points
                  if p.series == medium and not p.invalid and (p.x, p.panel) in reference]
        if ratios:
            (low, least), (high, most) = min(ratios, key=lambda r: r[0]), max(ratios, key=lambda r: r[0])
            parts.append(f"on profile {medium} from {names.times(low)} ({least.x}, {least.panel.lower()}) to "
                         f"{names.times(high)} ({most.x}, {most.panel.lower()})")
    return f"Time per operation as a multiple of that on profile {series[0]}: {'; '.join(parts)}."


def space(measurements):
    figures = _figures(measurements, lambda m: (m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0))
    return f"Least for a 16-byte entry, PM and DRAM together: {_extremes(figures, lambda v: f'{names.number(v)} B')}."


def batch(pairs):
    def gain(single, many):
        (low, high), (other_low, other_high) = single.throughput_range, many.throughput_range
        alike = low <= other_high and other_low <= high
        if alike:
            return "as many finds (the ranges overlap)"
        return f"{names.times(many.throughput / single.throughput)} as many finds"
    parts = [f"{names.index_title(single.index)} answers {gain(single, many)} when {many.batch} independent keys are "
             "asked for at once"
             for single, many in pairs]
    return "; ".join(parts) + "."


def reopen(measurements):
    return f"Soonest open again: {_extremes(_figures(measurements, lambda m: m.latency('max')), names.duration)}."
