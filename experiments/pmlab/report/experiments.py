"""The charts of experiments, as their files describe them: what is on the axis, what is a line or a bar, and for what
there is a chart of its own."""

import re
from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter

from . import charts, names, provenance, style, timeline
from .chart import Chart, Point, overlap
from .panels import Panels
from .quantities import QUANTITIES

NOT_SHOWN = {"load"}  # phases that only prepare
LOGARITHMIC_FROM = 50  # times the lowest value
ALIKE = "each of {}, which are alike,"
MANY_CONTESTS = 4  # more than that are counted, not listed
GROWING = ("threads", "hosts", "records", "batch", "size", "value", "depth", "ring", "devices")  # axes that are counts


@dataclass
class Found:
    """A measurement, with everything that a chart may sort it by."""

    keys: dict  # threads, phase, index, medium, and the matrix
    value: float
    run: object
    measurement: object


def _found(runs, quantity):
    for run in runs:
        for m in run.measurements:
            value = quantity.of(m)
            loads_pairs = "value" in getattr(m, "keys", {})  # their loading is measured
            if value is None or (m.phase in NOT_SHOWN and not loads_pairs):
                continue
            keys = {**run.values, "threads": str(m.threads), "hosts": str(getattr(m, "hosts", 1)),
                    "phase": m.phase, "index": m.index,
                    **getattr(m, "keys", {})}
            keys.setdefault("medium", names.device(m.medium))
            keys["medium"] = names.device(keys["medium"])
            yield Found(keys, value, run, m)


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


_COUNTED = {"records": "{} records", "batch": "batches of {}", "size": "operations of {}", "value": "values of {}",
            "depth": "{} in flight", "ring": "a ring of {}", "devices": "{} devices", "hosts": "{} hosts"}


def label_of(key, value, all_values):
    """`value` of `key` for a reader, among the other ones of its chart."""
    if key == "index":
        return _different_parts(all_values).get(value) or names.index_title(value)
    if key == "phase":
        return names.phase_title(value).split(":")[0]
    if key == "threads":
        return f"{value} thread{'s' if value != '1' else ''}"
    if key in _COUNTED:
        return _COUNTED[key].format(value)
    if key == "store":
        return names.STORES.get(value, value)
    return f"{key.replace('_', ' ')} {value}" if value in ("on", "off") else value


def _distinct(points, key):
    return list(dict.fromkeys(p.keys.get(key, "") for p in points))


def _ordered(values):
    """Counts and percentages by their size, everything else as it came."""
    sizes = {v: _size(v) for v in values}
    return sorted(values, key=sizes.get) if all(s is not None for s in sizes.values()) else values


def _size(text):
    match = re.fullmatch(r"([\d.]+)([kKMG%]?)", text)
    return float(match[1]) * {"": 1, "%": 1, "k": 1e3, "K": 1024, "M": 1e6, "G": 1e9}[match[2]] if match else None


def _axis_label(x, place, places):
    return place if x in GROWING else label_of(x, place, places)


def _looks(key, values, labels):
    """label -> Look: an index has its own colour, whatever the chart."""
    if key == "index":
        return {labels[i]: look for i, look in style.looks_of_indexes(values).items()}
    return style.looks_of_series([labels[v] for v in values])


def _draw_lines(axes, wanted, points, places, looks, log):
    shown = [_axis_label(wanted["x"], p, places) for p in places]
    for line, look in looks.items():
        of_line = sorted((p for p in points if p.series == line), key=lambda p: shown.index(p.x))
        if of_line:
            charts.draw_line(axes, [shown.index(p.x) for p in of_line], of_line, look)
    axes.set_xlim(-0.3, len(places) - 0.7)
    long = sum(map(len, shown)) > 34
    axes.set_xticks(range(len(places)), shown, rotation=30 if long else 0, ha="right" if long else "center",
                    fontsize=8 if long else 9)
    axes.set_xlabel(wanted["x"].replace("_", " "))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: names.number(value)))
        axes.minorticks_off()
    else:
        axes.set_ylim(0, 1.08 * max(p.high if p.spread else p.value for p in points) or 1)


def _draw_bars(axes, wanted, points, places, looks, first):
    """An index has its colour where it is a row, and where it is a bar of every row."""
    shown, series = [_axis_label(wanted["x"], p, places) for p in places], list(looks)
    if wanted["x"] == "index":
        rows = dict(zip(shown, style.looks_of_indexes(places).values()))
        charts.draw_bars(axes, shown, series, points, lambda x, _: style.Look(rows[x].colour, 0, ""),
                         charts.shade_of(series))
    else:
        charts.draw_bars(axes, shown, series, points, lambda _, s: looks[s])
    charts.name_rows(axes, shown, first)


def _key(wanted, looks, axes):
    if wanted["kind"] == "lines":
        return charts.key_of_lines(axes)
    if wanted["x"] == "index":
        return charts.grey_key(list(looks)) if len(looks) > 1 else []
    return style.patches(looks)


def _contests(points, wanted):
    """{where: {contender: point}}: indexes contend where the chart has them as rows or as series, otherwise the series
    do. An axis that grows counts with its end alone."""
    rows_contend = wanted["x"] in ("index", "store")
    last = points[-1].x if wanted["x"] in GROWING else None
    found = {}
    for p in points:
        if not p.invalid and last in (None, p.x):
            contender, place = (p.x, p.series) if rows_contend else (p.series, p.x if last is None else "")
            found.setdefault(names.lower_first(", ".join(filter(None, (p.panel, place)))), {})[contender] = p
    return found


def _leader(points, quantity):
    """(who, how far the last one is behind as a ratio or None). Contenders whose ranges overlap that of the best are
    alike; where all are, none is behind."""
    ranked = sorted(points.items(), key=lambda item: item[1].value, reverse=quantity.more_is_better)
    best = ranked[0][1]
    together = [who for who, point in ranked if point is best or overlap(point, best)]
    low, high = sorted((best.value, ranked[-1][1].value))
    behind = high / low if low > 0 and len(together) < len(ranked) else None
    return (ALIKE.format(names.enumerate_words(together)) if len(together) > 1 else together[0]), behind


def _sentence(quantity, wanted, points):
    """Which contender is best where, and how far the last one is behind."""
    contests = _contests(points, wanted)
    if not contests:
        return "No figure of this chart is valid."
    wins = {}
    for where, contenders in contests.items():
        leader, ratio = _leader(contenders, quantity)
        wins.setdefault(leader, []).append((where, ratio))
    last = f"With {label_of(wanted['x'], points[-1].x, [])} " if wanted["x"] in GROWING else ""
    if len(contests) > MANY_CONTESTS:
        won = sorted(((len(w), leader) for leader, w in wins.items()), key=lambda pair: -pair[0])
        text = names.enumerate_words(f"{name} is best in {count}" for count, name in won)
        behind = [(w, leader) for leader, won_by in wins.items() for w in won_by if w[1]]
        if not behind:  # each has its place to itself
            return f"{last}{text} of {len(contests)} comparisons."
        (where, ratio), leader = max(behind, key=lambda pair: pair[0][1])
        return (f"{last}{text} of {len(contests)} comparisons; the last one is furthest behind {leader} in {where}: "
                f"{names.times(ratio)}.")
    parts = []
    for leader, won_by in wins.items():
        places = [where + (f" ({names.times(ratio)} the last)" if where and ratio else "") for where, ratio in won_by]
        alone = f" ({names.times(won_by[0][1])} the last)" if not places[0] and won_by[0][1] else ""
        parts.append(f"{leader} is best{alone}{' in ' if places[0] else ''}{names.enumerate_words(places)}")
    return f"{last}{names.enumerate_words(parts)}."


def _points_of(found, wanted, quantity, places, labels, panel):
    """What one panel shows; several measurements in one place: the first."""
    points = {}
    for f in found:
        at = f.keys.get(wanted["series"], ""), f.keys.get(wanted["x"], "")
        if at not in points:
            low, high = quantity.range_of(f.measurement)
            points[at] = Point(_axis_label(wanted["x"], at[1], places), labels[at[0]], f.value, low, high,
                               f.measurement.n, quantity.axis, f.measurement.invalid, panel)
    return points


def _panel_title(panel):
    return ", ".join(label_of(k, v, [v]) for k, v in panel)


def _chart(experiment, wanted, quantity, panels):
    """One figure, with a panel for each combination that the experiment's file asks for."""
    everything = [f for found in panels.values() for f in found]
    x, series = wanted["x"], wanted["series"]
    places, lines = _ordered(_distinct(everything, x)), _distinct(everything, series)
    labels = {line: label_of(series, line, lines) for line in lines}
    looks = _looks(series, lines, labels)
    is_lines = wanted["kind"] == "lines"
    titles = [_panel_title(panel) if len(panels) > 1 else "" for panel in panels]
    shown = [list(_points_of(found, wanted, quantity, places, labels, title).values())
             for title, found in zip(titles, panels.values())]

    def draw(axes, number, with_names):
        points = shown[number]
        if is_lines:
            values = [p.value for p in points]
            log = min(values) > 0 and max(values) / min(values) >= LOGARITHMIC_FROM
            _draw_lines(axes, wanted, points, places, looks, log)
            axes.set_ylabel(quantity.axis + (" (log scale)" if log else ""))
        else:
            _draw_bars(axes, wanted, points, places, looks, with_names)
            charts.name_axis(axes, quantity.axis)
    only = _panel_title(next(iter(panels))) if len(panels) == 1 else ""
    height = 2.7 if is_lines else charts.bar_height([_axis_label(x, p, places) for p in places], len(lines))
    figure = Panels(f"{experiment.title}{f': {only}' if only else ''}", titles, draw, height,
                    lambda axes: _key(wanted, looks, axes) if len(lines) > 1 else []).drawn()
    drawn = [p for points in shown for p in points]
    order = [_axis_label(x, p, places) for p in places]
    measurements = [f.measurement for f in everything]
    records = list(dict.fromkeys(names.count(f.run.records) for f in everything if f.run.records))
    return Chart(f"{experiment.name}-{wanted['y']}", figure=figure.whole, parts=figure.parts, key=figure.key,
                 title=experiment.title, sentence=_sentence(quantity, wanted,
                                                            sorted(drawn, key=lambda p: order.index(p.x))),
                 footer=provenance.footer(everything[0].run, measurements,
                                          f"{records[0]} to {records[-1]}" if len(records) > 1 else None),
                 points=drawn, marks="Markers" if is_lines else "Bars", exact=provenance.exact(measurements),
                 rows=charts.figures(drawn, x.replace("_", " "), charts.with_range(quantity.text)))


def _timeline(experiment, wanted, _, panels):
    series = wanted["series"]
    lines = _distinct([f for found in panels.values() for f in found], series)
    labels = {line: label_of(series, line, lines) for line in lines}
    return timeline.chart(experiment, panels, lambda f: labels[f.keys.get(series, "")], _looks(series, lines, labels),
                          _panel_title)


def charts_of(experiment, runs):
    """Those that the experiment's file asks for, of these runs. Figures of a real clock and of a virtual one are not in
    one chart: their repeats mean something else."""
    found = []
    for wanted in experiment.charts:
        if wanted["kind"] == "standard":
            continue
        quantity = QUANTITIES[wanted["y"]]
        clocks = {}
        # By their names: the manifest has them in the order in which they ended.
        only = dict(one.split("=", 1) for one in wanted.get("only", ()))
        for point in _found(sorted(runs, key=lambda run: run.name), quantity):
            if any(point.keys.get(key) != value for key, value in only.items()):
                continue
            panels = clocks.setdefault(provenance.exact([point.measurement]), {})
            panels.setdefault(tuple((k, point.keys.get(k, "")) for k in wanted["panels"]), []).append(point)
        for exact, panels in clocks.items():
            make = _timeline if wanted["kind"] == "timeline" else _chart
            chart = make(experiment, wanted, quantity, panels)
            if chart is None:
                continue
            chart.name += "".join(f"-{value}" for value in only.values())
            if len(clocks) > 1 and not exact:
                chart.name += "-real-time"
            found.append(chart)
    return found
