"""The sentence of the page's first screen: each word of it follows from the figures."""
import sys
import unittest

import package  # noqa: F401  (where the package is)
from pmlab.report.measurements import Measurement, Run
from pmlab.report.results import ResultSet
from pmlab.report.thesis import thesis

PM, DRAM = "hybrid(hash=cceh@pmem,tree=fast_fair@dram)", "hybrid(hash=cceh@dram,tree=fp_tree@pmem)"


def run(profile, figures, names=("hybrid_index", "hybrid_index_plus"), **more):
    """`figures`: (phase, threads) -> operations per second of the hash in PM, and in DRAM; several are repeats."""
    medium = f"simulated:{profile}"
    measurements = [Measurement(profile, name, medium, phase, threads, 1, [{"throughput_ops_per_s": v} for v in values])
                    for (phase, threads), both in figures.items() for name, values in zip(names, both)]
    return Run(profile, "", "", {"medium": medium}, {"verify": True}, [], [], measurements, profile, **more)


def results(*runs):
    return ResultSet("", "", "", "", 0, [], list(runs))


def sentence(*runs):
    return thesis(results(*runs)).sentence


FASTER = {("read", 1): ([2e6], [4e6]), ("read", 16): ([2e6], [7e6]), ("insert", 1): ([10e6], [6e6]),
          ("insert", 16): ([10e6], [6e6])}
ALIKE = {("read", 1): ([4e6], [4.2e6]), ("insert", 1): ([10e6], [6e6])}


class Thesis(unittest.TestCase):
    def test_finds_and_inserts_of_each_device_are_said_as_they_were_measured(self):
        text = sentence(run("aep", FASTER), run("classic", ALIKE), run("cxl-asic", FASTER, (PM, DRAM)))
        self.assertTrue(text.startswith("Placement must follow the device [Han21]. "), text)
        self.assertIn("with 1 to 16 threads", text)
        self.assertIn("on simulated:aep it makes finds 2.00x to 3.50x as fast and costs 40 % of inserts", text)
        self.assertIn("on simulated:classic it leaves finds alike and costs 40 % of inserts", text)
        self.assertIn("on simulated:cxl-asic it makes finds 2.00x", text)

    def test_alike_where_ranges_overlap(self):
        overlapping = {("read", 1): ([2e6, 4e6, 6e6], [5e6, 8e6, 9e6])}
        apart = {("read", 1): ([2e6, 4e6, 6e6], [7e6, 8e6, 9e6])}
        self.assertIn("it leaves finds alike", sentence(run("classic", overlapping)))
        self.assertIn("finds on simulated:classic alike", thesis(results(run("classic",
                                                                             overlapping))).overview.sentence)
        self.assertIn("it makes finds 2.00x as fast", sentence(run("classic", apart)))

    def test_alike_where_the_lead_depends_on_the_number_of_threads(self):
        self.assertIn("it leaves finds alike", sentence(run("aep",
                                                            {("read", 1): ([2e6], [4e6]),
                                                             ("read", 2): ([4e6], [2e6])})))

    def test_a_run_that_does_not_show_it_says_so(self):
        text = sentence(run("aep", ALIKE), run("classic", FASTER))
        self.assertIn("this run does not show it", text)

    def test_ranges_are_drawn_on_a_simulated_medium(self):
        found = thesis(results(run("aep", {("read", 1): ([2e6, 4e6, 6e6], [7e6, 8e6, 9e6])})))
        self.assertEqual([(p.low, p.high) for p in found.overview.points], [(2, 6), (7, 9)])
        self.assertIn("whiskers: lowest and highest", found.overview.caption)

    def test_a_platform_that_saves_the_caches_is_another_one(self):
        self.assertIsNone(thesis(results(run("aep", FASTER, values={"persistence": "gpf"}))))

    def test_no_thesis_of_one_place(self):
        self.assertIsNone(thesis(results(run("aep", FASTER, names=("hybrid_index", "cceh")))))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
