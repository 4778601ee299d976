"""kills_test.py PROGRAM: a process is killed, the next one goes on, and then the power fails, on a memory that writes nothing
back at opening. docs/memory-model.md has the reason why indexes need a medium that does."""
import re
import shlex
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
                status, output, _ = self.verifier.run("--index", index, "--crashes", "--kills", "--shrink", "5")
                self.assertEqual(status, 1, output)
                self.assertIn("(the process is killed, and the next one goes on)", output)
                replay = shlex.split(output.split("to reproduce it:\n", 1)[1].splitlines()[0])
                self.assertIn("--kills", replay)
                status, again, _ = self.verifier.run(*replay[2:], "--shrink", "0")
                self.assertEqual(status, 1, again)

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
