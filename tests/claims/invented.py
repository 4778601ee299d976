"""Invented results in which all is as the paper claims: every claim holds there. Tests change single figures."""
import re
from dataclasses import dataclass, field

import package  # noqa: F401
from pmlab.claims.evidence import Evidence


@dataclass
class Result:
    value: float
    unit: str = "GiB/s"
    medium: str = "simulated:aep"
    more: dict = field(default_factory=dict)  # path below the case -> number: "reads/gib_per_s"
    extra: dict = field(default_factory=dict)  # fields of the case


class Invented:
    """Cases by their names."""

    def __init__(self):
        self.cases = {}

    def multiply(self, expression, factor, path="value"):
        """Multiplies a figure of every case whose name has a match of the expression. Returns how many there were."""
        changed = 0
        for name, result in self.cases.items():
            if not re.search(expression, name):
                continue
            if path == "value":
                result.value *= factor
            elif path in result.more:
                result.more[path] *= factor
            else:
                continue
            changed += 1
        return changed

    def document(self):
        cases = []
        for name, r in self.cases.items():
            case = {"name": name, "medium": r.medium, "scale": 1.0, "skipped": None, "value": r.value, "unit": r.unit,
                    "values": 3 * [r.value], "published": None, "media": None} | r.extra
            for path, value in r.more.items():
                *above, last = path.split("/")
                place = case
                for key in above:
                    place[key] = place.get(key) or {}
                    place = place[key]
                place[last] = value
            cases.append(case)
        return {"schema": 1, "kind": "microbench", "machine": {"medium": "simulated:aep"}, "cases": cases}

    def evidence(self):
        return Evidence(self.document(), "invented results")


_BYTES = {"8": 8, "16": 16, "32": 32, "64": 64, "128": 128, "256": 256, "512": 512, "1K": 1024, "4K": 4096,
          "16K": 16384, "64K": 65536, "1M": 1048576, "16M": 16777216}


def _beyond_256(size, ns_per_byte):
    return max(0, size - 256) * ns_per_byte


class Memory(Invented):
    """A memory that is just as the paper claims."""

    def __init__(self):
        super().__init__()
        self._add_latencies()
        self._add_bandwidths()
        self._add_comparisons()
        self._add_mixes()

    def _add_latencies(self):
        add = self.cases.__setitem__
        for name, size in _BYTES.items():
            at_random = 350 + _beyond_256(size, 0.35)
            add(f"read-by-size/pattern=random/access_bytes={name}", Result(at_random, "ns"))
            add(f"read-by-size/pattern=sequential/access_bytes={name}", Result(size if size < 256 else at_random, "ns"))
            written = 220 if size < 64 else 200 if size < 128 else 180 + _beyond_256(size, 0.42)
            for pattern in ("random", "sequential"):
                add(f"write-by-size/pattern={pattern}/access_bytes={name}", Result(written, "ns"))
        for size, slowed in (("64", 1.8), ("256", 2), ("64K", 15)):
            add(f"read-by-threads/access_bytes={size}/threads=1", Result(350, "ns"))
            add(f"read-by-threads/access_bytes={size}/threads=16", Result(350 * slowed, "ns"))
            add(f"write-by-threads/access_bytes={size}/threads=1", Result(180, "ns"))
            add(f"write-by-threads/access_bytes={size}/threads=16", Result(180 * slowed * 4, "ns"))

    def _add_bandwidths(self):
        add = self.cases.__setitem__
        for pattern in ("sequential", "random"):
            for size in ("64", "128", "256", "512", "1K", "4K", "64K"):
                for threads in (4, 16):
                    name = f"/pattern={pattern}/access_bytes={size}/threads={threads}"
                    part = {"64": 0.25, "128": 0.5}.get(size, 1) if pattern == "random" else 1
                    degraded = 0.5 if threads == 16 and size == "64K" else 1
                    add(f"load-by-size{name}", Result(6.4 * part * degraded,
                                                      more={"media/read_amplification": 1 / part}))
                    add(f"ntstore-by-size{name}", Result(2.2 * part, more={"media/write_amplification": 1 / part}))
                    add(f"ntstore-then-fence{name}", Result(2.2 * part * degraded))
            for size in ("64", "256", "1K", "4K", "64K", "1M", "4M"):
                for threads in (4, 8, 16):
                    part = 0.25 if pattern == "random" and size == "64" else 1
                    degraded = 0.5 if threads == 16 and size[-1] in "KM" and size not in ("1K", "4K") else 1
                    add(f"copy-by-size/pattern={pattern}/access_bytes={size}/threads={threads}",
                        Result(6 * part * degraded))
        for size in ("256", "64K"):
            add(f"ntstore-fenced-by-size/access_bytes={size}/threads=16", Result(2.2))
        add("fence-every/threads=16/fence=256", Result(2.2))
        add("fence-every/threads=16/fence=never", Result(0.9))
        for threads in (1, 2, 4, 8, 12, 24):
            for size in ("64", "256", "4K"):
                add(f"load-random/access_bytes={size}/threads={threads}", Result(1.6 if size == "64" else 6.5))
                add(f"ntstore-random/access_bytes={size}/threads={threads}", Result(0.5 if size == "64" else 1.9))

    def _add_comparisons(self):
        add, dram = self.cases.__setitem__, "simulated:dram"
        add("idle-read/medium=given/pattern=sequential", Result(169, "ns"))
        add("idle-read/medium=given/pattern=random", Result(305, "ns"))
        for size in (64, 256, 512):
            add(f"dependent-read/medium=given/access_bytes={size}", Result(400, "ns"))
            add(f"dependent-read/medium=dram/access_bytes={size}", Result(100, "ns", dram))
        add("idle-ntstore/medium=given", Result(90, "ns"))
        add("idle-ntstore/medium=dram", Result(87, "ns", dram))
        add("dram-write-by-size/access_bytes=256", Result(150, "ns", dram))
        add("six-dimms-load", Result(40, "GiB/s", "simulated:aep-6"))
        add("six-dimms-ntstore", Result(13, "GiB/s", "simulated:aep-6"))
        add("dram-load/threads=24", Result(105, "GiB/s", dram))
        add("dram-store/store=ntstore/threads=24", Result(77, "GiB/s", dram))
        add("drive-read", Result(0.81, "GiB/s", "drive"))
        add("drive-write", Result(0.63, "GiB/s", "drive"))

    def _add_mixes(self):
        add = self.cases.__setitem__
        for others, reads, writes in ((1, 3.5, 1.5), (4, 3.0, 1.3), (8, 2.9, 1.25)):
            add(f"mix-by-writers/writers={others}", Result(4, more={"reads/gib_per_s": reads}))
            add(f"mix-by-readers/readers={others}", Result(4, more={"writes/gib_per_s": writes}))
        add("ntstore-fenced/threads=8", Result(2.2))
        for readers in (1, 4, 8):
            for writers in (1, 4, 8):
                add(f"mix-latency/readers={readers}/writers={writers}",
                    Result(900, "ns", more={"reads/latency_ns/mean": 900, "writes/latency_ns/mean": 1100}))


class Stores(Invented):
    """Block volumes that are just as the paper of UStore claims."""

    def __init__(self):
        super().__init__()
        self._add_writes()
        self._add_reads()
        self._add_design()

    def _add(self, prefix, store, phase, pattern, size, depth, throughput, **more):
        self.cases[f"{prefix}/store={store}/phase={phase}/pattern={pattern}/size={size}/depth={depth}"] = Result(
            throughput, "ops/s", more={path.replace("__", "/"): value for path, value in more.items()})

    def _add_writes(self):
        pm = "block_writes/container=pmem"
        for pattern, leads in (("random", (9.2, 7.3, 2.7, 1.5)), ("sequential", (3.2, 2.8, 1.7, 1.55))):
            for size, lead in zip(("4K", "8K", "16K", "64K"), leads):
                self._add(pm, "rocksdb_meta_deferred", "overwrite", pattern, size, 32, 1e5)
                self._add(pm, "chunk_store", "overwrite", pattern, size, 32, lead * 1e5, cpu_ns_per_operation=3000)
        for size, mean, slower, first in (("4K", 1e4, 13, 1800), ("8K", 3.4e4, 4, 3000), ("16K", 4.3e4, 3, 4200)):
            for pattern in ("random", "sequential"):
                self._add(pm, "chunk_store", "overwrite", pattern, size, 1, 1e9 / mean, latency_ns__mean=mean)
                self._add(pm, "rocksdb_meta_deferred", "overwrite", pattern, size, 1, 1e8 / mean,
                          latency_ns__mean=slower * mean)
            self._add(pm, "chunk_store", "fill", "sequential", size, 1, 1e9 / mean, latency_ns__mean=mean + first)
        for container, rate, cpu in (("kv", 1.5e5, 1000), ("blocks", 1.2e5, 3000)):
            for pattern in ("random", "sequential"):
                self._add(f"block_writes/container={container}", "chunk_store", "overwrite", pattern, "16K", 32, rate)
            self._add(f"block_writes/container={container}", "chunk_store", "overwrite", "random", "4K", 32, rate,
                      cpu_ns_per_operation=cpu)
        for store, rate in (("chunk_store", 2.8e4), ("raw_dwb", 1e4), ("raw_fpw", 1.2e4)):
            self._add("block_pages", store, "pages", "random", "16K", 32, rate)

    def _add_reads(self):
        for pattern, lead in (("random", 4.2), ("sequential", 4.4)):
            self._add("block_reads/container=pmem", "rocksdb_meta_deferred", "read", pattern, "4K", 32, 1e5)
            self._add("block_reads/container=pmem", "chunk_store", "read", pattern, "4K", 32, lead * 1e5)
        for size, rate in (("4K", 4.5e5), ("8K", 2.75e5), ("16K", 1.57e5)):
            self._add("block_reads/container=blocks", "chunk_store", "read", "random", size, 128, rate)
        for cache, container, rate in (("0", "pmem", 4e5), ("100%", "kv", 4.5e5), ("10%", "kv", 2.25e5)):
            self._add(f"record_cache/cache={cache}/container={container}", "chunk_store", "read", "random", "4K", 32,
                      rate)

    def _add_design(self):
        self._add("block_bytes/merge=copy", "chunk_store", "overwrite", "random", "8K", 32, 1, operations=1000,
                  medium_counts__lines=1130, medium_counts__fences=1100)
        self._add("record_cache/cache=0/container=blocks", "chunk_store", "read", "random", "4K", 32, 1,
                  space__used_bytes=(1 << 28) + 150 * 1024, space__medium_bytes=150 * 1024, volume_bytes=1 << 28,
                  device_bytes=1 << 30, chunk_bytes=1 << 20)
        for merge, written in (("copy", 2.0), ("remap", 1.0)):
            self._add(f"block_bytes/merge={merge}", "chunk_store", "overwrite", "random", "16K", 32, 1,
                      amplification__host=written)
        for index in ("chunk_store", "chunk_store_in_place"):
            self.cases[f"verify/index={index}"] = Result(0, "", more={"crash_states": 600_000})
        for store, rate in (("chunk_store", 0.99), ("raw", 1.0)):
            self._add("ring/ring=16", store, "overwrite", "random", "4K", 32, rate)
        for phase in ("overwrite", "overwrite-2"):
            for store in ("chunk_store", "raw"):
                self._add("block_ageing/merge=copy", store, phase, "random", "64K", 32, 1, latency_ns__p99=1e5,
                          space__longest_free_extent=8 << 20, space__free_bytes=9 << 20)


class Pairs(Invented):
    """Key-value SSDs that are just as their notes claim."""

    def __init__(self):
        super().__init__()
        self._add_inserts()
        self._add_reads()
        self._add_device()

    def _add(self, prefix, store, phase, pattern, value, depth, throughput, **more):
        self.cases[f"{prefix}/store={store}/phase={phase}/pattern={pattern}/value={value}/depth={depth}"] = Result(
            throughput, "ops/s", more={path.replace("__", "/"): figure for path, figure in more.items()})

    def _add_inserts(self):
        for pattern, of_rocksdb, written in (("sequential", 4e4, 2.1), ("uniform", 2e4, 6), ("zipfian", 2.5e4, 4)):
            self._add("kv_insert/log=on", "kv_ssd", "load", pattern, "4K", 8, 1e5, amplification__host=1.0,
                      cpu_ns_per_operation=3500)
            self._add("kv_insert/log=on", "rocksdb", "load", pattern, "4K", 8, of_rocksdb, cpu_ns_per_operation=84000,
                      written_bytes=written * 1e9, user_bytes=1e9)
        self._add("kv_insert/log=off", "rocksdb", "load", "sequential", "4K", 8, 8e4)

    def _add_reads(self):
        for store, updates in (("kv_ssd", 8e4), ("rocksdb", 3e4)):
            self._add("kv_ycsb", store, "ycsb-a", "zipfian", "4K", 8, updates)
            for letter, pattern in (("b", "zipfian"), ("c", "zipfian"), ("d", "latest")):
                self._add("kv_ycsb", store, f"ycsb-{letter}", pattern, "4K", 8, 1e5)
        for cache, memory, store, rate in (("0", "0", "kv_ssd", 2e4), ("10%", "0", "kv_ssd", 1e5),
                                           ("20%", "0", "kv_ssd", 1e5), ("18%", "20%", "rocksdb", 2e4)):
            self._add(f"kv_cache/cache={cache}/memory={memory}", store, "ycsb-c-2", "zipfian", "4K", 1, rate,
                      hit_ratio=0.81)

    def _add_device(self):
        for count, keys, rate in ((1, "8k", 1e5), (18, "144k", 17e5)):
            self._add(f"kv_devices/devices={count}/records={keys}", "kv_ssd", "load", "random", "4K", 64, rate)
        self._add("kv_flash/device_bytes=1G/records=164k", "kv_ssd", "update-2", "uniform", "4K", 8, 1,
                  store_stats__written_user=1e9, store_stats__written_moved=1.4e9, store_stats__written_buckets=0)
        self.cases["kv_flash_pages/store=raw/phase=overwrite/pattern=random/size=4K/depth=32"] = Result(
            1, "ops/s", more={"amplification/device": 2.38})
        for keys in ("10k", "100k"):
            self._add(f"kv_memory/records={keys}", "kv_ssd", "load", "random", "128", 8, 1, space__memory_bytes=5000)
        for store, rate in (("kv_ssd", 1.5), ("kv_ssd_no_local", 1.0), ("kv_ssd_no_filter", 1.2)):
            self._add("kv_ablation", store, "update", "zipfian", "1K", 4, rate)
        self._add("kv_memory/records=10k", "kv_ssd", "exist", "random", "128", 8, 1, commands=1)
        self.cases["verify/index=kv_ssd"] = Result(0, "", more={"crash_states": 1_200_000})


class Tiers(Invented):
    """Tiered stores that are just as their article claims."""

    _DRIVES = {"staging_max_capacity": "emulated:9300", "capacity_only": "none"}

    def __init__(self):
        super().__init__()
        self._add_loads()
        self._add_runs()
        self._add_ageing()
        self.cases["verify/index=tiered"] = Result(0, "", more={"crash_states": 1_200_000})

    def _add(self, prefix, store, phase, pattern, throughput, **more):
        self.cases[f"{prefix}/store={store}/phase={phase}/pattern={pattern}/value=1000/depth=1"] = Result(
            throughput, "ops/s", more={path.replace("__", "/"): figure for path, figure in more.items()})

    def _add_loads(self):
        for place, staging in self._DRIVES.items():
            both = staging != "none"
            self._add(f"tiered_load/place={place}/staging={staging}", "tiered", "load", "random", 8e4 if both else 2e4,
                      device_io__written_bytes=1.4e9 if both else 3.5e9, settling__written_bytes=0.1e9, user_bytes=1e9,
                      written_bytes=1.9e9 if both else 1.8e9, settling__staging_written_bytes=0,
                      staging_io__written_bytes=1.2e9, staging_io__by_stream__log__written_bytes=1e9,
                      staging_io__by_stream__keys__written_bytes=0.15e9,
                      staging_io__by_stream__manifest__written_bytes=0.05e9)
            self._add(f"tiered_load/place={place}/staging={staging}", "rocksdb", "load", "random", 2e4,
                      written_bytes=4e9, user_bytes=1e9)

    def _add_runs(self):
        gains = {"a": 2.3, "b": 1.3, "c": 1.05, "d": 1.3, "e": 1.2, "f": 2.1}
        for place, staging in self._DRIVES.items():
            both = staging != "none"
            for letter, gain in gains.items():
                prefix = f"tiered_ycsb/place={place}/staging={staging}"
                pattern = "latest" if letter == "d" else "zipfian"
                slow = 1 if both or letter == "c" else 2.5
                self._add(prefix, "tiered", f"ycsb-{letter}", pattern, 2e4 * (gain if both else 1),
                          read_latency_ns__p99_9=1e6 * slow, write_latency_ns__mean=1e4,
                          device_io__written_bytes=1e8 if both else 3e8, settling__written_bytes=1e6)
                self._add(prefix, "rocksdb", f"ycsb-{letter}", pattern, 8e3)
        for place, rate in (("staging_max_capacity", 2.4e4), ("staging_min_capacity", 2e4)):
            self._add(f"tiered_policies/place={place}", "tiered", "ycsb-c", "zipfian", rate)

    def _add_ageing(self):
        self._add("tiered_ageing", "tiered", "load", "random", 5e4, user_bytes=1e9)
        for number in range(1, 6):
            self._add("tiered_ageing", "tiered", f"update-{number}" if number > 1 else "update", "random",
                      4e4 - 1e3 * number, written_bytes=2.8e9, user_bytes=1e9, space__used_bytes=1.4e9)


class Indexes(Invented):
    """Hybrid indexes, caches and choices that are just as the paper claims."""

    def __init__(self):
        super().__init__()
        self._add_hybrids()
        self._add_caches()
        self._add_choices()

    def _add(self, experiment, index, threads, phase, throughput, **more):
        self.cases[f"{experiment}/index={index}/threads={threads}/phase={phase}"] = Result(
            throughput, "ops/s", more={path.replace("__", "/"): value for path, value in more.items()})

    def _add_hybrids(self):
        for threads, plain, plus in (("1", 4e6, 6e6), ("most", 60e6, 108e6)):
            self._add("hybrid", "hybrid_index", threads, "read", plain)
            self._add("hybrid", "hybrid_index_plus", threads, "read", plus)
            for phase in ("update", "insert"):
                self._add("hybrid", "hybrid_index", threads, phase, plain / 4)
                self._add("hybrid", "hybrid_index_plus", threads, phase, 0.7 * plain / 4)
        for index, scan in (("hybrid_index", 3e7), ("hybrid_index_plus", 1.5e4)):
            self._add("hybrid_restart", index, "1", "reopen", 1, latency_ns__max=1e4, restart__find_ns=1.1e4,
                      restart__scan_ns=scan)

    def _add_caches(self):
        # The slower the index, the larger the gain.
        for index, bare, gain in (("fast_fair", 1000, 0.40), ("skip_list", 800, 0.33), ("fp_tree", 500, 0.25)):
            for distribution, left in (("uniform", 1.05), ("zipfian:0.99", 1 - gain)):
                experiment = f"cache/distribution={distribution}"
                for phase, factor in (("read", left), ("update", 1.25), ("insert", 1.02)):
                    self._add(experiment, index, "1", phase, 1e6, latency_ns__mean=bare)
                    for cache in ("cache", "locked_cache"):
                        self._add(experiment, f"{cache}({index})", "1", phase, 1e6, latency_ns__mean=bare * factor)
        for distribution, serial, parallel in (("uniform", 1.15, 1.02), ("zipfian:0.99", 0.5, 0.55)):
            for phase in ("read", "update"):
                for index, factor in (("fast_fair", 1), ("cache(fast_fair)", serial),
                                      ("cache(fast_fair,mode=parallel)", parallel)):
                    self._add(f"cache_parallel/distribution={distribution}", index, "1", phase, 1e6,
                              latency_ns__mean=1000 * factor)

    def _add_choices(self):
        for phase in ("update", "read", "ycsb-a"):
            for how, speed in (("sync", 1e6), ("async", 1.2e6), ("adaptive", 1.15e6)):
                self._add("adaptive_hybrid", f"hybrid(hash=cceh@dram,tree=fast_fair@pmem,update={how})", "most", phase,
                          speed)
        for distribution in ("uniform", "zipfian:0.99"):
            for mode, speed in (("serial", 1e6), ("parallel", 1.2e6), ("adaptive", 1.15e6)):
                self._add(f"adaptive_cache/distribution={distribution}", f"cache(fast_fair,mode={mode})", "most",
                          "read", speed)
