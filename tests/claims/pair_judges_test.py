"""Claims about key-value SSDs are judged by their figures: each holds where all is as claimed, and each condition can
fail."""
import sys
import unittest

import stores_document as stores
from invented import Pairs
from judging import StoreJudgesTest
from pmlab.claims.catalogue import every_claim
from pmlab.claims.result_set import cases_of_pairs, prefix_of

_KV = "log=on/store=kv_ssd/phase=load"
_ROCKSDB = "log=on/store=rocksdb/phase=load"
_CHANGES = [
    ("K1", 0, f"{_KV}/pattern=zipfian", 1.01, "amplification/host"),
    ("K1", 1, f"{_KV}/pattern=uniform", 0.99, "amplification/host"),
    ("K1", 2, f"{_ROCKSDB}/pattern=uniform", 0.3, "written_bytes"),
    ("K2", 0, "kv_flash/", 1.1, "store_stats/written_moved"),
    ("K2", 0, "kv_flash/", 0.9, "store_stats/written_moved"),
    ("K3", 0, "kv_memory/records=100k/", 1.02, "space/memory_bytes"),
    ("K5", 0, "log=off/store=rocksdb", 0.5),
    ("K5", 0, "log=off/store=rocksdb", 1.5),
    ("K6", 0, f"{_KV}/pattern=uniform", 0.85),
    ("K6", 1, f"{_ROCKSDB}/pattern=uniform", 1.3),
    ("K7", 0, f"{_ROCKSDB}/pattern=zipfian", 2, "written_bytes"),
    ("K8", 0, "devices=18/", 0.9),
    ("K8", 1, f"{_ROCKSDB}/pattern=uniform", 0.7, "cpu_ns_per_operation"),
    ("K8", 2, f"{_KV}/pattern=uniform", 1.2, "cpu_ns_per_operation"),
    ("K9", 0, "store=kv_ssd/phase=ycsb-a", 0.3),
    *(("K9", place, f"store=kv_ssd/phase=ycsb-{letter}", factor)
      for place, letter, factor in ((1, "a", 0.3), (2, "b", 0.8), (3, "c", 0.8), (4, "d", 0.8))),
    ("K10", 0, "cache=20%/", 0.7),
    ("K10", 0, "cache=20%/", 1.3),
    ("K10", 1, "cache=20%/", 0.9, "hit_ratio"),
    ("K10", 1, "cache=20%/", 1.1, "hit_ratio"),
    ("K11", 0, "memory=20%/", 1.5),
    ("K12", 0, "store=kv_ssd_no_local", 2),
    ("K12", 1, "store=kv_ssd_no_filter", 2),
    ("K13", 0, "phase=exist", 20, "commands"),
]


class PairJudges(StoreJudgesTest, unittest.TestCase):
    claims = [claim for claim in every_claim() if claim.id[0] == "K"]
    source = "[KV-SSD]"
    invented = Pairs
    count = 13
    crash_states = ("K4", "kv_ssd")
    changes = _CHANGES

    def test_stand_ins_and_derived_figures_are_named(self):
        for claim in self.claims:
            if claim.id != "K13":
                self.assertTrue(claim.stand_in, claim.id)
        for condition in self.claims[7].conditions[1:]:
            self.assertIn("derived", condition.what)


class Cases(unittest.TestCase):
    def test_a_case_has_its_keys_and_all_bytes(self):
        cases = [stores.pair_case("rocksdb", rate, repetition=n) for n, rate in ((1, 10), (2, 40), (3, 20))]
        cases += [stores.pair_case("rocksdb", None, phase="open", pattern=None, opening={"complete_ns": 7.0})]
        found = {case["name"]: case for case in cases_of_pairs(stores.pair_document(cases), "e/log=on")}
        self.assertEqual(list(found), ["e/log=on/store=rocksdb/phase=load/pattern=uniform/value=4K/depth=8",
                                       "e/log=on/store=rocksdb/phase=open/pattern=none/value=4K/depth=8"])
        load, opened = found.values()
        self.assertEqual((load["value"], load["unit"], len(load["repeats"])), (20, "ops/s", 3))
        self.assertEqual(load["written_bytes"], 1000 + 200 + 30 + 4, "both drives, and settling")
        self.assertEqual(load["records"], 100)
        self.assertEqual((opened["value"], opened["unit"]), (7, "ns"))

    def test_the_matrix_is_in_names_but_for_keys_of_cases(self):
        values = {"log": "on", "store": "rocksdb", "phases": "load", "pattern": "uniform", "value": "4K", "depth": "8",
                  "records": "1k"}
        self.assertEqual(prefix_of("e", values, "pairs"), "e/log=on/records=1k")
        before = {key: value for key, value in values.items() if key != "records"} | {"keys": "1k"}
        self.assertEqual(prefix_of("e", before, "pairs"), "e/log=on/records=1k", "a result set of the version before")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
