"""Results of `pmlab stores pairs` as cases: their names, which claims about stores of pairs and the reader of result
sets share."""

from .quantity import made_of, measured, over
from .store_cases import size_text

# All results about stores of pairs are judged together, whatever their clock: a claim may have a condition of each.
PAIRS = "key-value stores"
# Experiments of block drives beside them.
BESIDE = ("kv_flash_pages",)
# Figures of the whole run, beside those of a case.
OF_RUN = ("records", "device_bytes", "cache_bytes", "memory_bytes")


def is_of_pairs(document):
    return document.get("kind") == "stores_bench" and document["options"].get("kind") == "kv"


def case_name(prefix, store, phase, pattern, value, depth):
    """`prefix`: the experiment with its keys of the matrix, "kv_insert/log=on"; `value`: "4K"."""
    return f"{prefix}/store={store}/phase={phase}/pattern={pattern}/value={value}/depth={depth}"


def of_pairs(prefix, store, phase, pattern, value, depth, path="value"):
    """A figure of a store; "value" is its operations per second, of phase `open` the nanoseconds until all is open."""
    return measured(case_name(prefix, store, phase, pattern, value, depth), path)


def written_per_user_byte(*case):
    """Bytes that all drives got, with those that settling wrote, over keys and values that were put. `case`: as
    of_pairs."""
    return made_of((of_pairs(*case, path) for path in ("written_bytes", "user_bytes")), over)


def place_of(case, phase):
    """The keys of a case's name, but for the prefix. `phase`: its own, numbered."""
    return case["store"], phase, case["pattern"] or "none", size_text(case["value_bytes"]), case["depth"]


def _bytes(part, *keys):
    """0, where the case has no such part."""
    return sum((part or {}).get(key) or 0 for key in keys)


def figures_of(case):
    """With the bytes that were written on the whole, and a value: operations per second, or the time of opening."""
    written = (_bytes(case["device_io"], "written_bytes") + _bytes(case["staging_io"], "written_bytes")
               + _bytes(case["settling"], "written_bytes", "staging_written_bytes"))
    opens = case["throughput"] is None
    return {**case, "written_bytes": written, "value": case["opening"]["complete_ns"] if opens else case["throughput"],
            "unit": "ns" if opens else "ops/s"}


# Names and prefixes that several claims share.
KV, ROCKSDB = "kv_ssd", "rocksdb"
FLASH = "kv_flash/device_bytes=1G/records=164k"
UPDATES = "update", "zipfian", "1K", 4  # phase, pattern, value, depth of the ablation
DEVICE = ("kv_ssd, a key-value SSD in this process whose times are fitted to published ones of a PM983; RocksDB on the "
          "same modelled flash as a block drive")


def insert(store, pattern, log="on", path="value"):
    """A figure of experiment kv_insert."""
    return of_pairs(f"kv_insert/log={log}", store, "load", pattern, "4K", 8, path)


def written_by_rocksdb(pattern):
    return written_per_user_byte("kv_insert/log=on", ROCKSDB, "load", pattern, "4K", 8)
