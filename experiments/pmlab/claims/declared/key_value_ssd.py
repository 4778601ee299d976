"""K1 to K4, K12, K13: the key-value SSD itself."""

from ..claim import COUNT, PERCENT, TIMES, Claim, Condition
from ..crash_states import violations
from ..limits import at_least, at_most, exactly
from ..pair_cases import DEVICE, FLASH, KV, UPDATES, insert, of_pairs, written_by_rocksdb
from ..quantity import highest, largest_difference, lowest, made_of, measured, ratio

_PATTERNS = ("sequential", "uniform", "zipfian")
_SENT = "amplification/host"


def _internal():
    """Bytes that flash got for each byte of the user's records, with their padding."""
    parts = (of_pairs(FLASH, KV, "update-2", "uniform", "4K", 8, f"store_stats/written_{what}")
             for what in ("user", "moved", "buckets"))
    return made_of(parts, lambda user, moved, buckets: (user + moved + buckets) / user)


def _of_pages():
    """The same of a block SSD, whose flash is as full."""
    return measured("kv_flash_pages/store=raw/phase=overwrite/pattern=random/size=4K/depth=32", "amplification/device")


def _memory(keys):
    return of_pairs(f"kv_memory/records={keys}", KV, "load", "random", "128", 8, "space/memory_bytes")


def _rate(store):
    return of_pairs("kv_ablation", store, *UPDATES)


CLAIMS = [
    Claim("K1", "The host writes each byte once, whatever the order of the keys.", "[KV-SSD], figure 5b", ["kv_insert"],
          [
        Condition("key-value SSD: bytes that leave the host for each of the user's, most of all orders", TIMES,
                  highest(insert(KV, p, path=_SENT) for p in _PATTERNS), at_most(1.005), published=exactly(1)),
        Condition("the same, least of all orders", TIMES, lowest(insert(KV, p, path=_SENT) for p in _PATTERNS),
                  at_least(0.995), published=exactly(1)),
        Condition("RocksDB, uniform keys: bytes to the drive for each of the user's", TIMES,
                  written_by_rocksdb("uniform"),
                  at_least(2))],
        DEVICE, by_construction="bytes of the host are keys and values of commands by definition; those inside are in "
          "K2"),
    Claim("K2", "Inside, the device writes as much as a block SSD does for random writes.", "[KV-SSD], section 3",
          ["kv_flash", "kv_flash_pages"], [
              Condition("values of 4 KB, uniform overwrites: bytes to flash for each byte of records, beside a block "
                        "SSD whose flash is as full: difference", PERCENT,
                        largest_difference([(_internal(), _of_pages())]),
                        at_most(5))],
          "kv_ssd in this process, counted, without times; padding of records is left out, and is in the experiment's "
          "table"),
    Claim("K3", "The host's memory is that of the operations under way, however many keys there are.",
          "[KV-SSD], section 3",
          ["kv_memory"], [
              Condition("memory of the host with ten times as many keys: difference", PERCENT,
                        largest_difference([(_memory("100k"), _memory("10k"))]), at_most(1),
                        published=exactly(0))],
          "10 and 100 thousand keys in the place of 1 and 10 million; the device's own tables are not in it",
          by_construction="the figure is computed from the sizes of operations under way and of the cache"),
    Claim("K4", "Without a log, each pair is written whole or not at all.", "[KV-SSD], section 3", ["verify"], [
        Condition("violations in joint crash states of memory and flash, and in schedules", COUNT,
                  violations(("kv_ssd",), seeds=2300),
                  at_most(0), published=exactly(0))],
        "crash states of a small device that `pmlab verify` makes, in the place of power failures"),
    Claim("K12", "Local tables with Bloom filters lower accesses of the global index, and contention.",
          "[KV-SSD], section 3",
          ["kv_ablation"], [
              Condition(f"zipfian updates by 16 threads: the device over one without {what}", TIMES,
                        ratio(_rate(KV), _rate(f"kv_ssd_{name}")), at_least(1))
              for what, name in (("local tables", "no_local"), ("their filters", "no_filter"))],
          "kv_ssd on the flash of a P4610, modelled, its memory DRAM, without the times of a firmware; 16 simulated "
          "threads"),
    Claim("K13", "One command asks for the existence of many keys.", "[KV-SSD], section 3", ["kv_memory"], [
        Condition("commands for 20 keys", COUNT,
                  of_pairs("kv_memory/records=10k", KV, "exist", "random", "128", 8, "commands"), exactly(1),
                  published=exactly(1))],
        missing="no experiment counts commands; the test Api.exist_answers_for_many_keys_in_one_command does"),
]
