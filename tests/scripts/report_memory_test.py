"""The report of the microbenchmark and of the claims: the paper's figures and tables, made of the results."""

import re
import unittest

import sample_memory
import sample_results
from report_test import ReportCase, make_report, setUpModule  # noqa: F401  (it is called)


def figures_of(text):
    return {name: body for name, body in re.findall(r'<figure id="memory-figure-(\d+)">(.*?)</figure>', text, re.S)}


class ReportOfMemory(ReportCase):
    def test_all_figures_and_tables_from_a_run_of_the_suite(self):
        text = self.page({"memory": sample_memory.memory(), "claims": sample_memory.claims()})
        figures = figures_of(text)
        self.assertEqual(sorted(map(int, figures)), list(range(1, 15)))
        for body in figures.values():
            self.assertRegex(body, r"<figcaption>[^<]*\d[^<]*\.</figcaption>")
            self.assertNotIn("<td class=figure>nan", body)
        for number in range(2, 9):
            self.assertIn(f"<h3>Table {number}: ", text)
        self.assertLess(text.index("<h2 id=verdicts>"), text.index("The memory itself: simulated:aep"))
        self.assertNotIn("Headline figures", text, "there is no run that they are about")
        with self.subTest("same results, same bytes"):
            pictures = sorted((self.folder / "charts").glob("*.svg"))
            before = [p.read_bytes() for p in pictures]
            self.assertEqual(len(before), 16)
            make_report(self.folder)
            self.assertEqual(text, (self.folder / "index.html").read_text())
            self.assertEqual(before, [p.read_bytes() for p in pictures])

    def test_figures_stand_beside_published_ones(self):
        figures = figures_of(self.page({"memory": sample_memory.memory()}))
        self.assertIn("published: 4 threads", figures["3"])
        self.assertIn(">6.47<", figures["3"])
        self.assertNotIn("published", figures["1"].split("<table")[1], "nothing was published of these")

    def test_how_many_figures_are_near_published_ones(self):
        document = sample_memory.memory()
        for case in document["cases"]:
            if case["group"] == "load-random":
                case["value"] = case["published"] * (1.1 if case["name"].endswith("threads=4") else 2)
        self.assertIn("3 of 18 figures are within 15 % of the published ones.", self.page({"memory": document}))

    def test_sentences_follow_the_figures(self):
        document = sample_memory.memory()
        for case in document["cases"]:
            if case["name"] == "read-by-threads/access_bytes=64/threads=16":
                case["value"] = 4321.0
        self.assertIn("4.32 µs", figures_of(self.page({"memory": document}))["1"])

    def test_an_emulated_device_is_shown_at_its_own_speed(self):
        document = sample_memory.memory()
        for case in document["cases"]:
            if case["name"] == "idle-read/medium=given/pattern=random":
                case |= {"value": 1234.0, "scale": 2.0}
        self.assertIn(">617 ns<", self.page({"memory": document}))

    def test_what_was_skipped_is_said(self):
        text = self.page({"memory": sample_memory.memory(re.compile("^mix-"))})
        self.assertEqual(sorted(map(int, figures_of(text))), [*range(1, 11)])
        self.assertIn("Nothing was measured for figures 11, 12, 13 and 14", text)
        self.assertIn("16 threads need as many CPUs", text)

    def test_scorecard(self):
        text = self.page({"claims": sample_memory.claims()})
        self.assertIn("3 claims on simulated:aep: 1 reproduced, 1 not reproduced, 1 not applicable.", text)
        self.assertIn("3 claims on simulated:aep", self.headline)
        self.assertIn("<td>M1: Claim M1.</td>", text)
        self.assertIn("✓\u00a0reproduced", text)
        self.assertIn("64 B: random over sequential: 1.25x, must be at least 1.50x – it is not (published: 1.80x)<br>",
                      text)
        self.assertIn("no drive &lt;named&gt;", text)

    def test_beside_a_benchmark(self):
        documents = {"hash": sample_results.document([sample_results.result("cceh", "read")])}
        text = self.page(documents | {"memory": sample_memory.memory()})
        self.assertIn("Headline figures", text)
        self.assertIn("The memory itself", text)

    def test_spoiled_results_are_named(self):
        sample_results.write(self.folder, {"memory": {"schema": 1, "kind": "microbench", "cases": [{}]}})
        run = make_report(self.folder)
        self.assertEqual(run.returncode, 1)
        self.assertIn("memory.json", run.stderr)
        self.assertNotIn("Traceback", run.stderr)


if __name__ == "__main__":
    unittest.main()
