"""A document as `pmlab stores bench --json` writes it, made up."""


def case(store, throughput, *, phase="overwrite", pattern="random", size=4096, depth=32, repetition=1, clock="virtual", **more):
    found = {"store": store, "container": "pmem" if store == "chunk_store" else None, "medium": None, "device": "simulated:p4610",
             "index": "cceh" if store == "chunk_store" else None, "merge": None, "ring": None, "phase": phase,
             "pattern": pattern, "size": size, "depth": depth, "threads": 1, "repetition": repetition, "operations": 100,
             "reads": 0, "bytes": 100 * size, "time_ns": 1e11 / throughput, "clock": clock, "throughput": throughput,
             "latency_ns": {"mean": 1e9 / throughput, "p50": 1e9 / throughput, "p99": 2e9 / throughput},
             "cpu_ns_per_operation": 900.0, "amplification": {"host": 1.0, "device": None}, "medium_counts": None,
             "space": {"free_bytes": 100, "longest_free_extent": 60, "medium_bytes": 4000, "used_bytes": 10},
             "store_stats": {}, "opening": None, "verified": 0, "wrong": 0}
    return found | more


def document(cases, medium="simulated:aep"):
    return {"schema": 1, "kind": "stores_bench", "machine": {"medium": None, "cpu": "x", "cores": 2, "commit": "c", "date": None},
            "options": {"command": "pmlab stores bench", "medium": medium, "device": "simulated:p4610",
                        "volume_bytes": 1 << 26, "chunk_bytes": 1 << 20},
            "cases": cases, "at_end": [], "first_wrong": [], "remarks": [], "failure": None, "seconds": None}
