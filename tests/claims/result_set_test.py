"""The results that `pmlab run` left in a folder, as evidence, and the verdicts on it."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

import package  # noqa: F401
import stores_document as stores
from pmlab.claims import judge_folder
from pmlab.claims.catalogue import every_claim
from pmlab.claims.evidence import Evidence, Uncounted
from pmlab.claims.result_set import cases_of_bench, cases_of_campaign, cases_of_pairs, cases_of_stores, read_result_set
from pmlab.claims.verdicts import judge_result_set
from pmlab.errors import Failure


def result(index, threads, throughput, repeat=1):
    return {"index": index, "threads": threads, "phase": "read", "repeat": repeat, "medium": "dram",
            "throughput_ops_per_s": throughput, "latency_ns": {"mean": 1e9 / throughput}, "cache": None}


def document_of(results, medium):
    return {"schema": 1, "machine": {"medium": medium}, "results": results, "skipped": []}


def hybrids(plus):
    return [result("hybrid_index", 1, 4), result("hybrid_index_plus", 1, plus), result("hybrid_index", 16, 40),
            result("hybrid_index_plus", 16, 10 * plus)]


def claims(*names):
    return [claim for claim in every_claim() if claim.id in names]


class CasesOfBench(unittest.TestCase):
    def test_are_medians_and_know_the_most_threads(self):
        e = Evidence({"schema": 1, "cases": cases_of_bench(document_of(
            [result("a", 1, 10, 1), result("a", 1, 40, 2), result("a", 1, 20, 3), result("a", 4, 70)], "dram"), "e")},
                     "test")
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


class CasesOfStores(unittest.TestCase):
    def test_are_medians_of_repetitions_and_number_a_phase_that_comes_again(self):
        cases = [stores.case("raw", rate, repetition=n, clock="real") for n, rate in ((1, 10), (2, 40), (3, 20))]
        cases += [stores.case("raw", 70, repetition=n) for n in (1, 2, 3)]
        cases += [stores.case("chunk_store", 5, phase="open", pattern=None) | {"throughput": None}]
        found = cases_of_stores(stores.document(cases), "e/ring=16")
        e = Evidence({"schema": 1, "cases": found}, "test")
        name = "e/ring=16/store=raw/phase={}/pattern=random/size=4K/depth=32"
        first, second = (e.figure(name.format(phase)) for phase in ("overwrite", "overwrite-2"))
        self.assertEqual((first.value, first.low, first.high, first.n), (20, 10, 40, 3))
        self.assertEqual((second.value, second.low, second.high), (70, 70, 70), "its repeats agree")
        self.assertEqual(e.figure(name.format("overwrite"), "amplification/host").value, 1)
        self.assertEqual(e.figure(name.format("overwrite"), "chunk_bytes").value, 1 << 20)
        self.assertEqual(len(found), 2, "opening is no operation")


class Counts(unittest.TestCase):
    """One repeat of a count says it all, and of bytes on a real clock it does not."""

    def exact(self, cases, path):
        [name] = {case["name"] for case in cases if "most" not in case["name"]}
        figure = Evidence({"schema": 1, "cases": cases}, "test").figure(name, path)
        return figure.low == figure.value == figure.high

    def test_of_pairs(self):
        for device, exact in (("memory", True), ("emulated:pm983-kv", False)):
            document = stores.pair_document([stores.pair_case("kv_ssd", 10)])
            document["options"]["device"] = device
            cases = cases_of_pairs(document, "e")
            self.assertIs(self.exact(cases, "amplification/host"), exact, device)
            self.assertTrue(self.exact(cases, "user_bytes"))
            self.assertFalse(self.exact(cases, "value"), "a time is no count")

    def test_of_volumes(self):
        for medium, clock, exact in (("counted:dram", "real", True), ("emulated:aep", "real", False),
                                     ("simulated:aep", "virtual", True)):
            cases = cases_of_stores(stores.document([stores.case("raw", 10, clock=clock)], medium), "e")
            self.assertIs(self.exact(cases, "space/medium_bytes"), exact, medium)
            self.assertTrue(self.exact(cases, "device_bytes"))

    def test_of_indexes(self):
        for medium, exact in (("simulated:aep", True), ("dram", False)):
            cases = cases_of_bench(document_of([result("a", 1, 10) | {"space": {"pm": 5.0}}], medium), "e")
            self.assertIs(self.exact(cases, "space/pm"), exact, medium)

    def test_of_campaigns(self):
        self.assertTrue(self.exact(cases_of_campaign({"indexes": [{"index": "tiered", "violations": [1],
                                                                   "crash_states": 10}]}), "value"))


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
        self.manifest["runs"].append({"name": name, "experiment": name.split("/")[0], "values": values,
                                      "status": status})
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
        self.add("hybrid/aep", {"medium": "simulated:aep"}, document_of(hybrids(7.2), "simulated:aep"))
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

    def test_stores_are_judged_on_the_medium_of_their_records(self):
        values = {"container": "pmem", "medium": "emulated:aep@/dev/shm/x", "device": "emulated:p4610",
                  "store": "chunk_store,rocksdb_meta_deferred"}
        for cell, lead in (("emulated", 4), ("simulated", 2)):
            cases = [stores.case("chunk_store", 1e5 * lead), stores.case("rocksdb_meta_deferred", 1e5)]
            self.add(f"block_writes/{cell}", values, stores.document(cases, f"{cell}:aep@/dev/shm/x"))
        judge_result_set(self.folder, claims("U1"), "pmlab run")
        for medium, lead in (("emulated-aep", 4), ("simulated-aep", 2)):
            found = json.loads((self.folder / "claims" / f"{medium}.json").read_text())["claims"][0]
            self.assertEqual((found["verdict"], found["conditions"][0]["measured"]), ("not applicable", lead))

    def add_campaign(self, place, **states):
        folder = self.folder / place
        folder.mkdir(parents=True, exist_ok=True)
        indexes = [{"index": name, "crash_states": n, "violations": []} for name, n in states.items()]
        (folder / "campaign.json").write_text(json.dumps({
            "schema": 1, "kind": "campaign", "build": {"commit": "c"}, "indexes": indexes}))

    def test_a_campaign_beside_the_results_decides_on_crash_states(self):
        self.add_hybrids()
        found = judge_result_set(self.folder, claims("U13"), "pmlab run")
        self.assertEqual(found.unmeasured, ["U13"])
        self.add_campaign("verify", chunk_store=600_000, chunk_store_in_place=600_000)
        found = judge_result_set(self.folder, claims("I1", "U13"), "pmlab run")
        self.assertEqual(self.verdict_on("crash-states"), "reproduced")
        self.assertEqual(self.verdict_on("simulated-aep"), "reproduced", "I1 as without it")
        (self.folder / "verify" / "campaign.json").write_text("{}")
        with self.assertRaises(Failure):
            judge_result_set(self.folder, claims("U13"), "pmlab run")

    def test_each_subject_may_have_a_campaign_of_its_own(self):
        self.add_hybrids()
        self.add_campaign("verify/kv_ssd", kv_ssd=2_000_000)
        self.add_campaign("verify/tiered", tiered=1_000_000)
        judge_result_set(self.folder, claims("H8", "K4"), "pmlab run")
        self.assertEqual([self.verdict_on("crash-states", place) for place in (0, 1)], ["reproduced", "reproduced"])
        self.add_campaign("verify", tiered=10)
        with self.assertRaisesRegex(Failure, "tiered is in two campaigns"):
            judge_result_set(self.folder, claims("H8"), "pmlab run")

    def test_repeats_that_disagree_decide_nothing(self):
        steady = [result("hybrid_index", t, 100, r) for t in (1, 16) for r in (1, 2, 3)]
        plus = [result("hybrid_index_plus", t, s, r) for t in (1, 16) for r, s in ((1, 90), (2, 170), (3, 260))]
        self.add("hybrid/dram", {"medium": "dram"}, document_of(steady + plus, "dram"))
        judge_result_set(self.folder, claims("I1"), "pmlab run")
        self.assertEqual(self.verdict_on("dram"), "undecided")

    def test_layouts_of_stores_in_virtual_time_decide_where_one_of_them_does_not(self):
        """U14: at least 0.95 of the drive."""
        for rates, verdict in (((98,), "undecided"), ((97, 98, 99, 98, 97), "reproduced"),
                               ((80, 85, 90, 85, 80), "not reproduced"),
                               ((90, 98, 99, 98, 97), "undecided")):
            with self.subTest(rates=rates):
                cases = [stores.case(store, rate, repetition=n) for n, ours in enumerate(rates, 1)
                         for store, rate in (("chunk_store", ours), ("raw", 100))]
                self.add("ring/16", {"ring": "16"}, stores.document(cases))
                judge_result_set(self.folder, claims("U14"), "pmlab run")
                self.assertEqual(self.verdict_on("simulated-aep"), verdict)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
