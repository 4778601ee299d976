"""A library on several hosts: docs/hosts.md with examples/own_index/shared_slots.cpp."""
import os
import pathlib
import re
import signal
import subprocess
import time

from own_index import PMLAB, ROOT, TABLE, OwnIndexTest, line_of, main

SLOTS = os.path.join(ROOT, "examples", "own_index", "shared_slots.cpp")
DEFECTS = os.path.join(ROOT, "tests", "own_index", "host_defects.cpp")
HEADERS = os.path.join(ROOT, "checker", "include")
PARTIAL = ("--coherence", "partial")


class Hosts(OwnIndexTest):
    def slots(self, *defects):
        return self.build("_".join(("slots", *defects)), SLOTS, "-I", HEADERS, *("-D" + d for d in defects))

    def defective(self, defect):
        return self.build(defect.lower(), DEFECTS, "-I", HEADERS, "-D" + defect)

    def verified(self, library, *arguments, status=0):
        output, _ = self.pmlab("verify", "--library", library, "--quiet", *arguments, status=status)
        return output

    def shown(self, library, *arguments):
        """The report of the violation that a search finds: it ends with that, on a busy machine a minute later"""
        return self.verified(library, "--budget", "60", *arguments, status=1)

    def count(self, what, output):
        return int(re.search(rf"(\d+) {what}", output)[1])

    def test_it_is_clean(self):
        """Each load is behind a refresh: none is stale. The next tests show that some would be."""
        for hosts, more in (("2", PARTIAL), ("3", PARTIAL), ("2", (*PARTIAL, "--threads", "2")),
                            ("2", (*PARTIAL, "--deaths", "1")), ("3", (*PARTIAL, "--deaths", "2")),
                            ("2", ("--coherence", "full", "--deaths", "1"))):
            with self.subTest(hosts=hosts, more=more):
                output = self.verified(self.slots(), "--hosts", hosts, *more, "--rounds", "100")
                self.assertIn("100 rounds", output)
                self.assertIn("no violation", output)
                if "partial" in more:
                    self.assertGreater(self.count("write-backs", output), 0)
                    self.assertEqual(self.count("stale loads", output), 0)
                if "--deaths" in more:
                    self.assertGreater(self.count("deaths", output), 20)

    def test_every_death_is_tried(self):
        for defects, status in (((), 0), (("WITHOUT_PUBLISH",), 1)):
            output = self.verified(self.slots(*defects), "--hosts", "2", "--every-death", "--operations", "5",
                                   "--budget", "60", status=status)
            tried, moments = re.search(r"a host died at (\d+) of (\d+) moments", output).groups()
            self.assertGreater(int(tried), 0)
            self.assertEqual(status == 0, tried == moments, output)
        replay = output.split("to reproduce it:\n", 1)[1].split("\n")[0].split()
        self.assertIn("--death", replay)
        self.verified(*replay[replay.index("--library") + 1:], status=1)

    def test_each_defect_is_found_and_its_line_is_named(self):
        load = line_of(SLOTS, "if (s.key == key) return &s;")
        for defect, why in (("WITHOUT_REFRESH", "has not invalidated the line since"),
                            ("REFRESH_BY_SFENCE", "no mfence or locked instruction followed")):
            with self.subTest(defect):
                output = self.shown(self.slots(defect), "--hosts", "2", *PARTIAL)
                self.assertIn(f"shared_slots.cpp:{load}", output.split("stale: ", 1)[1])
                self.assertIn(why, output)
                replay = output.split("to reproduce it:\n", 1)[1].split("\n")[0].split()
                self.assertIn("--library", replay)
                self.verified(*replay[replay.index("--library") + 1:], status=1)
        self.assertIn("stale: ", self.shown(self.slots("WITHOUT_PUBLISH"), "--hosts", "2", *PARTIAL))

    def test_on_coherent_memory_only_deaths_show_what_is_not_published(self):
        self.verified(self.slots("WITHOUT_REFRESH"), "--hosts", "2", "--rounds", "100")
        self.verified(self.slots("WITHOUT_PUBLISH"), "--hosts", "2", "--rounds", "100")
        output = self.shown(self.slots("WITHOUT_PUBLISH"), "--hosts", "2", "--deaths", "1")
        self.assertIn("death: host ", output)
        self.assertRegex(output, r"lost: \d+ store\(s\) to the line at .*shared_slots\.cpp")

    def test_power_failures_of_all(self):
        """A library has no word for them, so its rounds have them on request."""
        self.assertNotIn("crash states", self.verified(self.slots(), "--hosts", "2", *PARTIAL, "--rounds", "50"))
        output = self.verified(self.slots(), "--hosts", "2", *PARTIAL, "--crashes", "--rounds", "4")
        self.assertGreater(self.count("crash states", output), 100)
        lost = r"lost: \d+ store\(s\) of host \d to the line at .*shared_slots\.cpp"
        for defect, text in (("WITHOUT_RELEASE", r"hangs: no end after"), ("WITHOUT_PUBLISH", lost)):
            with self.subTest(defect):
                mode = PARTIAL if defect == "WITHOUT_RELEASE" else ("--coherence", "full")
                output = self.shown(self.slots(defect), "--hosts", "2", *mode, "--crashes", "--shrink", "0")
                self.assertRegex(output, text)
                replay = output.split("to reproduce it:\n", 1)[1].split("\n")[0].split()
                self.assertIn("--crashes", replay)
                self.verified(*replay[replay.index("--library") + 1:], status=1)

    def test_a_lock_in_the_memory_of_one_host_is_none(self):
        self.shown(self.build("table", TABLE), "--hosts", "2", "--coherence", "full")

    def test_the_header_is_c_and_works_without_a_machine(self):
        source = os.path.join(self.folder, "alone.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write("#include <pmlab/programs/hosts.h>\n"
                    "int main(void) {\n"
                    "  uint64_t word = 1, expected = 2;\n"
                    "  int wrong = pmlab_hosts() != 1 || pmlab_host() != 0 || !pmlab_host_is_alive(0);\n"
                    "  wrong |= pmlab_device_compare_exchange(&word, &expected, 3) || expected != 1;\n"
                    "  wrong |= !pmlab_device_compare_exchange(&word, &expected, 3) || word != 3;\n"
                    "  return wrong;\n}\n")
        for compiler, standard in (("gcc", "-std=c99"), ("g++", "-xc++")):
            program = os.path.join(self.folder, "alone")
            subprocess.run([compiler, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", HEADERS, "-o",
                            program, source], check=True, timeout=60)
            self.assertEqual(subprocess.run([program], check=False, timeout=60).returncode, 0)

    def found(self, defect, *arguments):
        """The report of the defect, which the command that it prints shows again"""
        output = self.shown(self.defective(defect), "--hosts", "2", *(arguments or PARTIAL), "--shrink", "0")
        replay = output.split("to reproduce it:\n", 1)[1].split("\n")[0].split()
        self.verified(*replay[replay.index("--library") + 1:], status=1)
        return output

    def test_dram_of_another_host_is_no_memory(self):
        for defect, what in (
                ("HEAP_IS_SHARED", r"a block that it has allocated at .*host_defects\.cpp:%d" %
                 line_of(DEFECTS, "own_ = std::make_unique<std::uint64_t>(1);")),
                ("STACK_IS_SHARED", r"the stack of its thread \d"), ("VARIABLE_IS_SHARED", "a variable or constant"),
                ("MAPPING_IS_SHARED", "memory that it has mapped")):
            for mode in (PARTIAL, ("--coherence", "full")):
                with self.subTest(defect, mode=mode):
                    self.assertRegex(self.found(defect, *mode),
                                     rf"host \d uses DRAM of host \d at .*host_defects\.cpp:\d+.*: {what}")

    def test_memory_that_was_unmapped_is_no_hosts(self):
        library = self.defective("KEEPS_ITS_MAPPINGS")
        self.verified(library, "--hosts", "2", *PARTIAL, "--rounds", "40")
        self.verified(library, "--schedules", "--threads", "2", "--operations", "12", "--keys", "4", "--memory-order",
                      "tso", "--rounds", "4")

    def test_a_lock_of_the_c_library_is_of_one_kernel(self):
        for defect in ("MUTEX_IS_SHARED", "MUTEX_IS_TRIED", "STD_MUTEX_IS_SHARED"):
            with self.subTest(defect):
                self.assertRegex(self.found(defect), r"a mutex of the C library in the shared memory, at .*: it works")

    def test_each_round_begins_with_the_variables_of_a_library_that_was_just_loaded(self):
        for defect, more in (("KEEPS_ITS_COUNT", ()), ("HOLDS_A_LOCK_IN_DRAM", ("--deaths", "1")),
                             ("HOLDS_A_LOCK_IN_DRAM", ("--deaths", "1", "--jobs", "2"))):
            with self.subTest(defect, more=more):
                output = self.verified(self.defective(defect), "--hosts", "2", *PARTIAL, "--rounds", "150", *more)
                self.assertEqual(self.count("rounds", output), 150)
        tried = self.verified(self.defective("HOLDS_A_LOCK_IN_DRAM"), "--hosts", "2", *PARTIAL, "--every-death",
                              "--operations", "4", "--budget", "60")
        self.assertIn("complete for this history and schedule", tried)

    def test_a_half_of_a_value_that_stays_is_seen(self):
        """Numbers that are small have the same one."""
        self.assertRegex(self.found("UPPER_HALF_STAYS"), r"can only be|no order of these operations")

    def test_an_exchange_by_the_device_is_of_aligned_words(self):
        output = self.found("EXCHANGE_IS_UNALIGNED")
        self.assertIn("that begin at no multiple of 8", output)
        self.assertRegex(output, r"at .*(host_defects|hosts)\.(cpp|h):\d+")

    def test_what_ends_a_library_is_named(self):
        for defect, text in (("OPERATION_THROWS", "an operation throws: the slots are worn out"),
                             ("OPERATION_THROWS_A_NUMBER", "an operation throws: an object of type (anonymous"),
                             ("OPERATION_EXITS", "an operation ends the process (exit)"),
                             ("OPERATION_EXITS_AT_ONCE", "an operation ends the process with status 0")):
            with self.subTest(defect):
                self.assertIn(text, self.found(defect))
                one_host = self.shown(self.defective(defect), "--shrink", "0")
                self.assertIn(text, one_host)
        for defect, text in (("CONSTRUCTOR_THROWS", "throws: the table of constants is worn out"),
                             ("CONSTRUCTOR_EXITS", "ends the process (exit)")):
            with self.subTest(defect):
                self.assert_refused(["a constructor of its statics " + text], "verify", "--library",
                                    self.defective(defect), "--hosts", "2")

    def test_a_run_that_is_ended_leaves_no_pool(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = subprocess.Popen([PMLAB, "verify", "--library", self.slots(), "--hosts", "2", *PARTIAL, "--quiet",
                                    "--budget", "60", "--jobs", "2"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            folder = pathlib.Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp")
            pools = lambda: list(folder.glob(f"pmlab-verify-{run.pid}*.pool"))  # noqa: E731
            deadline = time.monotonic() + 60
            while len(pools()) < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(len(pools()), 2)
            run.send_signal(number)
            self.assertEqual(run.wait(60), -number)
            self.assertEqual(pools(), [])

    def test_bad_input(self):
        self.assert_refused(["--hosts", "--joins"], "verify", "--library", self.slots(), "--hosts", "2", "--joins")


if __name__ == "__main__":
    main()
