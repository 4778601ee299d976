"""Shared by the tests in this folder: building libraries, and running the program.

Arguments of each: the program, the include folder of the indexes, the output folder of pmlab_simulate.
"""
import os
import subprocess
import sys
import tempfile
import unittest

PMLAB, INCLUDE, BUILT = [os.path.abspath(path) for path in sys.argv[1:4]]
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TABLE = os.path.join(ROOT, "examples", "own_index", "table.cpp")
LOG = os.path.join(ROOT, "examples", "own_index", "log.cpp")
TREE = os.path.join(ROOT, "examples", "own_index", "search_tree_library.cpp")
FAULTY = os.path.join(ROOT, "tests", "own_index", "faulty.cpp")


class OwnIndexTest(unittest.TestCase):
    """Has a folder of its own, removed afterwards."""
    made = {}  # by the path of a library: what it was made of

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="pmlab-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def build(self, name, source, *flags, compiler=os.path.join(ROOT, "scripts", "pmlab-c++")):
        """The path of libNAME.so, which is made once."""
        path = os.path.join(self.folder, f"lib{name}.so")
        self.assertEqual(self.made.setdefault(path, (source, flags)), (source, flags), "another one has this name")
        if not os.path.exists(path):
            command = [compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-o", path, source, "-I", INCLUDE, *flags]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def pmlab(self, *arguments, status=0, environment=None):
        """(output, errors); `environment`: beside that of this process."""
        done = subprocess.run([PMLAB, *arguments], capture_output=True, text=True, check=False, timeout=200,
                              cwd=self.folder, env=dict(os.environ, **(environment or {})))
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout, done.stderr

    def assert_refused(self, parts, *arguments):
        """One line `pmlab: error: problem; remedy` that holds all of `parts`."""
        _, errors = self.pmlab(*arguments, status=2)
        lines = errors.splitlines()
        self.assertEqual(len(lines), 1, errors)
        self.assertTrue(lines[0].startswith("pmlab: error: "), errors)
        for part in ["; ", *parts]:
            self.assertIn(part, lines[0])


def line_of(source, text):
    """The number of the only line that holds `text`."""
    with open(source, encoding="utf-8") as f:
        [number] = [n for n, line in enumerate(f, 1) if text in line]
    return number


def main():
    unittest.main(argv=sys.argv[:1])
