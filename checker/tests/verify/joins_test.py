"""joins_test.py PROGRAM: `pmlab verify --joins` where it has an effect, and an error where it has none."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations"))
from verifier import Verifier  # noqa: E402


class Joins(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, sys.argv[1], None)

    def test_rounds_begin_with_what_was_erased(self):
        self.verifier.expect_clean_index("fp_tree", "--joins", "--schedules", "--threads", "4", "--rounds", "8")

    def test_where_it_has_no_effect_it_is_an_error(self):
        for arguments, error in (
                (["--index", "cceh"], "cceh has no order"),
                (["--index", "tiered"], "tiered has no order"),
                (["--index", "fp_tree", "--keys", "10"], "--keys 10 are too few; give 30 or more"),
                (["--index", "fp_tree", "--crashes"], "several threads"),
                (["--index", "fp_tree", "--threads", "1"], "several threads"),
                (["--index", "fp_tree", "--exhaustive"], "--exhaustive"),
                (["--index", "fp_tree", "--performance"], "--performance"),
                (["--index", "fp_tree", "--schedules", "--search", "bounded"], "random searches"),
                (["--scoreboard"], "--scoreboard")):
            with self.subTest(arguments):
                status, output, _ = self.verifier.run(*arguments, "--joins", "--budget", "1")
                self.assertEqual(status, 2, output)
                self.assertIn(error, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
