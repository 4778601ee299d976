"""hosts_test.py PROGRAM MUTATED.so DATA.toml TREE UNSHARED.so STALE CLASS: `pmlab verify --hosts`.

DATA has the mutations of an index for several hosts, TREE its source with all of them planted; UNSHARED is an index for
one host. STALE: the modes, with commas in between, in which loads of the index are stale without harm. Where the locks
are coherent, one that loads under a lock alone has none. CLASS: the class of tests below that runs. The searches take
minutes; that each mutation is seen at all is tested by its recorded round, too (mutation_test.py).
"""
import os
import pathlib
import re
import resource
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations"))
import plant  # noqa: E402
from verifier import Verifier  # noqa: E402

PROGRAM, SUBJECT, DATA, TREE, UNSHARED, STALE, CLASS = sys.argv[1:8]
MODES = ("full", "partial", "none")
# A clean run in one mode: shared_dash has some 20 rounds a second. A death in a hundred loses a store.
ROUNDS, DEADLY_ROUNDS, CRASHED_ROUNDS = 40, 100, 8
LONGEST_SECONDS = 10  # processor time in which each defect is found; the ten million accesses of a livelock take half


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reached_mutations():
    return [(number, mutation) for number, mutation in plant.mutations_in(DATA) if "waits_for" not in mutation]


class HostsTest(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, SUBJECT)
        self.verifier.choose(0)


class Hosts(HostsTest):
    def counts(self, *arguments):
        """{name: count} of a clean run"""
        status, output, _ = self.verifier.run("--subject", SUBJECT, "--quiet", *arguments)
        self.assertEqual(status, 0, output)
        self.assertIn("no violation", output)
        return {name: int(count)
                for count, name in re.findall(
                    r"(\d+) (rounds|crash states|write-backs|stale loads|clobbers|deaths|lost stores)", output)}

    def test_it_is_clean_and_was_stale(self):
        for mode in MODES:
            for hosts in ("2", "3"):
                with self.subTest(mode=mode, hosts=hosts):
                    counts = self.counts("--hosts", hosts, "--coherence", mode, "--rounds", str(ROUNDS), "--seed",
                                         hosts)
                    self.assertEqual(counts["rounds"], ROUNDS)
                    if mode == "full":
                        self.assertNotIn("stale loads", counts)
                        continue
                    self.assertEqual(counts["stale loads"] > 0, mode in STALE.split(","))
                    self.assertGreater(counts["write-backs"], 0)
                    self.assertEqual(counts["clobbers"], 0)

    def test_survivors_go_on_behind_deaths(self):
        for mode in MODES:
            for hosts, deaths, threads in (("2", "1", "1"), ("2", "1", "2"), ("3", "2", "1")):
                with self.subTest(mode=mode, hosts=hosts, threads=threads):
                    counts = self.counts("--hosts", hosts, "--deaths", deaths, "--threads", threads, "--coherence",
                                         mode, "--rounds", str(DEADLY_ROUNDS), "--seed", hosts)
                    self.assertGreater(counts["deaths"], DEADLY_ROUNDS // 5)
                    self.assertLess(counts["deaths"], DEADLY_ROUNDS * int(deaths))
                    self.assertGreater(counts["lost stores"], 0)
                    self.assertEqual(counts.get("clobbers", 0), 0)

    def test_it_survives_power_failures_of_all_hosts(self):
        for mode in MODES:
            for hosts, more in (("2", ()), ("3", ("--deaths", "2")), ("2", ("--threads", "2"))):
                with self.subTest(mode=mode, hosts=hosts, more=more):
                    counts = self.counts("--hosts", hosts, "--coherence", mode, *more, "--crashes", "--rounds",
                                         str(CRASHED_ROUNDS), "--seed", hosts)
                    self.assertEqual(counts["rounds"], CRASHED_ROUNDS)
                    self.assertGreater(counts["crash states"], CRASHED_ROUNDS * 50)

    def test_some_rounds_have_power_failures(self):
        arguments = ("--hosts", "2", "--coherence", "none", "--rounds", str(ROUNDS))
        some, every, none = (self.counts(*arguments, *more) for more in ((), ("--crashes",), ("--schedules",)))
        self.assertNotIn("crash states", none)
        self.assertGreater(some["crash states"], 0)
        self.assertGreater(every["crash states"], 2 * some["crash states"])

    def every_death(self, *arguments):
        """(moments with a death, moments, counts) of a run that finds nothing"""
        status, output, _ = self.verifier.run("--subject", SUBJECT, "--quiet", "--every-death", *arguments)
        tried, moments = map(int, re.search(r"a host died at (\d+) of (\d+) moments", output).groups())
        self.assertEqual(status, 0 if tried == moments else 3, output)
        self.assertEqual("complete for this history and schedule" in output, tried == moments, output)
        self.assertEqual("not complete; give a larger --budget" in output, tried != moments, output)
        rounds, deaths = (int(re.search(rf"(\d+) {what}", output)[1]) for what in ("rounds", "deaths"))
        return tried, moments, rounds, deaths

    def test_every_death_of_a_round_is_tried(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                arguments = ("--hosts", "3", "--coherence", mode, "--operations", "3")
                tried, moments, rounds, deaths = self.every_death(*arguments, "--jobs", "1")
                self.assertEqual(tried, moments)
                self.assertGreater(moments, 50)
                # The first round has no death. Some moments have several choices.
                self.assertEqual(deaths, rounds - 1)
                self.assertGreater(deaths, moments)
                self.assertEqual(self.every_death(*arguments, "--jobs", "3"), (tried, moments, rounds, deaths))

    def test_a_death_has_no_more_choices_than_are_tried(self):
        """Nothing leaves a cache by chance, so the choices of a moment are the same in each round."""
        status, output, _ = self.verifier.run("--subject", SUBJECT, "--quiet", "--hosts", "2", "--operations", "3",
                                              "--rounds", "1", "--death", "0.1.63")
        self.assertEqual(status, 2, output)
        self.assertRegex(output, r"--death 0\.1\.63: this death has \d+ choices?, from 0 on")

    def test_a_search_of_every_death_that_does_not_end_says_so(self):
        tried, moments, _, _ = self.every_death("--hosts", "2", "--operations", "400", "--budget", "2", "--jobs", "1")
        self.assertLess(tried, moments)

    def test_some_rounds_begin_filled(self):
        self.verifier.choose(next(n for n, m in plant.mutations_in(DATA) if m["name"] == "lock_is_not_taken"))
        found = []
        for seed in range(1, 49):
            status, output, _ = self.verifier.run("--subject", SUBJECT, "--hosts", "2", "--coherence", "none", "--seed",
                                                  str(seed), "--rounds", "1", "--shrink", "0", "--quiet")
            if status == 1:
                found.append(re.search(r"^ *\((\d+) inserts and erases before, which leave \d+ keys\)$", output, re.M))
        filled = [int(line[1]) for line in found if line]
        self.assertTrue(0 < len(filled) < len(found), (len(filled), len(found)))
        self.assertGreater(max(filled), 3)

    def test_threads_are_for_each_host(self):
        self.counts("--hosts", "3", "--threads", "2", "--coherence", "none", "--rounds", "50")

    def test_rounds_are_the_same_again(self):
        arguments = ("--hosts", "2", "--coherence", "none", "--rounds", str(ROUNDS // 2), "--seed", "7")
        self.assertEqual(self.counts(*arguments), self.counts(*arguments))
        self.assertEqual(self.counts(*arguments), self.counts(*arguments, "--jobs", "3"))

    def test_a_defect_that_needs_no_second_cache_is_said_to_be_one(self):
        number = next(n for n, m in plant.mutations_in(DATA) if m["name"] == "lock_is_not_taken")
        self.verifier.choose(number)
        report = self.verifier.expect_found("--hosts", "2", "--coherence", "full")
        self.assertIn("every load has seen the newest store", report)

    def test_an_index_for_one_host_is_refused_and_fails_as_it_is(self):
        status, output, _ = self.verifier.run("--subject", UNSHARED, "--hosts", "2")
        self.assertEqual(status, 2, output)
        self.assertIn("keeps its locks in DRAM", output)
        self.assertEqual(len(output.splitlines()), 1, output)
        for mode in MODES:
            status, output, _ = self.verifier.run("--subject", UNSHARED, "--hosts", "2", "--as-is", "--coherence", mode,
                                                  "--shrink", "0", "--budget", "20")
            self.assertEqual(status, 1, output)

    def test_bad_input(self):
        for arguments, text in (
                (["--hosts", "0"], "--hosts is 0; give 2 to 8"), (["--hosts", "1"], "--hosts is 1"),
                (["--hosts", "9"], "--hosts is 9"),
                (["--hosts", "8", "--threads", "2"], "have 16 threads; give at most 8"),
                (["--coherence", "none"], "--coherence is about several hosts; give --hosts 2 or more, too"),
                (["--as-is"], "--as-is is about several hosts"), (["--stale", "any"], "--stale is about several hosts"),
                (["--hosts", "2", "--coherence", "some"], "--coherence 'some' is unknown"),
                (["--hosts", "2", "--stale", "all"], "--stale 'all' is unknown; use any, loaded"),
                (["--hosts", "2", "--invalidation", "lfence"], "--invalidation 'lfence' is unknown"),
                (["--hosts", "2", "--coherence", "partial", "--coherent-bytes", "100"], "--coherent-bytes 100 is not"),
                (["--hosts", "2", "--coherence", "partial", "--coherent-bytes", "2MiB"],
                 "--coherent-bytes 2MiB is not"),
                (["--hosts", "2", "--coherent-bytes", "128"], "no effect with --coherence full"),
                (["--deaths", "1"], "--deaths is about several hosts; give --hosts 2 or more, too"),
                (["--hosts", "2", "--deaths", "0"], "--deaths is 0, of 2 hosts; give 1 to 1"),
                (["--hosts", "3", "--deaths", "3"], "--deaths is 3, of 3 hosts; give 1 to 2"),
                (["--hosts", "2", "--deaths", "1", "--as-is"], "excludes --as-is"),
                (["--every-death"], "--every-death is about several hosts; give --hosts 2 or more, too"),
                (["--death", "0.1.0"], "--death is about several hosts; give --hosts 2 or more, too"),
                *((["--hosts", "2", "--every-death", *other],
                   f"--every-death tries each death of one round, and excludes {other[0]}; leave one of them out")
                  for other in (["--deaths", "1"], ["--death", "0.1.0"], ["--as-is"], ["--rounds", "2"],
                                ["--seeds", "1..2"], ["--steps", "1"], ["--all"])),
                (["--hosts", "2", "--every-death", "--deaths", "0"], "--deaths is 0, of 2 hosts; give 1 to 1"),
                (["--hosts", "2", "--every-death", "--crashes"], "excludes --crashes"),
                (["--hosts", "2", "--death", "0.1.0", "--rounds", "1", "--crashes"], "excludes --crashes"),
                (["--hosts", "2", "--death", "0.1.0"], "--death is of the replay of a violation, which has --rounds"),
                (["--hosts", "2", "--death", "0.1.0", "--rounds", "1", "--deaths", "1"],
                 "--death is of the replay of a violation, and excludes --deaths"),
                *((["--hosts", "2", "--rounds", "1", "--death", bad], f"--death '{bad}' is not possible; give HOST.ACC")
                  for bad in ("0", "0.1", "0.1.", "0.1.x", ".1.0", "-1.1.0", "0.1.0.0")),
                *((["--hosts", "2", "--rounds", "1", "--death", bad], f"--death {bad} is not possible; give HOST.ACC")
                  for bad in ("2.1.0", "0.0.0", "0.1.64")),
                (["--hosts", "2", "--rounds", "1", "--death", "1.999999.0", "--quiet"],
                 "--death 1.999999.0: the host has fewer accesses in this round"),
                (["--hosts", "2", "--kills", "--crashes"], "excludes --kills"),
                (["--hosts", "2", "--persistence", "gpf"], "excludes --persistence"),
                (["--hosts", "2", "--search", "bounded"], "random searches")):
            with self.subTest(arguments):
                status, output, _ = self.verifier.run("--subject", SUBJECT, *arguments)
                self.assertEqual(status, 2, output)
                self.assertIn(text, output)
                self.assertEqual(len(output.splitlines()), 1, output)


class Searches(HostsTest):
    reports = {}  # by number of the mutation: found

    def found(self, number, mutation):
        """(report, processor seconds) of the search that finds the mutation, which runs once"""
        if number not in self.reports:
            self.verifier.choose(number)
            before = processor_seconds()
            # A power failure shows some of the others, too, and names what was lost.
            schedules = [] if "--crashes" in mutation["verify"] else ["--schedules"]
            status, report, _ = self.verifier.run("--subject", SUBJECT, "--shrink", "0", "--jobs", "1",
                                                  "--budget", "30", *mutation["verify"], *schedules)
            self.assertEqual(status, 1, report)
            self.reports[number] = report, processor_seconds() - before
        return self.reports[number]

    def test_what_is_lost_with_all_hosts_is_named(self):
        for number, mutation in reached_mutations():
            if "--crashes" not in mutation["verify"] or "--deaths" in mutation["verify"]:
                continue
            with self.subTest(mutation["name"]):
                report, _ = self.found(number, mutation)
                self.assertRegex(report, r"to reproduce it:\n.* --crashes --hosts ")
                self.assertRegex(report, r"\d+ crash states")
                # Stores in a wrong order: each has become durable, or no failure is needed.
                if not mutation.get("loses", True):
                    continue
                # What recovery reads of a table that was lost leads anywhere.
                if "\n  fault: " in report and mutation["name"] in ("table_is_lost_with_all", "head_is_lost_with_all"):
                    continue
                # An opening that waits for a lock of before loses nothing, and may wait in a copy of the process.
                waits = mutation["name"].endswith(("_outlive_all", "_outlives_all"))
                self.assertRegex(report, r"\n  (no end after|crash (between operations|during ))" if waits else
                                 r"\n  crash (between operations|during )")
                if not waits:
                    self.assertRegex(report, r"lost: \d+ store\(s\) of host \d to the line at offset \d+, first "
                                             r"the one at [\w/]+\.hpp:\d+")

    def test_every_death_finds_what_dies_with_its_host(self):
        for number, mutation in reached_mutations():
            if "--deaths" not in mutation["verify"] or "--crashes" in mutation["verify"]:
                continue
            if not mutation.get("every_death", True):
                continue
            options = mutation["verify"]
            at = options.index("--deaths")
            with self.subTest(mutation["name"]):
                self.verifier.choose(number)
                report = self.verifier.expect_found(*options[:at], *options[at + 2:], "--every-death")
                self.assertRegex(report, r"to reproduce it:\n.* --death \d+\.\d+\.\d+ ")
                self.assertNotIn("--pauses", report)  # the plain schedule, if none is asked for
                self.assertRegex(report, r"a host died at \d+ of \d+ moments")

    @staticmethod
    def planted():
        """{name of a file that has mutations: its path}"""
        return {path.name: path for path in pathlib.Path(TREE).rglob("*.hpp")}

    def named_code(self, report):
        """The source lines that the stale part of the report names"""
        stale = report.split("stale: ", 1)[1].split("history (", 1)[0]
        files = self.planted()
        return [files[name].read_text().splitlines()[int(number) - 1]
                for name, number in re.findall(r"(\w+\.hpp):(\d+)", stale) if name in files]

    def test_each_defect_is_found_in_time_and_its_lines_are_named(self):
        for number, mutation in reached_mutations():
            with self.subTest(mutation["name"]):
                report, seconds = self.found(number, mutation)
                self.assertLess(seconds, LONGEST_SECONDS, report)
                print(f"{mutation['name']}: {seconds:.2f} s\n{report}")
                if mutation["names"]:
                    named = self.named_code(report)
                    for code in mutation["names"]:
                        self.assertTrue(any(code in line for line in named), f"{code} is not among {named}\n{report}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], CLASS])
