"""Line charts in the way of the paper's figures: measured lines, and published figures as hollow markers."""

from dataclasses import dataclass, replace

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from . import names, style
from .chart import Chart, Point

LONGEST_OF_THREE = 12  # letters of a label, for three beside each other in a key
HEADROOM = 0.1  # above the highest marker, of the height


@dataclass
class Line:
    label: str
    values: list  # one for each place of the axis; None: not measured
    published: list
    ranges: list  # (lowest, highest) of the repetitions for each place; None: not known
    repetitions: int = 1

    @property
    def measured(self):
        return [v for v in self.values if v is not None]

    def ends(self, places):
        """((place, value), (place, value)): the first and the last that were measured."""
        at = [i for i, v in enumerate(self.values) if v is not None]
        return tuple((places[i], self.values[i]) for i in (at[0], at[-1]))


def line(memory, label, cases, path="value"):
    """A line through `cases`; None in it leaves a gap. Published figures are those of the cases themselves."""
    of_value = [c if path == "value" else None for c in cases]  # the only figure whose repetitions are known
    measured = [c for c in of_value if c and memory.value(c) is not None]
    return Line(label, [memory.value(c, path) if c else None for c in cases],
                [memory.published(c) if c else None for c in of_value],
                [memory.range_of_value(c) if c else None for c in of_value],
                max(map(memory.repetitions, measured), default=1))


def with_published(drawn, memory, cases):
    """The line with the published figures of other cases, which measure the same at other settings."""
    return replace(drawn, published=[memory.published(c) if c else None for c in cases])


def _draw(axes, lines, places, unit):
    """Lines, and published figures as hollow markers beside them; returns what was drawn."""
    points = []
    for drawn, look in zip(lines, style.looks_of_series([one.label for one in lines]).values()):
        at = [i for i, v in enumerate(drawn.values) if v is not None]
        axes.plot(at, [drawn.values[i] for i in at], color=look.colour, marker=look.marker, linestyle=look.dash,
                  markersize=5, linewidth=1.6, label=drawn.label)
        measured = [Point(places[i], drawn.label, drawn.values[i], *(drawn.ranges[i] or (None, None)),
                          drawn.repetitions, unit)
                    for i in at]
        points += measured
        for i, point in zip(at, measured):
            if point.spread:
                axes.plot([i, i], [point.low, point.high], color=look.colour, linewidth=1)
        hollow = [i for i, v in enumerate(drawn.published) if v is not None]
        if hollow:
            axes.plot(hollow, [drawn.published[i] for i in hollow], color=look.colour, marker=look.marker,
                      markersize=8.5, markerfacecolor="none", markeredgewidth=1.3, linestyle="none")
            points += [Point(places[i], f"published: {drawn.label}", drawn.published[i], unit=unit) for i in hollow]
    return points


def _quantity_axis(axes, lines, unit, logarithmic):
    if logarithmic:
        axes.set_yscale("log")
        axes.minorticks_off()
    else:
        axes.set_ylim(0, (1 + HEADROOM) * max(v for one in lines for v in [*one.values, *one.published]
                                              if v is not None))
    if unit == "ns":
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: names.duration(value) if value else "0"))
    name = "time" if unit == "ns" else unit
    axes.set_ylabel(f"{name} (log scale)" if logarithmic else name)


def _rows(places, lines, unit):
    text = names.duration if unit == "ns" else names.number
    head, columns = [""], []
    for drawn in lines:
        head.append(drawn.label)
        columns.append(drawn.values)
        if any(v is not None for v in drawn.published):
            head.append(f"published: {drawn.label}")
            columns.append(drawn.published)
    return [head] + [[place, *("–" if c[i] is None else text(c[i]) for c in columns)]
                     for i, place in enumerate(places)]


def chart(memory, name, title, places, lines, *, axis, unit, logarithmic=False, sentence):
    """A chart of `lines` over `places`; a line needs two measured places; None where no line has
    them. `sentence`: of the lines that were."""
    lines = [drawn for drawn in lines if len(drawn.measured) > 1]
    if not lines:
        return None
    figure, [axes] = style.panel(3.3)
    points = _draw(axes, lines, places, unit)
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.3, len(places) - 0.7)
    axes.set_xlabel(axis)
    axes.grid(axis="y")
    _quantity_axis(axes, lines, unit, logarithmic)
    handles = axes.get_legend_handles_labels()[0]
    if any(v is not None for drawn in lines for v in drawn.published):
        handles.append(Line2D([], [], color=style.SOFT, marker="o", markersize=8.5, markerfacecolor="none",
                              markeredgewidth=1.3, linestyle="none", label="published"))
    style.key(axes, handles, 3 if max(len(drawn.label) for drawn in lines) <= LONGEST_OF_THREE else 2)
    style.title(figure, title)
    return Chart(f"{memory.name}-{name}", title, figure, sentence(lines), memory.footer, points, "Markers",
                 memory.medium.startswith("simulated"), _rows(places, lines, unit))
