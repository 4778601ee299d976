"""The throughput over time, of measurements with --interval: growth, spills and collapses."""

import statistics

from . import charts, names, provenance
from .chart import Chart, Point
from .panels import Panels

UNIT = "million operations/s"
SHORTEST_END = 0.2  # share of an interval: operations of a shorter last one are too few for a rate


def _rates(repeat, seconds):
    """Million operations per second in each interval; the last one ends with the phase."""
    counts = repeat.get("intervals") or []
    end = repeat["seconds"] - (len(counts) - 1) * seconds
    lengths = [seconds] * (len(counts) - 1) + [min(end, seconds)]
    return [n / length / 1e6 for n, length in zip(counts, lengths) if length >= SHORTEST_END * seconds]


def points_of(found, label, panel):
    """A point for each interval that all repeats reached: the median over the repeats."""
    seconds = found.run.options.get("interval_seconds")
    repeats = [_rates(r, seconds) for r in found.measurement.repeats if r.get("intervals")] if seconds else []
    return [Point(f"{(i + 0.5) * seconds:.4g}", label, statistics.median(values), min(values), max(values), len(values),
                  UNIT, found.measurement.invalid, panel) for i, values in enumerate(zip(*repeats))]


def _by_series(points):
    lines = {}
    for p in points:
        lines.setdefault((p.panel, p.series), []).append(p)
    return lines


def _sentence(lines):
    """Which line falls furthest below its own median, and when."""
    def fall(points):
        lowest = min(points, key=lambda p: p.value)
        usual = statistics.median(p.value for p in points)
        return lowest.value / usual if usual else 1, lowest.x
    share, second, name = min((*fall(points), ", ".join(filter(None, reversed(key)))) for key, points in lines.items())
    return f"{name} falls furthest below its median: to {names.times(share)} of it, {second} s after the beginning."


def _rows(lines):
    rows = [["panel", "series", "median", "lowest", "highest", "intervals"]]
    for (panel, series), points in lines.items():
        values = [p.value for p in points]
        rows.append([panel or "–", series, *(f"{names.number(v)} M/s"
                                             for v in (statistics.median(values), min(values), max(values))),
                     len(points)])
    return rows


def chart(experiment, panels, label, looks, title_of):
    """`panels`: {panel: [Found]}; `label`: Found -> its series; `looks`: {series: Look}. None: nothing has
    intervals."""
    titles = [title_of(panel) if len(panels) > 1 else "" for panel in panels]
    shown = [[p for f in found for p in points_of(f, label(f), title)] for title, found in zip(titles, panels.values())]
    drawn = [p for points in shown for p in points]
    if not drawn:
        return None
    lines = _by_series(drawn)

    def draw(axes, number, _):
        for (_panel, series), points in _by_series(shown[number]).items():
            charts.draw_line(axes, [float(p.x) for p in points], points, looks[series])
        axes.set_xlabel("seconds")
        axes.set_ylabel(UNIT)
        axes.set_ylim(0, 1.08 * max((p.value for p in shown[number]), default=1) or 1)
        axes.grid(axis="y")

    everything = [f for found in panels.values() for f in found]
    figure = Panels(f"{experiment.title}: over time", titles, draw, 2.7, charts.key_of_lines).drawn()
    measurements = [f.measurement for f in everything]
    return Chart(f"{experiment.name}-timeline", figure=figure.whole, parts=figure.parts, key=figure.key,
                 title=f"{experiment.title}: over time", sentence=_sentence(lines),
                 footer=provenance.footer(everything[0].run, measurements),
                 points=drawn, marks="Markers", exact=provenance.exact(measurements), rows=_rows(lines))
