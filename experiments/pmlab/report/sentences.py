"""What a chart shows, in one sentence made from its figures. No sentence says more than they do."""

from . import names


def _subject_and_peers(measurements):
    ours = [m for m in measurements if not names.is_peer(m.index) and m.throughput]
    peers = [m for m in measurements if names.is_peer(m.index) and m.throughput]
    return ours, peers


def _leaders(points, places, threads):
    """panel -> (index, its lead over the next one or None), of those figures that are valid."""
    found = {}
    for panel in places:
        ranked = sorted((p for p in points if p.panel == panel and p.series == threads and not p.invalid),
                        key=lambda p: -p.value)
        if ranked:
            found[panel] = (ranked[0].x, ranked[0].value / ranked[1].value if len(ranked) > 1 else None)
    return found


def _of_leaders(leaders):
    by_index = {}
    for panel, (index, lead) in leaders.items():
        by_index.setdefault(index, []).append((panel, lead))
    parts = []
    for index, won in by_index.items():
        leads = [names.times(lead) for _, lead in won if lead]
        text = f"{index} leads {names.enumerate_words(names.lower_first(panel) for panel, _ in won)}"
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
        text = (f"{names.index_title(m.index)} does {names.count_in_words(m.throughput)} {names.noun(phase)} per second "
                f"on {least} thread{'s' if least != 1 else ''}")
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


def _extremes(values, text):
    """"A with 3 ns, last B with 9 ns (3.00x)": `values` is {label: figure}, less is better."""
    ranked = sorted(values.items(), key=lambda item: item[1])
    (best, low), (worst, high) = ranked[0], ranked[-1]
    if len(ranked) == 1:
        return f"{best} with {text(low)}"
    return f"{best} with {text(low)}, last {worst} with {text(high)}" + (f" ({names.times(high / low)})" if low else "")


def latency(phase, measurements, percentile, label):
    values = {names.index_title(m.index): m.latency(percentile) for m in measurements if not m.invalid}
    if not values:
        return "No figure of this chart is valid."
    return f"Lowest time that {label} of the {names.noun(phase)} keep: {_extremes(values, names.duration)}."


def counts(phase, measurements, quantities):
    """The cheapest and the dearest index by what the device must do."""
    parts = []
    for key, label in quantities:
        values = {names.index_title(m.index): m.per_operation(key) for m in measurements if m.per_operation(key) is not None}
        if key in ("device_lines_read", "flushes") and any(values.values()):
            parts.append(f"fewest {label}: {_extremes(values, names.number)}")
    return f"{names.phase_title(phase)}, {'; '.join(parts)}." if parts else f"{names.phase_title(phase)} costs none of these: 0."


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
    values = {names.index_title(m.index): (m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0) for m in measurements}
    return f"Least for a 16-byte entry, PM and DRAM together: {_extremes(values, lambda v: f'{names.number(v)} B')}."


def batch(pairs):
    parts = [f"{names.index_title(single.index)} answers {names.times(many.throughput / single.throughput)} as many finds "
             f"when {many.batch} independent keys are asked for at once" for single, many in pairs]
    return "; ".join(parts) + "."


def reopen(measurements):
    values = {names.index_title(m.index): m.latency("max") for m in measurements}
    return f"Soonest open again: {_extremes(values, names.duration)}."
