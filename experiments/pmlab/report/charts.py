"""The charts that compare indexes. Each function makes one from measurements; none knows which experiment they are
of."""

import textwrap

from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from . import names, sentences, style
from .chart import Chart, Point
from .panels import Panels
from .provenance import exact, footer

PERCENTILES = (("p50", "50 %"), ("p90", "90 %"), ("p99", "99 %"), ("p99_9", "99.9 %"), ("p99_99", "99.99 %"),
               ("max", "max"))
COUNTS = (("pm_lines_read", "lines read"), ("device_lines_read", "device lines read"),
          ("device_lines_written", "device lines written"), ("flushes", "flushes"), ("fences", "fences"))
MEDIA_BYTES = (("read", "media bytes read"), ("written", "media bytes written"))
BAR_INCHES = 0.17
CHART_INCHES = 0.95  # title, axis and footer
LINE_INCHES = 0.15  # height of each line of a name in several
AXIS_LETTERS = 32
MOST_COLUMNS = 6  # columns of a table of figures
INVALID = "INVALID"


def threads_text(count):
    return f"{count} thread{'s' if int(count) != 1 else ''}"


def _label(m):
    return names.index_title(m.index) + (" (DRAM)" if m.medium == "dram" and names.is_peer(m.index) else "")


def throughput_point(m, x, series, panel=""):
    low, high = m.throughput_range
    return Point(x, series, m.throughput / 1e6, low / 1e6, high / 1e6, m.n, "million/s", m.invalid, panel)


def _text_at_bar(axes, y, end, gap, point):
    axes.text(end + gap, y, INVALID if point.invalid else names.number(point.value), va="center", fontsize=7.5,
              color=style.BAD if point.invalid else style.INK)


def draw_bars(axes, places, series, points, look_of, shade=None):
    """Horizontal bars: a group for each place, a bar for each series, the first one on top. `look_of(place, series)`;
    `shade(series)`: 0 to 1, how much of the colour."""
    height, whiskers = 0.8 / len(series), [[], []]
    longest = max([p.high if p.spread else p.value for p in points] or [1]) or 1
    for p in points:
        y = places.index(p.x) + (series.index(p.series) - (len(series) - 1) / 2) * height
        look = look_of(p.x, p.series)
        if p.invalid:
            axes.barh(y, p.value, height * 0.9, color=style.PAPER, edgecolor=style.BAD, linewidth=0.8, linestyle="--")
        else:
            axes.barh(y, p.value, height * 0.9, color=look.colour, edgecolor=style.PAPER, linewidth=0.4,
                      alpha=shade(p.series) if shade else look.shade)
        if p.spread:
            cap = height * 0.22
            whiskers[0] += [p.low, p.low, None, p.low, p.high, None, p.high, p.high, None]
            whiskers[1] += [y - cap, y + cap, None, y, y, None, y - cap, y + cap, None]
        _text_at_bar(axes, y, p.high if p.spread else p.value, longest * 0.015, p)
    if whiskers[0]:
        axes.plot(*[[float("nan") if v is None else v for v in values] for values in whiskers], color=style.INK,
                  linewidth=0.9)
    axes.set_ylim(len(places) - 0.45, -0.55)
    axes.set_xlim(0, longest * 1.24)
    axes.locator_params(axis="x", nbins=4)
    axes.grid(axis="x", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def bar_height(places, series):
    """Inches of a chart of bars. `places`: the names of its rows."""
    lines = [1 + style.row_name(place).count("\n") for place in places]
    return CHART_INCHES + sum(max(0.24, series * BAR_INCHES, count * LINE_INCHES) for count in lines)


def name_rows(axes, places, shown=True):
    """Rows of bars with their names, or without where another panel has them."""
    axes.set_yticks(range(len(places)), [style.row_name(place) if shown else "" for place in places])


def name_axis(axes, text):
    """The quantity and unit of bars, in lines that a panel with names of rows has room for."""
    axes.set_xlabel(textwrap.fill(text, AXIS_LETTERS), fontsize=8)


def shade_of(series):
    return lambda name: style.SHADES[series.index(name) % len(style.SHADES)]


def key_of_lines(axes):
    """Handles of the lines of all panels, each once: a panel may have some of the series only."""
    return list({handle.get_label(): handle for one in axes for handle in one.get_legend_handles_labels()[0]}.values())


def grey_key(series):
    """A key in grey: series differ by shade, rows by colour."""
    return [Patch(facecolor=style.LINE, alpha=style.SHADES[i % len(style.SHADES)], label=name)
            for i, name in enumerate(series)]


def figures(points, head, text):
    """The points as a table: a row for each place, a column for each panel and series. Where that are too many columns
    for a page, a row for each panel, too; then one for each series."""
    found = {(p.x, p.panel, p.series): p for p in points}
    for of_row, of_column in ((1, 2), (2, 1), (3, 0)):  # how many of place, panel and series
        rows_of = list(dict.fromkeys(key[:of_row] for key in found))
        columns = list(dict.fromkeys(key[of_row:] for key in found))
        if len(columns) < MOST_COLUMNS:
            break
    rows = [[head, *(", ".join(filter(None, c)) for c in columns)] if of_column else [head, "value"]]
    for row in rows_of:
        cells = [found.get((*row, *c)) for c in columns]
        rows.append([", ".join(filter(None, row)), *("–" if p is None else INVALID if p.invalid else text(p)
                                                     for p in cells)])
    return rows


def with_range(text):
    return lambda p: f"{text(p.value)} ({text(p.low)}–{text(p.high)})" if p.spread else text(p.value)


def bar_panels(title, panels, points, places, series, looks, unit, missing=None):
    """Bars of all panels, shaded by series: a row for each place in its look. `missing`: a text in a row without a
    bar."""
    def draw(axes, number, with_names):
        of_panel = [p for p in points if p.panel == panels[number]]
        draw_bars(axes, places, series, of_panel, lambda x, _: looks[x], shade_of(series))
        for i, place in enumerate(places):
            if missing and all(p.x != place for p in of_panel):
                axes.text(0, i, missing, va="center", fontsize=8, color=style.SOFT)
        name_rows(axes, places, with_names)
        name_axis(axes, unit)
    return Panels(title, panels, draw, bar_height(places, len(series)),
                  lambda _: grey_key(series) if len(series) > 1 else []).drawn()


def index_bars(run, name, title, measurements, phases, name_of_file=None, source=None):
    """Throughput: a row for each index, a panel for each phase, a bar for each number of threads. `source`: its
    footer."""
    measurements = [m for m in measurements if m.throughput and m.phase in phases]
    labels = {m.index: _label(m) for m in measurements}
    threads = sorted({m.threads for m in measurements})
    series = [threads_text(t) for t in threads]
    points = [throughput_point(m, labels[m.index], threads_text(m.threads), names.short_phase(m.phase))
              for m in measurements]
    looks = {labels[i]: look for i, look in style.looks_of_indexes(labels).items()}
    places = list(labels.values())
    shown = [names.short_phase(phase) for phase in phases]
    drawn = bar_panels(title, shown, points, places, series, looks, "million operations per second", " –")
    return Chart(name_of_file or f"{run.name}-{name}", title, drawn.whole, sentences.fastest(points, measurements),
                 source or footer(run, measurements), points, exact=exact(measurements),
                 rows=figures(points, "index, million/s", with_range(names.number)), parts=drawn.parts, key=drawn.key)


def scaling(run, phase, measurements, name=None, title=None, top=None):
    """Lines of throughput over the number of threads, one per index. `top` of the axis: two charts side by side share
    it."""
    threads = sorted({m.threads for m in measurements})
    figure, [axes] = style.panel(3.1)
    indexes = list(dict.fromkeys(m.index for m in measurements))
    looks, points = style.looks_of_indexes(indexes), []
    for index in indexes:
        of_index = sorted((m for m in measurements if m.index == index), key=lambda m: m.threads)
        drawn = [throughput_point(m, str(m.threads), _label(m)) for m in of_index]
        points += drawn
        draw_line(axes, [threads.index(m.threads) for m in of_index], drawn, looks[index])
    axes.set_xticks(range(len(threads)), [str(t) for t in threads])
    axes.set_xlabel("threads")
    axes.set_ylabel("million operations/s")
    axes.set_ylim(0, top)
    axes.grid(axis="y")
    style.key(axes, axes.get_legend_handles_labels()[0])
    title = title or f"{names.phase_title(phase)}, {names.short_medium(run.medium)}"
    style.title(figure, title)
    return Chart(name or f"{run.name}-{phase}-scaling", title, figure, sentences.throughput(phase, measurements),
                 footer(run, measurements), points, "Markers", exact(measurements),
                 figures(points, "threads, million/s", with_range(names.number)))


def draw_line(axes, at, points, look):
    """One line with its markers and whiskers; figures that are not valid are hollow and red."""
    axes.plot(at, [p.value for p in points], color=look.colour, marker=look.marker, linestyle=look.dash, markersize=5,
              linewidth=1.6, label=points[0].series)
    for x, p in zip(at, points):
        if p.spread:
            axes.plot([x, x], [p.low, p.high], color=look.colour, linewidth=1)
        if p.invalid:
            axes.plot([x], [p.value], color=style.BAD, marker="x", markersize=9, linestyle="none")
            axes.annotate(INVALID, (x, p.value), textcoords="offset points", xytext=(4, 5), fontsize=7, color=style.BAD)


def latency(run, phase, measurements):
    """Lines of latency by percentile, one per index; the same number of threads."""
    measurements = [m for m in measurements if m.latency("p50")]
    labels = [_label(m) for m in measurements]
    key_rows = -(-len(measurements) // style.key_columns(labels))
    figure, [axes] = style.panel(3.1 + 0.16 * max(0, key_rows - 2))
    shown = [(key, label) for key, label in PERCENTILES if all(m.latency(key) for m in measurements)]
    looks, points = style.looks_of_indexes([m.index for m in measurements]), []
    for m, label in zip(measurements, labels):
        drawn = [Point(text, label, m.latency(key), *m.latency_range(key), m.n, "ns", m.invalid) for key, text in shown]
        points += drawn
        draw_line(axes, range(len(shown)), drawn, looks[m.index])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: names.duration(value)))
    axes.minorticks_off()
    axes.set_xticks(range(len(shown)), [label for _, label in shown])
    axes.set_xlabel("share of operations that take at most this long")
    axes.set_ylabel("latency (log scale)")
    axes.grid(axis="y")
    style.key(axes, axes.get_legend_handles_labels()[0])
    title = f"Latency: {names.phase_title(phase).lower()}, {threads_text(measurements[0].threads)}"
    style.title(figure, title)
    percentile, label = next(((k, w) for k, w in (("p99_9", "99.9 %"), ("p99", "99 %")) if k in dict(shown)),
                             ("p50", "50 %"))
    return Chart(f"{run.name}-{phase}-latency", title, figure,
                 sentences.latency(phase, measurements, percentile, label),
                 footer(run, measurements), points, "Markers", exact(measurements),
                 [list(row) for row in zip(*figures(points, "index", with_range(names.duration)))])


def counts(run, phase, measurements):
    """Bars of lines, flushes and fences per operation: a group per quantity, a bar per index. Its table has the bytes
    of the media, too, which are too many for the same axis."""
    quantities = [(key, label) for key, label in COUNTS if any(m.per_operation(key) for m in measurements)]
    labels = {m.index: _label(m) for m in measurements}
    looks = {labels[i]: look for i, look in style.looks_of_indexes(labels).items()}
    points = [Point(label, labels[m.index], m.per_operation(key) or 0, *m.range_of(lambda one: one.per_operation(key)),
                    m.n, "per operation")
              for m in measurements for key, label in quantities]
    places, series = [label for _, label in quantities], list(labels.values())
    figure, [axes] = style.panel(bar_height(places, len(series)) + 0.3)
    draw_bars(axes, places, series, points, lambda _, s: looks[s])
    name_rows(axes, places)
    name_axis(axes, "per operation (mean)")
    style.head(figure, f"Counted: {names.phase_title(phase).lower()}", style.patches(looks))
    in_bytes = [Point(label, labels[m.index], m.media_bytes(way), *m.range_of(lambda one: one.media_bytes(way)), m.n,
                      "B per operation")
                for m in measurements for way, label in MEDIA_BYTES if m.media_bytes(way) is not None]
    return Chart(f"{run.name}-{phase}-counts", f"Counted: {names.phase_title(phase).lower()}", figure,
                 sentences.counts(phase, measurements, quantities),
                 footer(run, measurements), points, exact=True,
                 rows=[list(row) for row in zip(*figures(points + in_bytes, "index",
                                                         with_range(lambda value: names.number(value, 4))))])


def media(columns):
    """All indexes on several media, one thread. `columns`: (label, run), the reference first."""
    runs = [run for _, run in columns]
    shared = [p for p in runs[0].phases() if p not in ("load", "reopen") and all(p in r.phases() for r in runs)]
    labels = {m.index: _label(m) for m in runs[0].measurements}
    looks = {labels[i]: look for i, look in style.looks_of_indexes(labels).items()}
    points, measurements = [], []
    for label, run in columns:
        for index in labels:
            for phase in shared:
                m = run.one(index=index, phase=phase, threads=1)
                if m and m.throughput:
                    measurements.append(m)
                    points.append(throughput_point(m, labels[index], label, names.short_phase(phase)))
    places, series = list(labels.values()), [label for label, _ in columns]
    panels = [names.short_phase(phase) for phase in shared]
    drawn = bar_panels("Emulated devices, 1 thread", panels, points, places, series, looks,
                       "million operations per second")
    return Chart("media", "Emulated devices, 1 thread", drawn.whole, sentences.media(points, series),
                 footer(runs[0], measurements), points, rows=figures(points, "index, million/s",
                                                                     with_range(names.number)),
                 parts=drawn.parts, key=drawn.key)


def space(run, measurements):
    """Bytes per key, PM and DRAM stacked."""
    rows = [m for m in measurements if (m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0) > 0]
    figure, [axes] = style.panel(bar_height([_label(m) for m in rows], 1) + 0.1)
    looks = style.looks_of_indexes([m.index for m in rows])
    longest = max((m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0) for m in rows)
    points = []
    for y, m in enumerate(rows):
        start = 0
        for place, shade in (("pm", 1), ("dram", 0.4)):
            value = m.bytes_per_key(place) or 0
            axes.barh(y, value, 0.7, left=start, color=looks[m.index].colour, edgecolor=style.PAPER, alpha=shade)
            ends = m.range_of(lambda one: one.bytes_per_key(place))
            points.append(Point(_label(m), "in the pool" if place == "pm" else "in DRAM", value, *ends, m.n,
                                "bytes per entry"))
            if points[-1].spread:
                axes.plot([start + end for end in ends], [y, y], color=style.INK, linewidth=0.9, marker="|",
                          markersize=4)
            start += value
        axes.text(start + longest * 0.015, y, names.number(start), va="center", fontsize=8)
    name_rows(axes, [_label(m) for m in rows])
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_xlim(0, longest * 1.14)
    name_axis(axes, "bytes per entry of 16 bytes")
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    style.head(figure, "Space", [Patch(facecolor=style.LINE, label="in the pool"),
                                 Patch(facecolor=style.LINE, alpha=0.4, label="in DRAM")])
    return Chart(f"{run.name}-space", "Space", figure, sentences.space(rows), footer(run, rows), points, exact=True,
                 rows=figures(points, "index, bytes per entry", with_range(names.number)))


def batch(run, pairs):
    """Finds one at a time against finds in batches. `pairs`: (single, batched) measurements."""
    series = ["one at a time", f"batches of {pairs[0][1].batch}"]
    looks = {names.index_title(i): look for i, look in style.looks_of_indexes([a.index for a, _ in pairs]).items()}
    points = [throughput_point(m, names.index_title(m.index), name) for pair in pairs for m, name in zip(pair, series)]
    figure, [axes] = style.panel(bar_height(list(looks), 2))
    draw_bars(axes, list(looks), series, points, lambda x, _: looks[x], shade_of(series))
    name_rows(axes, list(looks))
    name_axis(axes, "million finds per second, 1 thread")
    style.head(figure, "find_batch", grey_key(series))
    measured = [m for p in pairs for m in p]
    return Chart(f"{run.name}-batch", "find_batch", figure, sentences.batch(pairs), footer(run, measured), points,
                 exact=exact(measured), rows=figures(points, "index, million/s", with_range(names.number)))


def reopen(run, measurements):
    """Time to close and open again, longest of the repeats."""
    measurements = list({m.index: m for m in sorted(measurements, key=lambda m: -m.threads)}.values())
    looks = {_label(m): look for m, look in
             zip(measurements, style.looks_of_indexes([m.index for m in measurements]).values())}
    points = [Point(_label(m), "reopen", m.latency("max") / 1e6, *(end / 1e6 for end in m.latency_range("max")), m.n,
                    "ms", m.invalid)
              for m in measurements]
    figure, [axes] = style.panel(bar_height(list(looks), 1))
    draw_bars(axes, list(looks), ["reopen"], points, lambda x, _: looks[x])
    name_rows(axes, list(looks))
    name_axis(axes, "milliseconds until the first operation may start")
    style.title(figure, "Close and open again")
    table = [["index", "entries", "milliseconds"]]
    table += [[p.x, names.count(m.repeats[-1].get("entries") or run.records or 0), names.number(p.value)]
              for m, p in zip(measurements, points)]
    return Chart(f"{run.name}-reopen", "Close and open again", figure, sentences.reopen(measurements),
                 footer(run, measurements), points, exact=exact(measurements), rows=table)
