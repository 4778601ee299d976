"""The charts of an experiment, as its file describes them; pmlab.report draws them."""

from dataclasses import dataclass, field

from ..errors import Failure
from ..report.quantities import QUANTITIES
from ..spelling import nearest

# standard: the charts that every comparison of indexes gets (pmlab.report.sections).
# timeline: throughput over time, of cells with `interval`.
KINDS = ("lines", "bars", "standard", "timeline")
_DIMENSIONS = ("threads", "phase", "index", "medium", "hosts")
_OF_STORES = ("store", "container", "merge", "ring", "pattern", "size", "value", "depth", "device", "devices",
              "staging", "place", "memtable")


@dataclass
class Chart:
    kind: str
    x: str = ""
    y: str = ""
    series: str = ""
    panels: list = field(default_factory=list)
    only: list = field(default_factory=list)  # "depth=32": what it is restricted to


def read_chart(file, table, axes, number, of_stores=False):
    """The [[chart]] of that number. `axes`: keys of the matrix. Raises Failure: unknown kind, quantity or key."""

    def one_of(key, known):
        if key not in table:
            raise Failure(f"{file.place('chart', number)}: a [[chart]] without {key}",
                          f'give it one, such as {key} = "{known[0]}"')
        value = file.text(table[key], "chart", number, key)
        if value not in known:
            raise Failure(f"{file.place('chart', number, key)}: a chart's {key} cannot be '{value}'",
                          f"did you mean '{nearest(value, known)}'?")
        return value

    file.refuse_unknown_keys(table, ("kind", "x", "y", "series", "panels", "only"), "chart", number)
    chart = Chart(one_of("kind", KINDS))
    if chart.kind == "standard":
        return chart
    dimensions = tuple(dict.fromkeys((*_DIMENSIONS, *(_OF_STORES if of_stores else ()), *axes)))
    if chart.kind == "timeline":
        for key in ("x", "y"):
            if key in table:
                raise Failure(f"{file.place('chart', number, key)}: a timeline has {key} already", "leave it out")
        chart.y = "throughput"
    else:
        chart.x = one_of("x", dimensions)
        chart.y = one_of("y", tuple(QUANTITIES))
    chart.series = one_of("series", dimensions)
    if "panels" in table:
        place = ("chart", number, "panels")
        chart.panels = file.texts(table["panels"], *place)
        for panel in chart.panels:
            if panel not in dimensions:
                raise Failure(f"{file.place(*place)}: a chart's panels cannot be by '{panel}'",
                              f"did you mean '{nearest(panel, dimensions)}'?")
    if "only" in table:
        place = ("chart", number, "only")
        chart.only = file.texts(table["only"], *place)
        for one in chart.only:
            key, equals, _ = one.partition("=")
            if key not in dimensions or not equals:
                raise Failure(f"{file.place(*place)}: a chart cannot be restricted to '{one}'",
                              f"write KEY=VALUE; did you mean '{nearest(key, dimensions)}=...'?")
    return chart
