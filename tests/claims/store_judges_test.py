"""Claims about stores are judged by their figures: each holds where all is as claimed, and each condition can fail."""
import sys
import unittest

from invented import Stores
from judging import StoreJudgesTest
from pmlab.claims.catalogue import every_claim
from pmlab.claims.judging import NOT_MEASURED, UNDECIDED, judge
from pmlab.claims.tables import rules_markdown, verdicts_table, verdicts_to_json

_MEAN = "latency_ns/mean"
_OURS = "container=pmem/store=chunk_store/phase=overwrite"
_CHANGES = [
    ("U1", 0, f"{_OURS}/pattern=random/size=4K/depth=32", 0.3),
    ("U1", 0, f"{_OURS}/pattern=random/size=4K/depth=32", 1.4),
    *(("U2", place, f"{_OURS}/pattern=random/size={size}/depth=32", factor)
      for place, size in enumerate(("8K", "16K")) for factor in (0.7, 1.4)),
    ("U2", 2, f"{_OURS}/pattern=random/size=4K/depth=32", 0.7),
    ("U2", 3, f"{_OURS}/pattern=random/size=16K/depth=32", 3),
    *(("U3", place, f"{_OURS}/pattern=sequential/size={size}/depth=32", factor)
      for place, size in enumerate(("4K", "8K", "16K", "64K")) for factor in (0.7, 1.4)),
    ("U3", 4, f"{_OURS}/pattern=sequential/size=4K/depth=32", 0.8),
    ("U3", 5, f"{_OURS}/pattern=sequential/size=16K/depth=32", 2),
    ("U3", 6, f"{_OURS}/pattern=sequential/size=64K/depth=32", 2),
    ("U4", 0, "store=chunk_store/phase=read/pattern=random/size=4K", 0.3),
    ("U4", 1, "store=chunk_store/phase=read/pattern=sequential/size=4K", 0.3),
    *(("U5", place, f"store=rocksdb_meta_deferred/phase=overwrite/pattern=sequential/size={size}/depth=1$", factor,
       _MEAN)
      for place, size in enumerate(("4K", "8K", "16K")) for factor in (0.7, 1.4)),
    ("U5", 3, "store=rocksdb_meta_deferred/phase=overwrite/pattern=sequential/size=8K/depth=1$", 4, _MEAN),
    ("U5", 4, "store=rocksdb_meta_deferred/phase=overwrite/pattern=sequential/size=16K/depth=1$", 2, _MEAN),
    ("U6", 0, "phase=fill/pattern=sequential/size=4K", 1.06, _MEAN),
    ("U6", 0, "phase=fill/pattern=sequential/size=4K", 0.95, _MEAN),
    ("U6", 1, "phase=fill/pattern=sequential/size=16K", 1.04, _MEAN),
    ("U6", 1, "phase=fill/pattern=sequential/size=16K", 0.97, _MEAN),
    ("U7", 0, f"{_OURS}/pattern=random/size=8K/depth=1$", 0.8, _MEAN),
    ("U8", 0, f"{_OURS}/pattern=random/size=8K/depth=1$", 1.2, _MEAN),
    ("U9", 0, "container=blocks/.*/pattern=sequential/size=16K", 1.3),
    ("U9", 1, "container=kv/.*/pattern=sequential/size=16K", 0.7),
    ("U9", 2, "container=kv/.*/pattern=sequential/size=16K", 2),
    ("U9", 3, "container=blocks/.*/pattern=random/size=16K", 3),
    ("U9", 4, "container=kv/.*/pattern=random/size=16K", 3),
    ("U10", 0, "record_cache/cache=100%", 0.5),
    ("U10", 1, "record_cache/cache=10%", 1.5),
    ("U10", 1, "record_cache/cache=10%", 0.7),
    ("U10", 2, "record_cache/cache=10%", 2),
    ("U11", 0, "block_reads/container=blocks/.*/size=8K", 1.5),
    ("U11", 1, "block_reads/container=blocks/.*/size=16K", 0.5),
    ("U12", 0, "block_bytes/merge=copy/.*/size=8K", 2, "medium_counts/lines"),
    ("U12", 1, "block_bytes/merge=copy/.*/size=8K", 2, "medium_counts/fences"),
    ("U14", 0, "ring/ring=16/store=chunk_store", 0.95),
    ("U15", 0, "container=blocks", 1.001, "space/used_bytes"),
    ("U15", 1, "container=blocks", 1.2, "space/medium_bytes"),
    ("U16", 0, "block_ageing/.*/phase=overwrite-2", 0.5, "space/longest_free_extent"),
    ("U16", 1, "block_ageing/.*/store=chunk_store/phase=overwrite-2", 1.5, "latency_ns/p99"),
    ("U17", 0, "block_bytes/merge=copy/.*/size=16K", 0.6, "amplification/host"),
    ("U17", 0, "block_bytes/merge=copy/.*/size=16K", 1.5, "amplification/host"),
    ("U17", 1, "block_bytes/merge=remap/.*/size=16K", 1.2, "amplification/host"),
    ("U18", 0, "block_writes/container=kv/.*/pattern=random/size=4K", 5, "cpu_ns_per_operation"),
    ("U18", 1, "block_writes/container=kv/.*/pattern=random/size=4K", 5, "cpu_ns_per_operation"),
    ("U19", 0, "store=raw_dwb/phase=pages", 2),
    ("U19", 1, "store=raw_fpw/phase=pages", 2),
]


class StoreJudges(StoreJudgesTest, unittest.TestCase):
    claims = [claim for claim in every_claim() if claim.id[0] == "U"]
    source = "[UStore]"
    invented = Stores
    count = 19
    crash_states = ("U13", "chunk_store")
    changes = _CHANGES

    def test_parts_that_are_not_there_are_named_and_never_passed(self):
        for name, case in (("U9", "container=kv"), ("U10", "cache=10%"), ("U18", "container=kv")):
            results = self.invented()
            results.cases = {key: value for key, value in results.cases.items() if case not in key}
            judgement = self.judged(name, results)
            self.assertEqual(judgement.verdict, NOT_MEASURED, name)
            self.assertIn("chunk_store", judgement.reason)

    def test_repeats_that_disagree_decide_nothing(self):
        results = self.invented()
        for name, result in results.cases.items():
            result.medium = "emulated:aep"
            factors = (0.2, 1, 1.5) if "chunk_store" in name else (1, 1, 1)
            result.extra = {"turns": "t", "repeats": [{"value": result.value * f} for f in factors]}
        self.assertEqual(self.judged("U2", results).verdict, UNDECIDED)

    def test_a_stand_in_is_named_wherever_the_claim_is(self):
        results = self.invented()
        claim = self.claims[0]
        judgement = judge(claim, results.evidence())
        self.assertIn("not BlueStore itself", claim.stand_in)
        self.assertIn(claim.stand_in, verdicts_table([judgement], results.evidence()))
        self.assertEqual(verdicts_to_json([judgement], results.evidence(), "x")["claims"][0]["stand_in"],
                         claim.stand_in)
        self.assertIn(claim.stand_in, rules_markdown([claim]))
        self.assertIn("substitute, not TPC-C", self.claims[18].stand_in)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
