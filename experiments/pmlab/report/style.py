"""One look for all charts: readable when small, in print, and without colour vision; the same JSON, the same picture."""

import io

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend must be chosen first)

# Okabe and Ito's palette: distinguishable with every common form of colour blindness.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK = "#E69F00", "#56B4E9", "#222222"

INDEX_COLOURS = {"cceh": BLUE, "level_hashing": ORANGE, "fast_fair": VERMILLION,
                 "fp_tree": BLACK, "skip_list": SKY, "skip_list_pm": SKY, "tbb_hash": GREEN, "std_map": GREEN, "pmdk_hash": PURPLE,
                 "pmdk_skiplist": PURPLE, "pmdk_radix": ORANGE}
SPARE_COLOURS = (SKY, BLACK, ORANGE, GREEN)
SERIES_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, BLACK, ORANGE, SKY)
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Series of one colour differ by shade and hatch.
SHADES = (1, 0.6, 0.4, 0.25)
# No dots: each is drawn by eight curves, in every picture that has some.
BAR_HATCHES = ("", "////", "xxxx", "----", "\\\\\\\\", "||||", "++++")
HATCHES = BAR_HATCHES[:4]

INK = "#1a1a1a"
PANEL_INCHES = 4.0  # one chart fills a phone's width without being scaled down
LEAST_INCHES = 1.5  # room for title, key, axis and footer around one bar

pyplot.rcParams.update({
    "svg.hashsalt": "pmlab",
    # Letters as text: a tenth of the size, and a reader may search and copy it.
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#777777",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#dddddd",
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
})


def colour_of(index, position=0):
    return INDEX_COLOURS.get(index, SPARE_COLOURS[position % len(SPARE_COLOURS)])


def panel(height):
    """A figure of one chart: (figure, axes). `height` in inches."""
    figure, axes = pyplot.subplots(figsize=(PANEL_INCHES, max(height, LEAST_INCHES)), layout="constrained")
    return figure, axes


def title(figure, text):
    figure.suptitle(text, x=0.01, ha="left", fontsize=10.5, fontweight="bold")


def key_columns(labels):
    """How many columns of these labels fit into a panel's width."""
    longest = max(map(len, labels))
    return 3 if longest <= 14 else 2 if longest <= 24 else 1


def key(axes, handles, columns=None):
    """The key of a chart, between its title and what it shows; in as many columns as fit, unless told."""
    columns = columns or key_columns([handle.get_label() for handle in handles])
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(handles), columns), fontsize=8,
                borderaxespad=0.1, borderpad=0.1, handlelength=1.6, columnspacing=1.2)


def svg_of(figure, footer):
    """The finished figure as SVG text, with `footer` (machine and medium) written at its foot."""
    figure.supxlabel(footer, fontsize=7.5, color="#444444", x=0.01, ha="left")
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return text.getvalue()
