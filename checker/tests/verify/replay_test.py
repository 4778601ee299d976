"""replay_test.py PROGRAM KEPT_COUNT.so MISSING_FLUSH.so: the command of a report shows its violation in a new
process."""
import os
import re
import shlex
import sys
import tempfile
import unittest

from verifier import Verifier

PROGRAM, KEPT_COUNT, MISSING_FLUSH = sys.argv[1:]
KEEPS = "the subject keeps something from round\n  to round"
NONE = "no command was found that shows it again"


class Replay(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, KEPT_COUNT)
        self.verifier.choose(1)

    def status_of(self, command):
        status, output, _ = self.verifier.run(*shlex.split(command)[2:])
        self.assertIn(status, (0, 1), output)
        return status

    def test_a_round_that_needs_others_before_it_has_them_in_its_command(self):
        for flags in (["--crashes"], ["--crashes", "--schedules"]):
            with self.subTest(flags):
                report = self.verifier.expect_found(*flags)
                self.assertIn(KEEPS, report)
                command = report.split("to reproduce it:\n", 1)[1].splitlines()[0]
                seed, rounds = (int(re.search(rf"--{name} (\d+)", command)[1]) for name in ("seed", "rounds"))
                self.assertGreater(rounds, 1)
                # The report's own round alone.
                last = command.replace(f"--seed {seed}", f"--seed {seed + rounds - 1}")
                self.assertEqual(self.status_of(last.replace(f"--rounds {rounds}", "--rounds 1")), 0)

    def test_it_is_so_where_histories_are_made_shorter_and_where_all_are_listed(self):
        _, report, _ = self.verifier.run("--subject", KEPT_COUNT, "--crashes", "--shrink", "3", "--quiet")
        self.assertIn(KEEPS, report)
        _, listed, _ = self.verifier.run("--subject", KEPT_COUNT, "--crashes", "--all", "--rounds", "40", "--quiet")
        command = listed.splitlines()[0].split("; ", 1)[1]
        self.assertFalse(command.endswith("--rounds 1"), command)
        self.assertEqual(self.status_of(command), 1)

    def test_a_violation_that_no_command_shows_is_reported_so(self):
        self.verifier.choose(2)
        with tempfile.TemporaryDirectory() as folder:
            self.verifier.environment["PMLAB_TOY_FILE"] = os.path.join(folder, "made")
            status, report, _ = self.verifier.run("--subject", KEPT_COUNT, "--crashes", "--rounds", "40", "--quiet")
        self.assertEqual(status, 1, report)
        self.assertIn(NONE, report)

    def test_a_round_that_needs_no_other_is_replayed_alone_also_where_it_is_made_shorter(self):
        for shrink in ("0", "3"):
            _, report, _ = self.verifier.run("--subject", MISSING_FLUSH, "--crashes", "--shrink", shrink, "--quiet")
            command = report.split("to reproduce it:\n", 1)[1].splitlines()
            self.assertEqual(len(command), 1, report)
            self.assertTrue(command[0].endswith("--rounds 1"), report)
            self.assertEqual(self.status_of(command[0]), 1)

    def test_without_a_defect_it_is_clean(self):
        self.verifier.choose(0)
        self.verifier.expect_clean("--crashes", "--budget", "2")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
