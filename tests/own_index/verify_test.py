"""`pmlab verify --library`: finds the bugs of the examples, and nothing where there is none."""
import glob
import os
import re
import shlex
import subprocess
import time

from own_index import BUILT, FAULTY, LOG, PMLAB, TABLE, TREE, OwnIndexTest, line_of, main

SHORT = ["--budget", "4"]


class Verify(OwnIndexTest):
    def expect_found(self, library, *arguments):
        output, _ = self.pmlab("verify", "--library", library, "--budget", "60", "--shrink", "4", *arguments, status=1)
        self.assertIn("1 VIOLATION", output)
        return output

    def test_the_bug_of_the_table_is_found_at_its_store_and_found_again(self):
        output = self.expect_found(self.build("table", TABLE), "--crashes")
        lost = next(line for line in output.splitlines() if line.startswith("  lost: "))
        self.assertIn(f"table.cpp:{line_of(TABLE, 'key.store(removed)')} (remove)", lost)
        replay = shlex.split(output.split("to reproduce it:\n", 1)[1].splitlines()[0])
        self.assertEqual(replay[:2], ["pmlab", "verify"])
        again, _ = self.pmlab(*replay[1:], status=1)
        self.assertIn(lost.rsplit(",", 1)[1], again)

    def test_all_lists_each_violation_once_and_known_passes_it_over(self):
        verify = ["verify", "--library", self.build("table", TABLE), "--crashes", "--rounds", "12", "--quiet"]
        output, _ = self.pmlab(*verify, "--all", status=1)
        listed = [line for line in output.splitlines() if "; pmlab verify " in line]
        self.assertTrue(any(f"table.cpp:{line_of(TABLE, 'key.store(removed)')} (remove)" in line for line in listed),
                        output)
        self.assertTrue(all(re.search(r"so: key N is .*, .*table.cpp:\d+ \(", line) for line in listed), output)
        groups = [line.split("; pmlab verify ", 1)[0] for line in listed]
        self.assertEqual(len(groups), len(set(groups)), output)
        self.pmlab(*shlex.split(listed[0].split("; pmlab ", 1)[1]), status=1)
        known = os.path.join(self.folder, "known")
        with open(known, "w", encoding="utf-8") as f:
            f.write(output)
        for how in (["--all"], []):
            output, _ = self.pmlab(*verify, *how, "--known", known)
            self.assertIn("no other violation", output)
            self.assertIn(f"  {len(listed)} known violation", output)
        with open(known, "w", encoding="utf-8") as f:
            f.write(listed[0].replace(" (remove)", " (elsewhere)"))
        output, _ = self.pmlab(*verify, "--known", known, status=1)
        self.assertIn("1 VIOLATION", output)
        for path, text in ((os.path.join(self.folder, "absent"), "cannot be read"), (self.folder, "cannot be read"),
                           (TABLE, "no line of")):
            self.assert_refused([text], *verify, "--known", path)
        self.assert_refused(["--all"], "verify", "--index", "cceh", "--all", "--exhaustive")

    def test_the_fixed_table_is_clean(self):
        library = self.build("table_fixed", TABLE, "-DFIXED")
        for how in (["--crashes"], ["--schedules", "--threads", "4"], ["--crashes", "--schedules"]):
            output, _ = self.pmlab("verify", "--library", library, *SHORT, *how)
            self.assertIn("no violation", output)

    def test_mmap_and_inline_assembly_are_seen(self):
        for library in (os.path.join(BUILT, "libown_log.so"), self.build("log", LOG)):
            output, _ = self.pmlab("verify", "--library", library, "--scans", *SHORT)
            self.assertIn("no violation", output)

    def test_several_processes_have_a_pool_each(self):
        output, _ = self.pmlab("verify", "--library", os.path.join(BUILT, "libown_log.so"), "--scans", "--jobs", "8",
                               *SHORT)
        self.assertIn("no violation", output)

    def test_the_pools_of_killed_searches_are_removed(self):
        library = os.path.join(BUILT, "libown_log.so")
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
        with subprocess.Popen([PMLAB, "verify", "--library", library, "--jobs", "2", "--quiet"],
                              stdout=subprocess.DEVNULL, cwd=self.folder) as search:
            of_search = os.path.join(folder, f"pmlab-verify-{search.pid}*")
            end = time.monotonic() + 30
            while not glob.glob(of_search) and time.monotonic() < end:
                time.sleep(0.001)
            search.kill()
        # The kill may have come between two rounds.
        with open(of_search.replace("*", "-1.pool"), "w", encoding="utf-8"):
            pass
        own = os.path.join(folder, f"pmlab-verify-{os.getpid()}.pool")
        with open(own, "w", encoding="utf-8"):
            self.addCleanup(os.remove, own)
        self.pmlab("verify", "--library", library, "--scans", "--rounds", "1")
        self.assertEqual(glob.glob(of_search), [])
        self.assertTrue(os.path.exists(own))

    def test_a_missing_fence_in_inline_assembly_is_found(self):
        for library in (os.path.join(BUILT, "libown_log_without_fence.so"),
                        self.build("log_without_fence", LOG, "-DWITHOUT_FENCE")):
            output = self.expect_found(library, "--crashes")
            self.assertIn("log.cpp:", output)
            # append is the innermost.
            self.assertRegex(output,
                             r"last access before the crash: .*log\.cpp:\d+ \(\w+\)\n    called by .*log\.cpp:\d+\)")

    def test_what_recovery_does_wrong_is_a_violation(self):
        for how, word in (("FAULTS", "faults: Segmentation fault"), ("HANGS", "hangs"),
                          ("THROWS", "throws: the pool was not closed"),
                          ("EXITS", "ends the process (exit)"),
                          ("EXITS_AT_ONCE", "ends the process with status 0")):
            library = self.build(how.lower(), FAULTY, "-D" + how)
            output, errors = self.pmlab("verify", "--library", library, "--crashes", "--shrink", "0", "--quiet",
                                        status=1)
            self.assertIn(word, output)
            self.assertEqual(errors, "")
            # Recovery runs in a copy of the library, whose file is gone.
            self.assertNotIn("-copy.so", output)
            if how in ("FAULTS", "HANGS"):
                self.assertIn("faulty.cpp:", output.split("lost:", 1)[0])

    def test_variables_of_inline_code_have_their_values_after_loading_in_recovery(self):
        output, _ = self.pmlab("verify", "--library", os.path.join(BUILT, "libown_odd.so"), "--crashes", *SHORT,
                               environment={"ODD": "remembers"})
        self.assertIn("no violation", output)

    def test_operations_that_a_library_does_not_have_are_never_used(self):
        library = self.build("tree", TREE, "-include", "pmlab/pibench/pool_malloc.h")
        for lacks, status in (([], 1), (["--without", "update"], 1), (["--without", "remove"], 1),
                              (["--without", "update,remove"], 0), (["--without", "scan,remove,update"], 0)):
            # A search ends with the first violation, however long that takes on a busy machine.
            budget = SHORT if status == 0 else ["--budget", "60"]
            output, _ = self.pmlab("verify", "--library", library, "--crashes", "--shrink", "0", *budget, *lacks,
                                   status=status)
            if status == 0:
                self.assertTrue(output.startswith("libtree.so without update,remove: "), output)

    def test_a_violation_is_found_again_without_these_operations(self):
        library = self.build("tree_faulty", TREE, "-DWITHOUT_FLUSH", "-include", "pmlab/pibench/pool_malloc.h")
        output = self.expect_found(library, "--crashes", "--without", "update,remove")
        self.assertIn("search_tree.hpp:", next(line for line in output.splitlines() if line.startswith("  lost: ")))
        replay = shlex.split(output.split("to reproduce it:\n", 1)[1].splitlines()[0])
        again, _ = self.pmlab(*replay[1:], status=1)
        self.assertTrue(again.startswith("libtree_faulty.so without update,remove: "), again)

    def test_what_a_second_crash_takes_is_found(self):
        output, _ = self.pmlab("verify", "--library", os.path.join(BUILT, "libown_odd.so"), "--crashes", "--budget",
                               "60", "--shrink", "2", environment={"ODD": "leaves"}, status=1)
        self.assertRegex(output, r"lost: .*own_index/odd\.cpp:\d+ \(insert\)")
        self.assertNotIn("-copy.so", output)

    def test_bad_input(self):
        self.assert_refused(["there is no library ./libnot.so"], "verify", "--library", "./libnot.so")
        native = self.build("native", TABLE, "-lpmem", compiler="g++")
        self.assert_refused(["not built for the simulated machine", "pmlab-c++"], "verify", "--library", native)
        self.assert_refused(["--without 'updat'", "update, remove"], "verify", "--library", native, "--without",
                            "updat")
        self.assert_refused(["--without", "--library FILE.so"], "verify", "--index", "cceh", "--without", "update")
        self.assert_refused(["--scans"], "verify", "--library", native, "--scans", "--without", "scan")
        objects = self.build("objects", TABLE, "-Wl,--no-as-needed", "-lpmemobj")
        self.assert_refused(["libpmemobj"], "verify", "--library", objects)
        other = self.build("other", TABLE, "-Dcreate_tree=make_tree")
        self.assert_refused(["create_tree"], "verify", "--library", other)

    def test_a_part_of_a_library_is_refused(self):
        with open(self.build("fixed", TABLE, "-DFIXED"), "rb") as f:
            whole = f.read()
        # The headers are whole in the last one, and the code is not.
        for size in (100, len(whole) // 8, len(whole) // 4):
            path = os.path.join(self.folder, "part.so")
            with open(path, "wb") as f:
                f.write(whole[:size])
            for option in ("--library", "--subject"):
                with self.subTest(size=size, option=option):
                    self.assert_refused(["ends before its headers say"], "verify", option, path)


if __name__ == "__main__":
    main()
