"""K5 to K11: hosts with key-value SSDs, beside RocksDB on the same modelled flash."""

from ..claim import COUNT, PERCENT, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..pair_cases import DEVICE, KV, ROCKSDB, insert, of_pairs, written_by_rocksdb
from ..quantity import made_of, ratio, times
from ..words import SAME, around

_SCALING = "[KV-SSD], figure 5a"
_CACHED = "kv_cache/cache=10%/memory=0"
_AS_OFTEN = "kv_cache/cache=20%/memory=0"  # read from the cache as often as theirs
_CPU = "cpu_ns_per_operation"
_DEVICES_PER_CPU = (18 / 6) / (6 / 48)  # devices that a CPU keeps busy: the key-value SSD's over RocksDB's
_SECOND = 1e9  # ns


def _ycsb(store, letter):
    return of_pairs("kv_ycsb", store, f"ycsb-{letter}", "latest" if letter == "d" else "zipfian", "4K", 8)


def _reads(prefix, store, path="value"):
    """The second phase, which begins with a full cache."""
    return of_pairs(prefix, store, "ycsb-c-2", "zipfian", "4K", 1, path)


def _devices(count, keys):
    return of_pairs(f"kv_devices/devices={count}/records={keys}", KV, "load", "random", "4K", 64)


def _cpus_of_18_devices():
    return made_of((_devices(18, "144k"), insert(KV, "uniform", path=_CPU)), lambda rate, cpu: rate * cpu / _SECOND)


CLAIMS = [
    Claim("K5", "Its log halves RocksDB's throughput of sequential inserts.", "[KV-SSD], section 2", ["kv_insert"], [
        Condition("RocksDB, sequential inserts: with its log over without", TIMES,
                  ratio(insert(ROCKSDB, "sequential"), insert(ROCKSDB, "sequential", log="off")), between(0.35, 0.75),
                  published=exactly(0.5))],
        DEVICE),
    Claim("K6", "Uniform keys slow RocksDB down, and not the key-value SSD.", _SCALING, ["kv_insert"], [
        Condition("key-value SSD: uniform over sequential inserts", TIMES,
                  ratio(insert(KV, "uniform"), insert(KV, "sequential")), at_least(0.9)),
        Condition("RocksDB: the same", TIMES, ratio(insert(ROCKSDB, "uniform"), insert(ROCKSDB, "sequential")),
                  at_most(0.6))], DEVICE),
    Claim("K7", "Zipfian keys give RocksDB less work in the background than uniform ones.", "[KV-SSD], figure 5b",
          ["kv_insert"], [
        Condition("RocksDB, bytes to the drive for each of the user's: zipfian over uniform keys", TIMES,
                  ratio(written_by_rocksdb("zipfian"), written_by_rocksdb("uniform")), at_most(1))], DEVICE),
    Claim("K8", "Throughput grows with the devices up to 18, with about 6 CPUs; others are bound by 48 CPUs at 6 "
          "devices.", _SCALING,
          ["kv_devices", "kv_insert"], [
              Condition("key-value SSDs, 24 simulated threads: inserts of 18 devices over those of 1", TIMES,
                        ratio(_devices(18, "144k"), _devices(1, "8k")), at_least(16), published=exactly(18)),
              Condition("uniform inserts: devices that a CPU keeps as busy, over those with RocksDB (derived from the "
                        "CPU time of an operation)", TIMES, ratio(insert(ROCKSDB, "uniform", path=_CPU),
                                                                  insert(KV, "uniform", path=_CPU)),
                        at_least(around(_DEVICES_PER_CPU).low), published=exactly(_DEVICES_PER_CPU)),
              Condition("CPUs that inserts into 18 devices take (derived: inserts in a second, times the CPU time of "
                        "one)", COUNT, _cpus_of_18_devices(), at_most(6.5), published=exactly(6))],
          "24 simulated threads for the devices, and CPUs derived from the CPU time of operations: "
          "RocksDB's has the copy to the modelled drive and the model's work, of kv_ssd all of the device and its "
          f"queue is taken away; {DEVICE}"),
    Claim("K9", "Without a cache it is as quick in YCSB as stores with one; updates hurt those most.",
          "[KV-SSD], figure 6",
          ["kv_ycsb"], [
              Condition("YCSB A over C: key-value SSD, over the same of RocksDB with a cache", TIMES,
                        ratio(ratio(_ycsb(KV, "a"), _ycsb(KV, "c")), ratio(_ycsb(ROCKSDB, "a"), _ycsb(ROCKSDB, "c"))),
                        at_least(1)),
              *(Condition(f"YCSB {letter.upper()}: key-value SSD over RocksDB with a cache", TIMES,
                          ratio(_ycsb(KV, letter), _ycsb(ROCKSDB, letter)), at_least(1 / SAME)) for letter in "abcd")],
          DEVICE),
    Claim("K10", "A cache of the host makes YCSB C 4 to 6 times as fast.", "[KV-SSD], figure 7", ["kv_cache"], [
        Condition("YCSB C: a cache of 20 % of the data over none", TIMES,
                  ratio(_reads(_AS_OFTEN, KV), _reads("kv_cache/cache=0/memory=0", KV)), between(4, 6),
                  published=between(4, 6)),
        Condition("YCSB C: reads that this cache answers", PERCENT,
                  times(100, _reads(_AS_OFTEN, KV, "hit_ratio")), between(77, 85))],
        "a cache of 20 % of the data, hit as often as 10 GB beside 100 GB would be, as the notes lack the size of the "
        f"data; {DEVICE}"),
    Claim("K11", "With half its memory it reads at least 4 times as fast as RocksDB.", "[KV-SSD], figure 7",
          ["kv_cache"], [
        Condition("YCSB C: key-value SSD with a cache of 10 % of the data, over RocksDB with memory of 20 %", TIMES,
                  ratio(_reads(_CACHED, KV), _reads("kv_cache/cache=18%/memory=20%", ROCKSDB)), at_least(4),
                  published=at_least(4))],
        f"caches in proportion to the data; {DEVICE}", partner="RocksDB on 18 drives with 360 GB of memory"),
]
