"""What `pmlab stores volumes|pairs --json` wrote, as the report reads it: a run like those of indexes, whose
measurements have more keys to sort them by."""

from dataclasses import dataclass, field

from ..claims.pair_cases import figures_of, is_of_pairs
from ..claims.store_cases import numbered, size_text
from . import names, provenance
from .measurements import Measurement, Run

# Keys of a case, beside its phase; empty ones do not apply to it.
KEYS = ("store", "container", "index", "merge", "ring", "device", "devices", "staging", "place", "memtable", "pattern",
        "depth", "threads")


@dataclass
class StoreMeasurement(Measurement):
    """One store in one case: `keys` has store, container, index, merge, ring, pattern, size, depth."""

    keys: dict = field(default_factory=dict)

    def of_case(self, *path):
        """The figure at a path below the case, median of the repeats; None where it was not measured."""
        def at(repeat):
            for key in path:
                repeat = (repeat or {}).get(key)
            return repeat
        return self._median(at)


@dataclass
class StoreRun(Run):
    """`checked`: reads whose answers were compared with the blocks that were written, those after the last case too;
    `wrong`: of these."""

    checked: int = 0
    wrong: int = 0


# On a medium that counts, they mean nothing.
_TIMES = ("throughput_ops_per_s", "latency_ns", "cpu_ns_per_operation")


def _per_operation(case):
    """As `pmlab bench` has its counts; None where the medium does not count."""
    counts, operations = case.get("medium_counts"), case["operations"]
    if not counts or not operations:
        return None
    return {"flushes": counts.get("flushes", 0) / operations, "fences": counts.get("fences", 0) / operations,
            "pm_lines_read": counts.get("lines_read", 0) / operations,
            "pm_lines_written": counts.get("lines", 0) / operations}


def _size_of(case):
    """The size of an operation on blocks, or of a value."""
    return {"size": size_text(case["size"])} if "size" in case else {"value": size_text(case["value_bytes"])}


def run_of(name, document, described):
    """Raises KeyError, TypeError: it is no such document."""
    machine, measurements = document["machine"] | {"medium": document["options"]["medium"]}, {}
    for case, phase in numbered(document["cases"]):
        keys = {key: str(case[key]) for key in KEYS if case.get(key)} | _size_of(case)
        if case["throughput"] is None:
            continue  # opening a store is no operation
        m = measurements.setdefault((phase, *keys.items()), StoreMeasurement(
            name, case["store"], machine["medium"], phase, int(case.get("threads") or 1), 1, keys=keys))
        if is_of_pairs(document):
            case = figures_of(case)
            case["written_in_all"] = case["written_bytes"] / case["user_bytes"] if case["user_bytes"] else None
        repeat = {**case, "throughput_ops_per_s": case["throughput"], "wrong_answers": case["wrong"],
                  "per_operation": _per_operation(case)}
        if m.medium.startswith("counted"):
            repeat |= dict.fromkeys(_TIMES)
        m.repeats.append(repeat)
    everything = [*document["cases"], *document["at_end"]]
    return StoreRun(name, described.get("about", ""), described.get("command", ""), machine,
                    document.get("options", {}),
               document.get("remarks") or [], [], list(measurements.values()), described.get("experiment", ""),
               described.get("values", {}), sum(one["verified"] for one in everything),
                    sum(one["wrong"] for one in everything))


def _micro(nanoseconds):
    return "–" if nanoseconds is None else names.number(nanoseconds / 1e3)


def all_cases(runs):
    """A table of each run."""
    from .chart import Table  # draws: `pmlab compare` reads stores without matplotlib

    tables = []
    for run in runs:
        rows = [["case", "thousand/s", "us, mean", "us, 99 %", "bytes to the drive for each of the user's", "us of CPU",
                 "wrong"]]
        for m in run.measurements:
            what = " ".join(filter(None, (m.index, m.phase, m.keys.get("pattern"),
                                          m.keys.get("size", m.keys.get("value")),
                                          m.keys.get("depth"))))
            rows.append([what, names.number(m.throughput / 1e3) if m.throughput else "–", _micro(m.latency("mean")),
                         _micro(m.latency("p99")), names.number(m.of_case("amplification", "host")),
                         _micro(m.of_case("cpu_ns_per_operation")),
                         "–" if m.wrong_answers is None else m.wrong_answers])
        tables.append(Table(rows, ", ".join(filter(None, [*map(str, run.values.values()), run.name.split("/")[0]])),
                            f"On {provenance.medium_line([run.medium])}."))
    return tables
