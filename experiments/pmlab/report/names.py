"""How indexes, phases, media and quantities are written for a reader."""

import re

from .. import indexes

# Containers of others that the benchmark compares with.
PEERS = {
    "tbb_hash": "oneTBB's concurrent_hash_map, in DRAM",
    "std_map": "the standard library's map, in DRAM; behind a shared_mutex when there is more than one thread",
    "pmdk_hash": "libpmemobj-cpp's concurrent_hash_map, in a pool",
    "pmdk_skiplist": "libpmemobj-cpp's concurrent_map, a skip list in a pool",
    "pmdk_radix": "libpmemobj-cpp's radix_tree, in a pool; behind a shared_mutex when more than one thread writes",
}
# Facts of pmlab's indexes; a hybrid index is two of them.
TITLES = {index["name"]: index["title"] for index in indexes.offered()} | {
    "hybrid_index": "HybridIndex", "hybrid_index_plus": "HybridIndex+"}

STORES = {"chunk_store": "chunk_store", "raw": "the drive itself", "raw_dwb": "drive, double-write buffer",
          "raw_fpw": "drive, full-page log", "rocksdb_meta": "rocksdb_meta",
          "rocksdb_meta_deferred": "rocksdb_meta, deferring",
          "rocksdb": "RocksDB", "leveldb": "LevelDB", "lmdb": "LMDB"}

# Beginnings of their names. Their figures are in other charts, too.
CHARTS_OF_FIRST_SCREEN = ("thesis", "ranking")

PHASES = {
    "load": "Load",
    "read": "Find",
    "absent": "Find, absent keys",
    "update": "Update",
    "insert": "Insert",
    "scan": "Scan",
    "erase": "Erase",
    "trace": "Trace",
    "ycsb-a": "YCSB A: 50 % read, 50 % update",
    "ycsb-b": "YCSB B: 95 % read, 5 % update",
    "ycsb-c": "YCSB C: read only",
    "ycsb-d": "YCSB D: 95 % read latest, 5 % insert",
    "ycsb-e": "YCSB E: 95 % scan, 5 % insert",
    "ycsb-f": "YCSB F: 50 % read, 50 % read-modify-write",
}
# What one operation of a phase is called in a sentence.
NOUNS = {"read": "finds", "absent": "finds of absent keys", "update": "updates", "insert": "inserts", "scan": "scans",
         "erase": "erases", "load": "inserts into the growing index"}


def index_title(index):
    """cache(fast_fair,mode=parallel): FAST-FAIR with cache, parallel."""
    if index in TITLES:
        return TITLES[index]
    cached = re.fullmatch(r"(locked_)?cache\((\w+)((?:,[\w.]+=[^,()]+)*)\)", index)
    if cached:
        options = [o.split("=")[1] for o in cached[3].split(",") if o]
        return ", ".join([f"{index_title(cached[2])} + {'locked ' if cached[1] else ''}cache", *options])
    hybrid = re.fullmatch(r"hybrid\(hash=(\w+)@(\w+),tree=(\w+)@(\w+)(?:,update=(\w+))?\)", index)
    if hybrid:
        in_pm = hybrid[1] if hybrid[2] == "pmem" else hybrid[3]
        return f"{index_title(in_pm)} in PM" + (f", {hybrid[5]}" if hybrid[5] else "")
    return index


def is_peer(index):
    return index in PEERS


def phase_title(phase):
    """The title of a phase, "read-2" included: the second phase of that name in a run."""
    base, number = _parts_of(phase)
    return PHASES.get(base, base) + (f" (time {number} in this run)" if number else "")


def short_phase(phase):
    """Without what a workload is made of: YCSB A."""
    return phase_title(phase).split(":")[0]


def _parts_of(phase):
    match = re.match(r"^(.*\w)-(\d+)$", phase)
    return (match[1], match[2]) if match else (phase, None)


def noun(phase):
    return NOUNS.get(_parts_of(phase)[0], "operations")


def short_medium(medium):
    """The medium without the name of a pool's own file, which is arbitrary: pmem:/dev/shm. For a drive: file."""
    if medium.startswith("file:"):
        return "file"
    match = re.match(r"^(.*?(?:^|:|@))(/[^/@]*(?:/[^/@]+)?)(/.*)$", medium)
    return match[1] + match[2] if match else medium


def device(medium):
    """The medium without any path: pmem, emulated:aep."""
    return re.sub(r"@.*", "", re.sub(r"pmem:.*", "pmem", medium))


def number(value, digits=3):
    """`digits` significant figures, plain."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text:
        text = f"{float(text):.0f}"
    return text


def rate(per_second):
    """12.3 M/s"""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= limit:
            return f"{number(per_second / limit)} {unit}/s"
    return f"{number(per_second)}/s"


def count(value):
    """10 M, kept on one line."""
    for limit, unit in ((1e9, "\u00a0G"), (1e6, "\u00a0M"), (1e3, "\u00a0k")):
        if value >= limit:
            return f"{number(value / limit)}{unit}"
    return number(value)


def count_in_words(value):
    """8.3 million"""
    for limit, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if value >= limit:
            return f"{number(value / limit)} {word}"
    return number(value)


def duration(nanoseconds):
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= limit:
            return f"{number(nanoseconds / limit)} {unit}"
    return f"{number(nanoseconds)} ns"


def times(ratio):
    """A ratio for a reader: 21x, 3.4x, 0.82x, 0.0015x."""
    if 0 < ratio < 0.1:
        return f"{number(ratio, 2)}x"
    if ratio >= 100:
        return f"{ratio:.0f}x"
    return f"{ratio:.1f}x" if ratio >= 10 else f"{ratio:.2f}x"


def enumerate_words(words):
    words = list(words)
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def lower_first(text):
    """For the middle of a sentence; a name in capitals stays one."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
