"""scripts/lib/show_build.py shows how far a build is and about how long it still takes. The build is a stand-in."""

import importlib.util
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

from planted_tree import SCRIPTS

SHOW_BUILD = SCRIPTS / "lib" / "show_build.py"
# As ninja prints: a dry run all at once, a build step by step.
STAND_IN = """#!/usr/bin/env python3
import os, sys, time
steps = ["Building CXX object a.cpp.o", "Building CXX object b.cpp.o", "Linking CXX executable x"]
if "-n" in sys.argv and "new" in sys.argv:
    steps = ["Re-checking globbed directories...", "Re-running CMake..."]
for number, step in enumerate(steps, 1):
    if "-n" not in sys.argv:
        time.sleep(0.3)
    print(os.environ["NINJA_STATUS"].replace("%f", str(number)).replace("%t", str(len(steps))) + step, flush=True)
sys.exit(int(sys.argv[1]))
"""
LINE = re.compile(r"  building: \d of 3 steps, \d+ %, about \d+ (s|min) left")


def loaded():
    spec = importlib.util.spec_from_file_location("show_build", SHOW_BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ShowBuild(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.build = pathlib.Path(temporary.name) / "build"
        self.build.write_text(STAND_IN)
        self.build.chmod(0o755)

    def command(self, status=0, *more):
        return [sys.executable, str(SHOW_BUILD), "--every", "0.2", str(self.build), str(status), *more]

    def test_lines_where_there_is_no_terminal(self):
        run = subprocess.run(self.command(), capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stderr.splitlines()
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, LINE)
        self.assertEqual(len(run.stdout.splitlines()), 3)
        self.assertIn("[3/3] Linking CXX executable x", run.stdout)

    def test_a_new_folder_is_not_ready_before_its_last_step(self):
        """There the dry run ends before it lists the steps."""
        run = subprocess.run(self.command(0, "new"), capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stderr.splitlines()
        self.assertEqual(lines[0], "  building")
        shares = [int(found[1]) for line in lines[1:] if (found := re.search(r" (\d+) %", line))]
        self.assertTrue(shares, lines)
        self.assertLess(shares[0], 70, lines)
        self.assertEqual(shares, sorted(shares), lines)

    def test_the_status_is_that_of_the_build(self):
        self.assertEqual(subprocess.run(self.command(1), capture_output=True, check=False).returncode, 1)

    def test_one_line_is_rewritten_on_a_terminal(self):
        ours, theirs = pty.openpty()
        run = subprocess.run(self.command(), stdout=subprocess.DEVNULL, stderr=theirs, check=False)
        os.close(theirs)
        shown = ""
        try:  # a read gets a few thousand bytes at most; the last one fails
            while part := os.read(ours, 1 << 16):
                shown += part.decode()
        except OSError:
            pass
        os.close(ours)
        self.assertEqual(run.returncode, 0)
        self.assertNotIn("\n", shown)
        updates = shown.split("\r\x1b[K")
        self.assertGreater(len(updates), 3)
        self.assertRegex(updates[1], LINE)
        self.assertEqual(updates[-1], "")

    def test_the_time_that_is_left_is_true_of_slow_and_of_fast_machines(self):
        show_build = loaded()
        weights = [9.0] * 20 + [2.5] * 60
        for speed in (0.5, 2.0, 8.0):
            estimate = show_build.Estimate(sum(weights), cores=2, listed=len(weights))
            elapsed = 0.0
            for number, weight in enumerate(weights):
                estimate.finish(weight, number + 1, len(weights))
                elapsed += weight / speed
                if number < len(weights) // 4:
                    continue
                left = sum(weights[number + 1:]) / speed
                self.assertAlmostEqual(estimate.seconds_left(elapsed), left, delta=0.35 * left + 2, msg=(speed, number))

    def test_times_are_in_steps_that_the_estimate_is_good_for(self):
        as_time = loaded().as_time
        self.assertEqual([as_time(s) for s in (0, 12, 54, 56, 200, 4200)],
                         ["5 s", "10 s", "55 s", "1 min", "3 min", "1 h 10 min"])


if __name__ == "__main__":
    unittest.main()
