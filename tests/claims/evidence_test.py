"""The evidence that judges see of results, and the verdicts on cases that are not there."""
import collections
import math
import sys
import unittest

import package  # noqa: F401
from pmlab.claims.claim import NS, Claim, Condition
from pmlab.claims.drive import CASES, DRIVE, drive_cases
from pmlab.claims.evidence import Evidence, Missing, NotApplicable, Uncounted
from pmlab.claims.judging import BY_CONSTRUCTION, NOT_APPLICABLE, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED, judge
from pmlab.claims.limits import at_most, between, exactly
from pmlab.claims.quantity import highest, largest_difference, lowest, measured, over
from pmlab.claims.tables import in_words, rules_markdown, verdicts_table, verdicts_to_json
from pmlab.errors import Failure


def document_of(*cases):
    return {"schema": 1, "cases": list(cases)}


def latency(name, ns, **more):
    return {"name": name, "value": ns, "values": 3 * [ns], "unit": "ns", "skipped": None} | more


def skipped(name):
    return {"name": name, "value": None, "unit": None, "skipped": "no such CPU"}


def faster_than_ten(where_counted=False, path="value", **more):
    return Claim("X1", "It is fast.", "nowhere", ["memory"], [
        Condition("time", NS, measured("a", path), at_most(10), where_counted, published=exactly(9)),
        Condition("other time", NS, measured("b"), at_most(10))], **more)


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
        self.assertEqual(judgement.findings[0].public, 12.0)
        self.assertIsNone(judgement.findings[1].public)

    def test_lacking_cases_are_counted(self):
        self.assertEqual(judged(faster_than_ten()).reason, "no a and 1 more")


class ByConstruction(unittest.TestCase):
    claim = faster_than_ten(by_construction="it is computed")

    def test_is_a_verdict_of_its_own(self):
        judgement = judged(self.claim, latency("a", 5), latency("b", 5))
        self.assertEqual((judgement.verdict, judgement.reason), (BY_CONSTRUCTION, "it is computed"))
        self.assertEqual(in_words(collections.Counter([judgement.verdict, REPRODUCED])),
                         "reproduced 1, by construction 1")

    def test_a_condition_that_fails_is_a_defect(self):
        self.assertEqual(judged(self.claim, latency("a", 5), latency("b", 15)).verdict, NOT_REPRODUCED)
        self.assertEqual(judged(self.claim, latency("a", 5)).verdict, NOT_MEASURED)

    def test_is_said_in_rules_and_results(self):
        self.assertIn("*By construction: it is computed.*", rules_markdown([self.claim]))
        evidence = Evidence(document_of(latency("a", 5), latency("b", 5)), "test")
        found = verdicts_to_json([judge(self.claim, evidence)], evidence, "x")["claims"][0]
        self.assertEqual((found["by_construction"], found["partner"]), ("it is computed", None))


class WithoutThePartner(unittest.TestCase):
    claim = faster_than_ten(partner="The other store")

    def test_nothing_is_reproduced_and_the_figures_of_the_substitute_stand_beside(self):
        for other, holds in ((5, True), (15, False)):
            judgement = judged(self.claim, latency("a", 5), latency("b", other))
            self.assertEqual(judgement.verdict, NOT_APPLICABLE)
            self.assertIn("The other store is not here", judgement.reason)
            self.assertEqual([(f.measured.value, f.holds) for f in judgement.findings], [(5, True), (other, holds)])

    def test_figures_that_lack_are_said_first(self):
        self.assertEqual(judged(self.claim, latency("a", 5)).verdict, NOT_MEASURED)

    def test_is_said_in_rules_and_results(self):
        self.assertIn("without the source's partner: The other store.", rules_markdown([self.claim]))
        evidence = Evidence(document_of(latency("a", 5), latency("b", 15)), "test")
        judgement = judge(self.claim, evidence)
        found = verdicts_to_json([judgement], evidence, "x")["claims"][0]
        self.assertEqual((found["partner"], found["conditions"][1]["measured"]), ("The other store", 15))
        self.assertIn("15 ns", verdicts_table([judgement], evidence))


class Published(unittest.TestCase):
    """The statement of the source has a column of its own."""

    def test_figures_ranges_and_directions(self):
        for stated, text, figure in ((exactly(9), "9 ns", 9), (between(2, 3), "2 ns to 3 ns", None),
                                     (None, "direction only", None)):
            claim = Claim("X1", "It is so.", "nowhere", ["memory"],
                          [Condition("time", NS, measured("a"), at_most(10), published=stated)])
            evidence = Evidence(document_of(latency("a", 5, published=12.0, published_unit="ns")), "test")
            judgement = judge(claim, evidence)
            found = verdicts_to_json([judgement], evidence, "x")["claims"][0]["conditions"][0]
            self.assertEqual((found["stated"], found["published"], found["public"]), (text, figure, 12.0))
            self.assertIn(f"published: {text}  public 12 ns !", verdicts_table([judgement], evidence))
            self.assertTrue(rules_markdown([claim]).endswith(f"| time: **at most 10 ns** | {text} |\n"))

    def test_it_is_there_without_a_measurement(self):
        judgement = judged(faster_than_ten())
        found = verdicts_to_json([judgement], Evidence(document_of(), "test"), "x")["claims"][0]["conditions"]
        self.assertEqual([c["published"] for c in found], [9, None])


class Quantities(unittest.TestCase):
    def test_over_0_is_no_number(self):
        for above in (0, 1, -1):
            self.assertTrue(math.isnan(over(above, 0)))

    def test_no_number_is_not_lost_among_numbers(self):
        for quantity in (highest, lowest):
            for values in ((math.nan, 1), (1, math.nan), (math.nan, math.nan)):
                parts = [measured(name) for name in "ab"]
                found = quantity(parts).of(None, lambda name, path, values=values: values["ab".index(name)])
                self.assertTrue(math.isnan(found), values)

    def test_a_pair_with_0_has_no_difference(self):
        for values in ((0, 1), (1, 0), (0, 0)):
            found = largest_difference([(measured("a"), measured("b"))]).of(
                None, lambda name, path, values=values: values["ab".index(name)])
            self.assertTrue(math.isnan(found), values)


class Drive(unittest.TestCase):
    def test_the_cases_of_the_drive_that_claims_compare_with(self):
        document = {"machine": {"medium": DRIVE}, "cases": [{"name": "random-read/bytes=4096/depth=1"},
                                                            *({"name": c} for c in CASES)]}
        self.assertEqual([case["name"] for case in drive_cases(document)], list(CASES))
        document["machine"]["medium"] = "file:/mnt/nvme/test"
        self.assertEqual(drive_cases(document), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
