"""H8, H9, H11 and H12: the bound on the loss, values that are written once, RocksDB beside it, and ageing."""

from ..claim import COUNT, TIMES, Claim, Condition
from ..crash_states import violations
from ..limits import at_least, at_most, exactly
from ..pair_cases import of_pairs, written_per_user_byte
from ..quantity import highest, made_of, over, ratio
from ..tiered_cases import AGAINST, BOTH, DRIVES, OURS, PEER, aged, load, ycsb

_OVERWRITES = 5
_MANY_TIMES = 2  # at least
_BUDGET = 1.0 + 0.3 + 1.0 + 1.0  # log, keys, spill, compaction


def _saved():
    """A plain log has its values written again when its memory is full: one byte for each of the user's. Values that
    are written beside the log are those in none of the other streams."""
    streams = ("staging_io/written_bytes", *(f"staging_io/by_stream/{s}/written_bytes"
                                             for s in ("log", "keys", "manifest")))
    return made_of((load(OURS, BOTH, path) for path in (*streams, "user_bytes")),
                   lambda all_bytes, log, keys, manifest, user: 1 - over(all_bytes - log - keys - manifest, user))


def _case(store):
    return f"tiered_load/{BOTH}", store, "load", "random", "1000", 1


def _against(letter):
    return Condition(f"YCSB {letter.upper()}: tiered over RocksDB", TIMES,
                     ratio(ycsb(OURS, letter, BOTH), ycsb(PEER, letter, BOTH)), at_least(_MANY_TIMES))


def _written(overwrites):
    phase = "update" + (f"-{overwrites}" if overwrites > 1 else "")
    return written_per_user_byte("tiered_ageing", OURS, phase, "random", "1000", 1)


def _space():
    """Bytes used for each byte of records, whose number does not change."""
    loaded = of_pairs("tiered_ageing", OURS, "load", "random", "1000", 1, "user_bytes")
    return ratio(aged(OURS, _OVERWRITES, "space/used_bytes"), loaded)


CLAIMS = [
    Claim("H8", "The loss at a crash is bounded in milliseconds.", "[HSE], data durability and tiering", ["verify"], [
        Condition("violations in crash states of both drives: not one prefix of the changes, or shorter than the bound "
                  "allows", COUNT, violations(("tiered",), seeds=9000), at_most(0), published=exactly(0))],
        "crash states of a small store with a bound of 10 ms on a virtual clock; the tests have bounds of 1 to "
        "1000 ms"),
    Claim("H9", "Unlike a write-ahead log, the durability layer avoids the double write.",
          "[HSE], data durability and tiering",
          ["tiered_load"], [
              Condition("load: bytes of values that a plain log would write to the staging drive again, and tiered "
                        "does not, for each byte of the user", TIMES, _saved(), at_least(0.8))],
          DRIVES, by_construction="the second write of a plain log is derived: as many bytes as the user's"),
    Claim("H11", "It is many times faster than legacy engines.", "[HSE], introduction", ["tiered_load", "tiered_ycsb"],
          [
        Condition("load: tiered over RocksDB", TIMES, ratio(load(OURS, BOTH), load(PEER, BOTH)), at_least(_MANY_TIMES)),
        Condition("load, bytes to both drives for each of the user's: tiered over RocksDB", TIMES,
                  ratio(written_per_user_byte(*_case(OURS)), written_per_user_byte(*_case(PEER))), at_most(0.6)),
        *map(_against, "ace")], AGAINST),
    Claim("H12", "Much of it obsolete, data is collected by rewriting the valid part alone.",
          "[HSE], data durability and tiering",
          ["tiered_ageing"], [
              Condition("after five overwrites: space used over the bytes of the records", TIMES, _space(),
                        at_most(1.5)),
              Condition("the overwrites: bytes to both drives for each of the user's, the highest", TIMES,
                        highest([_written(n) for n in range(1, _OVERWRITES + 1)]), at_most(_BUDGET)),
              Condition("throughput of the fifth overwrite over the first", TIMES,
                        ratio(aged(OURS, _OVERWRITES), aged(OURS, 1)),
                        at_least(0.7))], DRIVES),
]
