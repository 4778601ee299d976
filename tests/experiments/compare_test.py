"""`pmlab compare`: what differs by more than chance, and what does not."""
import itertools
import json
import os
import sys
import unittest.mock

from package import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
from described import documented_fields, seen_fields  # noqa: E402
from program import ProgramTest, main, pmlab  # noqa: E402

from pmlab.compare import judging  # noqa: E402
from pmlab.compare.judging import Side, is_alike, rank_test  # noqa: E402
from pmlab.errors import Failure  # noqa: E402


def bench(values, medium="dram", phase="read", **more):
    """The JSON of `pmlab bench` with one index, as far as a comparison reads it."""
    results = [{"index": "cceh", "medium": medium, "phase": phase, "threads": 1, "repeat": i + 1,
                "throughput_ops_per_s": v, **more}
               for i, v in enumerate(values)]
    return {"schema": 1, "machine": {"cpu": "One", "medium": medium, "commit": "c"}, "options": {}, "results": results}


class Judging(ProgramTest):
    def test_the_rank_test_is_exact(self):
        # Tables of Mann and Whitney: two-sided, values in order 4+4, 5+5; and one exchange.
        for first, second, probability in (([1, 2, 3, 4], [5, 6, 7, 8], 2 / 70),
                                           ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
                                           ([1, 2, 3, 5], [4, 6, 7, 8], 4 / 70), ([1, 1, 1, 1], [1, 1, 1, 1], 1)):
            with self.subTest(first=first, second=second):
                self.assertAlmostEqual(rank_test(first, second), probability)
                self.assertAlmostEqual(rank_test(second, first), probability)

    def test_many_repeats_have_nearly_the_exact_probability(self):
        first, second = [1, 3, 4, 6, 8, 9, 9, 14], [5, 7, 9, 10, 11, 12, 13, 15]
        exact = rank_test(first, second)
        with unittest.mock.patch.object(judging, "_EXACT_UP_TO", 0):
            self.assertAlmostEqual(rank_test(first, second), exact, delta=0.01)

    def test_chance_makes_as_many_differ_as_the_level_says(self):
        divided = [(c, [v for v in range(8) if v not in c]) for c in itertools.combinations(range(8), 4)]
        differ = sum(rank_test(*sides) <= 0.05 for sides in divided)
        self.assertEqual(differ, 2)

    def test_a_missing_library_is_named(self):
        with unittest.mock.patch.dict(sys.modules, {"scipy": None}):
            with self.assertRaisesRegex(Failure, "no Python with scipy is there.*install package python3-scipy"):
                rank_test([1, 2, 3, 4], [5, 6, 7, 8])

    def test_alike(self):
        for name, first, second, exact, alike in (
                ("apart", [100, 101, 102, 103], [120, 121, 122, 123], False, False),
                ("mixed", [100, 121, 102, 123], [120, 101, 122, 103], False, True),
                ("apart, and nearly equal", [1000, 1001, 1002, 1003], [1010, 1011, 1012, 1013], False, True),
                ("three repeats, near", [100, 101, 102], [110, 111, 112], False, True),
                ("three repeats, far", [100, 101, 102], [150, 151, 152], False, False),
                ("one repeat, near", [100], [115], False, True),
                ("one repeat, far", [100], [130], False, False),
                ("a count", [2.0], [2.1], True, False),
                ("nothing twice", [0], [0], True, True),
                ("something in place of nothing", [0], [3], True, False)):
            with self.subTest(name):
                self.assertEqual(is_alike(Side.of(first), Side.of(second), exact), alike)
                self.assertEqual(is_alike(Side.of(second), Side.of(first), exact), alike)


class Compare(ProgramTest):
    def put(self, name, document):
        return self.write(name, json.dumps(document).encode())

    def compare(self, before, after, *options):
        return pmlab("compare", self.put("a.json", before), self.put("b.json", after), *options)

    def test_status_and_verdict(self):
        slow, fast = [100, 101, 102, 103], [130, 131, 132, 133]
        for before, after, options, status, words in (
                (slow, fast, (), 0, "0 worse, 1 better, 0 alike"),
                (fast, slow, (), 1, "1 worse, 0 better, 0 alike"),
                (fast, slow, ("--threshold", "40"), 0, "1 worse, 0 better, 0 alike"),
                (fast, slow, ("--level", "1"), 0, "0 worse, 0 better, 1 alike"),
                (slow, slow, (), 0, "0 worse, 0 better, 1 alike")):
            with self.subTest(words=words, options=options):
                done = self.compare(bench(before), bench(after), *options)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(words, done.stdout)

    def test_the_threshold_is_a_percentage_of_the_first_figure(self):
        for quantity, after, threshold, status in (("throughput", 95.2, "5", 0), ("throughput", 94.9, "5", 1),
                                                   ("throughput", 51, "50", 0), ("throughput", 49, "50", 1),
                                                   ("throughput", 1, "100", 0), ("p99", 104.9, "5", 0),
                                                   ("p99", 105.1, "5", 1),
                                                   ("p99", 195, "100", 0), ("p99", 205, "100", 1)):
            with self.subTest(quantity=quantity, after=after, threshold=threshold):
                before, later = ([100.0] * 4, [after] * 4) if quantity == "throughput" else ([1] * 4, [1] * 4)
                sides = [bench(values, latency_ns={"p99": p99}) for values, p99 in ((before, 100.0), (later, after))]
                done = self.compare(*sides, "--threshold", threshold, "--quantity", quantity)
                self.assertIn("1 worse", done.stdout)
                self.assertEqual(done.returncode, status, done.stdout)

    def test_less_is_better_of_durations_and_counts(self):
        for name, medium, more in (("flushes", "counted:dram", lambda v: {"per_operation": {"flushes": v}}),
                                   ("p99", "simulated:aep", lambda v: {"latency_ns": {"p99": v}})):
            with self.subTest(name):
                done = self.compare(bench([1], medium, **more(2.0)), bench([1], medium, **more(5.0)), "--quantity",
                                    name)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stdout, rf"worse +2\.50x.*{name}")

    def test_what_only_one_has_is_counted(self):
        both = bench([1])
        both["results"] += bench([1], phase="insert")["results"]
        done = self.compare(both, bench([1]))
        self.assertIn("of 1 figures in both; 1 only in A", done.stdout)

    def test_two_media_are_compared_where_each_file_has_one(self):
        done = self.compare(bench([100], "simulated:aep"), bench([200], "simulated:cxl"))
        self.assertIn("1 better", done.stdout)
        self.assertIn("on simulated:cxl", done.stdout)

    def test_one_repeat_on_a_real_clock_tells_nothing(self):
        done = self.compare(bench([100]), bench([50]))
        self.assertEqual(done.returncode, 0)
        self.assertIn("1 are of one repeat on a real clock", done.stdout)
        self.assertEqual(self.compare(bench([100], "simulated:aep"), bench([50], "simulated:aep")).returncode, 1)

    def test_times_of_media_that_count_are_left_out(self):
        done = self.compare(*[bench([speed], "counted:dram", per_operation={"flushes": 1.0}) for speed in (100, 50)],
                            "--all")
        self.assertEqual(done.returncode, 0)
        self.assertIn("1 alike, of 1 figures", done.stdout)

    def test_json(self):
        done = self.compare(bench([100] * 4), bench([50] * 4), "--json", "-")
        [figure] = json.loads(done.stdout)["figures"]
        self.assertEqual((figure["verdict"], figure["ratio"], figure["quantity"]), ("worse", 0.5, "throughput"))
        self.assertEqual(done.returncode, 1)

    def test_the_json_has_what_is_documented_and_no_more(self):
        documented = documented_fields("compare")
        documents = []
        for medium, more in (("dram", {}), ("counted:dram", {"per_operation": {"flushes": 0.0}})):
            for repeats in (1, 4):
                done = self.compare(bench([100] * repeats, medium, **more), bench([50] * repeats, medium, **more),
                                    "--json", "-")
                documents.append(json.loads(done.stdout))
        self.assertEqual(seen_fields(self, documents, documented), set(documented))
        figures = [figure for document in documents for figure in document["figures"]]
        self.assertEqual({figure["ratio"] for figure in figures}, {0.5, None})
        self.assertEqual({figure["p"] is None for figure in figures}, {True, False})

    def test_measured_files_and_folders(self):
        first, second = self.file("first.json"), self.file("second.json")
        for path in (first, second):
            pmlab("bench", "--index", "cceh", "--medium", "counted:dram", "--records", "1k", "--operations", "1k",
                  "--quiet", "--json", path)
        done = pmlab("compare", first, second, "--all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("flushes", done.stdout)
        self.assertIn("0 worse, 0 better", done.stdout)
        published = os.path.join(ROOT, "results", "quick")
        done = pmlab("compare", published, published)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 worse, 0 better", done.stdout)

    def test_bad_input(self):
        good = self.put("good.json", bench([1]))
        folder = self.file("folder")
        os.mkdir(folder)
        for words, status, problem in (
                ((good, self.file("none")), 2, "there is no"),
                ((good,), 2, "required"),
                ((good, folder), 2, "a file and a folder"),
                ((folder, folder), 1, "holds no results"),
                ((good, self.write("text.json", b"no JSON")), 1, "not readable as JSON"),
                ((good, self.put("list.json", [1])), 1, "holds no results of pmlab"),
                ((good, self.put("machine.json", bench([1]) | {"machine": 3})), 1, "'machine' is no object"),
                ((good, self.put("index.json", bench([1], index=3))), 1, "'index'"),
                ((good, self.put("nan.json", bench([float("nan")]))), 1, "'throughput_ops_per_s'"),
                ((good, self.put("great.json", bench([10 ** 400]))), 1, "'throughput_ops_per_s'"),
                ((good, self.put("words.json", bench([1], latency_ns={"p99": "x"}))), 1, "'latency_ns'"),
                ((good, self.put("group.json", bench([1], per_operation=3))), 1, "'per_operation'"),
                ((good, self.put("batch.json", bench([1], batch="x"))), 1, "'batch'"),
                ((good, self.put("empty.json", {"schema": 1})), 1, "has no figures"),
                ((good, self.put("other.json", bench([1], phase="scan"))), 1, "no figure in common"),
                ((good, good, "--json", ""), 2, "--json has an empty value"),
                ((good, good, "--json="), 2, "--json has an empty value"),
                ((good, good, "--level", "5", "--level=6"), 2, "--level is given twice"),
                ((good, "a\nb"), 2, "a\\x0ab"),
                ((good, good, "--quantity", "p98"), 2, "did you mean p99?"),
                ((good, good, "--threshold", "-3"), 2, "--threshold '-3'"),
                ((good, good, "--level", "nan"), 2, "--level 'nan'"),
                ((good, good, "--json", folder), 2, "it is a folder")):
            with self.subTest(problem):
                self.assert_fails(status, [problem], "compare", *words)


if __name__ == "__main__":
    main()
