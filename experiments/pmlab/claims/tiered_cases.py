"""The cases of the experiments tiered_*, with names that several claims share."""

from .pair_cases import of_pairs
from .quantity import made_of, ratio

OURS, PEER = "tiered", "rocksdb"
# Prefixes behind the experiment: with a staging drive beside the capacity drive, and on that alone.
BOTH = "place=staging_max_capacity/staging=emulated:9300"
ALONE = "place=capacity_only/staging=none"
DRIVES = ("drives modelled from datasheets, of the 9300 and four 5210; four threads; records and memory in the "
          "article's ratio, 1:1000 at scale full and 1:100,000 at quick; the sizes of drives are not")
AGAINST = f"RocksDB with its log and upper levels on the staging drive by db_paths, its log synced as often; {DRIVES}"

_PATTERN = {"ycsb-d": "latest"}


def load(store, prefix, path="value"):
    return of_pairs(f"tiered_load/{prefix}", store, "load", "random", "1000", 1, path)


def ycsb(store, letter, prefix, path="value"):
    phase = f"ycsb-{letter}"
    return of_pairs(f"tiered_ycsb/{prefix}", store, phase, _PATTERN.get(phase, "zipfian"), "1000", 1, path)


def policy(place, phase, pattern="zipfian", path="value"):
    return of_pairs(f"tiered_policies/place={place}", OURS, phase, pattern, "1000", 1, path)


def aged(store, overwrites, path="value"):
    """A figure of the overwrite with this number, from 1."""
    return of_pairs("tiered_ageing", store, "update" + (f"-{overwrites}" if overwrites > 1 else ""), "random", "1000",
                    1, path)


def gain(case, *more):
    """With a staging drive over without. `case`: load, or ycsb with a letter in `more`."""
    return ratio(case(OURS, *more, BOTH), case(OURS, *more, ALONE))


def written_to(drive, case, *place):
    """Bytes that one drive got, with those that settling wrote. `drive`: "capacity" or "staging"."""
    of_case, of_settling = (("device_io/written_bytes", "settling/written_bytes") if drive == "capacity" else
                            ("staging_io/written_bytes", "settling/staging_written_bytes"))
    return made_of((case(*place, of_case), case(*place, of_settling)), lambda a, b: a + b)


def written_in_all(case, *place):
    return case(*place, "written_bytes")
