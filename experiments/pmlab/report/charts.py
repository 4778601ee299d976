"""The charts. Each function makes one from measurements; none knows which suite they come from."""

from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from . import names, sentences, style
from .chart import Chart
from .provenance import footer

PERCENTILES = (("p50", "50 %"), ("p90", "90 %"), ("p99", "99 %"), ("p99_9", "99.9 %"), ("p99_99", "99.99 %"),
               ("max", "max"))
COUNTS = (("pm_lines_read", "lines read"), ("device_lines_read", "device lines read"),
          ("device_lines_written", "device lines written"), ("flushes", "flushes"), ("fences", "fences"))


def _label(m):
    return names.index_title(m.index) + (" (DRAM)" if m.medium == "dram" and names.is_peer(m.index) else "")


def _horizontal_bars(axes, labels, series, colours):
    """`series`: (name, values, ranges) drawn as one bar each per label, first series on top. None: no bar."""
    height = 0.8 / len(series)
    longest = max(v for _, values, ranges in series for v in [*values, *(high for _, high in ranges or [])] if v is not None)
    for number, (name, values, ranges) in enumerate(series):
        for row, value in enumerate(values):
            if value is None:
                continue
            y = row + (number - (len(series) - 1) / 2) * height
            axes.barh(y, value, height * 0.92, color=colours[row], edgecolor="white", alpha=style.SHADES[number % len(style.SHADES)],
                      hatch=style.HATCHES[number % len(style.HATCHES)], label=name)
            end = value
            if ranges and ranges[row][0] != ranges[row][1]:
                low, high = ranges[row]
                axes.plot([low, high], [y, y], color=style.INK, linewidth=1)
                end = max(value, high)
            axes.text(end + longest * 0.015, y, names.number(value), va="center", fontsize=8)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.set_xlim(0, longest * 1.16)


def _series_key(axes, names_of_series):
    """A key in grey: series differ by hatch and shade, rows by colour."""
    if len(names_of_series) > 1:
        style.key(axes, [Patch(facecolor="#777777", edgecolor="white", alpha=style.SHADES[i % len(style.SHADES)],
                          hatch=style.HATCHES[i % len(style.HATCHES)], label=name)
                    for i, name in enumerate(names_of_series)])


def _finish_bars(figure, axes, title, quantity):
    axes.set_xlabel(quantity)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    style.title(figure, title)


def throughput(run, phase, measurements):
    """Bars of throughput: a row per index, a bar per number of threads."""
    measurements = [m for m in measurements if m.throughput]
    rows = list(dict.fromkeys(m.index for m in measurements))
    threads = sorted({m.threads for m in measurements})
    by_key = {(m.index, m.threads): m for m in measurements}

    def column(value_of, count):
        return [value_of(by_key[i, count]) if (i, count) in by_key else None for i in rows]

    series = [(f"{count} thread{'s' if count != 1 else ''}", column(lambda m: m.throughput / 1e6, count),
               [tuple(x / 1e6 for x in pair) if pair else (0, 0)
                for pair in column(lambda m: m.throughput_range, count)]) for count in threads]
    figure, axes = style.panel(0.95 + 0.24 * len(rows) * len(threads))
    labels = [_label(next(m for m in measurements if m.index == i)) for i in rows]
    _horizontal_bars(axes, labels, series, [style.colour_of(i, n) for n, i in enumerate(rows)])
    _series_key(axes, [s[0] for s in series])
    title = names.phase_title(phase)
    if any(m.batch > 1 for m in measurements):
        title += f", batches of {max(m.batch for m in measurements)}"
    _finish_bars(figure, axes, title, "million operations per second")
    table = [["index", "medium", "threads", "operations/s", "lowest", "highest", "p50 ns", "p99 ns"]]
    for m in measurements:
        low, high = m.throughput_range
        table.append([names.index_title(m.index), names.short_medium(m.medium), m.threads, f"{m.throughput:,.0f}",
                      f"{low:,.0f}", f"{high:,.0f}", names.number(m.latency("p50"), 4), names.number(m.latency("p99"), 4)])
    return Chart(f"{run.name}-{phase}", title, style.svg_of(figure, footer(run, measurements)),
                 sentences.throughput(phase, measurements), table)


def scaling(run, phase, measurements):
    """Lines of throughput over the number of threads, one per index."""
    threads = sorted({m.threads for m in measurements})
    figure, axes = style.panel(3.1)
    for n, index in enumerate(dict.fromkeys(m.index for m in measurements)):
        of_index = sorted((m for m in measurements if m.index == index), key=lambda m: m.threads)
        axes.plot([threads.index(m.threads) for m in of_index], [m.throughput / 1e6 for m in of_index],
                  color=style.colour_of(index, n), marker=style.MARKERS[n % len(style.MARKERS)], markersize=5,
                  linewidth=1.6, label=_label(of_index[0]))
    axes.set_xticks(range(len(threads)), [str(t) for t in threads])
    axes.set_xlabel("threads")
    axes.set_ylabel("million operations/s")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    style.key(axes, axes.get_legend_handles_labels()[0])
    title = f"{names.phase_title(phase)}, {names.short_medium(run.medium)}"
    style.title(figure, title)
    table = [["index", *(f"{t} thread{'s' if t != 1 else ''}, operations/s" for t in threads)]]
    for index in dict.fromkeys(m.index for m in measurements):
        of_index = {m.threads: m for m in measurements if m.index == index}
        table.append([names.index_title(index), *(f"{of_index[t].throughput:,.0f}" if t in of_index else "–" for t in threads)])
    return Chart(f"{run.name}-{phase}-scaling", title, style.svg_of(figure, footer(run, measurements)),
                 sentences.throughput(phase, measurements), table)


def latency(run, phase, measurements):
    """Lines of latency by percentile, one per index; the same number of threads."""
    measurements = [m for m in measurements if m.latency("p50")]
    key_rows = -(-len(measurements) // style.key_columns([_label(m) for m in measurements]))
    figure, axes = style.panel(3.1 + 0.16 * max(0, key_rows - 2))
    shown = [(key, label) for key, label in PERCENTILES if all(m.latency(key) for m in measurements)]
    for n, m in enumerate(measurements):
        axes.plot(range(len(shown)), [m.latency(key) for key, _ in shown], color=style.colour_of(m.index, n),
                  marker=style.MARKERS[n % len(style.MARKERS)], markersize=5, linewidth=1.6, label=_label(m))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: names.duration(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(shown)), [label for _, label in shown])
    axes.set_xlabel("share of operations that take at most this long")
    axes.grid(axis="y")
    style.key(axes, axes.get_legend_handles_labels()[0])
    threads = measurements[0].threads
    title = f"Latency: {names.phase_title(phase).lower()}, {threads} thread{'s' if threads != 1 else ''}"
    style.title(figure, title)
    percentile, label = next(((k, w) for k, w in (("p99_9", "99.9 %"), ("p99", "99 %")) if k in dict(shown)),
                             ("p50", "50 %"))
    table = [["index", *(label for _, label in shown)]]
    table += [[names.index_title(m.index), *(names.duration(m.latency(key)) for key, _ in shown)] for m in measurements]
    return Chart(f"{run.name}-{phase}-latency", title, style.svg_of(figure, footer(run, measurements)),
                 sentences.latency(phase, measurements, percentile, label), table)


def counts(run, phase, measurements):
    """Bars of lines, flushes and fences per operation: a row per quantity, a bar per index."""
    quantities = [(key, label) for key, label in COUNTS if any(m.per_operation(key) is not None for m in measurements)]
    figure, axes = style.panel(1.3 + 0.24 * len(quantities) * len(measurements))
    height = 0.8 / len(measurements)
    longest = max((m.per_operation(key) or 0) for m in measurements for key, _ in quantities) or 1
    for n, m in enumerate(measurements):
        for row, (key, _) in enumerate(quantities):
            value = m.per_operation(key) or 0
            y = row + (n - (len(measurements) - 1) / 2) * height
            axes.barh(y, value, height * 0.92, color=style.colour_of(m.index, n), edgecolor="white",
                      hatch=style.HATCHES[n % len(style.HATCHES)], label=_label(m) if row == 0 else None)
            axes.text(value + longest * 0.015, y, names.number(value), va="center", fontsize=8)
    axes.set_yticks(range(len(quantities)), [label for _, label in quantities])
    axes.set_ylim(len(quantities) - 0.45, -0.55)
    axes.set_xlim(0, longest * 1.16)
    style.key(axes, axes.get_legend_handles_labels()[0])
    title = f"Counted: {names.phase_title(phase).lower()}"
    _finish_bars(figure, axes, title, "per operation (mean)")
    table = [["index", *(label for _, label in quantities)]]
    table += [[names.index_title(m.index), *(names.number(m.per_operation(key), 4) for key, _ in quantities)]
              for m in measurements]
    return Chart(f"{run.name}-{phase}-counts", title, style.svg_of(figure, footer(run, measurements)),
                 sentences.counts(phase, measurements, quantities), table)


def media(index, columns):
    """One index on several media. `columns`: (label, run, {phase: measurement}), the reference first."""
    phases = [p for p in columns[0][2] if all(p in c[2] for c in columns)]
    figure, axes = style.panel(1.0 + 0.22 * len(phases) * len(columns))
    series = [(label, [by_phase[p].throughput / 1e6 for p in phases], None) for label, _, by_phase in columns]
    _horizontal_bars(axes, [names.phase_title(p) for p in phases], series, [style.colour_of(index)] * len(phases))
    _series_key(axes, [s[0] for s in series])
    title = f"{names.index_title(index)} on emulated devices"
    _finish_bars(figure, axes, title, "million operations per second, 1 thread")
    measurements = [m for _, _, by_phase in columns for m in by_phase.values()]
    table = [["medium", *(f"{names.phase_title(p)}, operations/s" for p in phases)]]
    table += [[label, *(f"{by_phase[p].throughput:,.0f}" for p in phases)] for label, _, by_phase in columns]
    sentence = sentences.media(index, phases, [(label, {p: by_phase[p].throughput for p in phases})
                                               for label, _, by_phase in columns])
    return Chart(f"media-{index}", title, style.svg_of(figure, footer(columns[0][1], measurements)), sentence, table)


def space(run, measurements):
    """Bytes per key, PM and DRAM stacked."""
    rows = [m for m in measurements if (m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0) > 0]
    figure, axes = style.panel(1.0 + 0.3 * len(rows))
    longest = max((m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0) for m in rows)
    for y, m in enumerate(rows):
        pm, dram = m.bytes_per_key("pm") or 0, m.bytes_per_key("dram") or 0
        axes.barh(y, pm, 0.7, color=style.BLUE, edgecolor="white", label="in the pool" if y == 0 else None)
        axes.barh(y, dram, 0.7, left=pm, color=style.ORANGE, edgecolor="white", hatch="////",
                  label="in DRAM" if y == 0 else None)
        axes.text(pm + dram + longest * 0.015, y, names.number(pm + dram), va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [_label(m) for m in rows])
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_xlim(0, longest * 1.14)
    style.key(axes, axes.get_legend_handles_labels()[0])
    _finish_bars(figure, axes, "Space", "bytes per entry (8-byte key, 8-byte value)")
    table = [["index", "PM bytes/key", "DRAM bytes/key"]]
    table += [[names.index_title(m.index), names.number(m.bytes_per_key("pm")), names.number(m.bytes_per_key("dram"))]
              for m in rows]
    return Chart(f"{run.name}-space", "Space", style.svg_of(figure, footer(run, rows)), sentences.space(rows), table)


def batch(run, pairs):
    """Finds one at a time against finds in batches. `pairs`: (single, batched) measurements."""
    figure, axes = style.panel(1.0 + 0.5 * len(pairs))
    series = [("one at a time", [a.throughput / 1e6 for a, _ in pairs], [tuple(x / 1e6 for x in a.throughput_range)
                                                                         for a, _ in pairs]),
              (f"batches of {pairs[0][1].batch}", [b.throughput / 1e6 for _, b in pairs],
               [tuple(x / 1e6 for x in b.throughput_range) for _, b in pairs])]
    _horizontal_bars(axes, [names.index_title(a.index) for a, _ in pairs], series,
                     [style.colour_of(a.index, n) for n, (a, _) in enumerate(pairs)])
    _series_key(axes, [s[0] for s in series])
    _finish_bars(figure, axes, "find_batch", "million finds per second, 1 thread")
    table = [["index", "one at a time, finds/s", "batched, finds/s"]]
    table += [[names.index_title(a.index), f"{a.throughput:,.0f}", f"{b.throughput:,.0f}"] for a, b in pairs]
    return Chart(f"{run.name}-batch", "find_batch", style.svg_of(figure, footer(run, [m for p in pairs for m in p])),
                 sentences.batch(pairs), table)


def reopen(run, measurements):
    """Time to close and open again, longest of the repeats."""
    measurements = list({m.index: m for m in sorted(measurements, key=lambda m: -m.threads)}.values())
    figure, axes = style.panel(0.95 + 0.3 * len(measurements))
    values = [m.latency("max") / 1e6 for m in measurements]
    _horizontal_bars(axes, [_label(m) for m in measurements], [("reopen", values, None)],
                     [style.colour_of(m.index, n) for n, m in enumerate(measurements)])
    _finish_bars(figure, axes, "Close and open again", "milliseconds until the first operation may start")
    table = [["index", "entries", "milliseconds"]]
    table += [[names.index_title(m.index), names.count(m.repeats[-1].get("entries") or run.records or 0),
               names.number(v)] for m, v in zip(measurements, values)]
    return Chart(f"{run.name}-reopen", "Close and open again", style.svg_of(figure, footer(run, measurements)),
                 sentences.reopen(measurements), table)
