"""Load of other programs: distinguished from our own cells, with a warning."""
import itertools
import sys
import unittest
from unittest import mock

import package  # noqa: F401  (finds pmlab)
from pmlab.run import other_load
from pmlab.run.other_load import OtherPrograms, warning_after, warning_before


class OtherLoad(unittest.TestCase):
    def measured(self, busy, own, clock):
        """CPUs of others, where the CPUs were busy from busy[0] to busy[1], and so on; in seconds."""
        with mock.patch.object(other_load, "_busy_seconds", side_effect=busy), \
             mock.patch.object(other_load, "_own_seconds", side_effect=own):
            return OtherPrograms(itertools.chain(clock).__next__).cpus()

    def test_our_own_cells_are_not_counted(self):
        self.assertEqual(self.measured((100, 120), (3, 23), (0, 10)), 0)
        self.assertEqual(self.measured((100, 120), (3, 8), (0, 10)), 1.5)
        self.assertEqual(self.measured((100, 120), (3, 24), (0, 10)), 0, "the kernel counts in ticks")
        self.assertIsNone(self.measured((100, 120), (3, 8), (5, 5)))

    def test_this_kernel_tells(self):
        others = OtherPrograms(itertools.chain((0, 1)).__next__)
        self.assertGreaterEqual(others.cpus(), 0)
        self.assertGreaterEqual(other_load.load(), 0)

    def test_warnings(self):
        self.assertIsNone(warning_before(None, 2))
        self.assertIsNone(warning_before(1.0, 2))
        self.assertIn("2 CPUs and a load of 1.1 before the run", warning_before(1.1, 2))
        self.assertIsNone(warning_after("a/b", None, 2))
        self.assertIsNone(warning_after("a/b", 1.0, 2))
        self.assertIn("a/b: other programs used 1.3 of 2 CPUs", warning_after("a/b", 1.3, 2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
