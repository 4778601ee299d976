"""The report: one self-contained page whose figures and sentences come from the results."""

import contextlib
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

import sample_memory
import sample_results
from planted_tree import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "experiments"))
from pmlab import __main__ as program  # noqa: E402
from pmlab.report import charts, names, style  # noqa: E402
from pmlab.report.results import load  # noqa: E402


def setUpModule():
    # Subsets of TrueType fonts take a second for each page; tests/experiments/report_test.py has them.
    style.matplotlib.rcParams["pdf.fonttype"] = 3


def make_report(*arguments):
    """What the program does with `pmlab report`, in this process: starting a Python for each page takes longer than the
    page."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
            mock.patch.object(sys, "argv", ["pmlab", "report", *map(str, arguments)]):
        status = program.main()
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def figures_in(text):
    """id -> HTML of each chart."""
    return {re.search('id="([^"]*)"', f)[1]: f for f in re.findall("<figure.*?</figure>", text, re.S)}


def csv_of(folder, chart):
    """The rows of a chart's CSV, without its header."""
    return list(csv.reader((folder / "charts" / f"{chart}.csv").read_text().splitlines()))[1:]


def caption_of(figure):
    return re.search("<figcaption>(.*?)</figcaption>", figure, re.S)[1]


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


class WholePage(unittest.TestCase):
    """One page with every kind of run, made once."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name) / "sample"
        sample_results.write(cls.folder, sample_results.documents())
        run = make_report(cls.folder, "--headline")
        assert (run.returncode, run.stderr) == (0, ""), run.stderr
        cls.headline = run.stdout
        cls.text = (cls.folder / "index.html").read_text()

    def verdict(self, target):
        return next(line for line in self.headline.splitlines() if line.startswith(target))

    def test_page(self):
        text, figures = self.text, figures_in(self.text)
        with self.subTest("needs nothing else"):
            self.assertNotRegex(text, r"<script|<link|<img|@import|url\(|https?://(?!www.w3.org)")
            for target in re.findall(r'(?:src|href)="([^"#]+)', text):
                self.assertTrue((self.folder / target).is_file(), target)
        with self.subTest("every chart has a finding, the number of repeats, and what its marks mean"):
            self.assertGreater(len(figures), 15)
            for name, figure in figures.items():
                self.assertRegex(caption_of(figure), r"^[^<]*\d[^<]*\. (Bars|Markers): [^<]*\(?n = \d+", name)
                self.assertIn("<table", figure)
        with self.subTest("every chart names its medium, profile, records and commit"):
            for name, figure in figures.items():
                feet = " ".join(re.findall(r">([^<]*(?:profile|commit|records)[^<]*)<", figure))
                self.assertRegex(feet, r"(pmem|dram|counted|emulated|simulated).* · (profile \w+|no device profile).*"
                                       r" · 1\xa0M records.*commit 0123abc", name)
        with self.subTest("first what ran where, ranking and contents, then what is folded"):
            places = [text.index(f'id={part}') for part in ("ran", "ranking", "contents")]
            self.assertEqual(places, sorted(places))
            self.assertLess(places[-1], text.index("<details class=experiment>"))
            for anchor in re.findall(r'<li><a href="#([^"]*)">', text):
                self.assertIn(f'<div id="{anchor}">', text)
        with self.subTest("names what emulated and tmpfs are"):
            self.assertIn("Software cannot emulate a specific device exactly", text)
            self.assertIn("tmpfs is not persistent memory", text)
        with self.subTest("simulated runs show how they scale"):
            self.assertIn("<h2>Simulated machines</h2>", text)
            self.assertIn("simulated-aep-read-scaling", figures)
            self.assertIn("32 threads", figures["simulated-aep-read-scaling"].split("<table")[1].replace("<td>32<",
                                                                                                         "32 threads"))
            self.assertIn("modelled machine with a core for each thread", text)
        with self.subTest("verdicts"):
            self.assertRegex(self.verdict("CCEH / pmdk_hash: find,"), r"≥ 20x +16\.0x +1.M +not met at this size")
            self.assertRegex(self.verdict("CCEH / pmdk_hash: insert"), r"≥ 12\.5x +16\.0x +1.M +met at this size")
            self.assertNotIn("not measured", self.headline)
        with self.subTest("checked runs show answers, not speed"):
            self.assertIn("<h2>Answers checked</h2>", text)
            self.assertFalse([name for name in figures if name.startswith("trace")])
        with self.subTest("same results, same bytes"):
            make_report(self.folder)
            self.assertEqual(text, (self.folder / "index.html").read_text())

    def test_ranking_has_every_index(self):
        ranking = figures_in(self.text)["ranking"]
        for index in [*sample_results.HASHES, *sample_results.ORDERED, "tbb_hash", "std_map", "pmdk_hash",
                      "pmdk_skiplist", "pmdk_radix"]:
            title = names.index_title(index) + (" (DRAM)" if index in sample_results.IN_DRAM else "")
            for line in style.row_name(title).split("\n"):
                self.assertIn(f">{line}</text>", ranking)
        rows = csv_of(self.folder, "ranking")
        with self.subTest("finds, inserts and scans, with one thread and the most"):
            self.assertEqual({row[0] for row in rows}, {"Find", "Insert", "Scan"})
            self.assertEqual({row[1] for row in rows}, {"1 thread", "2 threads"})
            self.assertEqual({row[2] for row in rows if row[0] == "Find"}, {row[2] for row in rows})
        with self.subTest("fastest first"):
            finds = [float(row[3]) for row in rows if row[:2] == ["Find", "1 thread"]]
            self.assertEqual(finds, sorted(finds, reverse=True))

    def test_csv_is_what_is_drawn(self):
        results = load(self.folder)
        run = results.run("hash")
        chart = charts.index_bars(run, "x", "X", run.measurements, ["read", "insert"])
        for axes, panel in zip(chart.figure.axes, ("Find", "Insert")):
            drawn = sorted(round(bar.get_width(), 4) for bar in axes.patches)
            written = sorted(round(float(row[3]), 4) for row in chart.csv_rows() if row[0] == panel)
            self.assertEqual(len(drawn), 2 * len([*sample_results.HASHES, "tbb_hash", "pmdk_hash"]))
            self.assertTrue(all(abs(a - b) <= 1e-3 * b for a, b in zip(drawn, written)), (drawn, written))
        latency = charts.latency(run, "read", run.find(phase="read", threads=1))
        drawn = sorted(value for line in latency.figure.axes[0].lines if len(line.get_ydata()) > 2
                       for value in line.get_ydata())
        written = sorted(float(row[3]) for row in latency.csv_rows())
        self.assertTrue(len(drawn) == len(written) > 8 and all(abs(a - b) <= 1e-3 * b for a, b in zip(drawn, written)))

    def test_log_axes_are_called_so(self):
        figures = figures_in(self.text)
        logarithmic = [f for name, f in figures.items() if name.endswith("-latency")]
        self.assertTrue(logarithmic)
        for figure in logarithmic:
            self.assertIn("(log scale)</text>", figure)
        self.assertNotIn("(log scale)", figures["ranking"])

    def test_an_index_has_one_colour(self):
        self.assertEqual(len(set(style.INDEX_COLOURS.values())), len(style.INDEX_COLOURS))
        for variant in ("cache(fast_fair)", "cache(fast_fair,mode=serial)", "locked_cache(fast_fair)",
                        "strings(fast_fair,keys=decimal)", "cache(strings(fast_fair))"):
            self.assertEqual(style.colour_of(variant), style.INDEX_COLOURS["fast_fair"], variant)
        self.assertEqual(style.colour_of("hybrid(hash=cceh@dram,tree=fast_fair@pmem)"),
                         style.INDEX_COLOURS["hybrid_index_plus"])
        self.assertEqual(style.colour_of("hybrid(hash=cceh@pmem,tree=fast_fair@dram)"),
                         style.INDEX_COLOURS["hybrid_index"])
        figures = figures_in(self.text)
        sheet = dict(re.findall(r"\.(s[0-9a-f]+)\{([^}]*)\}", self.text))
        for name in ("ranking", "hash-operations", "hash-workloads", "counted-insert-counts", "hash-read-latency"):
            with self.subTest(chart=name):
                used = {sheet[c] for c in re.findall(r'class="(s[0-9a-f]+)"', figures[name])}
                self.assertTrue(any(style.INDEX_COLOURS["cceh"][1:] in rule for rule in used))

    def test_the_table_of_counts_has_the_bytes_of_the_media(self):
        self.assertIn("media bytes written", self.text)
        drawn = {cell for row in csv_of(self.folder, "counted-insert-counts") for cell in row}
        self.assertIn("flushes", drawn)
        self.assertNotIn("media bytes written", drawn, "too many for the axis of lines")

    def test_drawings_follow_a_dark_screen(self):
        text = self.text
        with self.subTest("no colour is fixed"):
            for figure in figures_in(text).values():
                self.assertNotRegex(figure, r"#[0-9a-f]{6}\b")
            rules = re.search(r"svg \*\{.*?</style>", text, re.S)[0].split("svg{", 1)[1].split("}", 1)[1]
            self.assertNotRegex(rules, r"#[0-9a-f]{6}\b")
        with self.subTest("each has a value in the dark"):
            dark = re.search(r"prefers-color-scheme:dark\)\{:root\{([^}]*)\}", text)[1]
            for variable in set(re.findall(r"var\((--c[0-9a-f]{6})\)", text)):
                self.assertIn(f"{variable}:#", dark)
        with self.subTest("files for other programs have plain colours"):
            for path in (self.folder / "charts").glob("*.svg"):
                self.assertNotIn("var(", path.read_text(), path.name)

    def test_colours_are_seen_on_white_and_on_dark(self):
        def luminance(colour):
            channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
            linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
            return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))

        def contrast(a, b):
            high, low = sorted((luminance(a), luminance(b)), reverse=True)
            return (high + 0.05) / (low + 0.05)
        for index, colour in style.INDEX_COLOURS.items():
            if index != "null_index":
                self.assertGreater(contrast(colour, style.PAPER), 2, index)
                self.assertGreater(contrast(style.DARK[colour], style.DARK[style.PAPER]), 3, index)

    def test_charts_can_be_taken(self):
        text = self.text
        pages = len(re.findall(rb"/Type /Page\b", (self.folder / "charts.pdf").read_bytes()))
        for number, (name, figure) in enumerate(figures_in(text).items(), 1):
            links = re.findall(r'<a href="([^"]*)">(?:SVG|PDF|CSV)</a>', figure)
            self.assertEqual(links, [f"charts/{name}.svg", f"charts.pdf#page={number}", f"charts/{name}.csv"])
            self.assertRegex((self.folder / links[0]).read_text(), r'<svg [^>]*xmlns="http://www.w3.org/2000/svg"')
        self.assertEqual(pages, number)


class Report(ReportCase):
    def test_sentences_follow_the_figures(self):
        self.assertIn("With 1 thread CCEH leads find (16.0x the next)",
                      self.page_of(sample_results.result("cceh", "read"), sample_results.result("pmdk_hash", "read")))

    def test_sentences_follow_other_figures(self):
        text = self.page_of(sample_results.result("cceh", "read", factor=0.01),
                            sample_results.result("pmdk_hash", "read"))
        self.assertIn("With 1 thread pmdk_hash leads find (6.25x the next)", text)
        self.assertNotIn("CCEH leads", text)

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
        self.assertIn("Bars: median of n = 3 repeats; whiskers: lowest and highest. On a real clock, and one after the",
                      text)
        self.assertIn(["", "1 thread", "CCEH", "2", "1", "50", "3", "million/s", ""],
                      [["", *row[1:]] for row in csv_of(self.folder, "run-operations")])

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

    def test_invalid_figures_are_marked(self):
        results = [sample_results.result(i, p, medium="emulated:aep") for p in ("read", "insert")
                   for i in ("cceh", "fast_fair")]
        results[0]["invalid"] = True
        text = self.page({"slow": sample_results.document(results, "emulated:aep")})
        figure = figures_in(text)["slow-operations"]
        self.assertEqual(len(re.findall(">INVALID</text>", figure)), 1)
        self.assertIn("<span class=invalid>INVALID</span>", figure)
        self.assertIn("INVALID: the emulation did not hold there", caption_of(figure))
        self.assertIn("1 figure is marked INVALID", text)
        self.assertEqual([row[-1] for row in csv_of(self.folder, "slow-operations")].count("INVALID"), 1)
        with self.subTest("no finding is about one"):
            self.assertIn("FAST-FAIR leads find", caption_of(figure))


class FirstScreen(ReportCase):
    def hybrids(self, slow_reads, like_dram):
        """The page of two runs where HybridIndex+ is that much faster than HybridIndex."""
        documents = {}
        for profile, factor in (("aep", slow_reads), ("classic", like_dram)):
            medium = f"simulated:{profile}"
            documents[profile] = sample_results.document(
                [sample_results.result("hybrid_index", "read", t, medium=medium) for t in (1, 16)] +
                [sample_results.result("hybrid_index_plus", "read", t, medium=medium, factor=factor) for t in (1, 16)],
                medium)
        return self.page(documents)

    def test_thesis_follows_the_figures(self):
        text = self.hybrids(1.8, 1.0)
        thesis = re.search("<p class=thesis>(.*?)</p>", text, re.S)[1]
        self.assertRegex(thesis, r"Placement must follow the device .* with 1 to 16 threads: "
                          r"on simulated:aep it makes finds 1\.80x as fast; "
                                 r"on simulated:classic it leaves finds alike")
        self.assertEqual([name for name in figures_in(text)][:3], ["thesis", "thesis-aep", "thesis-classic"])
        self.assertIn("Journal of Computer Research and Development 58(2), 2021", text)
        with self.subTest("both charts have the same axis"):
            tops = [max(map(float, re.findall(r">([\d.]+)</text>", figures_in(text)[f"thesis-{p}"])))
                    for p in ("aep", "classic")]
            self.assertEqual(*tops)

    def test_a_thesis_that_is_not_shown(self):
        self.assertIn("this run does not show it", self.hybrids(0.9, 1.2))

    def test_undecided_claims_and_their_quantity(self):
        document = sample_memory.claims()
        document["claims"][0] |= {"id": "I1", "verdict": "undecided", "reason": "64 B: 1.40x to 2.60x of 5 repeats"}
        document["claims"][0]["conditions"][0] |= {"holds": None, "spread": [1.4, 2.6], "n": 5}
        text = self.page({"claims": document})
        verdicts = text[text.index("<h2 id=verdicts>"):text.index("<nav id=contents>")]
        self.assertIn("Indexes: 1 claim, 1 verdict: 1 undecided", verdicts)
        self.assertRegex(verdicts, r"\?\xa0undecided on [\w:]+: 64 B: random over sequential: 2\.50x "
                          r"\(1\.40x to 2\.60x, n = 5\); must be at "
                         r"least 1\.50x")

    def test_load_of_the_machine_is_warned_of(self):
        documents = {"run": sample_results.document([sample_results.result("cceh", "read")])}
        self.assertNotIn("class=warn", self.page(documents))
        manifest = json.loads((self.folder / "manifest.json").read_text())
        manifest["load"] = 1.7
        manifest["runs"][0]["other_cpus"] = 0.9
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        make_report(self.folder)
        text = (self.folder / "index.html").read_text()
        self.assertRegex(text, r"class=warn>Before the run the machine had a load of 1\.7 on 2 CPUs; "
                          r"beside 1 cell [^<]*0\.9 CPUs")


class Published(ReportCase):
    def publish(self):
        documents = {name: d for name, d in sample_results.documents().items()
                     if name in ("hash", "counted", "simulated-aep")}
        sample_results.write(self.folder, documents | {"claims": sample_memory.claims()})
        self.target = self.folder.parent / "published"
        run = make_report(self.folder, "--publish", self.target)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return (self.target / "index.html").read_text()

    def test_page_charts_claims_and_one_csv(self):
        text = self.publish()
        self.assertEqual({p.name for p in self.target.iterdir()},
                         {"index.html", "charts", "charts.pdf", "results.csv", "claims.csv"})
        with self.subTest("no link leads nowhere"):
            for target in re.findall(r'(?:src|href)="([^"#]+)', text):
                self.assertTrue((self.target / target).is_file(), target)
        with self.subTest("the CSV has each chart"):
            rows = list(csv.reader((self.target / "results.csv").read_text().splitlines()))
            self.assertEqual({row[0] for row in rows[1:]}, set(figures_in(text)))
            self.assertEqual([r[1:] for r in rows if r[0] == "ranking"], csv_of(self.folder, "ranking"))
        with self.subTest("the claims table has each claim"):
            claims = list(csv.DictReader((self.target / "claims.csv").read_text().splitlines()))
            self.assertEqual([(c["claim"], c["verdict"]) for c in claims][0], ("M1", "reproduced"))
        with self.subTest("again, over the old one"):
            self.assertEqual(make_report(self.folder, "--publish", self.target).returncode, 0)
            self.assertEqual((self.target / "index.html").read_text(), text)

    def test_folders_of_others_are_left_alone(self):
        self.publish()
        (self.target / "notes.txt").write_text("mine")
        run = make_report(self.folder, "--publish", self.target)
        self.assertEqual(run.returncode, 1)
        self.assertIn("notes.txt", run.stderr)
        self.assertTrue((self.target / "notes.txt").is_file())

    def test_a_published_folder_has_no_raw_files(self):
        self.publish()
        run = make_report(self.target)
        self.assertEqual(run.returncode, 1)
        self.assertIn("is published: it holds page and figures, and no raw/ to make them from; unpack the raw files",
                      run.stderr)


class Archive(ReportCase):
    """The raw results of a release, which are compared as they are downloaded."""

    def setUp(self):
        super().setUp()
        sample_results.write(self.folder, {"hash": sample_results.documents()["hash"]})
        self.archive = self.folder.parent / "pmlab-1.2.3-raw.tar.gz"

    def pack(self, add):
        with tarfile.open(self.archive, "w:gz") as archive:
            add(archive)

    def refused(self, *parts):
        run = make_report("--compare", self.archive, self.folder)
        self.assertEqual(run.returncode, 1, run.stderr)
        for part in (str(self.archive), *parts):
            self.assertIn(part, run.stderr)

    def test_it_is_compared_as_its_folder_is(self):
        for name in ("pmlab-1.2.3-raw", "."):
            with self.subTest(name=name):
                self.pack(lambda archive, inside=name: archive.add(self.folder, inside))
                run = make_report("--compare", self.archive, self.folder)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertRegex((self.folder / "compare.html").read_text(),
                                 r"\d+ of (?!0 )\d+ figures are within 2 % of each other")
        self.assertEqual(make_report("--compare", self.folder, self.archive).returncode, 2,
                         "B is no folder for the page")
        page = self.folder.parent / "page.html"
        self.assertEqual(make_report("--compare", self.folder, self.archive, "--out", page).returncode, 0)
        self.assertTrue(page.is_file())

    def test_what_is_no_archive_of_results_is_refused(self):
        self.archive.write_bytes(b"no archive")
        self.refused("is no archive")
        self.pack(lambda archive: archive.add(self.folder, "x"))
        whole = self.archive.read_bytes()
        self.archive.write_bytes(whole[:len(whole) // 2])
        self.refused("is no archive")
        for name, kind in (("../outside", tarfile.REGTYPE), ("/outside", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            with self.subTest(name=name):
                self.pack(lambda archive, bad=member: archive.addfile(bad))
                self.refused(name, "no file of results")
        large = tarfile.TarInfo("raw/large.json")
        large.size = 1 << 40
        with tarfile.open(self.archive, "w") as archive:
            archive.fileobj.write(large.tobuf())
        self.refused("too much")
        self.pack(lambda archive: archive.add(self.folder / "manifest.json", "manifest.json"))
        self.assertIn("holds no results below raw/", make_report("--compare", self.archive, self.folder).stderr)


class Results(unittest.TestCase):
    """The published results in the repository."""

    FOLDER = REPOSITORY / "results"
    BLOCK = 4096  # as du counts on the usual file systems

    def test_it_is_small(self):
        files = [p for p in self.FOLDER.rglob("*") if p.is_file() and self.kept(p)]
        size = sum(-(-p.stat().st_size // self.BLOCK) * self.BLOCK for p in files)
        self.assertLess(size, 3_100_000, sorted((p.stat().st_size, p.name) for p in files)[-5:])

    def test_emulated_and_simulated_devices_order_indexes_alike(self):
        """In experiment cache, of bare indexes whose ranges lie apart on the simulated device: none are in another
        order on the emulated one, if their ranges lie apart there, too; nearly all medians are in this order."""
        figures = {}
        with open(self.FOLDER / "quick" / "results.csv", newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["chart"].startswith("cache-latency") and "+" not in row["series"]:
                    medium, keys = row["panel"].split(", ")
                    three = [float(row[name]) for name in ("lowest", "value", "highest")]
                    figures[medium, keys, row["x"], row["series"]] = three
        agreed = []
        for medium, *place, faster in figures:
            for slower in {index for _, *other_place, index in figures if other_place == place}:
                there = [figures[medium, *place, name] for name in (faster, slower)]
                if medium != "simulated:aep" or there[0][2] >= there[1][0]:
                    continue
                first, second = (figures["emulated:aep", *place, name] for name in (faster, slower))
                with self.subTest(place=place, faster=faster, slower=slower):
                    self.assertLessEqual(first[0], second[2])
                agreed.append(first[1] < second[1])
        self.assertGreaterEqual(len(agreed), 15)
        self.assertGreaterEqual(sum(agreed), 0.9 * len(agreed), agreed)

    def kept(self, path):
        """Not of a local run."""
        return path.parent == self.FOLDER or path.relative_to(self.FOLDER).parts[0] == "quick"

    def test_it_is_complete(self):
        quick = self.FOLDER / "quick"
        self.assertTrue((self.FOLDER / "README.md").is_file())
        self.assertEqual({p.name for p in quick.iterdir()}, {"index.html", "charts", "charts.pdf", "results.csv",
                                                             "claims.csv"})
        text = (quick / "index.html").read_text()
        for name in ("thesis-aep", "thesis-classic", "ranking"):
            self.assertIn(f'<figure id="{name}"', text)
            self.assertTrue((quick / "charts" / f"{name}.svg").is_file())
        on_a_page_of_their_own = {"which_index", "which_strings"}  # docs/which-index.md
        newer = re.search(r"newer than this run: (.*)\.\n", (self.FOLDER / "README.md").read_text())
        missing = {path.stem for path in (REPOSITORY / "experiments").glob("*.toml")
                   if f'<div id="experiment-{path.stem}">' not in text} - on_a_page_of_their_own
        self.assertEqual(missing, set(re.findall(r"`(\w+)`", newer[1])) if newer else set(),
                         "not in results/: run it and publish again, or name it in results/README.md")


if __name__ == "__main__":
    unittest.main()
