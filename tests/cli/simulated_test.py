"""`pmlab bench --medium simulated:PROFILE`: repeats to the digit, scales, and refuses unsupported requests."""
import json
import os
import shutil
import subprocess

from program import PMLAB, ProgramTest, main, there

DEVICES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "devices", "profiles")


class Simulated(ProgramTest):
    def results_of(self, *arguments, medium="simulated:aep", **more):
        path = self.file("r.json")
        done = subprocess.run([os.path.abspath(PMLAB), "bench", "--medium", medium, "--json", path, "--quiet",
                               *arguments],
                              capture_output=True, text=True, timeout=280, check=False, **more)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def throughputs(self, document):
        return {(r["index"], r["phase"], r["threads"]): r["throughput_ops_per_s"] for r in document["results"]}

    def test_the_same_seed_gives_the_same_figures_to_the_digit(self):
        same = ["--index", "cceh,fast_fair,std_map", "--records", "5k", "--operations", "5k", "--threads", "1,4",
                "--workload", "ycsb-a", "--phases", "read,update,insert,erase"]
        first = self.results_of(*same)
        # Another environment, folder, size of what lies on the stack, and number of CPUs.
        second = self.results_of(*same, env=os.environ | {"PMLAB_TEST_PADDING": "x" * 5000}, cwd=self.folder,
                                 preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        self.assertEqual(json.dumps(first["results"]), json.dumps(second["results"]))
        other = self.results_of(*same, "--seed", "2")
        self.assertNotEqual(json.dumps(first["results"]), json.dumps(other["results"]))

    SMALL = ["--records", "8k", "--operations", "8k", "--phases", "read,update,insert,erase,reopen"]

    def figures_of(self, index, threads, *arguments, **more):
        """Those of one index and number of threads, without what --verify adds and the medium's name."""
        results = self.results_of(*self.SMALL, *arguments, **more)["results"]
        own = [{k: v for k, v in r.items() if k not in ("wrong_answers", "medium")}
               for r in results if r["index"] == index and r["threads"] == threads]
        phases = 5 if index == "std_map" else 6  # DRAM keeps nothing across a restart
        self.assertEqual(len(own), phases * len({r["repeat"] for r in results}), index)
        return own

    def test_what_has_nothing_to_do_with_an_index_moves_none_of_its_figures(self):
        """Lengths of names, other indexes before and after it, other numbers of threads, a check of answers."""
        profile = os.path.join(DEVICES, "aep.toml")
        for index in ("cceh", "hybrid_index", "cache(fp_tree,mode=adaptive)", "std_map"):
            with self.subTest(index=index):
                alone = self.figures_of(index, 4, "--index", index, "--threads", "4")
                self.assertEqual(alone, self.figures_of(index, 4, "--index", index, "--threads", "4", "--verify"))
                self.assertEqual(alone, self.figures_of(index, 4, "--index", f"fast_fair,{index},woart", "--threads",
                                                        "1,4"))
                for name in ("a", "a" * 24):
                    copy = self.file(f"{name}.toml")
                    shutil.copy(profile, copy)
                    self.assertEqual(alone, self.figures_of(index, 4, "--index", index, "--threads", "4",
                                                            medium=f"simulated:{copy}"))

    def test_scans_are_the_same_with_a_check_of_answers(self):
        same = ["--index", "fast_fair", "--records", "5k", "--operations", "2k", "--phases", "scan", "--threads", "2"]
        self.assertEqual(*([r["latency_ns"] for r in self.results_of(*same, *more)["results"]]
                           for more in ([], ["--verify"])))

    def test_each_repeat_has_a_layout_of_its_own(self):
        """That is repeatable: a run may begin with any."""
        same = ("cceh", 2, "--index", "cceh,fp_tree", "--threads", "2")
        three = self.figures_of(*same, "--repeat", "3")
        by_repeat = [[{k: v for k, v in r.items() if k != "repeat"} for r in three if r["repeat"] == n]
                     for n in (1, 2, 3)]
        self.assertEqual(len({json.dumps(figures) for figures in by_repeat}), 3)
        third = [{k: v for k, v in r.items() if k != "repeat"} for r in self.figures_of(*same, "--layout", "3")]
        self.assertEqual(third, by_repeat[2])

    def test_a_layout_draws_other_keys(self):
        """All answers are right in it, and absent keys are absent."""
        document = self.results_of("--index", "fp_tree", "--records", "3k", "--operations", "3k", "--phases",
                                   "read,absent,insert,erase,scan", "--workload", "ycsb-d", "--distribution",
                                   "sequential", "--layout", "7", "--verify")
        self.assertEqual({r["wrong_answers"] for r in document["results"] if r["phase"] != "reopen"}, {0})
        self.assertEqual(document["options"]["layout"], 7)

    def test_finds_scale_to_eight_threads(self):
        rates = self.throughputs(self.results_of("--index", "cceh,fast_fair", "--records", "50k", "--operations", "20k",
                                                 "--threads", "1,8", "--phases", "read"))
        for index in ("cceh", "fast_fair"):
            self.assertGreater(rates[index, "read", 8], 5 * rates[index, "read", 1], index)

    def test_latencies_are_those_of_all_operations(self):
        """One thread spends time on operations alone, so their mean is the reciprocal of the throughput."""
        for indexes in ("cceh", "cceh,fast_fair"):
            read = next(r for r in self.results_of("--index", indexes, "--records", "50k", "--operations", "50k",
                                                   "--phases", "read")["results"] if r["phase"] == "read")
            self.assertAlmostEqual(read["latency_ns"]["mean"] * read["throughput_ops_per_s"] / 1e9, 1, delta=.05)

    def test_the_bytes_of_the_media_are_those_of_the_devices_granules(self):
        """50k records are 1.3 MB at least, beyond the caches that a core would have to itself, and caches keep
        lines."""
        written = {}
        for profile, granule in (("aep", 256), ("classic", 64)):
            document = self.results_of("--index", "cceh,fp_tree,std_map", "--records", "50k", "--operations", "20k",
                                       "--phases", "read,insert,erase,reopen", medium=f"simulated:{profile}")
            of = {(r["index"], r["phase"]): r["media_bytes"] for r in document["results"]}
            self.assertTrue(all(of["std_map", phase] is None for phase in ("load", "read", "insert")))
            for index in ("cceh", "fp_tree"):
                self.assertEqual({of[index, phase]["granule"] for phase in ("read", "insert", "erase", "reopen")},
                                 {granule})
                for phase in ("load", "insert", "erase"):
                    self.assertGreaterEqual(of[index, phase]["written"], .95 * granule, (index, phase))
                written[profile, index] = of[index, "insert"]["written"]
                # What the insert phase or the load left in the device's buffer leaves it now.
                self.assertLess(of[index, "read"]["written"], 5, "reads write nothing")
                self.assertLess(of[index, "read"]["read"], 4 * granule)
            # FP-tree reads its leaves at opening, CCEH some lines.
            self.assertGreater(of["fp_tree", "reopen"]["read"], 100_000)
            self.assertLess(of["cceh", "reopen"]["read"], of["fp_tree", "reopen"]["read"] / 10)
        for index in ("cceh", "fp_tree"):
            self.assertGreater(written["aep", index], written["classic", index], "larger granules, more bytes")

    def test_of_a_hybrid_the_half_in_dram_costs_the_device_nothing(self):
        def of(index):
            document = self.results_of("--index", index, "--records", "20k", "--operations", "10k", "--phases",
                                       "insert")
            return next(r["media_bytes"]["written"] for r in document["results"] if r["phase"] == "insert")
        alone = of("cceh")
        self.assertAlmostEqual(of("hybrid(hash=cceh@pmem,tree=fast_fair@dram,update=sync)") / alone, 1, delta=.15)

    def test_the_cost_of_flushes_is_the_difference_between_persistence_domains(self):
        same = ["--index", "cceh,fast_fair,fp_tree", "--records", "20k", "--operations", "5k", "--phases",
                "read,insert,update", "--baseline", "cceh"]
        document = self.results_of(*same, "--persistence", "adr,eadr,gpf-may-fail")
        self.assertEqual(document["options"]["persistence"], ["adr", "eadr", "gpf-may-fail"])
        of = {(r["persistence"], r["index"], r["phase"]): r for r in document["results"]}
        plain = self.throughputs(self.results_of(*same))
        for index in ("cceh", "fast_fair", "fp_tree"):
            for phase in ("insert", "update"):
                adr, eadr, may_fail = (of[domain, index, phase] for domain in ("adr", "eadr", "gpf-may-fail"))
                self.assertGreaterEqual(adr["persists"]["flushes"], 1, (index, phase))
                self.assertEqual(eadr["persists"]["flushes"], 0, (index, phase))
                self.assertEqual(eadr["persists"]["fences"], adr["persists"]["fences"], (index, phase))
                self.assertLess(eadr["latency_ns"]["mean"], .9 * adr["latency_ns"]["mean"], (index, phase))
                self.assertAlmostEqual(may_fail["throughput_ops_per_s"] / adr["throughput_ops_per_s"], 1, delta=.005)
                self.assertEqual(plain[index, phase, 1], adr["throughput_ops_per_s"],
                                 "without the option it is the profile's")
        done = self.assert_works("bench", "--quiet", "--medium", "simulated:aep", *same, "--persistence", "adr,eadr")
        self.assertRegex(done.stdout, r"insert of cceh with 1 thread: \d+ ns on average under adr, \d+ under eadr: -\d")
        self.assertRegex(done.stdout, r"threads +phase +persistence +index .* flushes +fences")

    def test_a_profile_says_whether_flushes_are_left_out(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "bench", "devices", "profiles", "aep.toml"),
                  "rb") as f:
            path = self.write("saved.toml", b'persistence = "gpf"\n' + f.read())
        document = self.results_of("--index", "cceh,hybrid_index", "--records", "2k", "--operations", "2k", "--phases",
                                   "insert", medium="simulated:" + path)
        for result in document["results"]:
            self.assertEqual(result["persistence"], "gpf")
            self.assertEqual(result["persists"]["flushes"], 0)
            self.assertGreater(result["persists"]["fences"], 0)

    def test_a_lock_around_everything_does_not_scale(self):
        rates = self.throughputs(self.results_of("--index", "std_map", "--records", "10k", "--operations", "5k",
                                                 "--threads", "2,8", "--phases", "insert"))
        self.assertLess(rates["std_map", "insert", 8], 1.5 * rates["std_map", "insert", 2])

    def test_thirty_two_threads_give_right_answers(self):
        document = self.results_of("--index", ",".join(there("cceh", "fast_fair", "tbb_hash")), "--records", "20k",
                                   "--operations", "20k", "--threads", "32", "--verify", "--reopen", "--workload",
                                   "ycsb-a", "--phases", "read,absent,update,insert,erase")
        self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0})
        self.assertEqual(document["remarks"], [])
        self.assertIsNone(document["failure"])

    def test_a_slower_device_gives_lower_figures(self):
        same = ["--index", "fast_fair", "--records", "50k", "--operations", "5k", "--phases", "read,insert"]
        aep = self.throughputs(self.results_of(*same))
        dram = self.throughputs(self.results_of(*same, medium="simulated:dram"))
        for key, rate in aep.items():
            self.assertGreater(dram[key], 1.2 * rate, key)

    def test_the_document_says_what_the_machine_is(self):
        machine = self.results_of("--index", "null_index", "--records", "100", "--operations", "100")["machine"]
        self.assertEqual(machine["medium"], "simulated:aep")
        self.assertEqual(machine["profile"], "aep")
        self.assertEqual(machine["clock"]["source"], "virtual")
        self.assertIsNone(machine["emulation"])
        self.assertGreater(machine["simulation"]["core_to_core_ns"], machine["simulation"]["last_level_ns"])

    def test_a_profile_of_ones_own(self):
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "bench", "devices", "profiles", "aep.toml"),
                  "rb") as f:
            path = self.write("mine.toml", f.read())
        self.results_of("--index", "cceh", "--records", "1000", "--operations", "1000", medium="simulated:" + path)

    def test_operations_that_take_seconds_if_none_are_given(self):
        same = ["--index", "null_index", "--records", "100", "--phases", "read"]
        self.assertEqual(self.results_of(*same)["options"]["operations"], 100_000)
        self.assertEqual(self.results_of(*same, medium="dram")["options"]["operations"], 1_000_000)

    def test_bad_input(self):
        def bad(parts, *arguments):
            self.assert_fails(2, parts, "bench", "--quiet", *arguments)

        bad(["aepp", "did you mean 'aep'"], "--index", "cceh", "--medium", "simulated:aepp")
        bad(["simulated:PROFILE"], "--index", "cceh", "--medium", "simulated")
        for index in there("pmdk_hash"):
            bad([index, "pmem:PATH"], "--index", index, "--medium", "simulated:aep")
        bad(["128 threads", "127"], "--index", "cceh", "--medium", "simulated:aep", "--threads", "1,128")
        bad(["--seconds", "virtual", "give --operations"], "--index", "cceh", "--medium", "simulated:aep", "--seconds",
            "1")
        bad(["--emulation-scale"], "--index", "cceh", "--medium", "simulated:aep", "--emulation-scale", "2")

    def test_a_memory_that_is_too_small(self):
        self.assert_fails(1, ["full", "--pool-size"], "bench", "--quiet", "--index", "cceh", "--medium",
                          "simulated:aep", "--records", "100k", "--pool-size", "1M")


if __name__ == "__main__":
    main()
