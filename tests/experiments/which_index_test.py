"""docs/which-index.md: it is of its figures, these are of the commands and pinned figures of today, and some are
measured again."""
import importlib.machinery
import importlib.util
import os
import sys
import unittest

from package import ROOT

PMLAB = os.path.abspath(sys.argv[1])
REMEDY = "; make the page again: scripts/which_index PMLAB"
MEASURED_AGAIN = ["which_index/fast_fair-simulated-aep-adr"]


def script():
    loader = importlib.machinery.SourceFileLoader("which_index", os.path.join(ROOT, "scripts", "which_index"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("which_index", loader))
    sys.modules["which_index"] = module
    loader.exec_module(module)
    return module


which_index = script()


def figures(*rows):
    return {("cell", index, medium, phase, figure): value for index, medium, phase, figure, value in rows}


class Page(unittest.TestCase):
    def setUp(self):
        self.build, self.digest, self.table = which_index.read_table()

    def test_is_of_its_figures(self):
        with open(which_index.PAGE, encoding="utf-8") as f:
            self.assertEqual(f.read(), which_index.page_of(self.table),
                             "the page was edited, or its script: scripts/which_index writes it again")

    def test_its_figures_are_of_today(self):
        _, pinned = which_index.pinned_module().TABLE.read()
        self.assertEqual(self.digest, which_index.digest_of(which_index.commands_of(PMLAB), pinned),
                         "the experiment, the indexes or their pinned figures have changed since" + REMEDY)

    def test_measured_again_they_are_the_same(self):
        cells = [word for cell in MEASURED_AGAIN for word in ("--cell", cell)]
        build, again = which_index.measure(PMLAB, *cells)
        if build != self.build:
            self.skipTest(f"this build is\n  {build}\nand the figures are of\n  {self.build}")
        self.assertGreater(len(again), 10)
        self.assertEqual({key: self.table.get(key) for key in again}, again, "these figures moved" + REMEDY)


class Choosing(unittest.TestCase):
    """The choice from invented figures."""

    def test_what_a_cell_is(self):
        def subject(index, medium="simulated:aep"):
            s = which_index.subject_of(index, medium)
            return s.device, s.place, s.index, s.other
        self.assertEqual(subject("cceh"), ("aep", "pm", "cceh", ""))
        self.assertEqual(subject("cceh", "simulated:dram"), ("dram", "dram", "cceh", ""))
        self.assertEqual(subject("cache(wb_tree)"), ("aep", "cache", "wb_tree", ""))
        self.assertEqual(subject("strings(fast_fair)"), ("aep", "strings", "fast_fair", ""))
        self.assertEqual(subject("hybrid(hash=dash@pmem,tree=fast_fair@dram,update=sync)"),
                         ("aep", "hash", "dash", "fast_fair"))
        self.assertEqual(subject("hybrid(hash=cceh@dram,tree=fp_tree@pmem,update=sync)"),
                         ("aep", "tree", "fp_tree", "cceh"))

    def test_the_best_place_is_one_that_keeps_its_data(self):
        of = which_index.Figures(figures(("a", "simulated:aep", "read", "throughput_ops_per_s", "1e6"),
                                         ("b", "simulated:aep", "read", "throughput_ops_per_s", "2e6"),
                                         ("cache(a)", "simulated:aep", "read", "throughput_ops_per_s", "3e6"),
                                         ("a", "simulated:dram", "read", "throughput_ops_per_s", "9e6")))
        reads = which_index.NEEDS[0]
        self.assertEqual(which_index.best_two(reads, of, "aep"), "`b` 2 M/s; then `a` 1 M/s")
        self.assertEqual(which_index.conclusion(reads, of, "aep"),
                         "`aep`: in PM, cache in front (`a`), 3 M/s, 1.5 times the best by itself (`b`)")

    def test_small_differences_are_none(self):
        of = which_index.Figures(figures(("a", "simulated:aep", "reopen", "find_ns", "1000"),
                                         ("b", "simulated:aep", "reopen", "find_ns", "1020"),
                                         ("cache(a)", "simulated:aep", "reopen", "find_ns", "990")))
        restart = next(n for n in which_index.NEEDS if n.figure == "find_ns")
        self.assertEqual(which_index.best_two(restart, of, "aep"), "`a` 1 µs; alike: `b`")
        self.assertEqual(which_index.conclusion(restart, of, "aep"), "`aep`: `a` by itself, 1 µs")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
