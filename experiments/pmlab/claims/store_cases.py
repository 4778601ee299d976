"""Results of `pmlab stores volumes` as cases: their names, which claims about stores and the reader of result sets
share."""

from collections import defaultdict

from .quantity import measured


def size_text(size):
    """ "4K" of 4096. """
    return f"{size >> 20}M" if size % (1 << 20) == 0 else f"{size >> 10}K" if size % 1024 == 0 else str(size)


def case_name(prefix, store, phase, pattern, size, depth):
    """`prefix`: the experiment with its keys of the matrix, "ring/ring=16"; `size`: "4K"."""
    return f"{prefix}/store={store}/phase={phase}/pattern={pattern}/size={size}/depth={depth}"


def of_store(prefix, store, phase, pattern, size, depth, path="value"):
    """A figure of a store; "value" is its operations per second."""
    return measured(case_name(prefix, store, phase, pattern, size, depth), path)


def numbered(cases):
    """(case, its phase): "overwrite-2" is the second one of that kind within a repetition."""
    seen = defaultdict(int)
    for case in cases:
        size = case.get("size", case.get("value_bytes"))  # pairs: the size of a value
        place = (case["store"], case["phase"], case["pattern"], size, case["depth"], case["repetition"])
        seen[place] += 1
        yield case, case["phase"] + (f"-{seen[place]}" if seen[place] > 1 else "")


# Figures of the whole run, beside those of a case.
OF_VOLUME = ("volume_bytes", "chunk_bytes", "device_bytes")

# Texts and prefixes that several claims share.
OURS = "chunk_store"
WRITES, READS = "block_writes/container=pmem", "block_reads/container=pmem"
DRIVE = "a drive modelled from the datasheet of the P4610, and modelled PM"
BLUESTORE_PARTNER = "BlueStore of Ceph 15.2"
# With checksums, and overwrites of a block that are deferred.
PEER = "rocksdb_meta_deferred"
BLUESTORE = f"{PEER}, the algorithm of BlueStore and not BlueStore itself; {DRIVE}"
PAIRS_DEVICE = ("a key-value device in this process, whose work is the host's, too, and without the latency of a "
                f"command; {DRIVE}")
