"""H1 to H7 and H10: a staging drive beside the capacity drive, and without it."""

from ..claim import PERCENT, TIMES, Claim, Condition
from ..limits import at_least, at_most, between, exactly
from ..quantity import largest_difference, ratio
from ..tiered_cases import ALONE, BOTH, DRIVES, OURS, gain, load, policy, written_in_all, written_to, ycsb
from ..words import SAME_PERCENT

_RESULTS = "[HSE], test results"


def _slowest_reads(letter):
    """Without a staging drive over with it."""
    path = "read_latency_ns/p99_9"
    return ratio(ycsb(OURS, letter, ALONE, path), ycsb(OURS, letter, BOTH, path))


def _writes(letter):
    path = "write_latency_ns/mean"
    return ycsb(OURS, letter, BOTH, path), ycsb(OURS, letter, ALONE, path)


def _faster(letter, limits, published=None):
    return Condition(f"YCSB {letter.upper()}: with a staging drive over without", TIMES, gain(ycsb, letter), limits,
                     published=published)


_ON_BOTH, _ON_ONE = (OURS, BOTH), (OURS, ALONE)

CLAIMS = [
    Claim("H1", "Loading is 4 times as fast with a staging drive.", _RESULTS, ["tiered_load"], [
        Condition("load: with a staging drive over without", TIMES, gain(load), between(3, 5), published=exactly(4))],
          DRIVES),
    Claim("H2", "YCSB A is 2.3 times, F 2.1 times as fast with a staging drive.", _RESULTS, ["tiered_ycsb"],
          [_faster(letter, between(1.6, 3), exactly(figure)) for letter, figure in (("a", 2.3), ("f", 2.1))], DRIVES),
    Claim("H3", "YCSB B and D are modestly faster with a staging drive.", _RESULTS, ["tiered_ycsb"],
          [_faster(letter, between(1, 1.6)) for letter in "bd"], DRIVES),
    Claim("H4", "The latency that 99.9 % of the reads keep is 2 to 3 times better with a staging drive, except in C.",
          _RESULTS,
          ["tiered_ycsb"], [
              *(Condition(f"YCSB {letter.upper()}, the latency that 99.9 % of the reads keep: without a staging drive "
                          "over with it", TIMES, _slowest_reads(letter), at_least(1.7), published=between(2, 3))
                for letter in "abdf"),
              Condition("YCSB C: the same", TIMES, _slowest_reads("c"), between(1 / 1.2, 1.2))], DRIVES),
    Claim("H5", "Inserts and updates take as long with a staging drive as without.", _RESULTS, ["tiered_ycsb"], [
        Condition("YCSB A, D and F, mean latency of writes: largest difference with and without a staging drive",
                  PERCENT, largest_difference(_writes(letter) for letter in "adf"), at_most(SAME_PERCENT))], DRIVES),
    Claim("H6", "While loading, the capacity drive gets 2.4 times fewer bytes with a staging drive: 1.49 for each of "
          "the user's, and "
                "the staging drive 2.08.", _RESULTS, ["tiered_load"], [
                    Condition("load, bytes to the capacity drive: without a staging drive over with it", TIMES,
                              ratio(written_to("capacity", load, *_ON_ONE), written_to("capacity", load, *_ON_BOTH)),
                              between(2, 3),
                              published=exactly(2.4)),
                    Condition("load, bytes to all drives: with a staging drive over without", TIMES,
                              ratio(written_in_all(load, *_ON_BOTH), written_in_all(load, *_ON_ONE)),
                              between(0.75, 1.25),
                              published=exactly((2978 + 4158) / 7260))], DRIVES),
    Claim("H7", "In the run phases the capacity drive gets at most half the bytes with a staging drive, except in C.",
          _RESULTS,
          ["tiered_ycsb"], [
              Condition(f"YCSB {letter.upper()}, bytes to the capacity drive: without a staging drive over with it",
                        TIMES, ratio(written_to("capacity", ycsb, OURS, letter, ALONE),
                                     written_to("capacity", ycsb, OURS, letter, BOTH)),
                        at_least(2), published=at_least(2)) for letter in "abdf"], DRIVES),
    Claim("H10", "Keys on the staging drive make lookups faster.", "[HSE], data durability and tiering",
          ["tiered_policies"], [
        Condition("YCSB C, values of leaves on the capacity drive: their keys on the staging drive over keys there, "
                  "too", TIMES, ratio(policy("staging_max_capacity", "ycsb-c"),
                                      policy("staging_min_capacity", "ycsb-c")), at_least(1.1))],
        DRIVES),
]
