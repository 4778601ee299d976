"""The evidence that judges see of results, and the verdicts on cases that are not there."""
import sys
import unittest

import package  # noqa: F401
from pmlab.claims.claim import NS, Claim, Condition
from pmlab.claims.drive import CASES, DRIVE, drive_cases
from pmlab.claims.evidence import Evidence, Missing, NotApplicable, Uncounted
from pmlab.claims.judging import NOT_APPLICABLE, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED, judge
from pmlab.claims.limits import at_most
from pmlab.claims.quantity import largest_size_near_lowest, measured
from pmlab.errors import Failure


def document_of(*cases):
    return {"schema": 1, "cases": list(cases)}


def latency(name, ns, **more):
    return {"name": name, "value": ns, "unit": "ns", "skipped": None} | more


def skipped(name):
    return {"name": name, "value": None, "unit": None, "skipped": "no such CPU"}


def faster_than_ten(where_counted=False, path="value"):
    return Claim("X1", "It is fast.", "nowhere", ["memory"], [
        Condition("time", NS, measured("a", path), at_most(10), where_counted),
        Condition("other time", NS, measured("b"), at_most(10))])


def judged(claim, *cases):
    return judge(claim, Evidence(document_of(*cases), "test"))


class EvidenceTest(unittest.TestCase):
    def test_takes_off_the_factor_that_an_emulated_device_was_slowed_down_by(self):
        slow = latency("a", 600, scale=2.0, reads={"gib_per_s": 3.0, "latency_ns": {"mean": 500.0}},
                       media={"read_amplification": 4.0})
        e = Evidence(document_of(slow), "test")
        self.assertEqual(e.figure("a").value, 300)
        self.assertEqual(e.figure("a", "reads/gib_per_s").value, 6)
        self.assertEqual(e.figure("a", "reads/latency_ns/mean").value, 250)
        self.assertEqual(e.figure("a", "media/read_amplification").value, 4)
        with self.assertRaises(Uncounted):
            e.figure("a", "writes/gib_per_s")
        with self.assertRaises(Missing):
            e.figure("b")

    def test_a_skipped_case_has_no_figure(self):
        with self.assertRaisesRegex(NotApplicable, r"no such CPU \(a\)"):
            Evidence(document_of(skipped("a")), "test").figure("a")

    def test_refuses_documents_that_are_no_results(self):
        for document in ([], {"schema": 2, "cases": []}, {"schema": 1}, document_of(1), document_of({"value": 1}),
                         document_of({"name": "a", "value": None, "unit": "ns"}), {"schema": True, "cases": []},
                         document_of({"name": "a", "value": True, "unit": "ns"})):
            with self.subTest(document=document), self.assertRaisesRegex(Failure, "f.json"):
                Evidence(document, "f.json")


class Verdicts(unittest.TestCase):
    def test_a_failure_decides_whatever_else_is_skipped(self):
        claim = faster_than_ten()
        self.assertEqual(judged(claim, latency("a", 5), latency("b", 5)).verdict, REPRODUCED)
        self.assertEqual(judged(claim, latency("a", 5), latency("b", 15)).verdict, NOT_REPRODUCED)
        self.assertEqual(judged(claim, skipped("a"), latency("b", 15)).verdict, NOT_REPRODUCED)
        judgement = judged(claim, skipped("a"), latency("b", 5))
        self.assertEqual(judgement.verdict, NOT_APPLICABLE)
        self.assertEqual(judgement.reason, "no such CPU (a)")
        self.assertEqual(judged(claim, latency("b", 15)).verdict, NOT_MEASURED)

    def test_figures_that_are_not_counted_are_left_out_only_where_the_claim_allows_it(self):
        cases = latency("a", 5), latency("b", 5)
        self.assertEqual(judged(faster_than_ten(True, "media/x"), *cases).verdict, REPRODUCED)
        self.assertEqual(judged(faster_than_ten(False, "media/x"), *cases).verdict, NOT_MEASURED)

    def test_published_figures_stand_beside(self):
        judgement = judged(faster_than_ten(), latency("a", 5, published=12.0, published_unit="ns"), latency("b", 5))
        self.assertEqual(judgement.verdict, REPRODUCED, "they decide nothing")
        self.assertEqual(judgement.findings[0].published, 12.0)
        self.assertIsNone(judgement.findings[1].published)

    def test_lacking_cases_are_counted(self):
        self.assertEqual(judged(faster_than_ten()).reason, "no a and 1 more")


class Quantities(unittest.TestCase):
    def test_sizes_near_the_lowest(self):
        quantity = largest_size_near_lowest([(64, measured("a")), (256, measured("b")), (512, measured("c"))], 1.05)

        def largest(small, middle, large):
            e = Evidence(document_of(latency("a", small), latency("b", middle), latency("c", large)), "test")
            return quantity.of(e, lambda name, path: e.figure(name, path).value)
        self.assertEqual(largest(100, 100, 200), 256)
        self.assertEqual(largest(100, 110, 200), 64)
        self.assertEqual(largest(100, 110, 104), 512)


class Drive(unittest.TestCase):
    def test_the_cases_of_the_drive_that_claims_compare_with(self):
        document = {"machine": {"medium": DRIVE}, "cases": [{"name": "random-read/bytes=4096/depth=1"}, *({"name": c} for c in CASES)]}
        self.assertEqual([case["name"] for case in drive_cases(document)], list(CASES))
        document["machine"]["medium"] = "file:/mnt/nvme/test"
        self.assertEqual(drive_cases(document), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
