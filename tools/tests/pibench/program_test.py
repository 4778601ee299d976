"""`pmlab bench --library` with pmlab's own libraries for PiBench, native: measured, verified, reopened, refused.

usage: program_test.py PMLAB FOLDER [unittest arguments]
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "cli"))
from program import ProgramTest, main  # noqa: E402

FOLDER = sys.argv.pop(2)


def library(name):
    return os.path.join(FOLDER, f"libpmlab_{name}.so")


class Libraries(ProgramTest):
    def test_beside_the_index_itself(self):
        for medium in ("dram", f"pmem:{self.file('pool')}"):
            with self.subTest(medium=medium):
                done = self.assert_works("bench", "--library", library("fast_fair"), "--library-scans", "--index",
                                         "fast_fair", "--medium", medium, "--records", "20k", "--operations", "20k",
                                         "--threads", "1,2", "--phases", "read,insert,update,scan", "--repeat", "1",
                                         "--verify")
                rows = [line.split() for line in done.stdout.splitlines()]
                for phase in ("read", "insert", "update", "scan"):
                    indexes = {row[2] for row in rows if len(row) > 3 and row[1] == phase}
                    self.assertEqual(indexes, {"fast_fair", "pmlab_fast_fair"}, done.stdout)

    def test_hash_tables_caches_and_hybrids(self):
        names = ("cceh", "cache_fast_fair", "hybrid_index_plus")
        self.assert_works("bench", *[word for name in names for word in ("--library", library(name))], "--medium",
                          f"pmem:{self.file('pool')}", "--records", "20k", "--operations", "20k", "--phases",
                          "read,insert,update", "--repeat", "1", "--verify", "--reopen")

    def test_what_is_installed(self):
        subprocess.run(["cmake", "--install", os.path.dirname(FOLDER), "--component", "pibench", "--prefix",
                        self.file("prefix")], check=True, capture_output=True)
        installed = [path.name for path in pathlib.Path(self.file("prefix")).rglob("*") if path.is_file()]
        # The folder also has the library of the key-value API, which is a component of its own.
        built = {name for name in os.listdir(FOLDER) if name.startswith("libpmlab_")} - {"libpmlab_kvssd.so"}
        self.assertEqual(sorted(installed), sorted(built))
        moved = next(pathlib.Path(self.file("prefix")).rglob("libpmlab_fast_fair.so"))
        self.assert_works("bench", "--library", str(moved), "--medium", "dram", "--records", "1k", "--phases", "read",
                          "--repeat", "1", "--verify")

    def test_the_simulated_machine_has_the_indexes_themselves(self):
        self.assert_fails(2, ["was not built for the simulated machine"], "bench", "--library", library("cceh"),
                          "--medium", "simulated:aep", "--records", "1k")


main()
