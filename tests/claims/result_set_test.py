"""The results that `pmlab run` left in a folder, as evidence, and the verdicts on it."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

import package  # noqa: F401
from pmlab.claims import judge_folder
from pmlab.claims.catalogue import every_claim
from pmlab.claims.evidence import Evidence, Uncounted
from pmlab.claims.result_set import cases_of_bench, read_result_set
from pmlab.claims.verdicts import judge_result_set
from pmlab.errors import Failure


def result(index, threads, throughput, repeat=1):
    return {"index": index, "threads": threads, "phase": "read", "repeat": repeat, "medium": "dram",
            "throughput_ops_per_s": throughput, "latency_ns": {"mean": 1e9 / throughput}, "cache": None}


def document_of(results, medium):
    return {"schema": 1, "machine": {"medium": medium}, "results": results, "skipped": []}


def hybrids(plus):
    return [result("hybrid_index", 1, 4), result("hybrid_index_plus", 1, plus), result("hybrid_index", 16, 40),
            result("hybrid_index_plus", 16, 20 * plus)]


def claims(*names):
    return [claim for claim in every_claim() if claim.id in names]


class CasesOfBench(unittest.TestCase):
    def test_are_medians_and_know_the_most_threads(self):
        e = Evidence({"schema": 1, "cases": cases_of_bench(document_of(
            [result("a", 1, 10, 1), result("a", 1, 40, 2), result("a", 1, 20, 3), result("a", 4, 70)], "dram"), "e")}, "test")
        self.assertEqual(e.figure("e/index=a/threads=1/phase=read").value, 20)
        self.assertEqual(e.figure("e/index=a/threads=1/phase=read", "latency_ns/mean").value, 5e7)
        self.assertEqual(e.figure("e/index=a/threads=4/phase=read").value, 70)
        self.assertEqual(e.figure("e/index=a/threads=most/phase=read").value, 70)
        self.assertEqual(e.figure("e/index=a/threads=1/phase=read").n, 3)
        with self.assertRaises(Uncounted):
            e.figure("e/index=a/threads=4/phase=read", "cache/hit_ratio")

    def test_a_skipped_phase_is_a_skipped_case(self):
        document = document_of([], "dram") | {"skipped": [{"index": "a", "threads": 2, "phase": "scan",
                                                           "reason": "it has no order"}]}
        self.assertEqual(cases_of_bench(document, "e")[0]["skipped"], "it has no order")


class ResultSet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmlab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.manifest = {"schema": 1, "experiments": [], "runs": []}

    def add(self, name, values, document, status=0):
        file = self.folder / "raw" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document))
        self.manifest["runs"].append({"name": name, "experiment": name.split("/")[0], "values": values, "status": status})
        (self.folder / "manifest.json").write_text(json.dumps(self.manifest))

    def verdict_on(self, medium, place=0):
        return json.loads((self.folder / "claims" / f"{medium}.json").read_text())["claims"][place]["verdict"]

    def test_is_one_evidence_for_each_medium(self):
        self.add("x/a", {"medium": "simulated:aep", "distribution": "uniform"},
                 document_of([result("i", 1, 5)], "simulated:aep"))
        self.add("x/b", {"medium": "pmem:{pool}", "distribution": "uniform"},
                 document_of([result("i", 1, 7)], "pmem:/somewhere"))
        self.add("x/c", {"medium": "simulated:aep"}, document_of([result("i", 1, 9)], "simulated:aep"), 1)
        everything = read_result_set(self.folder)
        self.assertEqual([m.medium for m in everything], ["simulated:aep", "pmem"])
        first = Evidence(everything[0].document, "first")
        self.assertEqual(first.figure("x/distribution=uniform/index=i/threads=1/phase=read").value, 5)
        self.assertNotIn("x/index=i/threads=1/phase=read", first, "of a cell that failed")

    def test_folders_that_are_none_are_refused(self):
        with self.assertRaises(Failure):
            read_result_set(self.folder)
        self.add("x/a", {}, {"schema": 1})
        with self.assertRaises(Failure):
            read_result_set(self.folder)

    def add_hybrids(self):
        self.add("hybrid/aep", {"medium": "simulated:aep"}, document_of(hybrids(6), "simulated:aep"))
        self.add("hybrid/classic", {"medium": "simulated:classic"}, document_of(hybrids(3), "simulated:classic"))

    def test_the_same_claim_is_judged_on_each_medium(self):
        self.add_hybrids()
        found = judge_result_set(self.folder, claims("I1", "I2"), "pmlab run")
        self.assertEqual(len(found.tables), 2)
        self.assertEqual(found.unmeasured, ["I2"], "once, though neither medium has it")
        self.assertEqual(self.verdict_on("simulated-aep"), "reproduced")
        self.assertEqual(self.verdict_on("simulated-classic"), "not reproduced")
        self.assertEqual(found.summary, "3 verdicts on 2 claims: 1 reproduced, 1 not reproduced, 1 not measured")

    def test_the_end_of_a_run_judges_the_claims_that_its_experiments_feed(self):
        self.manifest["experiments"] = [{"name": "hybrid", "claims": ["I1"]}]
        self.add_hybrids()
        (self.folder / "claims").mkdir()
        (self.folder / "claims" / "old.json").write_text("{}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            judge_folder(self.folder, "pmlab run hybrid")
        self.assertEqual(printed.getvalue(), "2 verdicts on 1 claims: 1 reproduced, 1 not reproduced\n")
        self.assertEqual(sorted(p.name for p in (self.folder / "claims").iterdir()),
                         ["simulated-aep.json", "simulated-classic.json"], "verdicts on earlier results are gone")

    def test_repeats_that_disagree_decide_nothing(self):
        steady = [result("hybrid_index", t, 100, r) for t in (1, 16) for r in (1, 2, 3)]
        plus = [result("hybrid_index_plus", t, s, r) for t in (1, 16) for r, s in ((1, 90), (2, 170), (3, 260))]
        self.add("hybrid/dram", {"medium": "dram"}, document_of(steady + plus, "dram"))
        judge_result_set(self.folder, claims("I1"), "pmlab run")
        self.assertEqual(self.verdict_on("dram"), "undecided")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
