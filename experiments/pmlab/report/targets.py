"""The project's targets, and how a result set meets each: met, not met, undecided, or not measured. The comparison is
that of the claims: a target whose spread crosses its limit is undecided."""

from dataclasses import dataclass
from typing import Callable

from ..claims.figure import Figure
from ..claims.limits import Measured, Range, at_least, at_most, keeps
from ..claims.quantity import over
from ..claims.spread import of_figures
from . import names

TARGET_RECORDS = 10_000_000
OURS = ("cceh", "level_hashing", "fast_fair", "fp_tree", "skip_list")


@dataclass
class Finding:
    measured: Measured
    text_of: Callable  # text of a value
    records: int | None
    run: str

    @property
    def text(self):
        return self.text_of(self.measured.value)

    @property
    def spread(self):
        return f"{self.text_of(self.measured.low)} to {self.text_of(self.measured.high)}"


@dataclass
class Target:
    what: str
    limits: Range
    limit_text: str
    measure: Callable  # ResultSet -> Finding or None
    depends_on_size: bool = True

    def verdict(self, finding):
        return {True: "met", False: "not met", None: "undecided"}[keeps(finding.measured, self.limits)]


def plain(run):
    """Runs whose times are meaningful."""
    return not run.medium.startswith(("counted", "emulated", "simulated"))


def _figure(run, measurement, value_of):
    """A number of a measurement on a real clock: `value_of` of each repeat. Indexes took turns with each number of
    threads."""
    return Figure.of_repeats([value_of(r) or 0 for r in measurement.repeats],
                             f"{run.name}/threads={measurement.threads}")


def _over(run, above, other_run, below):
    """The throughput of one measurement over that of another."""
    figures = [_figure(r, m, lambda repeat: repeat.get("throughput_ops_per_s"))
               for r, m in ((run, above), (other_run, below))]
    return of_figures(figures, over)


def _exact(value):
    """The measured value of a count."""
    return Measured(value, value, value)


def _best(candidates):
    """The finding from the run with the most records."""
    candidates = [c for c in candidates if c is not None]
    return max(candidates, key=lambda f: f.records or 0, default=None)


def _in_best_run(value_of, text_of):
    """Measures in each run whose times are meaningful: `value_of(run)`, None where it has nothing."""
    def in_run(run):
        value = value_of(run) if plain(run) else None
        return None if value is None else Finding(value, text_of, run.records, run.name)
    return lambda results: _best(map(in_run, results.runs))


def ratio(index, peer, phase, limit, threads=1):
    def value_of(run):
        ours, theirs = (run.one(index=i, phase=phase, threads=threads, batch=1) for i in (index, peer))
        return _over(run, ours, run, theirs) if ours and theirs and ours.throughput and theirs.throughput else None
    return Target(f"{names.index_title(index)} / {peer}: {names.phase_title(phase).lower()}, {threads} thread",
                  at_least(limit), f"≥ {limit:g}x", _in_best_run(value_of, names.times))


def scaling(index, phase, limit):
    def value_of(run):
        one, two = (run.one(index=index, phase=phase, threads=t, batch=1) for t in (1, 2))
        return _over(run, two, run, one) if one and two and one.throughput and two.throughput else None
    return Target(f"{names.index_title(index)}: {names.phase_title(phase).lower()}, 2 threads / 1", at_least(limit),
                  f"≥ {limit:g}x", _in_best_run(value_of, names.times))


def batching(index, limit):
    def measure(results):
        pairs = batch_pairs(results.runs)
        found = []
        for run, partner, single, many in pairs:
            if single.index == index and many.batch == 16 and plain(run):
                value = _over(run, many, partner, single)
                found.append(Finding(value, names.times, run.records, run.name))
        return _best(found)
    return Target(f"{names.index_title(index)}: find_batch of 16 / find", at_least(limit), f"≥ {limit:g}x", measure)


def space(index, limit):
    def value_of(run):
        sizes = [(m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0)
                 for m in run.find(index=index, phase="load")]
        return _exact(max(sizes)) if any(sizes) else None
    return Target(f"{names.index_title(index)}: bytes per key", at_most(limit), f"≤ {limit:g} B",
                  _in_best_run(value_of, lambda size: f"{names.number(size)} B"))


def reopening(index, limit_ms):
    def value_of(run):
        times = [_figure(run, m, lambda repeat: (repeat.get("latency_ns") or {}).get("max"))
                 for m in run.find(index=index, phase="reopen")]
        return of_figures(times, lambda *values: max(values) / 1e6) if any(t.value for t in times) else None
    return Target(f"{names.index_title(index)}: reopen", at_most(limit_ms), f"≤ {limit_ms:g} ms",
                  _in_best_run(value_of, lambda ms: names.duration(ms * 1e6)))


def counting(index, phase, quantity, label, limit):
    def measure(results):
        for run in results.runs:
            m = run.one(index=index, phase=phase)
            if run.medium.startswith("counted") and m and m.per_operation(quantity) is not None:
                value = m.per_operation(quantity)
                return Finding(_exact(value), names.number, run.records, run.name)
        return None
    # The target is that of an operation without structure change. The mean includes splits, and entries that were put
    # beside a full window: one in twenty may be such a one.
    return Target(f"{names.index_title(index)}: {label} per {names.phase_title(phase).lower()}, mean",
                  at_most(limit + 0.05), f"{limit:g} (≤ {limit + 0.05:g})", measure, depends_on_size=False)


def batch_pairs(runs):
    """(run of the batches, run of the single finds, single, batched): the same finds at once and one at a time.

    Same index, medium, threads, records and operations; the single ones come from the nearest such run.
    """
    pairs = []
    for place, run in enumerate(runs):
        nearest = sorted(enumerate(runs), key=lambda other: abs(other[0] - place))
        alike = [r for _, r in nearest if (r.records, r.options.get("operations"), names.short_medium(r.medium)) ==
                 (run.records, run.options.get("operations"), names.short_medium(run.medium))]
        for many in run.measurements:
            if many.batch == 1 or many.phase != "read":
                continue
            singles = (r.one(index=many.index, phase="read", threads=many.threads, batch=1) for r in alike)
            partner, single = next(((r, m) for r, m in zip(alike, singles) if m), (None, None))
            if partner:
                pairs.append((run, partner, single, many))
    return pairs


TARGETS = [
    ratio("cceh", "pmdk_hash", "read", 20), ratio("cceh", "pmdk_hash", "insert", 12.5),
    ratio("cceh", "tbb_hash", "absent", 2.2),
    ratio("level_hashing", "pmdk_hash", "read", 10), ratio("level_hashing", "pmdk_hash", "insert", 8),
    ratio("fast_fair", "pmdk_skiplist", "read", 9), ratio("fast_fair", "pmdk_skiplist", "insert", 6.5),
    ratio("fast_fair", "std_map", "scan", 10),
    ratio("fp_tree", "pmdk_skiplist", "read", 12), ratio("fp_tree", "pmdk_skiplist", "insert", 8),
    ratio("fp_tree", "std_map", "scan", 8),
    ratio("skip_list", "pmdk_skiplist", "read", 3), ratio("skip_list", "pmdk_skiplist", "insert", 4),
    ratio("skip_list", "std_map", "scan", 1.5),
    ratio("dash", "cceh", "read", 1), ratio("dash", "cceh", "insert", 1), ratio("dash", "cceh", "absent", 1.15),
    ratio("woart", "fast_fair", "read", 1.5), ratio("strings(woart)", "strings(fast_fair)", "read", 1.5),
    ratio("strings(woart,keys=decimal)", "strings(fast_fair,keys=decimal)", "read", 1.5),
    *(scaling(index, "read", 1.9) for index in OURS), *(scaling(index, "insert", limit) for index, limit in
      {"cceh": 1.8, "level_hashing": 1.7, "fast_fair": 1.8, "fp_tree": 1.7, "skip_list": 1.7}.items()),
    *(scaling(index, "scan", 1.8) for index in ("fp_tree", "skip_list")),
    batching("cceh", 2.5), batching("fast_fair", 1.8),
    *(space(index, limit) for index, limit in
      {"cceh": 27, "dash": 27, "level_hashing": 30, "fast_fair": 30, "fp_tree": 32, "skip_list": 64}.items()),
    *(reopening(index, limit) for index, limit in
      {"cceh": 50, "level_hashing": 50, "fast_fair": 50, "skip_list_pm": 50, "fp_tree": 1000,
       "skip_list": 1000}.items()),
    counting("cceh", "insert", "flushes", "flushes", 1), counting("cceh", "insert", "fences", "fences", 1),
    counting("cceh", "read", "device_lines_read", "256-byte device lines", 1),
    counting("fp_tree", "read", "device_lines_read", "256-byte device lines", 2),
    counting("skip_list", "read", "device_lines_read", "256-byte device lines", 1),
    *(counting(index, "update", quantity, quantity, 1) for index in OURS for quantity in ("flushes", "fences")),
]
