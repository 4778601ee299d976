"""One look for all charts: readable when small, in print, on a dark screen and without colour vision; the same JSON,
the same picture."""

import re
import textwrap
from dataclasses import dataclass

import matplotlib

from .. import indexes

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402  (the backend must be chosen first)
from matplotlib.patches import Patch  # noqa: E402

INK, SOFT, LINE, GRID, PAPER = "#1a1a1a", "#4d4d4d", "#777777", "#dddddd", "#ffffff"

# One colour for each index, wherever it is drawn; variants of one (a cache in front of it, strings as keys) share it
# and differ by shade and dash. Okabe and Ito's palette for pmlab's own, distinguishable with every common form of
# colour blindness; containers that pmlab is compared with have greys (in DRAM) and browns (PMDK). The place of an index
# in this list chooses its marker: one that is added changes those of hybrids and peers alone.
INDEX_COLOURS = {index["name"]: index["colour"] for index in indexes.verified()} | {
    "hybrid_index": "#999933", "hybrid_index_plus": "#882255", "tbb_hash": "#5f6b76", "std_map": "#95a0ab",
    "pmdk_hash": "#8a6d3b", "pmdk_skiplist": "#b59a6a", "pmdk_radix": "#6b5a45"} | {
    index["name"]: index["colour"] for index in indexes.offered()}
# Series that are no indexes: sizes, numbers of threads, distributions.
SERIES_COLOURS = ("#2f4b7c", "#c8553d", "#3b8f8a", "#a05195", "#7a7a3a", "#4f4f4f", "#8fa8d6")
BETTER, WORSE, BAD = "#1b6ca8", "#c2410c", "#b00020"

# The same on a dark screen: as far from black as the others are from white.
DARK = {index["colour"]: index["colour_on_dark"] for index in indexes.offered()} | {
    INK: "#e8e8e8", SOFT: "#b4b4b4", LINE: "#8c8c8c", GRID: "#3a3a3a", PAPER: "#161618",
    "#999933": "#c4c455", "#882255": "#d6609a", "#5f6b76": "#8b98a5", "#95a0ab": "#b9c3cd", "#8a6d3b": "#b8935a",
    "#b59a6a": "#d6c096", "#6b5a45": "#9a8468",
    "#2f4b7c": "#86a6e0", "#c8553d": "#e8836d", "#3b8f8a": "#63c2bc", "#a05195": "#cf86c5", "#7a7a3a": "#b5b568",
    "#4f4f4f": "#c0c0c0", "#8fa8d6": "#5f7fb8", BETTER: "#5aa9e0", WORSE: "#f0824a", BAD: "#ff6b7f"}

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Bars of one colour differ by shade.
SHADES = (1, 0.6, 0.36, 0.2)

PANEL_INCHES = 4.0  # one chart fills a phone's width without being scaled down
WIDE_INCHES = 8.4   # three panels beside each other, in a file: as wide as a page of text
COLUMNS = 3         # panels beside each other
TITLE_INCHES = 0.22
KEY_INCHES = 0.19   # a row of a key
LEAST_INCHES = 1.6  # room for title, key, axis and footer around one bar
LONG_NAME = 20      # letters of a row's line: more leave too little of a panel for its bars

matplotlib.rcParams.update({
    "svg.hashsalt": "pmlab",
    # Letters as text: a tenth of the size, and a reader may search and copy it. In PDF as TrueType, which publishers
    # ask for.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    # The grid is enough.
    "xtick.major.size": 0, "ytick.major.size": 0,
    "pdf.compression": 9,
    "legend.frameon": False,
})


@dataclass(frozen=True)
class Look:
    """How one index, or one other series, is drawn."""

    colour: str
    number: int  # number of the variant, or of the series: 0 is drawn plain
    marker: str

    @property
    def dash(self):
        return DASHES[self.number % len(DASHES)]

    @property
    def shade(self):
        return SHADES[min(self.number, len(SHADES) - 1)]


def base_of(index):
    """The index that a variant is one of: cache(fast_fair,mode=serial) is FAST-FAIR, a hybrid goes by what it has in
    PM."""
    inner = re.fullmatch(r"(?:(?:locked_)?cache|strings)\((.*)\)", index)
    if inner:
        return base_of(re.match(r"\w+(?:\([^)]*\))?", inner[1])[0])
    if index.startswith("hybrid("):
        return "hybrid_index" if re.search(r"hash=\w+@pmem", index) else "hybrid_index_plus"
    return index


def colour_of(index):
    """None: this is no index of pmlab's, nor one that it is compared with."""
    return INDEX_COLOURS.get(base_of(index))


def looks_of_indexes(indexes):
    """index -> Look, for those of one chart. An index that pmlab does not know has the ink's colour."""
    found, seen = {}, {}
    for index in indexes:
        base = base_of(index)
        if index == base:
            number = 0
        else:
            number = seen[base] = seen.get(base, 0) + 1
        marker = MARKERS[list(INDEX_COLOURS).index(base) % len(MARKERS)] if base in INDEX_COLOURS else MARKERS[-1]
        found[index] = Look(colour_of(index) or INK, number, marker)
    return found


def looks_of_series(names):
    return {name: Look(SERIES_COLOURS[n % len(SERIES_COLOURS)], n, MARKERS[n % len(MARKERS)])
            for n, name in enumerate(names)}


def panel(height):
    """A figure of one chart: (figure, [axes]). `height` in inches."""
    return panels(height, 1)


def width_of(count):
    """The width of a figure of `count` panels, in inches."""
    return {1: PANEL_INCHES, 2: 0.72 * WIDE_INCHES}.get(count, WIDE_INCHES)


def row_name(text):
    """The name of a row in lines that leave room for its bar; they end behind a space, a comma or an opening
    bracket."""
    lines = [""]
    for piece in re.findall(r"[^ ,(/]*[ ,(/]?", text):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > LONG_NAME:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def panels(height, count):
    """As `panel`, for `count` charts of the same rows: three beside each other at most, the rest below."""
    columns = min(count, COLUMNS)
    figure = Figure(figsize=(width_of(count), max(height, LEAST_INCHES)), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.07)
    axes = [a for row in figure.subplots(-(-count // columns), columns, squeeze=False) for a in row]
    for spare in axes[count:]:
        spare.axis("off")
    return figure, axes[:count]


def _wrapped(figure, text, letters_of_an_inch):
    """`text` in lines that the figure is wide enough for."""
    width = int(figure.get_figwidth() * letters_of_an_inch)
    return "\n".join(textwrap.fill(line, width, break_long_words=False) for line in text.split("\n"))


def title(figure, text, empty_lines=0):
    """Returns how many lines it has. `empty_lines`: below it, for something to stand there."""
    wrapped = _wrapped(figure, text, 10)
    figure.suptitle(wrapped + empty_lines * "\n ", x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    return 1 + wrapped.count("\n")


def key_columns(labels, inches=PANEL_INCHES):
    """How many columns of these labels fit."""
    longest = max(map(len, labels))
    return max(1, int(inches / (0.42 + 0.068 * longest)))


def key_rows(handles, inches=PANEL_INCHES):
    """How many rows the key has."""
    return -(-len(handles) // key_columns([handle.get_label() for handle in handles], inches)) if handles else 0


def patches(looks):
    """The handles of a key of bars. `looks`: label -> Look."""
    return [Patch(facecolor=look.colour, edgecolor=PAPER, alpha=look.shade, label=label)
            for label, look in looks.items()]


def key_alone(handles):
    """A figure of nothing but a key."""
    rows = key_rows(handles)
    figure = Figure(figsize=(PANEL_INCHES, 0.06 + KEY_INCHES * rows))
    figure.legend(handles=handles, loc="center left", ncols=-(-len(handles) // rows), fontsize=8, borderaxespad=0.1,
                  borderpad=0.1, handlelength=1.6, columnspacing=1.2)
    return figure


def key(axes, handles, columns=None):
    """The key of a chart, between its title and what it shows; in as many columns as fit, unless told."""
    if not handles:
        return
    columns = columns or key_columns([handle.get_label() for handle in handles])
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(handles), columns), fontsize=8,
                borderaxespad=0.1, borderpad=0.1, handlelength=1.6, columnspacing=1.2)


def head(figure, text, handles):
    """Title and key: the key is between the title and what the figure shows, and the figure is as much higher.
    `handles`: none where there is one series."""
    rows = key_rows(handles, figure.get_figwidth())
    figure.set_figheight(figure.get_figheight() + KEY_INCHES * rows)
    # The title gets empty lines, for the key to stand there.
    lines = title(figure, text, rows)
    if handles:
        top = 1 - lines * TITLE_INCHES / figure.get_figheight()
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, top), ncols=-(-len(handles) // rows),
                      fontsize=8, borderaxespad=0.1, borderpad=0.1, handlelength=1.6,
                      columnspacing=1.2)


def take_chrome(figure):
    """Takes title and foot away, which a paper has in its caption; of the title the empty lines stay, where the key is.
    A figure that was not drawn yet."""
    for text in figure.texts:
        text.set_text("\n".join(line for line in text.get_text().split("\n") if line == " "))
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, 1))


def foot(figure, text):
    """Where the figures come from, at the foot of the chart."""
    figure.supxlabel(_wrapped(figure, text, 15), fontsize=7.5, color=SOFT, x=0.01, ha="left")
