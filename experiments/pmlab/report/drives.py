"""The charts and tables of block devices: what `pmlab microbench --device --json` wrote."""

from statistics import median

from . import names, provenance, style
from .chart import Chart, Point, Table
from .charts import bar_panels, figures, with_range

_RANDOM = "random-{}/bytes=4096/depth={}"
_DURABLE = (("completed", _RANDOM.format("write", 1)), ("with its flush", _RANDOM.format("write", 1) + "/until=flush"),
            ("as a durable write", _RANDOM.format("write", 1) + "/until=durable"))


def label(drive):
    """p4610; emulated:p4610; the file's own name is arbitrary."""
    kind = drive.medium.split(":")[0]
    return {"simulated": drive.medium.removeprefix("simulated:"), "file": "this machine's drive"}.get(kind,
                                                                                                      drive.medium)


def _measured(drive, name):
    case = drive.cases.get(name)
    return None if case is None or case.get("skipped") else case


def _rates(drive, name, series, panel, unit, scale):
    """A point of requests per second, or of bytes, with the range of the repetitions."""
    case = _measured(drive, name)
    if case is None:
        return []
    each = [value / case["value"] * case["requests_per_s"] * scale for value in case["values"]]
    return [Point(label(drive), series, median(each), min(each), max(each), len(each), unit, panel=panel)]


def _chart(drives, name, title, points, series, unit, said):
    places = [label(d) for d in drives if any(p.x == label(d) for p in points)]
    panels = list(dict.fromkeys(p.panel for p in points))
    drawn = bar_panels(title, panels, points, places, series, style.looks_of_series(places), unit)
    machine = drives[0].machine
    footer = (f"{names.enumerate_words(places)} · docs/drive-profiles.md\n"
              f"{provenance.commit_line(machine)} · {provenance.machine_line(machine)}")
    return Chart(f"drives-{name}", title, drawn.whole, said, footer, points, parts=drawn.parts, key=drawn.key,
                 exact=all(d.medium.startswith("simulated:") for d in drives),
                 rows=figures(points, f"drive, {unit}", with_range(names.number)))


def _random(drives):
    points = [p for d in drives for what in ("read", "write") for depth in (1, 32)
              for p in _rates(d, _RANDOM.format(what, depth), f"{depth} in flight", f"{what}s", "thousand/s", 1e-3)]
    fastest = max((p for p in points if p.panel == "writes"), key=lambda p: p.value, default=None)
    said = fastest and f"Random writes are fastest on {fastest.x}, {names.number(fastest.value)} thousand per second."
    return points and _chart(drives, "random", "4 KB at random", points, ["1 in flight", "32 in flight"],
                             "thousand requests per second", said)


def _peaks(drives):
    points = [p for d in drives for what in ("read", "write")
              for p in _rates(d, f"drive-{what}", what, "", "GB/s", (1 << 20) / 1e9)]
    return points and _chart(drives, "peaks", "1 MB in order, 32 in flight", points, ["read", "write"], "GB per second",
                             "The peak bandwidth, which claim M22 compares with a memory's.")


def _durable(drives):
    points = [Point(label(d), series, case["latency_ns"]["p50"] / 1e3, n=case["repetitions"],
                    unit="us")  # n: all repetitions
              for d in drives for series, name in _DURABLE if (case := _measured(d, name))]
    slowest = max((p for p in points if p.series == "with its flush"), key=lambda p: p.value, default=None)
    said = (f"A write with its flush takes longest on {slowest.x}, {names.number(slowest.value)} us; a drive with "
            "capacitors has nothing to flush.") if slowest else ""
    return points and _chart(drives, "durable", "A write of 4 KB, median latency", points, [s for s, _ in _DURABLE],
                             "microseconds", said)


def _all_cases(drives):
    found = list(dict.fromkeys(name for d in drives for name in d.cases))
    rows = [["case, requests per second", *map(label, drives)]]
    for name in found:
        cases = [_measured(d, name) for d in drives]
        rows.append([name, *("–" if c is None else names.count(c["requests_per_s"]) for c in cases)])
    return Table(rows, "All cases")


def _beside_fio(drives):
    rows = [["case beside fio", "drive", "requests per second", "fio's", "ratio", "spread"]]
    for drive in drives:
        for name, case in drive.cases.items():
            if fio := case.get("fio"):
                rows.append([name, label(drive), names.count(case["requests_per_s"]),
                             names.count(fio["requests_per_s"]),
                             f"{fio['ratio']:.2f}", f"{case['spread_percent']:.0f} %"])
    return [Table(rows, "Beside fio", "The same requests on the same file, in turns.")] if len(rows) > 1 else []


def charts_and_tables(drives):
    """Charts and tables of all drives of an experiment."""
    drawn = [chart for chart in (_random(drives), _peaks(drives), _durable(drives)) if chart]
    return drawn, [*_beside_fio(drives), _all_cases(drives)]
