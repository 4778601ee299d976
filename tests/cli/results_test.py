"""The JSON and the table of `pmlab bench`: as docs/results-schema.md says, and consistent in themselves."""
import csv
import json
import os
import re
import shutil
from unittest import mock

from described import documented_fields, seen_fields
from program import ProgramTest, main, there


class Results(ProgramTest):
    def results_of(self, *arguments):
        path = self.file("r.json")
        sizes = ["--records", "20k"] + ([] if {"--seconds", "--operations"} & set(arguments)
                                        else ["--operations", "40k"])
        done = self.assert_works("bench", "--json", path, "--quiet", *sizes, *arguments)
        with open(path, encoding="utf-8") as f:
            return json.load(f), done.stdout

    def assert_as_documented(self, documents):
        documented = documented_fields()
        seen = seen_fields(self, documents, documented)
        # Many machines have no counters for a user.
        counters = {path for path in documented if path.startswith("results[].cpu.")}
        self.assertEqual(seen | (counters if not counters & seen else set()), set(documented),
                         "documented, and in no file")

    def test_every_field_is_documented_and_every_documented_field_is_there(self):
        plain, _ = self.results_of("--index", "cceh,fast_fair", "--repeat", "2", "--threads", "1,2")
        counted, _ = self.results_of("--index", "fast_fair", "--medium", "counted:emulated:aep", "--verify")
        with mock.patch.dict(os.environ, self.with_modules()):
            pool, _ = self.results_of("--index", ",".join(there("cceh", "pmdk_hash", "std_map")), "--medium",
                                      "pmem:" + self.file("p"),
                                      "--verify", "--seconds", "0.05", "--workload", "ycsb-a", "--reopen")
        simulated, _ = self.results_of("--index", "cceh", "--medium", "simulated:aep", "--phases", "read")
        shared, _ = self.results_of("--index", "shared_tree", "--medium", "simulated:cxl-pod", "--hosts", "2",
                                    "--operations", "1k", "--phases", "read")
        paced, _ = self.results_of("--index", "cceh", "--phases", "read", "--rate", "1M", "--interval", "10ms",
                                   "--cpu-counters")
        self.assert_as_documented([plain, counted, pool, simulated, shared, paced])
        self.assertTrue(paced["results"][1]["cpu"] or any("--cpu-counters has no" in r for r in paced["remarks"]),
                        paced["remarks"])

    def test_counters_of_optane_are_those_of_the_phase(self):
        pool = ("--index", "cceh", "--operations", "1k", "--phases", "read", "--medium", "pmem:" + self.file("p"))
        table = self.file("r.csv")
        with mock.patch.dict(os.environ, self.with_modules()):
            document, shown = self.results_of(*pool, "--csv", table)
            dram, _ = self.results_of("--index", "cceh", "--operations", "1k", "--phases", "read")
        expected = {"media_reads": 8, "media_writes": 4, "read_requests": 2, "write_requests": 1}
        self.assertEqual(document["results"][1]["modules"], expected)
        self.assertIn("media reads", shown)
        with open(table, encoding="utf-8") as f:
            row = list(csv.DictReader(f))[1]
        self.assertEqual({name: float(row[f"module_{name}"]) for name in expected}, expected)
        self.assertEqual([r["modules"] for r in dram["results"]], [None, None])

    def test_counters_of_optane_that_are_not_there_are_one_note(self):
        pool = ("--index", "cceh,fast_fair", "--operations", "1k", "--phases", "read", "--medium",
                "pmem:" + self.file("p"))
        for program, said in (("echo 'Error: no rights'; exit 1", "ipmctl failed: Error: no rights"),
                              ("echo 'No modules.'", "ipmctl printed none for each module, but 'No modules.'"),
                              ("echo '---DimmID=0x0001---'; echo '   MediaReads=0x1'", "printed none for each module")):
            with self.subTest(program=program), mock.patch.dict(os.environ, self.with_modules(program)):
                document, shown = self.results_of(*pool)
                self.assertEqual(len([r for r in document["remarks"] if said in r]), 1, document["remarks"])
                self.assertEqual({r["modules"] for r in document["results"]}, {None})
                self.assertNotIn("media reads", shown)
                self.assertIn(said, self.assert_works("doctor").stdout)
        with mock.patch.dict(os.environ, self.with_modules() | {"PATH": "/nowhere"}):
            document, _ = self.results_of(*pool)
            self.assertIn("media counters of Optane are not read: ipmctl is not on PATH; install package ipmctl",
                          document["remarks"])

    def test_histograms_are_files_of_each_phase(self):
        folder = self.file("histograms")
        for medium in ("dram", "simulated:aep"):
            document, _ = self.results_of("--index", "cache(cceh)", "--medium", medium, "--phases", "read,insert",
                                          "--repeat", "2", "--operations", "2k", "--histograms", folder)
            found = sorted(os.listdir(folder))
            self.assertEqual(len(found), len(document["results"]), found)
            self.assertIn("cache_cceh_.read.1-threads.repeat-2.hgrm", found)
            with open(os.path.join(folder, "cache_cceh_.read.1-threads.repeat-2.hgrm"), encoding="utf-8") as f:
                count = int(re.search(r"Total count    = +(\d+)", f.read())[1])
            samples = [r["latency_ns"]["samples"] for r in document["results"] if r["phase"] == "read"
                       and r["repeat"] == 2]
            self.assertEqual([count], samples)
            shutil.rmtree(folder)

    def test_the_order_is_as_documented(self):
        document, _ = self.results_of("--index", "cceh,std_map", "--repeat", "2", "--phases", "read,update")
        order = [(r["repeat"], r["phase"], r["index"]) for r in document["results"]]
        self.assertEqual(order, [(1, "load", "cceh"), (1, "load", "std_map"),
                                 (1, "read", "cceh"), (1, "read", "std_map"),
                                 (1, "update", "cceh"), (1, "update", "std_map"),
                                 (2, "read", "std_map"), (2, "read", "cceh"),
                                 (2, "update", "std_map"), (2, "update", "cceh")])

    def test_the_figures_agree_with_each_other(self):
        document, table = self.results_of("--index", "cceh,fast_fair", "--repeat", "3", "--phases", "read,insert")
        self.assertEqual(document["schema"], 1)
        self.assertEqual(document["machine"]["medium"], "dram")
        self.assertIsNone(document["failure"])
        rates = {}
        for r in document["results"]:
            self.assertAlmostEqual(r["throughput_ops_per_s"] * r["seconds"] / r["operations"], 1, places=6)
            latency = r["latency_ns"]
            self.assertEqual(sorted(latency[k] for k in ("p50", "p90", "p99", "p99_9", "p99_99", "max")),
                             [latency[k] for k in ("p50", "p90", "p99", "p99_9", "p99_99", "max")])
            self.assertIsNone(r["per_operation"])
            self.assertIsNone(r["wrong_answers"])
            rates.setdefault((r["phase"], r["index"]), []).append(r["throughput_ops_per_s"])
        median = {key: sorted(values)[len(values) // 2] for key, values in rates.items()}
        ratio = median["read", "cceh"] / median["read", "fast_fair"]
        row = next(line for line in table.splitlines() if re.match(r"1\s+read\s+cceh\s", line))
        self.assertIn(f"{ratio:.2f}x", row)
        self.assertIn("/ fast_fair", table)

    def test_counted_floors(self):
        document, table = self.results_of("--index", "cceh", "--medium", "counted:dram", "--phases", "read,update")
        per_operation = {r["phase"]: r["per_operation"] for r in document["results"]}
        self.assertEqual(per_operation["read"]["flushes"], 0)
        self.assertEqual(per_operation["read"]["fences"], 0)
        self.assertEqual(per_operation["update"]["flushes"], 1)
        self.assertEqual(per_operation["update"]["fences"], 1)
        self.assertGreater(per_operation["read"]["pm_lines_read"], 0.9)
        self.assertIn("device read", table)
        # An update flushes one line: one granule.
        media_bytes = {r["phase"]: r["media_bytes"] for r in document["results"]}
        self.assertEqual(media_bytes["update"]["written"], 256)
        self.assertEqual(media_bytes["read"], {"granule": 256, "written": 0,
                                               "read": 256 * per_operation["read"]["device_lines_read"]})
        self.assertRegex(table.splitlines()[2], "media B read +media B written")

    def test_where_the_bytes_are(self):
        document, _ = self.results_of("--index", "cceh,std_map", "--medium", "pmem:" + self.file("p"), "--phases",
                                      "read")
        on_pool, in_dram = document["results"][0], document["results"][1]
        self.assertEqual(on_pool["medium"], "pmem:" + self.file("p.cceh"))
        self.assertGreater(on_pool["bytes_per_key"]["pm"], 16)
        self.assertEqual(in_dram["medium"], "dram")
        self.assertEqual(in_dram["bytes_per_key"], {"pm": 0, "dram": 48})

    def test_every_subject_has_the_same_pages(self):
        indexes = there("cceh", "fp_tree", "std_map", "tbb_hash")
        for pages, told in (("4K", "4 KB pages"), ("2M", "2 MB pages")):
            path = self.file("r.json")
            table = self.assert_works("bench", "--quiet", "--index", ",".join(indexes), "--medium",
                                      "pmem:" + self.file("p"),
                                      "--records", "200k", "--operations", "20k", "--phases", "read", "--pages", pages,
                                      "--json", path).stdout
            with open(path, encoding="utf-8") as f:
                document = json.load(f)
            self.assertEqual(document["options"]["pages"], pages)
            self.assertIn(told, table.splitlines()[0])
            self.assertRegex(table.splitlines()[2], "on 2 MB pages")
            shares = {r["index"]: r["huge_page_share"] for r in document["results"] if r["phase"] == "read"}
            self.assertEqual(list(shares), indexes)
            for index, share in shares.items():
                with self.subTest(index=index, pages=pages):
                    if pages == "4K":
                        self.assertEqual(share, 0)
                    elif document["machine"]["transparent_huge_pages"] != "never":
                        self.assertGreater(share, .5)
        simulated, _ = self.results_of("--index", "cceh", "--phases", "read", "--medium", "simulated:aep")
        self.assertIsNone(simulated["options"]["pages"])
        self.assertEqual({r["huge_page_share"] for r in simulated["results"]}, {None})

    def test_the_benchmarks_own_time_is_beside_each_figure(self):
        document, table = self.results_of("--index", "cceh,null_index", "--phases", "read,insert,erase", "--threads",
                                          "1,2", "--reopen", "--medium", "pmem:" + self.file("p"))
        for r in document["results"]:
            with self.subTest(index=r["index"], phase=r["phase"]):
                if r["phase"] == "reopen":
                    self.assertIsNone(r["driver_ns"])
                    continue
                self.assertGreater(r["driver_ns"], 0)
                same = {o["driver_ns"] for o in document["results"]
                        if (o["phase"], o["threads"]) == (r["phase"], r["threads"])}
                self.assertEqual(same, {r["driver_ns"]}, "one figure for each phase and number of threads")
        self.assertRegex(table.splitlines()[2], " driver ")
        self.assertIn("note: driver is what the benchmark itself takes", table)
        simulated, table = self.results_of("--index", "cceh", "--phases", "read", "--medium", "simulated:aep")
        self.assertEqual({r["driver_ns"] for r in simulated["results"]}, {None})
        self.assertNotIn(" driver ", table)

    def test_more_threads_than_cores_make_an_emulation_invalid(self):
        path = self.file("r.json")
        done = self.assert_fails(3, ["2 of 4 measurements are INVALID", "fewer --threads"], "bench", "--quiet",
                                 "--index", "cceh,std_map", "--threads", "64", "--phases", "read", "--medium",
                                 "emulated:dram", "--records", "5k", "--operations", "5k", "--json", path)
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        self.assertIn("64 threads share", " ".join(document["remarks"]))
        for result in document["results"]:
            if result["index"] == "std_map":
                self.assertIsNone(result["invalid"], "it lies in DRAM, and nothing of it is emulated")
            else:
                self.assertIn("64 threads share", result["invalid"])
        rows = [line for line in done.stdout.splitlines() if re.match(r"64 +(load|read) +cceh ", line)]
        self.assertEqual([row.split()[-1] for row in rows], ["INVALID", "INVALID"])
        self.assertRegex(done.stdout, r"(?m)^INVALID: cceh load \(64\), cceh read \(64\): 64 threads share")

    def test_latencies_that_the_clock_cannot_see_are_marked(self):
        document, table = self.results_of("--index", "null_index", "--phases", "read")
        clock = document["machine"]["clock"]
        self.assertGreater(clock["floor_ns"], 0)
        self.assertLessEqual(clock["cost_ns"], clock["floor_ns"])
        self.assertIn(f"every latency includes {clock['cost_ns']:.0f} ns of reading the clock", table)
        p50 = next(r for r in document["results"] if r["phase"] == "read")["latency_ns"]["p50"]
        self.assertEqual(f"{p50:.0f} ns*" in table, p50 <= clock["floor_ns"])
        simulated, table = self.results_of("--index", "null_index", "--phases", "read", "--medium", "simulated:aep")
        self.assertIsNone(simulated["machine"]["clock"]["floor_ns"])
        self.assertNotIn("*", table)

    def test_every_workload_is_right_on_every_index(self):
        workloads = [w for letter in "abcdef" for w in ("--workload", f"ycsb-{letter}")]
        indexes = there("cceh", "fast_fair", "tbb_hash", "std_map", "pmdk_hash", "pmdk_skiplist", "pmdk_radix")
        document, _ = self.results_of("--index", ",".join(indexes), "--medium", "pmem:" + self.file("p"), "--threads",
                                      "1,2", "--verify", *workloads)
        self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0})
        self.assertEqual({s["phase"] for s in document["skipped"]}, {"ycsb-e"})

    def test_quiet_progress(self):
        done = self.assert_works("bench", "--index", "cceh", "--records", "1000", "--operations", "1000")
        self.assertIn("pmlab: 1 thread: loading cceh with 1k records\n", done.stderr)
        done = self.assert_works("bench", "--index", "cceh", "--records", "1000", "--operations", "1000", "--quiet")
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    main()
