"""`pmlab report`: the page of a run, the same for the same JSON; two result sets side by side."""
import json
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import ProgramTest, main, pmlab  # noqa: E402

EXPERIMENT = b"""
title = "Small & quick"
about = "Two indexes."
shows = "figure 17"
claims = ["I1"]
[arguments]
index = ["hybrid_index", "hybrid_index_plus"]
operations = "1k"
records = "1k"
threads = [1, 2]
phases = ["read"]
[matrix]
medium = ["simulated:aep", "simulated:classic"]
[[chart]]
kind = "lines"
x = "threads"
y = "throughput"
series = "index"
panels = ["medium"]
"""


OVER_TIME = b"""
title = "Growth"
about = "Inserts over time."
shows = "beyond the paper"
[arguments]
index = ["cceh", "fast_fair"]
medium = "dram"
operations = "200k"
records = "1k"
phases = ["insert"]
interval = "5ms"
repeat = 2
[[chart]]
kind = "timeline"
series = "index"
panels = ["phase"]
"""


STORES = b"""
title = "Volumes"
about = "Two stores."
shows = "beyond the paper"
kind = "stores_volumes"
claims = ["U1", "U9", "U17"]
[arguments]
phases = ["overwrite", "read"]
size = ["4K", "16K"]
depth = 32
operations = 100
volume_bytes = "4M"
[matrix]
"medium + device + store" = ["emulated:aep + emulated:p4610 + chunk_store,raw", "counted:dram + memory + chunk_store"]
[[chart]]
kind = "lines"
x = "size"
y = "thousand"
series = "store"
only = ["phase=read"]
[[chart]]
kind = "bars"
x = "size"
y = "lines_written"
series = "store"
panels = ["phase"]
"""


PAIRS = b"""
title = "Pairs"
about = "A key-value SSD."
shows = "beyond the paper"
kind = "stores_pairs"
claims = ["K9"]
[arguments]
store = "kv_ssd"
phases = ["load", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-f"]
value = "1K"
records = "1k"
operations = 100
[[chart]]
kind = "bars"
x = "phase"
y = "thousand"
series = "store"
[[chart]]
kind = "bars"
x = "phase"
y = "written_in_all"
series = "store"
"""


class Pairs(ProgramTest):
    def test_a_store_of_pairs_has_charts_and_cases_though_it_is_alone(self):
        out = self.file("set")
        self.assert_works("run", self.write("mypairs.toml", PAIRS), "--scale", "smoke", "--out", out)
        self.assert_works("report", out)
        with open(os.path.join(out, "charts", "mypairs-thousand.csv"), encoding="utf-8") as f:
            self.assertEqual(len(f.readlines()), 1 + 6, "loading is measured, too")
        with open(os.path.join(out, "index.html"), encoding="utf-8") as f:
            page = f.read()
        self.assertIn("kv_ssd ycsb-a zipfian 1K 1", page)
        self.assertIn("kv_ssd is best in 6 of 6 comparisons.", page)
        self.assertIn("no kv_ycsb/store=kv_ssd/phase=ycsb-a", page, "why K9 is not measured")


class Stores(ProgramTest):
    def test_a_section_with_charts_and_all_cases_and_verdicts_with_stand_ins(self):
        out = pathlib.Path(self.file("out"))
        self.assert_works("run", self.write("block_writes.toml", STORES), "--out", str(out), "--scale", "smoke",
                          "--quiet")
        self.assert_works("report", str(out))
        text = (out / "index.html").read_text()
        with self.subTest("charts: of times, and of counts, whose times mean nothing"):
            charts = {p.stem for p in (out / "charts").glob("*.csv")}
            self.assertEqual(charts, {"block_writes-thousand-read", "block_writes-lines_written"})
            rows = (out / "charts" / "block_writes-lines_written.csv").read_text().splitlines()
            self.assertEqual(len(rows), 1 + 4)
        with self.subTest("code in a text is marked as code"):
            self.assertRegex(text, "<code>pmlab run [^<]+</code>")
            self.assertNotIn("`", re.sub(r"(?s)<(style|svg).*?</\1>", "", text))
        with self.subTest("all cases"):
            self.assertRegex(text, r"<td>chunk_store read random 16K 32</td>")
            self.assertIn("are the algorithm of BlueStore, and not BlueStore", text)
        with self.subTest("two sets of stores are compared"):
            self.assert_works("report", "--compare", str(out), str(out))
            self.assertRegex((out / "compare.html").read_text(),
                             r"\d+ of (?!0 )\d+ figures are within 2 % of each other")
        with self.subTest("answers were checked"):
            self.assertRegex(text, r"Wrong answers: none, in [\d,]+ operations")
        with self.subTest("verdicts"):
            self.assertIn("<summary>Chunk store: 3 claims", text)
            self.assertRegex(text, r"U1: [^<]*\[stand-in: rocksdb_meta_deferred, the algorithm of BlueStore and not "
                              r"BlueStore itself")
            self.assertRegex(text, r"U9: [^<]*</td><td[^>]*>–\u00a0not\u00a0measured on emulated:aep: no ")
            self.assertIn("no block_writes/container=kv", text)


class Report(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = pathlib.Path(self.file("out"))
        # Called hybrid, so that it feeds the claims of that experiment.
        self.assert_works("run", self.write("hybrid.toml", EXPERIMENT), "--out", str(self.out), "--scale", "smoke",
                          "--quiet")

    def page(self, *arguments, file="index.html"):
        self.assert_works("report", *(arguments or [str(self.out)]))
        return (self.out / file).read_text()

    def change(self, folder, factor):
        for path in (folder / "raw").rglob("*.json"):
            document = json.loads(path.read_text())
            for result in document["results"]:
                if result["index"] == "hybrid_index_plus":
                    result["throughput_ops_per_s"] *= factor
            path.write_text(json.dumps(document))

    def test_summary_charts_and_raw_data(self):
        text = self.page()
        with self.subTest("thesis and verdicts first, with the quantity, and a link from the claim to its charts"):
            places = [text.index(part) for part in ('<p class=thesis>', '<figure id="thesis"', '<p class=verdict-line>',
                                                    '<h2 id=ran>', '<figure id="thesis-aep"', '<h2 id=verdicts>',
                                                    '<div id="experiment-hybrid">')]
            self.assertEqual(places, sorted(places))
            self.assertIn('<a href="#experiment-hybrid">Small &amp; quick</a>', text)
            self.assertRegex(re.sub("</?span[^>]*>", "", text),
                             r"<td>I1: [^<]*</td><td[^>]*>[✓✗?]\u00a0[^<]* on simulated:aep: reads: "
                              r"HybridIndex\+ over HybridIndex[^<]*: "
                             r"[\d.]+x[^<]*; must be [^<]*<br>[✓✗?]\u00a0[^<]* on simulated:classic: ")
            self.assertRegex(text, r"<summary>Indexes: 1 claim, 2 verdicts: ")
            self.assertIn("</a>: 1 published claim on 2 media, 2 verdicts: ", text)
        with self.subTest("a chart with a panel for each medium, with finding and figures"):
            figure = re.search(r'<figure id="hybrid-throughput".*?</figure>', text, re.S)[0]
            for medium in ("simulated:aep", "simulated:classic"):
                self.assertIn(f">{medium}</text>", figure)
            self.assertRegex(figure,
                             r"<figcaption>With 2 threads HybridIndex\+? is best in simulated:aep \([\d.]+x the last\)")
            self.assertIn("<table", figure)
        with self.subTest("raw data"):
            for link in re.findall(r'href="(raw/[^"]*)"', text):
                self.assertTrue((self.out / link).is_file(), link)
            self.assertEqual(len(re.findall(r'href="raw/', text)), 2)
        with self.subTest("needs nothing else"):
            self.assertNotRegex(text, r"<script|<link|<img|@import|url\(")

    def test_same_json_same_picture(self):
        text = self.page()
        pictures = {p.name: p.read_bytes() for p in (self.out / "charts").iterdir()}
        self.assertEqual(set(pictures), {f"{name}.{kind}" for kind in ("svg", "csv")
                                         for name in ("thesis", "thesis-aep", "thesis-classic", "hybrid-throughput")})
        self.assertIn(b"/FontFile2", (self.out / "charts.pdf").read_bytes(), "publishers require TrueType fonts")
        moved = pathlib.Path(self.file("moved"))
        shutil.copytree(self.out, moved)
        shutil.rmtree(moved / "charts")
        printed = (self.out / "charts.pdf").read_bytes()
        self.assert_works("report", str(moved))
        self.assertEqual({p.name: p.read_bytes() for p in (moved / "charts").iterdir()}, pictures)
        self.assertEqual((moved / "index.html").read_text(), text)
        self.assertEqual((moved / "charts.pdf").read_bytes(), printed)

    def test_other_json_other_picture(self):
        before = self.page()
        self.change(self.out, 3)
        self.assertNotEqual(self.page(), before)

    def test_compare(self):
        other = pathlib.Path(self.file("other"))
        shutil.copytree(self.out, other)
        self.change(other, 2)
        self.assert_works("report", "--compare", str(self.out), str(other), "--out", str(self.out / "c.html"))
        text = (self.out / "c.html").read_text()
        self.assertIn("2.00x (HybridIndex+)", text)
        self.assertIn("from 1.00x (HybridIndex)", text)
        self.assertIn("4 of 8 figures are within 2 % of each other", text)
        self.assertIn("verdicts are the same", text)

    def test_compare_with_what_is_published(self):
        published, other = (pathlib.Path(self.file(name)) for name in ("published", "other"))
        self.assert_works("report", str(self.out), "--publish", str(published))
        shutil.copytree(self.out, other)
        self.change(other, 2)
        self.assert_works("report", "--compare", str(published), str(other))
        text = (other / "compare.html").read_text()
        self.assertIn("2.00x (HybridIndex+)", text)
        self.assertIn("4 of 8 figures are within 2 % of each other", text)
        self.assertIn("2 of 2 verdicts are the same", text)
        self.assert_works("report", "--compare", str(published), str(published), "--out", self.file("same.html"))
        done = pmlab("report", "--compare", str(published), str(published))
        self.assertEqual(done.returncode, 1)
        self.assertIn("name the page with --out", done.stderr)

    def test_each_chart_is_published_as_svg_and_in_the_csv(self):
        published = pathlib.Path(self.file("published"))
        self.assert_works("report", str(self.out), "--publish", str(published))
        charts = set(re.findall(r'<figure id="([^"]*)"', (published / "index.html").read_text()))
        self.assertEqual({p.name for p in (published / "charts").iterdir()}, {f"{c}.svg" for c in charts})
        self.assertEqual({line.partition(",")[0] for line in (published / "results.csv").read_text().splitlines()[1:]},
                         charts)

    def test_charts_for_a_paper_have_no_title_and_no_origin(self):
        figures = pathlib.Path(self.file("figures"))
        self.assert_works("report", str(self.out), "--paper", str(figures))
        drawing = (figures / "hybrid-throughput.svg").read_text()
        self.assertIn(">HybridIndex+</text>", drawing, "the key stays")
        for chrome in ("Small &amp; quick", "commit"):
            self.assertNotIn(chrome, drawing)
        self.assertEqual((figures / "hybrid-throughput.pdf").read_bytes()[:4], b"%PDF")
        self.assertIn("Small & quick. With 2 threads", (figures / "captions.txt").read_text())
        self.assertFalse((self.out / "index.html").exists())
        self.assert_fails(2, ["--paper writes charts"], "report", str(self.out), "--paper", str(figures), "--out",
                          self.file("a.html"))

    def test_failed_cells_are_said_and_not_drawn(self):
        manifest = json.loads((self.out / "manifest.json").read_text())
        manifest["runs"][0] |= {"status": 1, "message": "3 wrong answers"}
        (self.out / "manifest.json").write_text(json.dumps(manifest))
        text = self.page()
        self.assertIn("3 wrong answers", text)
        thesis = re.search(r"<p class=thesis>.*?</p>", text)[0]
        self.assertEqual(len(re.findall(r"on simulated:(?:aep|classic) it ", thesis)), 1,
                         "one of its devices is missing")
        figure = re.search(r'<figure id="hybrid-throughput".*?</figure>', text, re.S)[0]
        self.assertEqual(len(re.findall(r">simulated:(aep|classic)[^<]*</text>", figure)), 1)

    def test_bad_input(self):
        self.assert_fails(2, ["no folder"], "report", self.file("none"))
        self.assert_fails(2, ["give FOLDER, or --compare"], "report")
        self.assert_fails(2, ["--compare A B"], "report", str(self.out), str(self.out))
        empty = self.file("empty")
        os.mkdir(empty)
        done = pmlab("report", empty)
        self.assertEqual(done.returncode, 1)
        self.assertIn("holds no results", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_throughput_over_time(self):
        out = self.file("growth")
        self.assert_works("run", self.write("growth.toml", OVER_TIME), "--out", out)
        self.assert_works("report", out)
        rows = pathlib.Path(out, "charts/growth-timeline.csv").read_text().splitlines()[1:]
        self.assertEqual({row.split(",")[1] for row in rows}, {"CCEH", "FAST-FAIR"})
        of_cceh = [float(row.split(",")[2]) for row in rows if ",CCEH," in row]
        self.assertGreater(len(of_cceh), 2)
        self.assertEqual(of_cceh, [float(f"{0.0025 + 0.005 * i:.4g}") for i in range(len(of_cceh))])
        page = pathlib.Path(out, "index.html").read_text()
        self.assertIn("furthest below its median", page)


if __name__ == "__main__":
    main()
