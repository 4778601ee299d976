"""A small source tree in a temporary folder, for tests that plant a violation in it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = REPOSITORY / "scripts"


class PlantedTree(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)

    def plant(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def run_script(self, name, *arguments):
        command = [sys.executable, SCRIPTS / name, "--root", self.root, *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def assert_clean(self, run):
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)

    def assert_found(self, run, *words):
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        for word in words:
            self.assertIn(word, run.stdout)
