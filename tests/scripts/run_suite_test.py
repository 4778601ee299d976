"""scripts/run_suite calls `pmlab bench` as the suite says, keeps what it wrote, and reports a failure."""

import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

from planted_tree import SCRIPTS

# Stands in for pmlab: writes its arguments where the results go, uses its pool, fails when told to.
PROGRAM = """#!/bin/sh
all="$*"
while [ $# -gt 0 ]; do
  case $1 in
    --json) out=$2 ;;
    --medium) touch "${2#pmem:}" || exit 9; ls "${2#pmem:}" >/dev/null || exit 9 ;;
    --fail) echo "pmlab: cannot; do something else" >&2; exit 3 ;;
  esac
  shift
done
printf '%s' "$all" > "$out"
"""

SUITE = """
title = "A suite"
[defaults]
records = "1M"
verify = true
[[run]]
name = "first"
about = "The first"
index = ["cceh", "tbb_hash"]
medium = "pmem:{pool}"
threads = [1, 2]
workload = [["ycsb-a"], ["read=.9,update=.1"]]
pool_size = "2G"
[[run]]
name = "second"
verify = false
trace = "{repository}/tests/data/a.gz"
"""

COMMANDS = """
[[run]]
name = "memory"
command = "microbench"
medium = "pmem:{pool}"
[[run]]
name = "judged"
command = "claims"
from = "{raw}/memory.json"
"""


class RunSuite(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.program = self.folder / "pmlab"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.pools = self.folder / "pools"
        self.pools.mkdir()
        self.out = self.folder / "out"

    def run_suite(self, text, *arguments):
        suite = self.folder / "suite.toml"
        suite.write_text(text)
        return subprocess.run([sys.executable, SCRIPTS / "run_suite", suite, "--out", self.out, "--pmlab", self.program,
                               "--pools", self.pools, *arguments], capture_output=True, text=True)

    def test_arguments(self):
        self.assertEqual(self.run_suite(SUITE).returncode, 0)
        first = (self.out / "raw" / "first.json").read_text()
        self.assertRegex(first, r"^bench --records 1M --verify --index cceh,tbb_hash --medium pmem:\S+/pool --threads 1,2 "
                         r"--workload ycsb-a --workload read=.9,update=.1 --pool-size 2G --json ")
        second = (self.out / "raw" / "second.json").read_text()
        self.assertRegex(second, r"^bench --records 1M --trace /\S+/tests/data/a.gz --json ")

    def test_other_commands_read_what_earlier_ones_wrote(self):
        self.run_suite(COMMANDS)
        raw = self.out / "raw"
        self.assertRegex((raw / "memory.json").read_text(), r"^microbench --medium pmem:\S+/pool --json ")
        self.assertTrue((raw / "judged.json").read_text().startswith(f"claims --from {raw}/memory.json --json "))
        manifest = json.loads((self.out / "run.json").read_text())
        self.assertEqual(manifest["runs"][1]["command"], "pmlab claims --from raw/memory.json")

    def test_manifest(self):
        self.run_suite(SUITE)
        manifest = json.loads((self.out / "run.json").read_text())
        self.assertEqual(manifest["title"], "A suite")
        self.assertEqual([r["name"] for r in manifest["runs"]], ["first", "second"])
        self.assertEqual([r["status"] for r in manifest["runs"]], [0, 0])
        self.assertIn("--medium pmem:POOLS/pool", manifest["runs"][0]["command"])
        self.assertIn("--trace tests/data/a.gz", manifest["runs"][1]["command"])

    def test_pools_are_removed(self):
        self.run_suite(SUITE)
        self.assertEqual(list(self.pools.iterdir()), [])

    def test_failure_is_reported_and_the_rest_still_runs(self):
        run = self.run_suite('[[run]]\nname = "bad"\nfail = true\n[[run]]\nname = "good"\n')
        self.assertEqual(run.returncode, 1)
        self.assertIn("cannot; do something else", run.stderr)
        entries = json.loads((self.out / "run.json").read_text())["runs"]
        self.assertEqual([(e["status"], e["message"]) for e in entries],
                         [(3, "pmlab: cannot; do something else"), (0, "")])
        self.assertTrue((self.out / "raw" / "good.json").exists())

    def test_results_are_never_overwritten(self):
        self.run_suite(SUITE)
        run = self.run_suite(SUITE)
        self.assertEqual(run.returncode, 2)
        self.assertIn("holds results already", run.stderr)

    def test_bad_suites(self):
        for text, complaint in (("[[run]]\n", "needs a name"), ("", "names no [[run]]"), ("x = = 1", "suite.toml"),
                                ('[[run]]\nname="a"\n[[run]]\nname="a"\n', "two runs"),
                                ('[[run]]\nname="a"\ncommand="rm"\n', "give one of bench, microbench, claims")):
            run = self.run_suite(text)
            self.assertEqual(run.returncode, 2)
            self.assertIn(complaint, run.stderr)
            self.assertNotIn("Traceback", run.stderr)

    def test_shipped_suites_are_sound(self):
        sys.path.insert(0, str(SCRIPTS))
        shipped = sorted((SCRIPTS / "suites").glob("*.toml"))
        self.assertEqual([s.stem for s in shipped], ["full", "quick"])
        for suite in shipped:
            runs = tomllib.loads(suite.read_text())["run"]
            self.assertTrue(all(r.get("name") and r.get("about") for r in runs), suite)


if __name__ == "__main__":
    unittest.main()
