"""`pmlab microbench` and pmlab-microbench: results, skipped cases, and refused options."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "cli"))
from program import DOCS, PMLAB, ProgramTest, fields_of, main  # noqa: E402

GOOGLE = sys.argv[2] if len(sys.argv) > 2 else None  # a build without Google Benchmark has none

SMALL = b"""
title = "small"
[defaults]
working_set_bytes = "1M"
seconds = 0.002
warm_up_seconds = 0.001
[[case]]
name = "read"
about = "reads"
claims = ["M1"]
operation = "load"
measure = "latency"
published = 305
published_unit = "ns"
[[case]]
name = "write"
operation = "store"
fence = "each"
threads = [1, 2]
[[case]]
name = "mix"
operation = "mixed"
readers = 1
writers = 1
"""


class Microbench(ProgramTest):
    def results_of(self, *arguments, medium, suite, **more):
        path = self.file("r.json")
        done = subprocess.run([os.path.abspath(PMLAB), "microbench", "--medium", medium, "--suite", suite, "--quiet",
                               "--json", path, *arguments], capture_output=True, text=True, timeout=300, check=False,
                              **more)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
        with open(path, encoding="utf-8") as f:
            return json.load(f), done.stdout

    def small(self):
        return self.write("small.toml", SMALL)

    def test_simulated_figures_repeat_to_the_digit(self):
        same = ["--filter", "read-latency/|write-bandwidth.*threads=[48]|mix|chase|read-after"]
        first, _ = self.results_of(*same, medium="simulated:aep", suite="quick")
        second, _ = self.results_of(*same, medium="simulated:aep", suite="quick", cwd=self.folder,
                                    env=os.environ | {"PMLAB_TEST_PADDING": "x" * 5000})
        self.assertEqual(json.dumps(first["cases"]), json.dumps(second["cases"]))

    def test_a_simulated_case_does_not_depend_on_those_before_it(self):
        every, _ = self.results_of("--filter", "write-latency|chase", medium="simulated:aep", suite="quick")
        alone, _ = self.results_of("--filter", "chase/working_set_bytes=1M", medium="simulated:aep", suite="quick")
        name = "chase/working_set_bytes=1M"
        figure = {c["name"]: c["values"] for c in every["cases"]}
        self.assertEqual(alone["cases"][0]["name"], name)
        self.assertEqual(alone["cases"][0]["values"], figure[name])

    def test_six_dimms_do_not_depend_on_the_cases_before_them(self):
        """Which DIMM a place falls on, and when each thread begins, are the case's own business."""
        name = "six-dimms-ntstore"
        wanted = f"^({name}|six-dimms-load|load-random/access_bytes=4K/threads=(12|24))$"
        every, _ = self.results_of("--filter", wanted, medium="simulated:aep", suite="paper")
        figures = {c["name"]: c["values"] for c in every["cases"]}
        self.assertEqual(len(figures), 4)
        for one in (name, "load-random/access_bytes=4K/threads=24"):
            alone, _ = self.results_of("--filter", f"^{one}$", medium="simulated:aep", suite="paper")
            self.assertEqual(alone["cases"][0]["values"], figures[one])

    def test_simulated_aep_is_near_its_published_latencies(self):
        document, _ = self.results_of("--filter", "^(idle-|chase)", medium="simulated:aep", suite="paper")
        for case in document["cases"]:
            with self.subTest(case=case["name"]):
                self.assertLess(abs(case["value"] / case["published"] - 1), 0.1)

    def test_every_field_is_documented(self):
        document, table = self.results_of(medium="simulated:aep", suite=self.small())
        with open(os.path.join(DOCS, "microbench.md"), encoding="utf-8") as f:
            text = f.read()
        with open(os.path.join(DOCS, "results-schema.md"), encoding="utf-8") as f:
            text += f.read().replace("machine.", "")
        named = set(re.findall(r"[`.]([a-z_0-9]+)`", text)) | set(re.findall(r"\b[a-z_0-9]+\b", text))
        self.assertEqual(set(fields_of(document)) - named, set())
        self.assertEqual([c["name"] for c in document["cases"]],
                         ["read", "write/threads=1", "write/threads=2", "mix"])
        read = document["cases"][0]
        self.assertEqual(read["claims"], ["M1"])
        self.assertEqual(read["published"], 305)
        self.assertGreater(read["reads"]["latency_ns"]["samples"], 100)
        self.assertIsNone(read["writes"])
        self.assertGreater(document["cases"][3]["writes"]["gib_per_s"], 0)
        self.assertAlmostEqual(document["cases"][1]["media"]["write_amplification"], 4, delta=0.4)
        self.assertIn("read", table)

    def test_real_memory(self):
        for medium in ("dram", "pmem:" + self.file("pool"), "emulated:aep"):
            with self.subTest(medium=medium):
                document, _ = self.results_of("--filter", "read|threads=1", medium=medium, suite=self.small())
                for case in document["cases"]:
                    self.assertIsNone(case["skipped"])
                    self.assertGreater(case["value"], 0)
                    self.assertGreaterEqual(case["repetitions"], 3)
                self.assertFalse(os.path.exists(self.file("pool")))

    def test_what_cannot_be_measured_is_skipped_with_its_reason(self):
        suite = self.write("s.toml", b"""
[[case]]
name = "crowd"
threads = 1000
[[case]]
name = "node"
memory_node = 900
[[case]]
name = "other"
medium = "profile:aep-6"
working_set_bytes = "1M"
""")
        document, table = self.results_of(medium="dram", suite=suite)
        reasons = {c["name"]: c["skipped"] for c in document["cases"]}
        self.assertIn("1000 threads need as many CPUs", reasons["crowd"])
        self.assertIn("no NUMA node 900", reasons["node"])
        self.assertIn("real memory cannot be aep-6", reasons["other"])
        self.assertIn("skipped, ", table)
        document, _ = self.results_of("--filter", "crowd", medium="simulated:aep", suite=suite)
        self.assertIn("at most 127", document["cases"][0]["skipped"])

    def test_bad_input(self):
        def bad(parts, *arguments):
            self.assert_fails(2, parts, "microbench", "--quiet", *arguments)
        bad(["papre", "did you mean 'paper'"], "--suite", "papre")
        bad(["mine.toml", "cannot be read"], "--suite", self.file("mine.toml"))
        bad(["drum", "dram"], "--medium", "drum")
        bad(["counts", "leave counted: out"], "--medium", "counted:dram")
        bad(["regular expression"], "--filter", "(")
        bad(["no case", "--list"], "--filter", "nothing")
        bad(["--threads"], "--threads", "1,,2")
        bad(["--threads"], "--threads", "0")
        bad(["--spread"], "--spread", "x")
        bad(["--huge-pages"], "--huge-pages", "maybe")
        bad(["--emulation-scale", "emulated"], "--emulation-scale", "2")
        bad(["--prefetchers"], "--prefetchers", "maybe")
        bad(["no folder"], "--json", self.file("no/r.json"))
        bad(["'acess_bytes'", "did you mean 'access_bytes'"], "--suite",
            self.write("b.toml", b"[[case]]\nname = \"a\"\nacess_bytes = 64\n"))

    def test_list_measures_nothing(self):
        listed = self.assert_works("microbench", "--list", "--suite", "paper", "--filter", "^chase")
        self.assertIn("chase/working_set_bytes=16K", listed.stdout)
        self.assertIn("8 cases", listed.stdout)

    @unittest.skipUnless(GOOGLE, "built without Google Benchmark")
    def test_google_benchmark(self):
        path = self.file("g.json")
        done = subprocess.run([GOOGLE, "--suite=" + self.small(), "--benchmark_filter=read|threads=1",
                               "--benchmark_out=" + path, "--benchmark_out_format=json"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        self.assertEqual(document["context"]["medium"], "dram")
        by_name = {b["name"].split("/iterations")[0]: b for b in document["benchmarks"]}
        read = by_name["read"]
        self.assertEqual(read["time_unit"], "ns")
        self.assertGreater(read["real_time"], 0)
        self.assertGreater(read["bytes_per_second"], 0)
        self.assertGreater(read["read_p50_ns"], 0)
        self.assertIn("write/threads=1", by_name)
        done = subprocess.run([GOOGLE, "--suite=papre"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'paper'", done.stderr)


if __name__ == "__main__":
    main()
