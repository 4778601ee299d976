"""The time that is left: corrected by each kind's own cells, and never told before one has ended."""
import sys
import unittest

import package  # noqa: F401  (finds pmlab)
from pmlab.errors import Failure
from pmlab.run.plan import Cell
from pmlab.run.time_left import TimeLeft, count_of, duration, guess


def cell(name, medium, *words):
    return Cell("e", name, {}, ["bench", "--index", "a", "--medium", medium, "--records", "100k", "--operations",
                                "100k", "--phases", "read", *words])


class TimeLeftTest(unittest.TestCase):
    def test_each_kind_is_corrected_by_its_own_cells(self):
        cells = [cell(n, m) for n, m in (("s1", "simulated:aep"), ("s2", "simulated:aep"), ("d1", "dram"),
                                         ("d2", "dram"))]
        s, d = guess(cells[0]), guess(cells[2])
        left = TimeLeft(cells, jobs=1)
        self.assertIsNone(left.seconds({}), "a guess, and no figure")
        left.ended(cells[0], 10 * s)
        # The other kind has none of its own yet: this machine is ten times as slow as the guess.
        self.assertAlmostEqual(left.seconds({}), 10 * s + 20 * d)
        left.ended(cells[2], d / 2)
        self.assertAlmostEqual(left.seconds({}), 10 * s + d / 2)
        # Seconds that the running cell has had are over, and no cell takes less than none.
        self.assertAlmostEqual(left.seconds({"s2": 4 * s}), 6 * s + d / 2)
        self.assertAlmostEqual(left.seconds({"s2": 400 * s}), d / 2)

    def test_cells_beside_each_other_share_the_time(self):
        cells = [cell(n, "simulated:aep") for n in "abcde"]
        left = TimeLeft(cells, jobs=2)
        left.ended(cells[0], 8)
        self.assertAlmostEqual(left.seconds({}), 16)
        left.ended(cells[1], 8)
        left.ended(cells[2], 8)
        left.ended(cells[3], 8)
        self.assertAlmostEqual(left.seconds({}), 8, msg="the last one has one CPU")

    def test_a_guess_counts_indexes_threads_phases_and_seconds(self):
        one = guess(cell("a", "dram")) - 0.4
        self.assertAlmostEqual(guess(cell("a", "dram", "--threads", "1,4-6")) - 0.4, 4 * one)
        self.assertAlmostEqual(guess(cell("a", "dram", "--seconds", "30")) - 0.4, 30, delta=1)
        several = cell("a", "dram")
        several.words[2] = "cache(a,mode=serial),b"
        self.assertAlmostEqual(guess(several) - 0.4, 2 * one)
        self.assertEqual(count_of("1.5k", "--records"), 1500)
        self.assertEqual(count_of("2e6", "--records"), 2e6)
        with self.assertRaisesRegex(Failure, "--records 'many' is not a number"):
            count_of("many", "--records")

    def test_each_repeat_in_simulated_time_loads_for_itself(self):
        def seconds(medium, *words):
            return guess(cell("a", medium, *words)) - 0.4
        self.assertAlmostEqual(seconds("simulated:aep", "--repeat", "3"), 3 * seconds("simulated:aep"))
        # Elsewhere the repeats share one load: 100k records, and three times 100k reads.
        self.assertAlmostEqual(seconds("dram", "--repeat", "3"), 2 * seconds("dram"))

    def test_a_run_of_key_value_stores_is_guessed_by_its_keys_and_operations(self):
        def seconds(*words):
            return guess(Cell("e", "kv", {}, ["stores", "pairs", "--records", "1M", *words])) - 0.4
        load = seconds("--phases", "load", "--operations", "1k")
        self.assertGreater(load, 1)
        self.assertAlmostEqual(seconds("--store", "a,b", "--phases", "load", "--operations", "1k"), 2 * load)
        self.assertAlmostEqual(seconds("--phases", "load", "--operations", "1G"), load, msg="a load is of all keys")
        self.assertAlmostEqual(seconds("--phases", "load,read", "--seconds", "7", "--depth",
                                       "1,2") - seconds("--phases", "load", "--depth",
                                                                                                          "1,2"), 14)

    def test_a_trace_is_guessed_by_its_size(self):
        words = ["bench", "--index", "a", "--trace", "{source}/tests/data/ycsb-a.load.txt"]
        self.assertLess(guess(Cell("e", "t", {}, words)), 0.5)
        self.assertGreater(guess(Cell("e", "t", {}, words)), 0.4)

    def test_durations(self):
        self.assertEqual([duration(s) for s in (0.4, 119, 121, 3600, 12000)],
                         ["0 s", "119 s", "2 min", "60 min", "3 h 20 min"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
