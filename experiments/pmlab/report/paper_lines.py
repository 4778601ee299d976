"""Line charts in the way of the paper's figures: measured lines, and published figures as hollow markers."""

from dataclasses import dataclass

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from . import names, style
from .chart import Chart

LONGEST_OF_THREE = 12  # letters of a label, for three beside each other in a key
HEADROOM = 0.1  # above the highest marker, of the height


@dataclass
class Line:
    label: str
    values: list  # one for each place of the axis; None: not measured
    published: list

    @property
    def measured(self):
        return [v for v in self.values if v is not None]

    def ends(self, places):
        """((place, value), (place, value)): the first and the last that were measured."""
        at = [i for i, v in enumerate(self.values) if v is not None]
        return tuple((places[i], self.values[i]) for i in (at[0], at[-1]))


def line(memory, label, cases, path="value"):
    """A line through `cases`; None in it leaves a gap. Published figures are those of the cases themselves."""
    return Line(label, [memory.value(c, path) if c else None for c in cases],
                [memory.published(c) if c and path == "value" else None for c in cases])


def with_published(drawn, memory, cases):
    """The line with the published figures of other cases, which measure the same at other settings."""
    return Line(drawn.label, drawn.values, [memory.published(c) if c else None for c in cases])


def _draw(axes, lines):
    for n, drawn in enumerate(lines):
        colour, marker = style.SERIES_COLOURS[n % len(style.SERIES_COLOURS)], style.MARKERS[n % len(style.MARKERS)]
        places = [i for i, v in enumerate(drawn.values) if v is not None]
        axes.plot(places, [drawn.values[i] for i in places], color=colour, marker=marker, markersize=5, linewidth=1.6,
                  label=drawn.label)
        hollow = [i for i, v in enumerate(drawn.published) if v is not None]
        if hollow:
            axes.plot(hollow, [drawn.published[i] for i in hollow], color=colour, marker=marker, markersize=8.5,
                      markerfacecolor="none", markeredgewidth=1.3, linestyle="none")


def _quantity_axis(axes, lines, unit, logarithmic):
    if logarithmic:
        axes.set_yscale("log")
        axes.minorticks_off()
    else:
        axes.set_ylim(0, (1 + HEADROOM) * max(v for one in lines for v in [*one.values, *one.published] if v is not None))
    if unit == "ns":
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: names.duration(value) if value else "0"))
    else:
        axes.set_ylabel(unit)


def _rows(places, lines, unit):
    text = names.duration if unit == "ns" else names.number
    head, columns = [""], []
    for drawn in lines:
        head.append(drawn.label)
        columns.append(drawn.values)
        if any(v is not None for v in drawn.published):
            head.append(f"published: {drawn.label}")
            columns.append(drawn.published)
    return [head] + [[place, *("–" if c[i] is None else text(c[i]) for c in columns)] for i, place in enumerate(places)]


def chart(memory, name, title, places, lines, *, axis, unit, logarithmic=False, sentence):
    """A chart of `lines` over `places`; A line needs two measured places; None where no line has
    them. `sentence`: of the lines that were."""
    lines = [drawn for drawn in lines if len(drawn.measured) > 1]
    if not lines:
        return None
    figure, axes = style.panel(3.3)
    _draw(axes, lines)
    axes.set_xticks(range(len(places)), places)
    axes.set_xlim(-0.3, len(places) - 0.7)
    axes.set_xlabel(axis)
    axes.grid(axis="y")
    _quantity_axis(axes, lines, unit, logarithmic)
    handles = axes.get_legend_handles_labels()[0]
    if any(v is not None for drawn in lines for v in drawn.published):
        handles.append(Line2D([], [], color="#555555", marker="o", markersize=8.5, markerfacecolor="none",
                              markeredgewidth=1.3, linestyle="none", label="published"))
    style.key(axes, handles, 3 if max(len(drawn.label) for drawn in lines) <= LONGEST_OF_THREE else 2)
    style.title(figure, title)
    return Chart(f"{memory.name}-{name}", title, style.svg_of(figure, memory.footer), sentence(lines),
                 _rows(places, lines, unit))
