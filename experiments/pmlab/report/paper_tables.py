"""The tables 2 to 8 of [Han21] from a run of suite `paper`."""

from . import names, provenance
from .chart import Table
from .paper_figures import size

SMALL = ("8", "16", "32", "64", "128", "256")
LARGE = ("512", "1K", "4K", "16K", "64K", "1M", "16M")


def _time(value):
    return "–" if value is None else names.duration(value)


def _ratio(above, below):
    return names.times(above / below) if above and below else "–"


def _environment(memory):
    machine = memory.machine
    rows = [["", "here"], ["memory", provenance.medium_line([memory.medium])],
            ["processor", provenance.machine_line(machine)],
            ["kernel", machine.get("kernel", "?")], ["prefetchers", machine.get("prefetchers", "?")],
            ["clock", (machine.get("clock") or {}).get("source", "?")], ["compiler", machine.get("compiler", "?")]]
    return Table(rows, "Table 2: the environment", "Where these figures were measured, in the place of the paper's "
                 "machine.", prose=True)


def _by_order(memory, number, what, group, sizes, extra=()):
    """Random against sequential. `extra`: (label, sequential case, random case) of rows above."""
    cases = [*extra, *((size(s), *(f"{group}/pattern={p}/access_bytes={s}" for p in ("sequential", "random")))
                       for s in sizes)]
    known = any(memory.published(c) for _, *both in cases for c in both)
    rows = [["size", "sequential", "random", "ratio", *(["published"] if known else [])]]
    ratios = []
    for label, sequential, random in cases:
        in_order, at_random = memory.value(sequential), memory.value(random)
        if in_order is None and at_random is None:
            continue
        if in_order and at_random:
            ratios.append(at_random / in_order)
        row = [label, _time(in_order), _time(at_random), _ratio(at_random, in_order)]
        published = [memory.published(c) for c in (sequential, random)]
        if known:
            row.append(" / ".join(map(_time, published)) if all(published) else "–")
        rows.append(row)
    if not ratios:
        return None
    return Table(rows, f"Table {number}: {what}, 1 thread",
                 f"Random takes {names.times(min(ratios))} to {names.times(max(ratios))} as long as sequential.")


def _against_dram(memory, number, what, pairs):
    """`pairs`: (label, case, the same in DRAM)."""
    rows = [["access", "here", "DRAM", "ratio", "published: Optane", "published: DRAM", "ratio"]]
    ratios = []
    for label, given, dram in pairs:
        here, there = memory.value(given), memory.value(dram)
        if here is None or there is None:
            continue
        ratios.append(here / there)
        published = (memory.published(given), memory.published(dram))
        rows.append([label, _time(here), _time(there), _ratio(here, there), *map(_time, published), _ratio(*published)])
    if not ratios:
        return None
    return Table(rows, f"Table {number}: {what}, 1 thread",
                 f"It takes {names.times(min(ratios))} to {names.times(max(ratios))} as long as DRAM.")


def tables(memory):
    """Those that have something to show, in the paper's order."""
    idle = ("8 B, caches empty", "idle-read/medium=given/pattern=sequential", "idle-read/medium=given/pattern=random")
    reads = [("8 B, caches empty", *(f"idle-read/medium={m}/pattern=random" for m in ("given", "dram")))]
    reads += [(size(s), *(f"dependent-read/medium={m}/access_bytes={s}" for m in ("given", "dram")))
              for s in ("64", "256", "512")]
    writes = [("64 B now and then, ntstore", *(f"idle-ntstore/medium={m}" for m in ("given", "dram"))),
              ("64 B now and then, clwb", *(f"idle-clwb/medium={m}" for m in ("given", "dram")))]
    writes += [(f"{size(s)}, ntstore", f"write-by-size/pattern=random/access_bytes={s}",
                f"dram-write-by-size/access_bytes={s}")
               for s in ("64", "256")]
    found = [
        _environment(memory),
        _by_order(memory, 3, "latency of small reads", "read-by-size", SMALL, [idle]),
        _by_order(memory, 4, "latency of large reads", "read-by-size", LARGE),
        _by_order(memory, 5, "latency of small writes, ntstore and fence", "write-by-size", SMALL),
        _by_order(memory, 6, "latency of large writes, ntstore and fence", "write-by-size", LARGE),
        _against_dram(memory, 7, "random reads against DRAM", reads),
        _against_dram(memory, 8, "random writes against DRAM", writes),
    ]
    return [t for t in found if t is not None]
