"""kills_test.py PROGRAM: a process is killed, the next one goes on, and then the power fails, on a memory that writes
nothing back at opening. docs/memory-model.md has the reason why indexes need a medium that does."""
import re
import sys
import unittest

from verifier import Verifier

PROGRAM, = sys.argv[1:]


class Kills(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, "")

    def test_an_index_that_relies_on_its_medium_loses_what_was_answered(self):
        for index in ("fast_fair", "fp_tree", "wb_tree"):
            with self.subTest(index):
                output = self.verifier.expect_found_index(index, "--crashes", "--kills")
                self.assertIn("(the process is killed, and the next one goes on)", output)
                self.assertIn("--kills", output.split("to reproduce it:\n", 1)[1].splitlines()[0].split())

    def test_bad_input(self):
        for arguments, text in ((["--index", "cceh", "--schedules"], "give --crashes, too"),
                                (["--index", "cceh", "--exhaustive"], "leave --library, --exhaustive"),
                                (["--index", "cceh", "--persistence", "eadr"], "under eadr a kill leaves nothing"),
                                (["--index", "tiered"], "tiered is a store")):
            status, output, _ = self.verifier.run(*arguments, "--kills", "--quiet")
            self.assertEqual(status, 2, output)
            self.assertIn(text, output)
            self.assertEqual(len(re.findall("error", output)), 1, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
