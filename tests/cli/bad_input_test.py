"""Bad input: exit status 2, one line with the problem and the remedy, and nothing is touched."""
import json
import os
import socket
import unittest

from program import ProgramTest, main, pmlab, there


class BadInput(ProgramTest):
    def bad(self, parts, *arguments):
        self.assert_fails(2, parts, "bench", "--quiet", *arguments)

    def test_unknown_names_get_the_nearest_one(self):
        self.assert_fails(2, ["bnech", "did you mean bench"], "bnech")
        self.assert_fails(2, ["no command"])
        self.assert_fails(2, ["no option --verson", "did you mean --version"], "--verson")
        self.assert_fails(2, ["no option -v", "did you mean -h"], "-v")
        self.assert_fails(2, ["no command 'bnech'", "did you mean bench"], "help", "bnech")
        self.bad(["ceh", "did you mean cceh"], "--index", "ceh")
        self.bad(["drum", "did you mean dram"], "--index", "cceh", "--medium", "drum")
        self.bad(["app", "aep"], "--index", "cceh", "--medium", "emulated:app")
        self.bad(["ycsb-g", "ycsb-"], "--index", "cceh", "--workload", "ycsb-g")
        self.bad(["zipfain", "zipfian"], "--index", "cceh", "--distribution", "zipfain:0.99")
        self.bad(["raed", "did you mean read"], "--index", "cceh", "--phases", "load,raed")
        self.bad(["--recrods", "did you mean --records"], "--index", "cceh", "--recrods", "1M")

    def test_options_and_their_values(self):
        """A word that no option can mean, in place of results that go nowhere or a value that is another option."""
        for parts, *words in ((["--index"], "--records", "1000"),
                              (["--records has no value"], "--index", "cceh", "--records"),
                              (["--json has no value"], "--json", "--verify", "--index", "cceh"),
                              (["--json has an empty value"], "--index", "cceh", "--json", ""),
                              (["--csv has an empty value"], "--index", "cceh", "--csv="),
                              (["--verify takes no value", "'=no'"], "--index", "cceh", "--verify=no"),
                              (["--records is given twice"], "--index", "cceh", "--records", "1k", "--records=2k"),
                              (["--threads names 2 twice"], "--index", "cceh", "--threads", "1-3,2")):
            with self.subTest(words=words):
                self.bad(parts, *words)
        pairs = ("stores", "pairs", "--store", "kv_ssd")
        for parts, *words in ((["--help takes no value"], "bench", "--help=all"),
                              (["--output has an empty value"], "pool", "dump", "any", "--output", ""),
                              (["--scoreboard has an empty value"], "verify", "--scoreboard="),
                              (["--index names cceh twice"], "verify", "--index", "cceh,dash,cceh"),
                              (["--depth names 1 twice"], "stores", "volumes", "--store", "raw", "--depth", "1,1"),
                              (["--size names 4096 twice"], "stores", "volumes", "--store", "raw", "--size", "4K,4096"),
                              (["--value names 100 twice"], *pairs, "--value", "100,100")):
            with self.subTest(words=words):
                self.assert_fails(2, parts, *words)
        self.assert_fails(2, ["--states is about"], "verify", "--index", "cceh", "--states", "9")
        # A value with two dashes, behind an equals sign.
        self.bad(["'--x'"], "--index=--x")

    def test_an_error_is_one_line_whatever_it_quotes(self):
        for words, part in ((("bench", "--index", "a\nb"), "'a\\x0ab'"), (("bench", "--records", "1\n"), "'1\\x0a'"),
                            (("pool", "info", "a\x1b[2J"), "a\\x1b[2J"), ((b"b\xffnch",), "'b\\xffnch'"),
                            (("bench", "--index", "x" * 100_000), "bytes ...]")):
            with self.subTest(part):
                done = pmlab(*words)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr[:500])
                self.assertIn(part, done.stderr)
                self.assertLess(len(done.stderr), 5000)

    def test_numbers_of_verify(self):
        """They were read with another reader, which took -1 for 2^64 - 1, 2^64 for that, too, and 010 for 8."""
        for option, values in (("--operations", ("0",)), ("--keys", ("0",)), ("--rounds", ("0",)),
                               ("--threads", ("0",)),
                               ("--seed", ()), ("--schedule", ()), ("--jobs", ()), ("--hosts", ()),
                               ("--stale-loads", ()),
                               ("--window", ()), ("--states", ("0",)), ("--clean-states", ()),
                               ("--budget", ("0", "1e400", "1e10")), ("--shrink", ("1e400",))):
            for value in ("-1", "18446744073709551616", "0x10", " 1", "nan", "1e400", "1.5x", *values):
                with self.subTest(option=option, value=value):
                    self.assert_fails(2, [f"{option} '{value}'"], "verify", "--index", "cceh", f"{option}={value}")

    def test_sizes(self):
        for option in ("--records", "--operations", "--threads", "--repeat", "--batch", "--scan-length"):
            for value in ("0", "-1", "many", "1.5", ""):
                with self.subTest(option=option, value=value):
                    self.bad([option], "--index", "cceh", f"{option}={value}")
        self.bad(["--seconds", "too small"], "--index", "cceh", "--seconds", "0")
        self.bad(["--seconds", "too small"], "--index", "cceh", "--seconds=-3")
        self.bad(["--pool-size"], "--index", "cceh", "--pool-size", "0")
        self.bad(["--pool-size without a pool", "dram"], "--index", "cceh", "--pool-size", "1G")
        for medium in ("dram", "simulated:aep", "counted:dram", "emulated:aep"):
            self.bad(["--reuse without a pool", medium], "--index", "cceh", "--medium", medium, "--reuse")
        for store in (("volumes", "--store", "raw"), ("pairs", "--store", "kv_ssd")):
            self.assert_fails(2, ["--pool-size without a pool", "emulated:aep"], "stores", *store, "--pool-size", "1G",
                              "--medium", "emulated:aep")
        self.bad(["--threads", "too large"], "--index", "cceh", "--threads", "1000000")
        self.bad(["--batch", "256"], "--index", "cceh", "--batch", "100000")
        self.bad(["--threads"], "--index", "cceh", "--threads", "1,,2")

    def test_open_loop_and_intervals(self):
        for parts, *words in ((["--rate"], "--rate", "0"), (["--rate"], "--rate", "many"),
                              (["--rate", "real clock"], "--rate", "1k", "--medium", "simulated:aep"),
                              (["--rate", "--batch"], "--rate", "1k", "--batch", "8"),
                              (["--rate", "--verify"], "--rate", "1k", "--verify"),
                              (["--interval '0.1ms'"], "--interval", "0.1ms"), (["--interval"], "--interval", "ms"),
                              (["--interval", "too small"], "--interval", "0"),
                              (["--cpu-counters"], "--cpu-counters", "--medium", "simulated:aep"),
                              (["--histograms", "/dev/null/x"], "--histograms", "/dev/null/x")):
            with self.subTest(words=words):
                self.bad(parts, "--index", "cceh", *words)

    def test_ranges_of_threads(self):
        self.bad(["--threads", "4-2"], "--index", "cceh", "--threads", "4-2")
        self.bad(["--threads"], "--index", "cceh", "--threads", "1-")
        self.bad(["--threads", "too large"], "--index", "cceh", "--threads", "1-1000000")
        done = self.assert_works("bench", "--quiet", "--index", "null_index", "--records", "1k", "--operations", "1k",
                                 "--phases", "read", "--threads", "1-3,5", "--json", "-")
        self.assertEqual([r["threads"] for r in json.loads(done.stdout)["results"] if r["phase"] == "read"],
                         [1, 2, 3, 5])

    def test_persistence_domains(self):
        self.bad(["--persistence 'flash'", "adr, eadr, gpf, gpf-may-fail"], "--index", "cceh", "--medium",
                 "counted:dram", "--persistence", "adr,flash")
        self.bad(["names adr twice"], "--index", "cceh", "--medium", "counted:dram", "--persistence", "adr,adr")
        self.bad(["no effect on medium dram"], "--index", "cceh", "--persistence", "eadr")
        for other in (["--program", "true"], ["--io-log", "run.log"]):
            self.assert_fails(2, ["leave"], "verify", *other, "--check", "true", "--persistence", "eadr")
        profile = self.write("odd.toml", b'persistence = "flash"\n')
        self.bad([f"{profile}:1", "'persistence'", "flash", "adr, eadr, gpf, gpf-may-fail"], "--index", "cceh",
                 "--medium", "simulated:" + profile)

    def test_help_of_a_command(self):
        self.assertEqual(self.assert_works("help").stdout, self.assert_works("--help").stdout)
        self.assertEqual(self.assert_works("help", "bench").stdout, self.assert_works("bench", "--help").stdout)
        self.assertEqual(self.assert_works("help", "pool", "check").stdout,
                         self.assert_works("pool", "check", "--help").stdout)

    def test_what_measures_nothing(self):
        self.bad(["can be measured", "no order to scan"], "--index", "cceh", "--phases", "scan")
        self.bad(["can be measured", "no order to scan"], "--index", "cceh,level_hashing", "--phases", "load,scan")
        self.bad(["can be measured", "keeps nothing"], "--index", "cceh", "--phases", "reopen")
        # One of two can.
        self.assert_works("bench", "--quiet", "--index", "cceh,fast_fair", "--records", "1k", "--operations", "1k",
                          "--phases", "scan")

    def test_more_records_than_memory(self):
        for medium in ("dram", "counted:dram", "simulated:aep"):
            with self.subTest(medium=medium):
                self.bad(["DRAM at least", "--records"], "--index", "cceh", "--records", "1000G", "--medium", medium)
        self.bad(["DRAM at least", "--records"], "--index", "cceh,std_map", "--records", "9e18")

    def test_shares_must_add_up(self):
        self.bad(["1.1"], "--index", "cceh", "--workload", "read=.9,update=.2")

    def test_options_that_exclude_each_other(self):
        trace = os.path.join("any", "trace")
        self.bad(["--operations", "--seconds"], "--index", "cceh", "--operations", "5", "--seconds", "1")
        self.bad(["--trace", "--records"], "--index", "cceh", "--trace", trace, "--records", "5")
        self.bad(["--trace", "--workload"], "--index", "cceh", "--trace", trace, "--workload", "ycsb-a")
        self.bad(["--trace", "--phases"], "--index", "cceh", "--trace", trace, "--phases", "read")
        self.bad(["--overwrite", "--reuse"], "--index", "cceh", "--overwrite", "--reuse")
        self.bad(["--huge-pages", "maybe"], "--index", "cceh", "--huge-pages", "maybe")
        for pages in ("1G", "2m", "4096", "on"):
            self.bad([f"--pages '{pages}' is no size of pages", "give 2M or 4K"], "--index", "cceh", "--pages", pages)
        self.bad(["--huge-pages", "--pages"], "--index", "cceh", "--pages", "4K", "--huge-pages", "on")
        self.bad(["--emulation-scale"], "--index", "cceh", "--emulation-scale", "2")
        self.bad(["--emulation-scale '1e5'", "at most 10000"], "--index", "cceh", "--emulation-scale", "1e5")

    def test_indexes_that_do_not_go_together(self):
        self.bad(["cceh", "twice"], "--index", "cceh,cceh")
        self.bad(["baseline", "std_map"], "--index", "cceh", "--baseline", "std_map")
        self.bad(["null_index", "verify"], "--index", "null_index", "--verify")

    def test_specifications(self):
        self.bad(["did you mean mode"], "--index", "cache(cceh,modus=serial)")
        self.bad(["did you mean capacity"], "--index", "cache(cceh,size=10%)")
        self.bad(["did you mean eviction"], "--index", "cache(cceh,policy=lru)")
        self.bad(["its options are", "capacity"], "--index", "cache(cceh,colour=red)")
        self.bad(["did you mean serial"], "--index", "cache(cceh,mode=seriel)")
        self.bad(["capacity", "10%"], "--index", "cache(cceh,capacity=200%)")
        self.bad(["did you mean cceh"], "--index", "cache(ceh)")
        self.bad(["did you mean cache"], "--index", "cash(cceh)")
        self.bad(["bracket"], "--index", "cache(cceh")
        self.bad(["one index"], "--index", "cache(mode=serial)")
        self.bad(["tbb_hash"], "--index", "cache(tbb_hash)")

    def test_what_is_left_out_is_named_with_its_package(self):
        packages = json.loads(pmlab("list", "--json").stdout)["left_out"]
        for p in packages:
            for name in p["indexes"]:
                for medium in ("dram", "simulated:aep"):
                    self.bad([name, "built without " + p["title"], p["package"]], "--index", name, "--medium", medium)
            for name in p["stores"]:
                command = "volumes" if name.startswith("rocksdb_meta") else "pairs"
                self.assert_fails(2, [name, "built without " + p["title"], p["package"]], "stores", command, "--store",
                                  name)

    def test_a_pmdk_container_needs_a_pool(self):
        for name in there("pmdk_hash", "pmdk_skiplist", "pmdk_radix"):
            for medium in ("dram", "emulated:aep", "simulated:aep", "counted:pmem:" + self.file("pool")):
                with self.subTest(index=name, medium=medium):
                    self.bad([name, "--medium pmem:PATH"], "--index", name, "--medium", medium)
        self.assertEqual(os.listdir(self.folder), [])

    def test_paths(self):
        missing = self.file("missing/pool")
        self.bad([self.file("missing"), "make it"], "--index", "cceh", "--medium", "pmem:" + missing)
        self.bad([self.folder, "folder"], "--index", "cceh", "--medium", "pmem:" + self.folder)
        self.bad(["no space", "--pool-size"], "--index", "cceh", "--medium", "pmem:" + self.file("pool"),
                 "--pool-size", "100T")
        self.bad(["no space"], "--index", "cceh", "--medium", "pmem:" + self.file("pool"), "--records", "100G")
        self.bad(["results", self.file("missing")], "--index", "cceh", "--json", self.file("missing/r.json"))
        self.bad(["results", "folder"], "--index", "cceh", "--json", self.folder)
        self.assertEqual(os.listdir(self.folder), [])
        for parts, *words in ((["is a folder"], "microbench", "--quiet", "--medium", "pmem:" + self.folder),
                              (["cannot reach", "too long"], "stores", "volumes", "--quiet", "--store", "raw",
                               "--device", "file:" + self.file("n" * 300))):
            with self.subTest(words=words):
                self.assert_fails(2, parts, *words)

    def test_files_that_take_no_results(self):
        """Known before the measurement, whose results would be lost."""
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(self.file("socket"))
            for command in (("bench", "--quiet", "--index", "cceh"), ("compare", "a", "b")):
                for path, why in ((self.file("socket"), "it is a socket"), ("/dev/tty", "No such device or address")):
                    with self.subTest(command=command[0], path=path):
                        # Without a terminal.
                        done = pmlab(*command, "--json", path, start_new_session=True)
                        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                        self.assertIn(f"cannot write results to {path}: {why}; ", done.stderr)

    def test_a_link_that_leads_nowhere_stays(self):
        os.symlink(self.file("not_mounted/pool"), self.file("pool"))
        for more in ([], ["--overwrite"], ["--reuse"]):
            self.bad(["leads nowhere", self.file("pool")], "--index", "cceh", "--medium", "pmem:" + self.file("pool"),
                     *more)
        self.assertTrue(os.path.islink(self.file("pool")))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_may_not_be_written(self):
        os.chmod(self.folder, 0o500)
        self.bad([self.folder, "permissions"], "--index", "cceh", "--medium", "pmem:" + self.file("pool"))

    def test_a_path_with_a_space_in_it_works(self):
        os.mkdir(self.file("a folder"))
        self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "1000", "--operations", "1000",
                          "--medium", "pmem:" + self.file("a folder/a pool"))

    def test_hybrid_specifications(self):
        self.bad(["no use for 'cceh'", "hash=INDEX"], "--index", "hybrid(cceh)")
        self.bad(["cceh@disk", "INDEX@dram"], "--index", "hybrid(hash=cceh@disk)")
        self.bad(["did you mean async"], "--index", "hybrid(update=asynk)")
        self.bad(["did you mean cceh"], "--index", "hybrid(hash=ceh)")
        self.bad(["level_hashing has no order"], "--index", "hybrid(tree=level_hashing@dram)")
        self.bad(["std_map", "index of pmlab"], "--index", "hybrid(tree=std_map@dram)")
        self.bad(["leave primary"], "--index", "hybrid(hash=cceh@dram,tree=fast_fair@pmem,primary=hash)")
        self.bad(["counted", "its halves"], "--index", "hybrid_index", "--medium", "counted:dram")


if __name__ == "__main__":
    main()
