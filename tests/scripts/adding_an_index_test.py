"""docs/adding-an-index.md, followed step by step with a copy of the source that has no null index.

usage: adding_an_index_test.py PMLAB_SIMULATED [unittest arguments]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-an-index.md").read_text()
NAME = "null_index"
# Files in a source tree that are built, generated or recorded.
LEFT_OUT = shutil.ignore_patterns(".*", "build*", "results", "docs", "__pycache__")


def block_after(text, heading):
    """The code block that follows `text` in the section `heading`."""
    section = PAGE[PAGE.index(heading):]
    return re.search(r"```\w+\n(.*?)```", section[section.index(text):], re.S)[1]


class AddingAnIndex(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pmlab-adding-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.source = self.folder / "source"
        shutil.copytree(ROOT, self.source, ignore=LEFT_OUT)
        self.offered = self.source / "bench" / "catalogue" / "indexes.cmake"
        lines = self.offered.read_text().splitlines(keepends=True)
        self.offered.write_text("".join(line for line in lines if NAME not in line))
        (self.source / "indexes" / "include" / "pmlab" / "indexes" / f"{NAME}.hpp").unlink()

    def run_in(self, *command, fails=False):
        done = subprocess.run(list(map(str, command)), cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode != 0, fails, done.stdout[-4000:])
        return done.stdout

    def configure(self):
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self.run_in("cmake", "-G", "Ninja", "-S", self.source, "-B", "build", "-DCMAKE_BUILD_TYPE=Release", *launcher)

    def build(self, target):
        self.run_in("cmake", "--build", "build", "--target", target)

    def test_the_page(self):
        # 1 and 2: the program has it, here the one for the simulated machine, which loads its indexes when it starts.
        (self.source / "indexes" / "include" / "pmlab" / "indexes" / f"{NAME}.hpp").write_text(block_after("", "## 1. The header"))
        line = block_after("", "## 2. The line that offers it")
        self.assertEqual(line.count("\n"), 1)
        self.offered.write_text(self.offered.read_text() + line)
        self.configure()
        self.build(f"pmlab_simulated_{NAME}")
        program = pathlib.Path(shutil.copytree(os.path.dirname(PROGRAM), self.folder / "build" / "bin",
                                               dirs_exist_ok=True)) / os.path.basename(PROGRAM)
        shown = self.run_in(program, "bench", "--index", NAME, "--medium", "simulated:dram", "--records", "1k",
                            "--operations", "1k", "--json", "results.json")
        self.assertIn(NAME, shown)
        results = json.loads((self.folder / "results.json").read_text())["results"]
        self.assertEqual({r["index"] for r in results}, {NAME})

        # 3: the tests have it, and an index that keeps nothing fails them. (Alone, to build less.)
        self.offered.write_text(self.offered.read_text().replace(" KEEPS_NOTHING", ""))
        settings = self.source / "tests" / "support" / "settings.hpp"
        line = block_after("", "## 3. The line in the tests").strip().rstrip(",")
        alone = re.sub(r"using offered_kinds = [^;]*;", f"using offered_kinds = testing::Types<{line}>;",
                       settings.read_text())
        self.assertIn(line, alone)
        settings.write_text(alone)
        self.configure()
        self.build("test_indexes_durable")
        said = self.run_in(self.folder / "build" / "indexes" / "tests" / "test_indexes_durable",
                           f"--gtest_filter=*/{NAME}_on_pmem.*A3*", fails=True)
        self.assertIn("FAILED", said)
        self.assertIn("1 FAILED TEST", said)

    def test_shows_the_header_as_it_is(self):
        self.assertEqual(block_after("", "## 1. The header"), (ROOT / "indexes" / "include" / "pmlab" / "indexes" / f"{NAME}.hpp").read_text())
        self.assertIn(block_after("", "## 2. The line that offers it"), (ROOT / "bench" / "catalogue" / "indexes.cmake").read_text())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
