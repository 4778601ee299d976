"""The project's targets, and what a result set says about each: met, not met, or not measured."""

from dataclasses import dataclass
from typing import Callable

from . import names

TARGET_RECORDS = 10_000_000
OURS = ("cceh", "level_hashing", "fast_fair", "fp_tree", "skip_list")


@dataclass
class Finding:
    value: float
    text: str
    records: int | None
    run: str


@dataclass
class Target:
    what: str
    limit: float
    limit_text: str
    larger_is_better: bool
    measure: Callable  # ResultSet -> Finding or None
    depends_on_size: bool = True

    def met(self, finding):
        return finding.value >= self.limit if self.larger_is_better else finding.value <= self.limit


def plain(run):
    """Runs whose times mean what they say."""
    return not run.medium.startswith(("counted", "emulated", "simulated"))


def _best(candidates):
    """The finding from the run with the most records."""
    candidates = [c for c in candidates if c is not None]
    return max(candidates, key=lambda f: f.records or 0, default=None)


def ratio(index, peer, phase, limit, threads=1):
    def measure(results):
        def in_run(run):
            ours = run.one(index=index, phase=phase, threads=threads, batch=1)
            theirs = run.one(index=peer, phase=phase, threads=threads, batch=1)
            if not (plain(run) and ours and theirs and ours.throughput and theirs.throughput):
                return None
            value = ours.throughput / theirs.throughput
            return Finding(value, names.times(value), run.records, run.name)
        return _best(map(in_run, results.runs))
    return Target(f"{names.index_title(index)} / {peer}: {names.phase_title(phase).lower()}, {threads} thread", limit,
                  f"≥ {limit:g}x", True, measure)


def scaling(index, phase, limit):
    def measure(results):
        def in_run(run):
            one, two = (run.one(index=index, phase=phase, threads=t, batch=1) for t in (1, 2))
            if not (plain(run) and one and two and one.throughput and two.throughput):
                return None
            value = two.throughput / one.throughput
            return Finding(value, names.times(value), run.records, run.name)
        return _best(map(in_run, results.runs))
    return Target(f"{names.index_title(index)}: {names.phase_title(phase).lower()}, 2 threads / 1", limit,
                  f"≥ {limit:g}x", True, measure)


def batching(index, limit):
    def measure(results):
        pairs = batch_pairs(results.runs)
        found = []
        for run, _, single, many in pairs:
            if single.index == index and many.batch == 16 and plain(run):
                value = many.throughput / single.throughput
                found.append(Finding(value, names.times(value), run.records, run.name))
        return _best(found)
    return Target(f"{names.index_title(index)}: find_batch of 16 / find", limit, f"≥ {limit:g}x", True, measure)


def space(index, limit):
    def measure(results):
        def in_run(run):
            sizes = [(m.bytes_per_key("pm") or 0) + (m.bytes_per_key("dram") or 0)
                     for m in run.find(index=index, phase="load")]
            if not plain(run) or not any(sizes):
                return None
            return Finding(max(sizes), f"{names.number(max(sizes))} B", run.records, run.name)
        return _best(map(in_run, results.runs))
    return Target(f"{names.index_title(index)}: bytes per key", limit, f"≤ {limit:g} B", False, measure)


def reopening(index, limit_ms):
    def measure(results):
        def in_run(run):
            slowest = max((m.latency("max") or 0 for m in run.find(index=index, phase="reopen")), default=0)
            if not plain(run) or not slowest:
                return None
            return Finding(slowest / 1e6, names.duration(slowest), run.records, run.name)
        return _best(map(in_run, results.runs))
    return Target(f"{names.index_title(index)}: reopen", limit_ms, f"≤ {limit_ms:g} ms", False, measure)


def counting(index, phase, quantity, label, limit):
    def measure(results):
        for run in results.runs:
            m = run.one(index=index, phase=phase)
            if run.medium.startswith("counted") and m and m.per_operation(quantity) is not None:
                value = m.per_operation(quantity)
                return Finding(value, names.number(value), run.records, run.name)
        return None
    # The target is that of an operation without structure change. The mean includes splits, and entries that were put
    # beside a full window: one in twenty may be such a one.
    return Target(f"{names.index_title(index)}: {label} per {names.phase_title(phase).lower()}, mean", limit + 0.05,
                  f"{limit:g} (≤ {limit + 0.05:g})", False, measure, depends_on_size=False)


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
    *(scaling(index, "read", 1.9) for index in OURS), *(scaling(index, "insert", limit) for index, limit in
      {"cceh": 1.8, "level_hashing": 1.7, "fast_fair": 1.8, "fp_tree": 1.7, "skip_list": 1.7}.items()),
    *(scaling(index, "scan", 1.8) for index in ("fp_tree", "skip_list")),
    batching("cceh", 2.5), batching("fast_fair", 1.8),
    *(space(index, limit) for index, limit in
      {"cceh": 27, "level_hashing": 30, "fast_fair": 30, "fp_tree": 32, "skip_list": 64}.items()),
    *(reopening(index, limit) for index, limit in
      {"cceh": 50, "level_hashing": 50, "fast_fair": 50, "skip_list_pm": 50, "fp_tree": 1000, "skip_list": 1000}.items()),
    counting("cceh", "insert", "flushes", "flushes", 1), counting("cceh", "insert", "fences", "fences", 1),
    counting("cceh", "read", "device_lines_read", "256-byte device lines", 1),
    counting("fp_tree", "read", "device_lines_read", "256-byte device lines", 2),
    counting("skip_list", "read", "device_lines_read", "256-byte device lines", 1),
    *(counting(index, "update", quantity, quantity, 1) for index in OURS for quantity in ("flushes", "fences")),
]
