"""What a chart means, in one sentence made from its figures. No sentence says more than they do."""

from . import names


def _subject_and_peers(measurements):
    ours = [m for m in measurements if not names.is_peer(m.index) and m.throughput]
    peers = [m for m in measurements if names.is_peer(m.index) and m.throughput]
    return ours, peers


def throughput(phase, measurements):
    """For bars of several indexes with one or more thread counts."""
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


def latency(phase, measurements, percentile, label):
    values = [f"{names.duration(m.latency(percentile))} ({names.index_title(m.index)})" for m in measurements]
    return f"{label} of the {names.noun(phase)} take at most {names.enumerate_words(values)}."


def counts(phase, measurements, quantities):
    parts = []
    for m in measurements:
        values = [f"{label} {names.number(m.per_operation(key))}" for key, label in quantities
                  if m.per_operation(key) is not None]
        parts.append(f"{names.index_title(m.index)}: {', '.join(values)}")
    return f"Mean per operation ({names.phase_title(phase).lower()}). " + "; ".join(parts) + "."


def media(index, phases, by_medium):
    """`by_medium`: (label, {phase: throughput}), the reference first."""
    reference_label, reference = by_medium[0]
    parts = []
    for label, throughputs in by_medium[1:]:
        slower = [f"{names.times(reference[p] / throughputs[p])} for {names.noun(p)}" for p in phases
                  if throughputs.get(p) and reference.get(p)]
        if slower:
            parts.append(f"on profile {label}, {names.enumerate_words(slower)}")
    return (f"Time per operation of {names.index_title(index)} as a multiple of that on profile {reference_label}: "
            + "; ".join(parts) + ".")


def space(measurements):
    parts = []
    for m in measurements:
        pm, dram = m.bytes_per_key("pm") or 0, m.bytes_per_key("dram") or 0
        parts.append(f"{names.index_title(m.index)} {names.number(pm + dram)}")
    return "Bytes held per 16-byte entry, PM and DRAM together: " + ", ".join(parts) + "."


def batch(pairs):
    parts = [f"{names.index_title(single.index)} answers {names.times(many.throughput / single.throughput)} as many finds "
             f"when {many.batch} independent keys are asked for at once" for single, many in pairs]
    return "; ".join(parts) + "."


def reopen(measurements):
    parts = [f"{names.index_title(m.index)} {names.duration(m.latency('max'))}" for m in measurements]
    return "From closing to being open again: " + names.enumerate_words(parts) + "."
