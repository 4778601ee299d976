"""A document as `pmlab stores volumes --json` writes it, made up."""


def case(store, throughput, *, phase="overwrite", pattern="random", size=4096, depth=32, repetition=1, clock="virtual",
         **more):
    found = {"store": store, "container": "pmem" if store == "chunk_store" else None, "medium": None,
             "device": "simulated:p4610",
             "index": "cceh" if store == "chunk_store" else None, "merge": None, "ring": None, "phase": phase,
             "pattern": pattern, "size": size, "depth": depth, "threads": 1, "repetition": repetition,
             "operations": 100, "reads": 0, "bytes": 100 * size, "time_ns": 1e11 / throughput, "clock": clock,
             "throughput": throughput,
             "latency_ns": {"mean": 1e9 / throughput, "p50": 1e9 / throughput, "p99": 2e9 / throughput},
             "cpu_ns_per_operation": 900.0, "amplification": {"host": 1.0, "device": None}, "medium_counts": None,
             "space": {"free_bytes": 100, "longest_free_extent": 60, "medium_bytes": 4000, "used_bytes": 10},
             "store_stats": {}, "opening": None, "verified": 0, "wrong": 0}
    return found | more


def document(cases, medium="simulated:aep"):
    return {"schema": 1, "kind": "stores_bench", "machine": {"medium": None, "cpu": "x", "cores": 2, "commit": "c",
                                                             "date": None},
            "options": {"command": "pmlab stores volumes", "medium": medium, "device": "simulated:p4610",
                        "volume_bytes": 1 << 26, "device_bytes": 1 << 28, "chunk_bytes": 1 << 20},
            "cases": cases, "at_end": [], "first_wrong": [], "remarks": [], "failure": None, "seconds": None}


def pair_case(store, throughput, *, phase="load", pattern="uniform", value_bytes=4096, depth=8, repetition=1, **more):
    found = {"store": store, "medium": None, "device": "emulated:pm983-kv", "staging": None, "devices": 1,
             "place": None, "memtable": None, "phase": phase, "pattern": pattern, "key_bytes": 16,
             "value_bytes": value_bytes, "depth": depth,
             "threads": 2, "repetition": repetition, "operations": 100, "reads": 0, "bytes": 411200,
             "user_bytes": 411200, "time_ns": 1e9, "clock": "real", "throughput": throughput,
             "latency_ns": {"mean": 1e3, "p50": 1e3, "p99": 2e3},
             "cpu_ns_per_operation": 900.0, "host_bytes": None, "device_io": {"written_bytes": 1000},
             "staging_io": {"written_bytes": 200}, "amplification": {"host": 1.0, "device": None},
             "settling": {"time_ns": 5.0, "written_bytes": 30, "staging_written_bytes": 4}, "medium_counts": None,
             "space": {"used_bytes": 10, "memory_bytes": 5000, "medium_bytes": None}, "store_stats": {},
             "hit_ratio": None, "opening": None, "verified": 0, "wrong": 0}
    return found | more


def pair_document(cases):
    return {"schema": 1, "kind": "stores_bench", "machine": {"medium": None, "cpu": "x", "cores": 2, "commit": "c",
                                                             "date": None},
            "options": {"command": "pmlab stores pairs", "kind": "kv", "medium": "dram", "device": "emulated:pm983-kv",
                        "device_bytes": 1 << 28, "records": 100, "cache_bytes": 0, "memory_bytes": 0},
            "cases": cases, "at_end": [], "first_wrong": [], "remarks": [], "failure": None, "seconds": None}
