"""`pmlab doctor`, `pmlab list`, help and version."""
import json

from program import ProgramTest, main


class DoctorAndList(ProgramTest):
    def test_doctor(self):
        said = self.assert_works("doctor").stdout
        for subject in ("cpu", "kernel", "simd", "flush", "eADR", "HTM", "NUMA", "huge pages", "clock", "jemalloc", "simulation", "PM devices",
                        "/dev/shm", "medium"):
            self.assertRegex(said, rf"(?m)^{subject} +\S")
        self.assertRegex(said, "inner nodes of fp_tree: version locks .*\n")
        command = next(line for line in said.splitlines() if line.startswith("  pmlab bench"))
        self.assertIn("--medium", command)

    def test_list(self):
        said = self.assert_works("list").stdout
        for name in ("fast_fair", "cceh", "fp_tree", "level_hashing", "skip_list", "skip_list_pm", "null_index", "tbb_hash", "std_map", "pmdk_hash", "pmdk_skiplist", "pmdk_radix",
                     "pmem:PATH", "counted:MEDIUM", "simulated:PROFILE", "aep-6", "optane-200", "ycsb-a", "zipfian", "self-similar",
                     "behind a std::shared_mutex"):
            self.assertIn(name, said)

    def test_list_as_json_names_what_bench_takes(self):
        everything = json.loads(self.assert_works("list", "--json").stdout)
        self.assertEqual(set(everything), {"indexes", "combinations", "media", "profiles", "workloads", "distributions", "phases"})
        self.assertIn("cache", [c["name"] for c in everything["combinations"]])
        kinds = {i["name"]: i["kind"] for i in everything["indexes"]}
        self.assertEqual(kinds["cceh"], "point")
        self.assertEqual(kinds["fast_fair"], "ordered")
        for profile in everything["profiles"]:
            self.assertTrue(profile["what"])
        for name in everything["distributions"]:
            self.assert_works("bench", "--quiet", "--index", "null_index", "--records", "100", "--operations", "100",
                              "--distribution", name)
        for name in everything["workloads"]:
            self.assert_works("bench", "--quiet", "--index", "null_index", "--records", "100", "--operations", "100",
                              "--workload", name)

    def test_hybrid_indexes_are_listed(self):
        everything = json.loads(self.assert_works("list", "--json").stdout)
        self.assertIn("hybrid", [c["name"] for c in everything["combinations"]])
        kinds = {i["name"]: i["kind"] for i in everything["indexes"]}
        self.assertEqual((kinds["hybrid_index"], kinds["hybrid_index_plus"]), ("ordered", "ordered"))

    def test_help_and_version(self):
        self.assertIn("bench", self.assert_works("--help").stdout)
        self.assertIn("--medium", self.assert_works("bench", "--help").stdout)
        self.assertRegex(self.assert_works("--version").stdout, r"^pmlab \d+\.\d+\.\d+ \(")


if __name__ == "__main__":
    main()
