"""A comparison as text, and as JSON."""

import math

from .figures import LESS, NEITHER, QUANTITIES
from .judging import LEVEL, is_alike, probability

WORSE, BETTER, OTHER, ALIKE = "worse", "better", "other", "alike"


class Row:
    """A figure in both results, and what its difference is."""

    def __init__(self, key, before, after, level):
        self.key, self.before, self.after = key, before, after
        self.is_single = before.is_single or after.is_single
        self.chance = None if before.exact else probability(before.side, after.side)
        self.verdict = self._verdict(level)

    def _verdict(self, level):
        if self.is_single or is_alike(self.before.side, self.after.side, self.before.exact, level):
            return ALIKE
        if self.before.better == NEITHER:
            return OTHER
        grows = self.after.side.value > self.before.side.value
        return WORSE if grows == (self.before.better == LESS) else BETTER

    @property
    def ratio(self):
        """The second divided by the first; None: the first is nothing."""
        return self.after.side.value / self.before.side.value if self.before.side.value else None

    @property
    def change(self):
        """How far apart they are, either way: twice and half are as far."""
        ratio = self.ratio
        return abs(math.log(ratio)) if ratio and ratio > 0 else math.inf

    def is_worse_by(self, part):
        """By more than this part of the first, as other tools count percents of a change."""
        before, after = self.before.side.value, self.after.side.value
        return self.verdict == WORSE and abs(after - before) > part * abs(before)


def rows_of(first, second, level=LEVEL):
    """The figures that both have, in the order of the first."""
    return [Row(key, figure, second.found[key], level) for key, figure in first.found.items() if key in second.found]


def _name(key):
    return ", ".join(word for word in key if word and word != "throughput")


def _cells(row):
    ratio = "–" if row.ratio is None else f"{row.ratio:.2f}x"
    chance = "" if row.chance is None else f"{row.chance:.3f}"
    return [row.verdict, ratio, row.before.text(row.before.side.value), row.after.text(row.after.side.value), chance,
            _name(row.key)]


def print_table(rows, with_alike):
    """The worst first; figures that are alike only on request."""
    order = {WORSE: 0, OTHER: 1, BETTER: 2, ALIKE: 3}
    shown = sorted((r for r in rows if with_alike or r.verdict != ALIKE), key=lambda r: (order[r.verdict], -r.change))
    if not shown:
        return
    lines = [["", "B/A", "A", "B", "p", "figure"], *map(_cells, shown)]
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    for line in lines:
        verdict, *values = line[:5]
        print(" ".join([verdict.ljust(widths[0]), *(v.rjust(w) for v, w in zip(values, widths[1:])),
                        " " + line[5]]).rstrip())
    print()


def summary(rows, first, second, level):
    """Sentences about all figures."""
    count = {v: sum(r.verdict == v for r in rows) for v in (WORSE, BETTER, OTHER, ALIKE)}
    parts = [f"{count[v]} {word}" for v, word in ((WORSE, "worse"), (BETTER, "better"), (OTHER, "changed"),
                                                  (ALIKE, "alike"))
             if count[v] or v != OTHER]
    lines = [f"{', '.join(parts)}, of {len(rows)} figures in both"]
    only = [(len(first.found) - len(rows), "A"), (len(second.found) - len(rows), "B")]
    if any(n for n, _ in only):
        lines[0] += "; " + ", ".join(f"{n} only in {side}" for n, side in only if n)
    tested = sum(r.chance is not None for r in rows)
    if tested:
        lines.append(f"{tested} have a rank test at {100 * level:g} %: chance alone makes about {tested * level:.0f} "
                     "of them differ")
    single = sum(r.is_single for r in rows)
    if single:
        lines.append(f"{single} are of one repeat on a real clock, and cannot be told: measure with --repeat 5")
    if tested + single < len(rows):
        lines.append(f"{len(rows) - tested - single} are judged by their ranges: they are counts, or have fewer than "
                     "four repeats, or are published")
    return lines


def document(rows, first, second, paths):
    """For --json: docs/results-schema.md."""
    def side(figure):
        s = figure.side
        return {"value": s.value, "low": s.low, "high": s.high, "n": s.n}
    return {"schema": 1, "kind": "compare", "first": {"path": str(paths[0]), "origin": first.origin},
            "second": {"path": str(paths[1]), "origin": second.origin},
            "figures": [{"name": _name(r.key), "quantity": r.key[-1] if r.key[-1] in QUANTITIES else None,
                         "verdict": r.verdict, "ratio": r.ratio, "p": r.chance, "better": r.before.better,
                         "first": side(r.before),
                         "second": side(r.after)} for r in rows]}
