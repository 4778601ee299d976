"""Claims about tiered stores are judged by their figures: each holds where all is as claimed, and each condition can
fail."""
import sys
import unittest

import stores_document as stores
from invented import Tiers
from judging import StoreJudgesTest
from pmlab.claims.catalogue import every_claim
from pmlab.claims.result_set import cases_of_pairs

_BOTH = "place=staging_max_capacity/staging=emulated:9300/store=tiered"
_LOAD, _YCSB = f"tiered_load/{_BOTH}", f"tiered_ycsb/{_BOTH}"
_ONE = "place=capacity_only/staging=none/store=tiered"
_RUN = f"tiered_ycsb/{_ONE}"
_ALL_BYTES = ("written_bytes",)
_CHANGES = [
    ("H1", 0, _LOAD, 0.6),
    ("H1", 0, _LOAD, 1.5),
    ("H2", 0, f"{_YCSB}/phase=ycsb-a", 0.6),
    ("H2", 1, f"{_YCSB}/phase=ycsb-f", 0.6),
    ("H3", 0, f"{_YCSB}/phase=ycsb-b", 0.7),
    ("H3", 1, f"{_YCSB}/phase=ycsb-d", 1.5),
    *(("H4", place, f"{_RUN}/phase=ycsb-{letter}", 0.5, "read_latency_ns/p99_9")
      for place, letter in enumerate("abdf")),
    ("H4", 4, f"{_RUN}/phase=ycsb-c", 1.5, "read_latency_ns/p99_9"),
    ("H5", 0, f"{_RUN}/phase=ycsb-d", 1.25, "write_latency_ns/mean"),
    ("H6", 0, _LOAD, 2, "device_io/written_bytes"),
    ("H6", 1, _LOAD, 1.5, *_ALL_BYTES),
    *(("H7", place, f"{_YCSB}/phase=ycsb-{letter}", 3, "device_io/written_bytes")
      for place, letter in enumerate("abdf")),
    ("H9", 0, _LOAD, 0.5, "staging_io/by_stream/log/written_bytes"),
    ("H10", 0, "place=staging_max_capacity/store=tiered/phase=ycsb-c", 0.8),
    ("H11", 0, "tiered_load/.*store=rocksdb", 2.1),
    ("H11", 1, "tiered_load/.*store=rocksdb", 0.5, *_ALL_BYTES),
    *(("H11", place, f"store=rocksdb/phase=ycsb-{letter}", 3) for place, letter in ((2, "a"), (3, "c"), (4, "e"))),
    ("H12", 0, "phase=update-5", 2, "space/used_bytes"),
    ("H12", 1, "phase=update-3", 4, *_ALL_BYTES),
    ("H12", 2, "phase=update-5", 0.5),
]


class TierJudges(StoreJudgesTest, unittest.TestCase):
    claims = [claim for claim in every_claim() if claim.id[0] == "H"]
    source = "[HSE]"
    invented = Tiers
    count = 12
    crash_states = ("H8", "tiered")
    changes = _CHANGES

    def test_each_names_its_stand_in(self):
        for claim in self.claims:
            self.assertTrue(claim.stand_in, claim.id)


class Cases(unittest.TestCase):
    def test_phases_of_one_name_have_numbers(self):
        cases = [stores.pair_case("tiered", rate, phase="update", repetition=n) for n in (1, 2) for rate in (10, 20)]
        found = [case["name"] for case in cases_of_pairs(stores.pair_document(cases), "e")]
        self.assertEqual(found, [f"e/store=tiered/phase={phase}/pattern=uniform/value=4K/depth=8"
                                 for phase in ("update", "update-2")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
