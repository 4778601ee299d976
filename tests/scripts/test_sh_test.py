"""scripts/test.sh counts the results of its steps, and its last line and status show a failure. cmake and ctest are
stand-ins."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from planted_tree import SCRIPTS

STAND_INS = {
    "dpkg-query": "#!/bin/sh\nprintf installed\n",
    "cmake": "#!/bin/sh\n[ ! -e \"$STATE/build-fails\" ]\n",
    "ctest": "#!/bin/sh\ncat \"$STATE/ctest-says\"\n! grep -q 'failed out' \"$STATE/ctest-says\" || "
             "grep -q ' 0 tests failed' \"$STATE/ctest-says\"\n",
    "clang-format-14": "#!/bin/sh\n[ ! -e \"$STATE/badly-formatted\" ]\n",
}


class TestSh(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.state = pathlib.Path(temporary.name)
        (self.state / "bin").mkdir()
        for name, text in STAND_INS.items():
            (self.state / "bin" / name).write_text(text)
            (self.state / "bin" / name).chmod(0o755)
        self.root = self.state / "tree"
        shutil.copytree(SCRIPTS, self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "base").mkdir()
        (self.root / "base" / "a.hpp").touch()
        (self.root / "build" / "release").mkdir(parents=True)
        self.ctest_says("100% tests passed, 0 tests failed out of 7")

    def ctest_says(self, text):
        (self.state / "ctest-says").write_text(text + "\n")

    def run_script(self, *arguments):
        path = f"{self.state / 'bin'}:{os.environ['PATH']}"
        return subprocess.run([self.root / "scripts" / "test.sh", *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": path, "STATE": str(self.state)})

    def assert_ends(self, run, closing, status):
        self.assertEqual((run.stdout.splitlines()[-1], run.returncode), (closing, status), run.stderr)

    def test_one_index(self):
        """Each program that is built for it runs with the tests of this index, and its verification."""
        (self.root / "indexes" / "tests").mkdir(parents=True)
        (self.root / "indexes" / "indexes.json").write_text('[{"name": "list_pm", "header": "list"}]\n')
        (self.root / "indexes" / "tests" / "list_test.cpp").touch()
        (self.state / "bin" / "ctest").write_text('#!/bin/sh\necho "ctest $*" >>"$STATE/ran"\n')
        programs = self.root / "build" / "release" / "indexes" / "tests"
        programs.mkdir(parents=True)
        for name in ("point", "durable", "list"):
            (programs / f"test_indexes_{name}").write_text('#!/bin/sh\necho "$(basename "$0") $*" >>"$STATE/ran"\n'
                                                           '[ ! -e "$STATE/fails" ]\n')
            (programs / f"test_indexes_{name}").chmod(0o755)
        self.assert_ends(self.run_script("--index", "list_pm"), "1 passed, 0 failed", 0)
        ran = (self.state / "ran").read_text()
        for name in ("point", "durable"):
            self.assertIn(f"test_indexes_{name} --gtest_filter=*/list_pm.*:*/list_pm_on_*\n", ran)
        self.assertIn("test_indexes_list --gtest_filter=*\n", ran)
        self.assertRegex(ran, r"ctest .*-R \^verify\\\.\(strings_\)\?list_pm_is_clean\$")
        (self.state / "fails").touch()
        self.assert_ends(self.run_script("--index", "list_pm"), "0 passed, 1 failed", 1)
        self.assertEqual(self.run_script("--index", "list").returncode, 2)

    def test_all_is_well(self):
        self.assert_ends(self.run_script("--quick"), "9 passed, 0 failed", 0)

    def test_failing_test(self):
        self.ctest_says("71% tests passed, 2 tests failed out of 7")
        self.assert_ends(self.run_script("--quick"), "7 passed, 2 failed", 1)

    def test_no_test_at_all(self):
        self.ctest_says("No tests were found!!!")
        (self.state / "bin" / "ctest").write_text('#!/bin/sh\ncat "$STATE/ctest-says"\nexit 8\n')
        self.assert_ends(self.run_script("--only", "ctest"), "1 passed, 1 failed", 1)

    def test_failing_step(self):
        (self.state / "badly-formatted").touch()
        run = self.run_script("--quick")
        self.assert_ends(run, "8 passed, 1 failed", 1)
        self.assertIn("FAILED", run.stderr)

    def test_failing_build_ends_it(self):
        """The check that needs no build has run before, and no test runs."""
        (self.state / "build-fails").touch()
        run = self.run_script("--quick")
        self.assert_ends(run, "1 passed, 1 failed", 1)
        self.assertNotIn("== ctest", run.stderr)

    def test_one_step(self):
        self.assert_ends(self.run_script("--only", "format"), "1 passed, 0 failed", 0)

    def test_unknown_step(self):
        run = self.run_script("--only", "formt")
        self.assertEqual(run.returncode, 2)
        self.assertIn("no step formt", run.stderr)

    def test_missing_tool_is_skipped(self):
        text = (self.root / "scripts" / "test.sh").read_text().replace("need clang-format-14", "need no-such-tool")
        (self.root / "scripts" / "test.sh").write_text(text)
        run = self.run_script("--only", "format")
        self.assert_ends(run, "0 passed, 0 failed, 1 skipped", 0)
        self.assertIn("no no-such-tool here", run.stderr)


if __name__ == "__main__":
    unittest.main()
