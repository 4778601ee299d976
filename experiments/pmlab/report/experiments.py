"""The charts of experiments, as their files describe them: what is on the axis, what is a line or a bar, and for what
there is a chart of its own."""

import re
from dataclasses import dataclass

from . import names, provenance, style
from .chart import Chart
from .quantities import QUANTITIES

NOT_SHOWN = {"load"}  # phases that only prepare
LOGARITHMIC_FROM = 50  # times the lowest value
GROWING = ("threads", "records", "batch")  # axes that are counts


@dataclass
class Point:
    """A measurement, with everything that a chart may sort it by."""

    keys: dict  # threads, phase, index, medium, and the matrix
    value: float
    run: object
    measurement: object


def _points(runs, quantity):
    for run in runs:
        for m in run.measurements:
            value = quantity.of(m)
            if m.phase in NOT_SHOWN or value is None:
                continue
            keys = {**run.values, "threads": str(m.threads), "phase": m.phase, "index": m.index}
            keys.setdefault("medium", names.device(m.medium))
            keys["medium"] = names.device(keys["medium"])
            yield Point(keys, value, run, m)


def _different_parts(labels):
    """cache(fast_fair,capacity=1%) among others of its kind: 1%. Common options are omitted."""
    split = {label: re.split(r"[(),]", label.rstrip(")")) for label in labels}
    complex_ones = [parts for parts in split.values() if len(parts) > 2]
    if len(complex_ones) < 2 or len({parts[0] for parts in complex_ones}) > 1:
        return {}
    common = set.intersection(*(set(parts) for parts in complex_ones))
    short = {}
    for label, parts in split.items():
        if len(parts) > 2:
            rest = [p for p in parts if p not in common]
            short[label] = ", ".join(rest) if rest else label
    return short


def label_of(key, value, all_values):
    """`value` of `key` for a reader, among the other ones of its chart."""
    if key == "index":
        return _different_parts(all_values).get(value) or names.index_title(value)
    if key == "phase":
        return names.phase_title(value).split(":")[0]
    if key == "threads":
        return f"{value} thread{'s' if value != '1' else ''}"
    if key in GROWING:
        return f"{value} records" if key == "records" else f"batches of {value}"
    return value


def _distinct(points, key):
    return list(dict.fromkeys(p.keys.get(key, "") for p in points))


def _ordered(values):
    """Counts by their size, everything else as it came."""
    sizes = {v: _size(v) for v in values}
    return sorted(values, key=sizes.get) if all(s is not None for s in sizes.values()) else values


def _size(text):
    match = re.fullmatch(r"([\d.]+)([kMG]?)", text)
    return float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]] if match else None


def _grid(points, x, series):
    """(places, series, {(series, place): value}); several measurements in one place: the first."""
    places, lines = _ordered(_distinct(points, x)), _distinct(points, series)
    values = {}
    for p in points:
        values.setdefault((p.keys.get(series, ""), p.keys.get(x, "")), p.value)
    return places, lines, values


def _axis_label(x, place, places):
    return place if x in GROWING else label_of(x, place, places)


def _draw_lines(axes, places, lines, values, labels):
    for n, line in enumerate(lines):
        at = [i for i, p in enumerate(places) if (line, p) in values]
        axes.plot(at, [values[line, places[i]] for i in at], color=style.SERIES_COLOURS[n % len(style.SERIES_COLOURS)],
                  marker=style.MARKERS[n % len(style.MARKERS)], linestyle=style.DASHES[n % len(style.DASHES)], markersize=5,
                  linewidth=1.6, label=labels[line])
    axes.set_xlim(-0.3, len(places) - 0.7)


def _draw_bars(axes, places, lines, values, labels):
    width = 0.84 / len(lines)
    for n, line in enumerate(lines):
        at = [i for i, p in enumerate(places) if (line, p) in values]
        axes.bar([i + (n - (len(lines) - 1) / 2) * width for i in at], [values[line, places[i]] for i in at], width * 0.94,
                 color=style.SERIES_COLOURS[n % len(style.SERIES_COLOURS)], edgecolor="white",
                 hatch=style.BAR_HATCHES[n % len(style.BAR_HATCHES)], label=labels[line])


def _scale(axes, values, logarithmic):
    if logarithmic:
        axes.set_yscale("log")
        axes.minorticks_off()
    else:
        axes.set_ylim(0, 1.08 * max(values) or 1)


def _ticks(axes, x, places):
    shown = [_axis_label(x, p, places) for p in places]
    long = sum(map(len, shown)) > 34
    axes.set_xticks(range(len(places)), shown, rotation=30 if long else 0, ha="right" if long else "center",
                    fontsize=8 if long else 9)


def _ranking(quantity, place, lines, values, labels):
    """"A with 3 ms; last: B with 9 ms, 3.00x apart", at one place."""
    there = sorted(((values[line, place], line) for line in lines if (line, place) in values),
                   key=lambda pair: pair[0], reverse=quantity.more_is_better)
    best, worst = there[0], there[-1]
    text = f"{labels[best[1]]} with {quantity.text(best[0])}"
    if len(there) == 1:
        return text
    low, high = sorted((best[0], worst[0]))
    text += f", last {labels[worst[1]]} with {quantity.text(worst[0])}"
    return text + (f", {names.times(high / low)} apart" if low > 0 else "")


def _sentence(quantity, x, places, lines, values, labels):
    """Best and worst: of quantities that grow along the axis at its end, with the way there; of others at each place."""
    shown = [p for p in places if any((line, p) in values for line in lines)]
    if x not in GROWING:
        parts = [f"{label_of(x, p, places)}: {_ranking(quantity, p, lines, values, labels)}" for p in shown]
        return f"Best: {'; '.join(parts)}." if len(shown) > 1 else f"Best: {_ranking(quantity, shown[0], lines, values, labels)}."
    first, last = shown[0], shown[-1]
    text = f"Best with {label_of(x, last, places)}: {_ranking(quantity, last, lines, values, labels)}."
    ways = [(line, values[line, last] / values[line, first]) for line in lines
            if (line, last) in values and values.get((line, first))]
    if first != last and ways:
        parts = [f"{labels[line]} {names.times(ratio)}" for line, ratio in ways]
        text += f" From {label_of(x, first, places)} to {label_of(x, last, places)}: {names.enumerate_words(parts)}."
    return text


def _table(quantity, x, places, lines, values, labels):
    rows = [[x, *(labels[line] for line in lines)]]
    for place in places:
        rows.append([label_of(x, place, places),
                     *(quantity.text(values[line, place]) if (line, place) in values else "–" for line in lines)])
    return rows


def _chart(experiment, wanted, quantity, points, panel):
    x, series = wanted["x"], wanted["series"]
    places, lines, values = _grid(points, x, series)
    labels = {line: label_of(series, line, lines) for line in lines}
    figure, axes = style.panel(3.1 + 0.16 * max(0, len(lines) - 3))
    (_draw_lines if wanted["kind"] == "lines" else _draw_bars)(axes, places, lines, values, labels)
    shown = list(values.values())
    _scale(axes, shown, wanted["kind"] == "lines" and min(shown) > 0 and max(shown) / min(shown) >= LOGARITHMIC_FROM)
    _ticks(axes, x, places)
    axes.set_xlabel(x.replace("_", " "))
    axes.set_ylabel(quantity.axis)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    style.key(axes, axes.get_legend_handles_labels()[0])
    title = ", ".join(label_of(k, v, [v]) for k, v in panel) or quantity.axis
    style.title(figure, title)
    name = "-".join([experiment.name, wanted["y"], *(v for _, v in panel)])
    return Chart(re.sub(r"[^A-Za-z0-9._-]+", "-", name), title,
                 style.svg_of(figure, provenance.footer(points[0].run, [p.measurement for p in points])),
                 _sentence(quantity, x, places, lines, values, labels), _table(quantity, x, places, lines, values, labels))


def charts_of(experiment, runs):
    """Those that the experiment's file asks for, of these runs."""
    found = []
    for wanted in experiment.charts:
        if wanted["kind"] == "standard":
            continue
        quantity = QUANTITIES[wanted["y"]]
        panels = {}
        for point in _points(runs, quantity):
            panels.setdefault(tuple((k, point.keys.get(k, "")) for k in wanted["panels"]), []).append(point)
        found += [_chart(experiment, wanted, quantity, points, panel) for panel, points in panels.items()]
    return found
