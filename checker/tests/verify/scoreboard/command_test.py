"""command_test.py PMLAB: `pmlab verify --scoreboard` as a user types it."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PMLAB = pathlib.Path(sys.argv[1])


def pmlab(*arguments):
    return subprocess.run([str(PMLAB), "verify", *arguments], capture_output=True, text=True, check=False, timeout=100)


def scoreboard_of_a_copy(folder):
    """Started from another folder than that of the build."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("pmlab", "pmlab-simulated"):
        shutil.copy(PMLAB.parent / name, programs / name)
    return subprocess.run([str(programs / "pmlab"), "verify", "--scoreboard", "witcher-25"], capture_output=True,
                          text=True, check=False)


class Command(unittest.TestCase):
    def test_one_bug(self):
        done = pmlab("--scoreboard", "witcher-25", "--budget", "60", "--clean-states", "50", "--quiet")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout,
                         r"claimed_slot\.a_slot_stays_claimed_after_a_crash: found in [0-9.]+ s, \d+ states")
        self.assertRegex(done.stdout, r"without a defect: toy_claimed_slot --crashes: [\d,]+ states, clean")
        self.assertIn("1 of their 1 twins found", done.stdout)

    def test_what_is_not_found_is_said_and_gives_status_1(self):
        done = pmlab("--scoreboard", "witcher-25", "--budget", "0.001", "--quiet")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("NOT FOUND", done.stdout)

    def test_bad_input_is_one_line(self):
        for arguments, words in ((("--scoreboard", "no-such-bug"), "the scoreboard has no 'no-such-bug'"),
                                 (("--scoreboard", "--index", "cceh"), "--scoreboard has its own subjects"),
                                 (("--scoreboard", "--program", "true {}"), "--scoreboard has its own subjects"),
                                 (("--markdown", "x.md", "--index", "cceh"), "are about the scoreboard"),
                                 (("--scoreboard", "witcher-25", "--markdown", "x.md"), "leave the names out")):
            done = pmlab(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_twins_that_are_not_built_are_named_with_their_target(self):
        with tempfile.TemporaryDirectory() as folder:
            done = scoreboard_of_a_copy(pathlib.Path(folder))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("ninja -C", done.stderr)
        self.assertIn("scoreboard_twins", done.stderr)

    def test_a_program_without_its_indexes_is_one_error(self):
        with tempfile.TemporaryDirectory() as folder:
            twins = pathlib.Path(folder) / "checker/tests/verify"
            twins.mkdir(parents=True)
            (twins / "toy_claimed_slot.so").touch()
            done = scoreboard_of_a_copy(pathlib.Path(folder))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there are no simulated indexes in", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
