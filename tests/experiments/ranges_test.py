"""Ranges of the repeats: drawn on every medium that has them, and figures whose ranges overlap are alike."""
import sys
import unittest

import package  # noqa: F401  (where the package is)
from pmlab.report import charts, experiments, provenance, sentences
from pmlab.report.chart import Point
from pmlab.report.compare import Pair, Side
from pmlab.report.measurements import Measurement, Run


def measured(index, medium, *repeats):
    return Measurement("run", index, medium, "read", 1, 1, list(repeats))


def run(medium, measurements):
    return Run("run", "", "", {"medium": medium}, {}, [], [], measurements)


def point(x, low, value, high):
    return Point(x, "1 thread", value, low, high, 3, "million/s", panel="Find")


class Places(unittest.TestCase):
    def test_counts_and_shares_by_their_size_and_names_as_they_come(self):
        for places, shown in ((["0", "100%", "50%", "10%"], ["0", "10%", "50%", "100%"]),
                              (["4K", "64K", "16K"], ["4K", "16K", "64K"]), (["pmem", "blocks"], ["pmem", "blocks"])):
            with self.subTest(places=places):
                self.assertEqual(experiments._ordered(places), shown)


class Ranges(unittest.TestCase):
    def test_throughput_of_a_simulated_medium(self):
        of = [measured("cceh", "simulated:aep", *({"throughput_ops_per_s": v} for v in (1e6, 2e6, 4e6)))]
        chart = charts.index_bars(run("simulated:aep", of), "operations", "T", of, ["read"])
        self.assertEqual([(p.low, p.value, p.high, p.n) for p in chart.points], [(1, 2, 4, 3)])
        self.assertEqual(chart.meaning, "Bars: median of n = 3 repeats; whiskers: lowest and highest.")

    def test_counts_space_and_reopening(self):
        repeats = [{"per_operation": {"flushes": v}, "bytes_per_key": {"pm": 10 * v}, "latency_ns": {"max": v * 1e6}}
                   for v in (1, 2, 4)]
        of = [measured("cceh", "counted:dram", *repeats)]
        for chart, ends in ((charts.counts(run("counted:dram", of), "read", of), (1, 4)),
                            (charts.space(run("counted:dram", of), of), (10, 40)),
                            (charts.reopen(run("pmem", of), of), (1, 4))):
            with self.subTest(chart.name):
                self.assertIn(ends, [(p.low, p.high) for p in chart.points])
                self.assertIn("whiskers", chart.meaning)

    def test_a_figure_that_repeats_to_the_digit_has_none(self):
        of = [measured("cceh", "simulated:aep", {"throughput_ops_per_s": 1e6})]
        chart = charts.index_bars(run("simulated:aep", of), "operations", "T", of, ["read"])
        self.assertFalse(chart.points[0].spread)
        self.assertIn("repeat to the digit", chart.meaning)


class Caches(unittest.TestCase):
    def test_the_foot_has_the_ratio_of_data_to_caches_with_most_threads(self):
        def one(index, threads, caches):
            repeat = {"bytes_per_key": {"pm": 24, "dram": 3}, "entries": 1000, "cpu_cache_bytes": caches}
            return Measurement("run", index, "simulated:aep", "read", threads, 1, [repeat])
        of = [one("cceh", 1, 1000), one("cceh", 4, 9000), one("fp_tree", 4, 4500)]
        self.assertIn(" · data 3x the CPU caches with 4 threads\n", provenance.footer(run("simulated:aep", of), of))
        self.assertNotIn("caches", provenance.footer(run("dram", of), [one("cceh", 1, None)]))


class Alike(unittest.TestCase):
    MEASUREMENTS = [measured("cceh", "pmem", {})]

    def test_leaders_whose_ranges_overlap_have_no_lead(self):
        text = sentences.fastest([point("A", 4, 6, 8), point("B", 3, 5, 7), point("C", 1, 1.5, 2)], self.MEASUREMENTS)
        self.assertEqual(text, "With 1 thread A and B are alike and lead find.")

    def test_a_leader_apart_has_its_lead(self):
        text = sentences.fastest([point("A", 6, 6, 8), point("B", 2, 3, 4)], self.MEASUREMENTS)
        self.assertEqual(text, "With 1 thread A leads find (2.00x the next).")

    def test_the_best_and_those_that_are_alike(self):
        def latencies(index, *values):
            return measured(index, "pmem", *({"latency_ns": {"p99": v}} for v in values))
        text = sentences.latency("read", [latencies("A", 1, 3, 5), latencies("B", 2, 4, 6), latencies("C", 8, 9, 10)],
                                 "p99", "99 %")
        self.assertEqual(text, "Lowest time that 99 % of the finds keep: A and B, alike, with 3 ns, last C with 9 ns "
                         "(3.00x).")

    def test_two_sets(self):
        def pair(before, after):
            return Pair("chart", "A", [], Side(*before, 3), Side(*after, 3), "/s")
        self.assertTrue(pair((2, 1, 3), (4, 2.5, 6)).alike)
        self.assertFalse(pair((2, 1, 3), (4, 3.5, 6)).alike)
        self.assertTrue(pair((2, 2, 2), (2.01, 2.01, 2.01)).alike)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
