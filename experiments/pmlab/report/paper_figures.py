"""The figures 1 to 14 of [Han21]'s section 2, redrawn from a run of suite `paper`.

The paper's own pictures are not at hand: each is what its text says that it shows.
"""

from . import names
from .paper_lines import chart, line, with_published

SIZES = ("64", "256", "1K", "4K", "64K")
BANDWIDTH_SIZES = ("64", "128", "256", "512", "1K", "4K", "64K")
THREADS = (1, 2, 4, 8, 16)
NEAR_HIGHEST = 0.9
NEAR_PUBLISHED = 0.15


def size(text):
    """64 B, 4 KB, on one line, as suites write 64 and 4K."""
    return f"{text[:-1]}\u00a0{text[-1]}B" if text[-1].isalpha() else f"{text}\u00a0B"


def _threads(count):
    return f"{count} thread{'s' if count != 1 else ''}"


def _latency_by_size(memory, number, side, verb):
    lines = [line(memory, _threads(t), [f"{side}-by-threads/access_bytes={s}/threads={t}" for s in SIZES])
             for t in THREADS]
    places = list(map(size, SIZES))

    def sentence(drawn):
        parts = []
        for one in (drawn[0], drawn[-1]) if len(drawn) > 1 else drawn:
            (smallest, low), (largest, high) = one.ends(places)
            parts.append(f"{names.duration(low)} ({smallest}) to {names.duration(high)} ({largest}) with {one.label}")
        return f"A random {verb} takes {' and '.join(parts)}."
    return chart(memory, f"figure-{number}", f"Figure {number}: random {verb} latency by size", places, lines,
                 axis="bytes of an access", unit="ns", logarithmic=True, sentence=sentence)


def _reaches(places):
    """The line with the highest bandwidth and where it comes near that first; the line that loses most towards the
    end."""
    def sentence(drawn):
        best = max(drawn, key=lambda one: max(one.measured))
        first = next(p for p, v in zip(places, best.values) if v is not None and v >= NEAR_HIGHEST * max(best.measured))
        kept = {one.label: one.ends(places)[1][1] / max(one.measured) for one in drawn}
        least = min(kept, key=kept.get)
        return (f"Highest: {best.label} with {names.number(max(best.measured))} GiB/s, nearly reached at {first}. At "
                f"{best.ends(places)[1][0]}, {least} keeps {names.number(100 * kept[least], 3)} % of its highest, the "
                "least.")
    return sentence


def _bandwidth_chart(memory, number, title, lines, sizes=BANDWIDTH_SIZES):
    places = list(map(size, sizes))
    return chart(memory, f"figure-{number}", f"Figure {number}: {title}", places, lines, axis="bytes of an access",
                 unit="GiB/s", sentence=_reaches(places))


def _of_group(memory, group, pattern, threads, label):
    return line(memory, label, [f"{group}/pattern={pattern}/access_bytes={s}/threads={threads}"
                                for s in BANDWIDTH_SIZES])


def _read_bandwidth(memory, number, pattern, published):
    lines = [_of_group(memory, "load-by-size", pattern, t, _threads(t)) for t in (4, 16)]
    lines[0] = with_published(lines[0], memory, published)
    return _bandwidth_chart(memory, number, f"{pattern} read bandwidth by size", lines)


def _write_bandwidth(memory, number, pattern, published):
    lines = [_of_group(memory, "ntstore-by-size", pattern, t, _threads(t)) for t in (4, 16)]
    lines[0] = with_published(lines[0], memory, published)
    lines += [_of_group(memory, "ntstore-then-fence", pattern, t, f"{_threads(t)}, fenced") for t in (4, 16)]
    return _bandwidth_chart(memory, number, f"{pattern} write bandwidth by size", lines)


def _at_sizes(pattern, sizes):
    """`pattern` filled in for those of the sizes of an axis; None for the others."""
    return [pattern.format(s) if s in sizes else None for s in BANDWIDTH_SIZES]


def _fences(memory):
    sizes = ("256", "1K", "4K", "64K")
    after = line(memory, "fence at the end",
                 [f"ntstore-then-fence/pattern=random/access_bytes={s}/threads=16" for s in sizes])
    every = line(memory, "fence every 256 B", [f"ntstore-fenced-by-size/access_bytes={s}/threads=16" for s in sizes])
    every = with_published(every, memory, ["ntstore-fenced/threads=16", None, None, None])
    never = line(memory, "no fence", [f"ntstore-by-size/pattern=random/access_bytes={s}/threads=16" for s in sizes])
    return _bandwidth_chart(memory, 5, "fences in random writes, 16 threads", [after, every, never], sizes)


def _range_of(places, what):
    def sentence(drawn):
        parts = []
        for one in drawn:
            (smallest, low), (largest, high) = one.ends(places)
            parts.append(f"{one.label}: {names.duration(low)} for {smallest}, {names.duration(high)} for {largest}")
        return f"{what}; {'; '.join(parts)}."
    return sentence


def _small_reads(memory):
    sizes = ("8", "16", "32", "64", "128", "256", "512")
    near = [f"read-by-size/pattern=random/access_bytes={s}" for s in sizes]
    far = [f"dependent-read/medium=given/access_bytes={s}" if s in ("64", "256", "512") else None for s in sizes]
    near, far = (line(memory, f"{memory.range_of(cases)} of memory", cases) for cases in (near, far))
    places = list(map(size, sizes))
    return chart(memory, "figure-8", "Figure 8: small random reads, 1 thread", places, [near, far],
                 axis="bytes of an access", unit="ns", sentence=_range_of(places, "Small random reads of one thread"))


def _large_reads(memory):
    sizes = ("1K", "4K", "16K", "64K", "1M", "16M")
    lines = [line(memory, f"{pattern}", [f"read-by-size/pattern={pattern}/access_bytes={s}" for s in sizes])
             for pattern in ("random", "sequential")]
    places = list(map(size, sizes))
    return chart(memory, "figure-9", "Figure 9: latency of large reads, 1 thread", places, lines,
                 axis="bytes of an access",
                 unit="ns", logarithmic=True, sentence=_range_of(places, "Large reads of one thread"))


def _reads_by_threads(memory):
    lines = [line(memory, size(s), [f"read-by-threads/access_bytes={s}/threads={t}" for t in THREADS]) for s in SIZES]

    def sentence(drawn):
        parts = [f"{one.label} {names.times(one.measured[-1] / one.measured[0])}" for one in drawn]
        most = max(t for t, v in zip(THREADS, drawn[0].values) if v is not None)
        return (f"Latency of random reads with {_threads(most)} as a multiple of that with 1: "
                f"{names.enumerate_words(parts)}.")
    return chart(memory, "figure-10", "Figure 10: random read latency by threads", list(map(str, THREADS)), lines,
                 axis="threads", unit="ns", logarithmic=True, sentence=sentence)


def _mixed_bandwidth(memory, number, side, other, alone):
    counts = (1, 2, 4, 8)
    label = "8 " + {"reads": "readers", "writes": "writers"}[side]
    drawn = line(memory, label, [f"mix-by-{other}/{other}={c}" for c in counts], f"{side}.gib_per_s")
    drawn.values.insert(0, memory.value(alone))
    drawn.published.insert(0, memory.published(alone))
    drawn.ranges.insert(0, memory.range_of_value(alone))

    def sentence(lines):
        values = lines[0].values
        if any(v is None for v in values):
            return f"Highest: {names.number(max(lines[0].measured))} GiB/s."
        first, last = (names.number(100 * v / values[0]) for v in (values[1], values[-1]))
        return (f"{lines[0].label} of 256 B: {names.number(values[0])} GiB/s alone; {first} % of that beside 1 of the "
                f"{other}, {last} % beside {counts[-1]}.")
    return chart(memory, f"figure-{number}", f"Figure {number}: {side[:-1]} bandwidth beside {other}",
                 list(map(str, (0, *counts))), [drawn], axis=other, unit="GiB/s", sentence=sentence)


def _mixed_latency(memory, number, side, own, other):
    counts = (1, 4, 8)
    lines = []
    for mine in counts:
        number_of = [{own: mine, other: theirs} for theirs in counts]
        lines.append(line(memory, f"{mine} {own if mine != 1 else own[:-1]}",
                          [f"mix-latency/readers={n['readers']}/writers={n['writers']}" for n in number_of],
                          f"{side}.latency_ns.mean"))

    def sentence(drawn):
        values = [v for one in drawn for v in one.measured]
        return (f"Mean latency of a 256 B {side[:-1]} in the mix: {names.duration(min(values))} to "
                f"{names.duration(max(values))}.")
    return chart(memory, f"figure-{number}", f"Figure {number}: {side[:-1]} latency beside {other}",
                 list(map(str, counts)),
                 lines, axis=other, unit="ns", sentence=sentence)


def _by_threads(memory, name, title, cases):
    """`cases`: (label, pattern that the number of threads is filled into)."""
    threads = (1, 2, 4, 8, 12, 24)
    lines = [line(memory, label, [pattern.format(t) for t in threads]) for label, pattern in cases]

    def sentence(drawn):
        pairs = [(p, v) for one in drawn for p, v in zip(one.published, one.values) if p and v]
        near = sum(abs(v / p - 1) <= NEAR_PUBLISHED for p, v in pairs)
        return f"{near} of {len(pairs)} figures are within {100 * NEAR_PUBLISHED:.0f} % of the published ones."
    return chart(memory, name, title, list(map(str, threads)), lines, axis="threads", unit="GiB/s", sentence=sentence)


def beside_published(memory):
    """What the paper has no figure of, and others published most of: bandwidth of random accesses by threads."""
    reads = [(size(s), f"load-random/access_bytes={s}/threads={{}}") for s in ("64", "256", "4K")]
    writes = [(f"{size(s)}, ntstore", f"ntstore-random/access_bytes={s}/threads={{}}") for s in ("64", "256")]
    writes += [(f"{size('256')}, clwb", "clwb-random/threads={}"),
               (f"{size('256')}, no flush", "store-random/threads={}")]
    found = [_by_threads(memory, "reads-by-threads", "Random read bandwidth by threads", reads),
             _by_threads(memory, "writes-by-threads", "Random write bandwidth by threads, no fence", writes)]
    return [c for c in found if c is not None]


def figures(memory):
    """Those that have something to show, in the paper's order."""
    by_size = _at_sizes("load-random/access_bytes={}/threads=4", ("64", "256", "4K"))
    stores_by_size = _at_sizes("ntstore-random/access_bytes={}/threads=4", ("64", "256"))
    found = [
        _latency_by_size(memory, 1, "read", "read"),
        _latency_by_size(memory, 2, "write", "write"),
        _read_bandwidth(memory, 3, "random", by_size),
        _write_bandwidth(memory, 4, "random", stores_by_size),
        _fences(memory),
        _read_bandwidth(memory, 6, "sequential", _at_sizes("load-sequential/threads=4", ("64",))),
        _write_bandwidth(memory, 7, "sequential", _at_sizes("ntstore-sequential/threads=4", ("64",))),
        _small_reads(memory),
        _large_reads(memory),
        _reads_by_threads(memory),
        _mixed_bandwidth(memory, 11, "reads", "writers", "load-random/access_bytes=256/threads=8"),
        _mixed_bandwidth(memory, 12, "writes", "readers", "ntstore-fenced/threads=8"),
        _mixed_latency(memory, 13, "reads", "readers", "writers"),
        _mixed_latency(memory, 14, "writes", "writers", "readers"),
    ]
    return [c for c in found if c is not None]
