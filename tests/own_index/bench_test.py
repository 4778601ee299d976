"""`pmlab bench --library`: third-party libraries beside pmlab's own indexes."""
import json
import os

from own_index import BUILT, LOG, TABLE, OwnIndexTest, main

SMALL = ["--quiet", "--records", "2k", "--operations", "2k", "--verify"]


class Bench(OwnIndexTest):
    def results_of(self, *arguments):
        path = os.path.join(self.folder, "r.json")
        self.pmlab("bench", "--json", path, *SMALL, *arguments)
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        self.assertIsNone(document["failure"])
        self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0})
        return document["results"]

    def test_two_libraries_beside_an_index_repeat_to_the_digit(self):
        table = self.build("table", TABLE, "-DFIXED")
        same = ["--medium", "simulated:aep", "--threads", "1,8", "--index", "cceh", "--library",
                table + "," + os.path.join(BUILT, "libown_log.so"), "--library-scans", "--phases",
                "read,absent,update,insert,erase", "--workload", "ycsb-a", "--reopen"]
        first = self.results_of(*same)
        self.assertEqual(json.dumps(first), json.dumps(self.results_of(*same)))
        self.assertEqual({r["index"] for r in first}, {"cceh", "table", "own_log"})
        measured = {(r["index"], r["phase"]) for r in first if r["threads"] == 8}
        self.assertIn(("table", "reopen"), measured)

    def test_persistent_memory_is_the_devices(self):
        table = self.build("table", TABLE, "-DFIXED")

        def rate(medium):
            results = self.results_of("--medium", medium, "--library", table, "--phases", "read")
            return results[-1]["throughput_ops_per_s"]

        self.assertGreater(rate("simulated:dram"), 1.2 * rate("simulated:aep"))

    def test_scans_where_the_library_has_them(self):
        log = os.path.join(BUILT, "libown_log.so")
        scan = ["--medium", "simulated:aep", "--library", log, "--phases", "scan", "--scan-length", "10"]
        self.assertIn("scan", {r["phase"] for r in self.results_of(*scan, "--library-scans")})
        self.assert_refused(["scan of own_log", "--library-scans"], "bench", *SMALL, *scan)

    def test_on_real_media(self):
        native = self.build("native", TABLE, "-DFIXED", "-lpmem", compiler="g++")
        pool = os.path.join(self.folder, "bench.pool")
        results = self.results_of("--medium", "pmem:" + pool, "--library", native, "--threads", "1,2", "--phases",
                                  "read,insert,erase", "--reopen")
        self.assertEqual({r["index"] for r in results}, {"native"})
        self.assertFalse(os.path.exists(pool))

    def test_bad_input(self):
        table = self.build("table", TABLE, "-DFIXED")
        native = self.build("native", TABLE, "-DFIXED", "-lpmem", compiler="g++")
        simulated = ["--medium", "simulated:aep"]

        def bad(parts, *arguments):
            self.assert_refused(parts, "bench", *SMALL, *arguments)

        bad(["there is no library ./libnot.so"], "--library", "./libnot.so", *simulated)
        bad(["not built for the simulated machine"], "--library", native, *simulated)
        bad(["was built for the simulated machine"], "--library", table, "--medium", "dram")
        bad(["counted:dram"], "--library", native, "--medium", "counted:dram")
        bad(["emulated:aep"], "--library", native, "--medium", "emulated:aep")
        bad(["create_tree", "cannot map the pool"], "--library", native, "--medium", "dram")
        bad(["no function create_tree"], "--library", self.build("other", TABLE, "-Dcreate_tree=make_tree"), *simulated)
        bad(["index cceh"], "--library", self.build("cceh", LOG), *simulated)
        bad(["--library excludes --reuse"], "--library", table, "--reuse", *simulated)
        bad(["--library-scans"], "--index", "cceh", "--library-scans", *simulated)
        bad(["--library FILE.so"], *simulated)


if __name__ == "__main__":
    main()
