"""`pmlab doctor`, `pmlab list`, help and version."""
import json
import os
import re
import tempfile

from program import INDEXES, OFFERED, ProgramTest, left_out, main, pmlab, there


class DoctorAndList(ProgramTest):
    def test_doctor(self):
        said = self.assert_works("doctor").stdout
        for subject in ("cpu", "kernel", "simd", "flush", "eADR", "HTM", "NUMA", "huge pages", "clock", "jemalloc",
                        "simulation", "optional", "PM devices", "/dev/shm", "medium"):
            self.assertRegex(said, rf"(?m)^{subject} +\S")
        self.assertRegex(said, "inner nodes of fp_tree: version locks .*\n")
        command = next(line for line in said.splitlines() if line.startswith("  pmlab bench"))
        self.assertIn("--medium", command)

    def test_doctor_shows_whether_optane_modules_are_counted(self):
        self.assertRegex(pmlab("doctor", env={**os.environ, "PATH": "/nowhere"}).stdout,
                         r"(?m)^PM counters +media counters of Optane are not read: ipmctl is not on PATH; "
                         r"install package ipmctl$")
        said = pmlab("doctor", env={**os.environ, **self.with_modules()}).stdout
        self.assertRegex(said, r"(?m)^PM counters +of 2 modules, by ipmctl$")

    def test_doctor_names_each_package_that_a_build_may_be_without(self):
        said = self.assert_works("doctor").stdout
        remedy = "install package lib[a-z+-]+-dev, and build pmlab again"
        for title, brought in (("libpmemobj-cpp", "indexes pmdk_hash, pmdk_radix, pmdk_skiplist"),
                               ("oneTBB", "index tbb_hash"),
                               ("RocksDB", "stores rocksdb, rocksdb_meta, rocksdb_meta_deferred"),
                               ("LevelDB", "store leveldb"),
                               ("LMDB", "store lmdb"), ("Google Benchmark", "program pmlab-microbench")):
            absent = f"absent when pmlab was built; left out: {brought}; {remedy}"
            is_absent = any(p["title"] == title for p in json.loads(pmlab("list", "--json").stdout)["left_out"])
            self.assertRegex(said, rf"(?m)^(optional)? +{title}: {absent if is_absent else 'built in'}$")

    def test_a_program_is_there_if_path_has_it(self):
        stand_in = self.write("fio", b"#!/bin/sh\n")
        os.chmod(stand_in, 0o755)
        for path, state in ((self.folder, re.escape(stand_in)),
                            ("/nowhere", "not on PATH; left out: figures of fio beside .*; install package fio")):
            environment = {**os.environ, "PATH": path}
            self.assertRegex(pmlab("doctor", env=environment).stdout, rf"(?m)^ +fio: {state}$")
            listed = [p["title"] for p in json.loads(pmlab("list", "--json", env=environment).stdout)["left_out"]]
            self.assertEqual("fio" in listed, path == "/nowhere")
        said = pmlab("list", env={**os.environ, "PATH": "/nowhere"}).stdout
        self.assertRegex(said, r"\nLeft out\n(  .*\n)*  figures of fio .*, which fio brings: install package fio\n")

    def facts_of(self, *arguments):
        """The lines of `pmlab doctor PATH` by their subjects."""
        facts, subject = {}, ""
        for line in self.assert_works("doctor", *arguments).stdout.splitlines():
            subject = line[:12].strip() or subject
            facts[subject] = facts.get(subject, "") + line[12:].strip() + "\n"
        return facts

    def test_doctor_shows_the_share_of_a_pool_that_is_on_2_mb_pages(self):
        if not self.folder.startswith("/dev/shm"):
            self.skipTest("not on tmpfs")
        for pages, expected in (("4K", {0}), ("2M", range(90, 101))):
            pool = self.file(pages)
            self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "100k", "--operations", "1k",
                              "--phases", "read", "--medium", "pmem:" + pool, "--pages", pages, "--keep")
            share = int(re.match(r"(\d+) % of its memory is on 2 MB pages\n", self.facts_of(pool)["pages"])[1])
            if pages == "2M" and "granted by MADV_COLLAPSE" not in self.assert_works("doctor").stdout:
                expected = range(0, 101)
            self.assertIn(share, expected)
        holes = self.file("holes")
        with open(holes, "wb") as f:
            f.truncate(64 << 20)
        self.assertNotIn("pages", self.facts_of(holes))
        self.assertEqual(os.stat(holes).st_blocks, 0, "to look at a file takes no memory")

    def test_doctor_of_a_folder_and_of_what_is_not_there_yet(self):
        facts = self.facts_of(self.folder)
        self.assertEqual(facts["kind"], "folder\n")
        self.assertIn("pmem:" + self.file("pmlab.pool"), facts["media"])
        self.assertRegex(facts["space"], r"free of")
        self.assertRegex(facts["is_pmem"], "^(yes|no): ")
        if self.folder.startswith("/dev/shm"):
            self.assertEqual(facts["memory"], "DRAM (tmpfs)\n")
        facts = self.facts_of(self.file("new"))
        self.assertIn("nothing yet", facts["kind"])
        self.assertIn("emulated:PROFILE@" + self.file("new"), facts["media"])
        self.assertEqual(os.listdir(self.folder), [], "it leaves nothing behind")

    def test_doctor_of_a_drive(self):
        for folder in (self.folder, tempfile.gettempdir()):
            there = set(os.listdir(folder))
            facts = self.facts_of(folder)
            self.assertRegex(facts["drive"], ", file system ")
            for subject in ("direct I/O", "io_uring", "FUA"):
                self.assertRegex(facts[subject], "^(yes|no|not known)")
            self.assertRegex(facts["blocks"], r"^\d+ bytes logical, (\d+|not known) physical\n$")
            self.assertRegex(facts["cache"], "^(volatile|none that is volatile|not known)")
            self.assertRegex(facts["atomic unit"], r"^(none promised|\d+ bytes)")
            for subject in ("read 4 KB", "write", "write+flush"):
                self.assertRegex(facts[subject], r"^median [\d.]+ [um]s, p99 [\d.]+ [um]s \(\d+ times\)\n$")
            self.assertFalse([name for name in os.listdir(folder) if name not in there and "doctor" in name])

    def test_doctor_of_a_block_device(self):
        """The one below /: in use, so that nothing is written to it."""
        number = os.stat("/").st_dev
        link = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
        device = f"/dev/{os.path.basename(os.path.realpath(link))}"
        if not os.path.exists(link) or not os.path.exists(device):
            self.skipTest("no block device below /")
        facts = self.facts_of(device)
        self.assertEqual(facts["kind"], "block device\n")
        self.assertIn("blocks::file takes it", facts["media"])
        self.assertIn("not examined", facts["drive"])

    def test_doctor_of_a_pool(self):
        self.assert_works("bench", "--index", "cceh", "--records", "1k", "--operations", "1k", "--phases", "read",
                          "--medium", "pmem:" + self.file("p"), "--keep", "--quiet")
        facts = self.facts_of(self.file("p"))
        self.assertRegex(facts["pool"], r"^layout pmlab-pool-1\ncceh: cceh version \d+\n$")
        self.assertIn("--reuse", facts["media"])

    def test_doctor_of_other_files(self):
        self.assertIn("none", self.facts_of(self.write("text", b"ten years of work"))["pool"])
        os.mkfifo(self.file("fifo"))
        self.assertIn("none: a pool is a file or a device", self.facts_of(self.file("fifo"))["media"])
        self.assert_fails(2, [self.file("missing"), "make the folder"], "doctor", self.file("missing/pool"))

    def test_list(self):
        said = self.assert_works("list").stdout
        for name in there("tbb_hash", "pmdk_hash", "pmdk_skiplist", "pmdk_radix"):
            self.assertRegex(said, f"(?m)^  {name} +(point|ordered) ")
        for name in left_out():
            self.assertRegex(said, f"(?m)^  (index|store)(e?s)? .*{name}.*, which .* brings: install package")
        for name in (*INDEXES, "null_index", "std_map",
                     "pmem:PATH", "counted:MEDIUM", "simulated:PROFILE", "aep-6", "optane-200", "ycsb-a", "zipfian",
                     "self-similar", "behind a std::shared_mutex"):
            self.assertIn(name, said)

    def test_list_as_json_names_what_bench_takes(self):
        everything = json.loads(self.assert_works("list", "--json").stdout)
        self.assertEqual(set(everything), {"indexes", "combinations", "media", "profiles", "drives", "workloads",
                                           "distributions", "phases", "left_out"})
        self.assertIn("cache", [c["name"] for c in everything["combinations"]])
        kinds = {i["name"]: i["kind"] for i in everything["indexes"]}
        self.assertEqual(kinds["cceh"], "point")
        self.assertEqual(kinds["fast_fair"], "ordered")
        self.assertEqual({drive["name"] for drive in everything["drives"]},
                         {"p4610", "9300", "5210x4", "plain-tlc", "no-plp", "pm983-kv"})
        for profile in everything["profiles"] + everything["drives"]:
            self.assertTrue(profile["what"])
        for name in everything["distributions"]:
            self.assert_works("bench", "--quiet", "--index", "null_index", "--records", "100", "--operations", "100",
                              "--distribution", name)
        for name in everything["workloads"]:
            self.assert_works("bench", "--quiet", "--index", "null_index", "--records", "100", "--operations", "100",
                              "--workload", name)

    def test_list_as_json_has_the_facts_of_each_index(self):
        listed = {i["name"]: i for i in json.loads(self.assert_works("list", "--json").stdout)["indexes"]}
        for index in OFFERED:
            shown = listed[index["name"]]
            # The line for a user has the paper, too.
            for fact, value in index.items():
                self.assertIn(value, [shown[fact], shown[fact].split(" (")[0] if fact == "what" else None],
                              (index, fact))
            self.assertEqual(shown["kind"], "ordered" if index["ordered"] else "point")
            self.assertEqual(shown["verified"], index["name"] in INDEXES)
        self.assertNotIn("colour", listed["tbb_hash"])

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
