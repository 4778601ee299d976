"""The report: one self-contained page whose figures and sentences come from the results."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import sample_results
from planted_tree import SCRIPTS


def make_report(folder, *arguments):
    return subprocess.run([sys.executable, "-m", "report", folder, *arguments], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(SCRIPTS)})


class ReportCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "sample"

    def page(self, documents):
        sample_results.write(self.folder, documents)
        run = make_report(self.folder, "--headline")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.headline = run.stdout
        return (self.folder / "index.html").read_text()

    def page_of(self, *results, **options):
        return self.page({"run": sample_results.document(list(results), **options)})

    def verdict(self, target):
        return next(line for line in self.headline.splitlines() if line.startswith(target))


class WholePage(ReportCase):
    """One page with every kind of run."""

    def test_page(self):
        text = self.page(sample_results.documents())
        with self.subTest("needs nothing else"):
            self.assertNotRegex(text, r"<script|<link|@import|url\(")
            sources = re.findall(r'(?:src|href)="([^"]*)"', text)
            self.assertTrue(sources)
            self.assertTrue(all(s.startswith("data:image/svg+xml;base64,") for s in sources))
            self.assertIn("<svg", base64.b64decode(sources[0].partition(",")[2]).decode())
        with self.subTest("every chart has a sentence and its figures"):
            figures = re.findall(r"<figure.*?</figure>", text, re.S)
            self.assertGreater(len(figures), 20)
            for figure in figures:
                self.assertRegex(figure, r"<figcaption>[^<]*\d[^<]*\.</figcaption>")
                self.assertIn("<table", figure)
        with self.subTest("explains emulated and tmpfs"):
            self.assertIn("No software emulates a specific device", text)
            self.assertIn("tmpfs is not persistent memory", text)
        with self.subTest("simulated runs show how they scale"):
            self.assertIn("<h2>Simulated machines</h2>", text)
            self.assertIn('id="simulated-aep-read-scaling"', text)
            self.assertIn("32 threads, operations/s", text)
            self.assertIn("modelled machine with a core for each thread", text)
        with self.subTest("verdicts"):
            self.assertRegex(self.verdict("CCEH / pmdk_hash: find,"), r"≥ 20x +16\.0x +1.M +not met at this size")
            self.assertRegex(self.verdict("CCEH / pmdk_hash: insert"), r"≥ 12\.5x +16\.0x +1.M +met at this size")
            self.assertNotIn("not measured", self.headline)
        with self.subTest("checked runs show answers, not speed"):
            self.assertIn("<h2>Answers checked</h2>", text)
            self.assertNotIn('id="trace-trace"', text)
        with self.subTest("same results, same bytes"):
            make_report(self.folder)
            self.assertEqual(text, (self.folder / "index.html").read_text())


class Report(ReportCase):
    def test_sentences_follow_the_figures(self):
        self.assertIn("16.0x pmdk_hash", self.page_of(sample_results.result("cceh", "read"),
                                                      sample_results.result("pmdk_hash", "read")))

    def test_sentences_follow_other_figures(self):
        text = self.page_of(sample_results.result("cceh", "read", factor=0.01), sample_results.result("pmdk_hash", "read"))
        self.assertIn("0.16x pmdk_hash", text)
        self.assertNotIn("16.0x pmdk_hash", text)

    def test_what_was_not_measured_has_no_verdict(self):
        self.page_of(sample_results.result("cceh", "read"), sample_results.result("pmdk_hash", "read"))
        self.assertNotIn("not measured", self.verdict("CCEH / pmdk_hash: find,"))
        self.assertIn("not measured in this run", self.verdict("CCEH / pmdk_hash: insert"))

    def test_emulated_and_simulated_figures_are_no_headline(self):
        for medium in ("emulated:aep@/dev/shm/x/pool", "simulated:aep"):
            with self.subTest(medium=medium):
                self.setUp()
                self.page_of(sample_results.result("cceh", "read"), sample_results.result("pmdk_hash", "read"),
                             sample_results.result("cceh", "read", threads=2), medium=medium)
                self.assertIn("not measured in this run", self.verdict("CCEH / pmdk_hash: find,"))
                self.assertIn("not measured in this run", self.verdict("CCEH: find, 2 threads"))

    def test_repeats_give_their_median(self):
        runs = [sample_results.result("cceh", "read", repeat=n) | {"throughput_ops_per_s": v}
                for n, v in enumerate((1e6, 50e6, 2e6), 1)]
        text = self.page_of(*runs)
        self.assertIn("CCEH does 2 million finds per second on 1 thread.", text)

    def test_batches_are_compared_with_the_same_finds(self):
        def run(factor, **options):
            return sample_results.document([sample_results.result("cceh", "read", factor=factor)], **options)
        self.page({"a-other": run(0.01, operations=5), "b-single": run(1.0, operations=9),
                   "c-batch": run(3.0, operations=9, batch=16)})
        self.assertIn(" 3.00x ", self.verdict("CCEH: find_batch"))

    def test_wrong_answers_are_loud(self):
        text = self.page_of(sample_results.result("cceh", "read", wrong_answers=3), verify=True)
        self.assertIn("3 wrong answers", text)
        self.assertNotIn("none wrong", text)

    def test_names_are_escaped(self):
        text = self.page_of(sample_results.result("cceh", "read=<b>"))
        self.assertNotIn("<b>", text)
        self.assertIn("read=&lt;b&gt;", text)

    def test_other_schema_is_refused(self):
        sample_results.write(self.folder, {"run": {"schema": 2, "results": []}})
        run = make_report(self.folder)
        self.assertEqual(run.returncode, 1)
        self.assertIn("run.json", run.stderr)
        self.assertIn("schema 2", run.stderr)

    def test_broken_json_is_named(self):
        sample_results.write(self.folder, {"run": {}})
        (self.folder / "raw" / "run.json").write_text('{"schema": 1, ')
        run = make_report(self.folder)
        self.assertEqual(run.returncode, 1)
        self.assertIn("run.json", run.stderr)
        self.assertNotIn("Traceback", run.stderr)

    def test_empty_folder(self):
        self.folder.mkdir()
        run = make_report(self.folder)
        self.assertEqual(run.returncode, 1)
        self.assertIn("holds no results below raw/", run.stderr)

    def test_failed_run_is_shown(self):
        sample_results.write(self.folder, {"run": sample_results.document([sample_results.result("cceh", "read")])})
        manifest = json.loads((self.folder / "manifest.json").read_text())
        manifest["runs"].append({"name": "lost", "about": "", "command": "", "status": 3, "message": "no space"})
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        self.assertEqual(make_report(self.folder).returncode, 0)
        self.assertIn("Run lost ended with status 3: no space", (self.folder / "index.html").read_text())


if __name__ == "__main__":
    unittest.main()
