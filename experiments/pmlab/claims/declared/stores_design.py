"""U12 to U19: atomicity, space, bandwidth and processor time of UStore's design."""

from ..claim import BYTES, COUNT, TIMES, Claim, Condition
from ..crash_states import violations
from ..limits import at_least, at_most, between, exactly
from ..quantity import made_of, ratio
from ..store_cases import BLUESTORE_PARTNER, DRIVE, OURS, PAIRS_DEVICE, of_store
from ..words import SAME, around

_DESIGN = "[UStore], section 3"
_CHUNKS_OF_1600_GB = 1.6e12 / (1 << 20)
_SUBJECTS = ("chunk_store", "chunk_store_in_place")


def _written(merge, size, path):
    """A figure of the counted random overwrites: 32 in flight, the drive full before."""
    return of_store(f"block_bytes/merge={merge}", OURS, "overwrite", "random", size, 32, path)


def _counted(what):
    """A count for each redirected write, its share of emptying full rings included."""
    return ratio(_written("copy", "8K", f"medium_counts/{what}"), _written("copy", "8K", "operations"))


def _ring_of_16(store):
    return of_store("ring/ring=16", store, "overwrite", "random", "4K", 32)


def _index(what, path, function):
    """`function` of the figure at `path` and of the bytes of the volume, for as many chunks as 1.6 TB have: the region
    of records is for all chunks that the drive has room for. Small chunks give many records."""
    case = "record_cache/cache=0/container=blocks", OURS, "read", "random", "4K", 32
    quantity = made_of((of_store(*case, name) for name in (path, "volume_bytes", "device_bytes", "chunk_bytes")),
                       lambda used, volume, device, chunk: function(used,
                                                                    volume) / (device / chunk) * _CHUNKS_OF_1600_GB)
    return Condition(f"container blocks, bytes of the index {what} for each chunk, times the chunks of 1.6 TB", BYTES,
                     quantity, at_most(250e6), published=exactly(236e6))


def _aged(path, store=OURS, phase="overwrite-2"):
    return of_store("block_ageing/merge=copy", store, phase, "random", "64K", 32, path)


def _slower(store):
    """The latency that 99 % keep, after the other sizes over before them."""
    return ratio(_aged("latency_ns/p99", store), _aged("latency_ns/p99", store, "overwrite"))


def _cpu(container):
    return of_store(f"block_writes/container={container}", OURS, "overwrite", "random", "4K", 32,
                    "cpu_ns_per_operation")


def _pages(peer):
    return Condition(f"16 KB pages, two reads to a write, a redo log: transactions of chunk_store over {peer}'s", TIMES,
                     ratio(of_store("block_pages", OURS, "pages", "random", "16K", 32),
                           of_store("block_pages", peer, "pages", "random", "16K", 32)), around(2.8),
                     published=exactly(2.8))


CLAIMS = [
    Claim("U12", "An update of metadata is one atomic store of 8 bytes.", f"{_DESIGN}.2", ["block_bytes"], [
        Condition("a redirected write of 8 KB, emptying full rings included: lines of PM written", TIMES,
                  _counted("lines"),
                  at_most(SAME), published=exactly(1)),
        Condition("the same: fences", TIMES, _counted("fences"), at_most(SAME), published=exactly(1))],
        "an entry that carries its lap; the paper's layout stores an entry and a tail, two lines"),
    Claim("U13", "Without a log, no crash leaves torn data or leaks space.", f"{_DESIGN}.2", ["verify"], [
        Condition("violations in joint crash states of memory and drive, and in schedules", COUNT,
                  violations(_SUBJECTS, seeds=2800),
                  at_most(0), published=exactly(0))],
        "crash states of a small store that `pmlab verify` makes, in the place of power failures"),
    Claim("U14", "A ring of 16 entries reaches the drive's limit.", f"{_DESIGN}.2", ["ring"], [
        Condition("4 KB random overwrites, 32 in flight: chunk_store with rings of 16 over the drive itself", TIMES,
                  ratio(_ring_of_16(OURS), _ring_of_16("raw")), at_least(0.95))], DRIVE),
    Claim("U15", "The index of 1.6 TB takes 236 MB.", f"{_DESIGN}.2.1", ["record_cache"], [
        _index("on the drive", "space/used_bytes", lambda used, volume: used - volume),
        _index("in DRAM", "space/medium_bytes", lambda used, _: used)],
        "small chunks, for many records; records of three whole lines in two places, where the paper's 144 bytes have "
          "one and are "
        "not aligned"),
    Claim("U16", "Best fit keeps the free space regular without defragmentation.", f"{_DESIGN}.1.2", ["block_ageing"], [
        Condition("after the overwrites: longest free extent over all free space", TIMES,
                  ratio(_aged("space/longest_free_extent"), _aged("space/free_bytes")), at_least(0.5)),
        Condition("64 KB overwrites, the latency that 99 % keep, after the other sizes over before: chunk_store over "
                  "the drive", TIMES, ratio(_slower(OURS), _slower("raw")), at_most(SAME))], DRIVE),
    Claim("U17", "Above 4 KB, copying redirected data back to its place costs bandwidth.", "[UStore], section 4.2",
          ["block_bytes"], [
              Condition("16 KB random overwrites, merging by copying: bytes to the drive over those of the user", TIMES,
                        _written("copy", "16K", "amplification/host"), between(1.6, 2.2)),
              Condition("the same, merging by remapping", TIMES, _written("remap", "16K", "amplification/host"),
                        at_most(1.1))]),
    Claim("U18", "The container on the key-value device takes the least processor time.", "[UStore], section 4.4",
          ["block_writes"], [
              Condition(f"4 KB random writes: processor time of container kv over that of {other}", TIMES,
                        ratio(_cpu("kv"), _cpu(other)), at_most(1)) for other in ("pmem", "blocks")], PAIRS_DEVICE),
    Claim("U19", "TPC-C runs 2.8 times as many transactions as on BlueStore.", "[UStore], section 4.4, figure 13",
          ["block_pages"], [_pages("raw_dwb"), _pages("raw_fpw")],
          "substitute, not TPC-C: a mix of a page store, against a drive with a double-write buffer and with a "
          f"full-page log; {DRIVE}",
          partner=f"{BLUESTORE_PARTNER} under PostgreSQL"),
]
