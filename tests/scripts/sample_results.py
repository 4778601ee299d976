"""Makes a run folder with invented but plausible results of schema 1, for the tests of the report."""

import json
from pathlib import Path

MACHINE = {"cpu": "Example(R) Xeon(R) CPU @ 2.10GHz", "cores": 2, "memory_bytes": 1 << 34, "kernel": "6.1", "compiler":
           "g++ 12.2", "commit": "0123abc", "flush": "clwb"}
# million operations per second on one thread
SPEED = {"cceh": 8.0, "tbb_hash": 4.0, "pmdk_hash": 0.5, "fast_fair": 2.0, "std_map": 1.0, "pmdk_skiplist": 0.4,
         "pmdk_radix": 1.3, "level_hashing": 5.0, "fp_tree": 3.0, "skip_list": 1.5, "skip_list_pm": 0.6,
         "dash": 7.0, "woart": 2.5, "strings(fast_fair)": 1.0, "strings(woart)": 2.0,
         "strings(fast_fair,keys=decimal)": 0.5, "strings(woart,keys=decimal)": 1.0, "hybrid_index": 6.0,
         "hybrid_index_plus": 6.0}
HASHES = ["cceh", "dash", "level_hashing"]
ORDERED = ["fast_fair", "fp_tree", "woart", "skip_list", "skip_list_pm"]
STRINGS = ["strings(fast_fair)", "strings(woart)", "strings(fast_fair,keys=decimal)", "strings(woart,keys=decimal)"]
IN_DRAM = {"tbb_hash", "std_map"}


def result(index, phase, threads=1, repeat=1, medium="pmem:/dev/shm/x/pool", factor=1.0, **more):
    throughput = SPEED[index] * 1e6 * threads * factor * (1 + 0.02 * repeat)
    mean = 1e9 * threads / throughput
    medium = "dram" if index in IN_DRAM else medium
    return {"index": index, "medium": medium, "threads": threads, "phase": phase, "repeat": repeat,
            "operations": 1000, "throughput_ops_per_s": throughput,
            "latency_ns": {"mean": mean, "p50": mean * .9, "p90": mean * 1.5, "p99": mean * 3, "p99_9": mean * 9,
                           "p99_99": mean * 30, "max": mean * 200},
            "bytes_per_key": {"pm": 0 if index in IN_DRAM else 25, "dram": 40 if index in IN_DRAM else 1},
            "wrong_answers": 0} | more


def document(results, medium="pmem:/dev/shm/x/pool", **options):
    options = {"records": 1_000_000, "verify": False, "batch": 1} | options
    return {"schema": 1, "machine": MACHINE | {"medium": medium}, "options": options, "results": results, "skipped": [],
            "remarks": [], "failure": None}


def documents():
    """name -> JSON document: one run of every kind that the report knows."""
    phases = ("load", "read", "absent", "update", "insert", "erase", "ycsb-a")

    def plain(indexes, extra=()):
        return [result(i, p, t, r) for r in (1, 2, 3) for t in (1, 2) for p in (*phases, *extra) for i in indexes]

    counts = {"pm_lines_read": 2.0, "device_lines_read": 1.0, "device_lines_written": 1.0, "flushes": 1.0,
              "fences": 1.0}
    def reopened(indexes):
        return [result(i, "reopen", latency_ns={"mean": 5e6, "p50": 5e6, "max": 5e6}) for i in indexes]

    return {
        "hash": document(plain([*HASHES, "tbb_hash", "pmdk_hash"]) + reopened(HASHES)),
        "ordered": document(plain([*ORDERED, "std_map", "pmdk_skiplist", "pmdk_radix"], ["scan"]) + reopened(ORDERED)),
        "strings": document(plain(STRINGS)),
        "batch": document([result(i, "read", factor=3.0) for i in ("cceh", "fast_fair")], batch=16),
        "trace": document([result("cceh", "trace")], verify=True),
        "counted": document([result(i, p, medium="counted:dram", per_operation=counts,
                                    media_bytes={"granule": 256, "read": 256.0, "written": 512.0})
                             for p in ("read", "insert", "update") for i in (*HASHES, *ORDERED)],
                            medium="counted:dram"),
        "emulated-dram": document([result(i, p, medium="emulated:dram") for p in ("read", "insert")
                                   for i in ("cceh", "fast_fair")], medium="emulated:dram"),
        "emulated-aep": document([result(i, p, medium="emulated:aep", factor=.4) for p in ("read", "insert")
                                  for i in ("cceh", "fast_fair")], medium="emulated:aep"),
        "simulated-aep": document([result(i, p, t, medium="simulated:aep", factor=.4) for p in ("read", "insert")
                                   for t in (1, 8, 32) for i in ("cceh", "fast_fair")], medium="simulated:aep"),
    }


def write(folder, all_documents):
    """Writes a run folder of these documents, name -> JSON."""
    folder = Path(folder)
    (folder / "raw").mkdir(parents=True)
    for name, content in all_documents.items():
        (folder / "raw" / f"{name}.json").write_text(json.dumps(content))
    manifest = {"schema": 1, "title": "sample", "about": "An invented result set.", "started": "2000-01-01 00:00 UTC",
                "seconds": 90, "runs": [{"name": n, "about": f"Run {n}", "command": f"pmlab bench --run {n}",
                                         "status": 0}
                         for n in all_documents]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
