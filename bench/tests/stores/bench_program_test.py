"""`pmlab stores volumes` and `pmlab stores pairs`: results, counted figures, files, and refused input."""
import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "cli"))
from program import DOCS, PMLAB, ProgramTest, main, pmlab, there  # noqa: E402

SMALL = {"--volume-bytes": "8M", "--operations": "500"}
SMALL_PAIRS = {"--records": "2k", "--operations": "500", "--device-bytes": "64M"}
# Their fields are those of the store, or of latency_ns.
WITHOUT_FIELDS = ("by_stream", "store_stats", "read_latency_ns", "write_latency_ns", "scan_latency_ns")
# Those of pairs have the fields of those of volumes.
OF_BLOCKS = ("device_io", "staging_io", "settling", "medium_counts")


def paths_of(value, prefix=""):
    """Every field of a document, as docs/results-schema.md names it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield prefix + key
            if key not in WITHOUT_FIELDS and not (key in OF_BLOCKS and "user_bytes" in value):
                yield from paths_of(inner, f"{prefix}{key}.")
    elif isinstance(value, list) and value:
        yield from paths_of(value[0], prefix[:-1] + "[].")


def small(*words):
    """The command line with small sizes, where `words` give no others."""
    more = [w for option, value in SMALL.items() if option not in words for w in (option, value)]
    return ["stores", "volumes", "--quiet", *more, *words]


class Stores(ProgramTest):
    def results_of(self, *words):
        path = self.file("r.json")
        self.assert_works(*small("--json", path, *words))
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def cases_of(self, *words):
        return self.results_of(*words)["cases"]

    def pairs_of(self, *words):
        path = self.file("p.json")
        more = [w for option, value in SMALL_PAIRS.items() if option not in words for w in (option, value)]
        self.assert_works("stores", "pairs", "--quiet", "--json", path, *more, *words)
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def test_a_medium_that_no_store_uses_is_remarked(self):
        unused = "--medium counted:dram was not used: no store of this run has data there"
        for stores, is_unused in (("raw", True), ("raw,chunk_store", False)):
            remarks = self.results_of("--store", stores, "--phases", "fill", "--medium", "counted:dram")["remarks"]
            self.assertEqual(unused in remarks, is_unused, remarks)

    def test_an_option_that_no_store_of_pairs_has_is_remarked(self):
        for store, options in (("kv_ssd", {"--memory": True, "--loss-ms": True, "--cache": False}),
                               ("tiered", {"--memory": False, "--loss-ms": False, "--cache": False})):
            words = [w for option, value in zip(options, ("64M", "50", "1M")) for w in (option, value)]
            remarks = self.pairs_of("--store", store, "--phases", "load", *words)["remarks"]
            for option, is_unused in options.items():
                with self.subTest(store=store, option=option):
                    said = f"{option} was not used: no store of this run has it" in remarks
                    self.assertEqual(said, is_unused, remarks)

    def test_every_field_is_described(self):
        document = self.results_of("--store", "chunk_store,raw", "--phases", "fill,overwrite,mix-a,open", "--medium",
                                   "counted:dram")
        self.assertEqual((document["schema"], document["kind"], document["failure"]), (1, "stores_bench", None))
        with open(os.path.join(DOCS, "results-schema.md"), encoding="utf-8") as f:
            page = f.read().split("# The results of `pmlab stores volumes`", 1)[1]
        blocks, pairs = page.split("# The results of `pmlab stores pairs`")
        self.assert_described(document, blocks)
        document = self.pairs_of("--store", "kv_ssd,tiered", "--phases", "load,ycsb-a,open", "--medium", "counted:dram")
        self.assertEqual((document["schema"], document["kind"], document["failure"]), (1, "stores_bench", None))
        self.assert_described(document, pairs)

    def assert_described(self, document, page):
        described = set(re.findall(r"^\| `([^`]+)`", page, re.M))
        written = {path for path in paths_of(document) if not path.startswith("machine.")}
        for case in document["cases"]:
            written |= {f"cases[].{path}" for path in paths_of(case)}
        self.assertEqual(written - described, set())
        self.assertEqual({path for path in described if not path.startswith("machine")} - written, set())

    def test_stores_take_turns(self):
        document = self.results_of("--store", "chunk_store,raw_dwb,raw_fpw,raw", "--phases", "fill,overwrite,read",
                                   "--size", "16K", "--depth", "8", "--threads", "2", "--repeat", "2")
        cases = document["cases"]
        stores = ["chunk_store", "raw_dwb", "raw_fpw", "raw"]
        self.assertEqual([(c["phase"], c["repetition"], c["store"]) for c in cases],
                         [(p, r, s) for p in ("fill", "overwrite", "read") for r in (1, 2) for s in stores])
        for case in cases:
            self.assertEqual(case["clock"], "real")
            self.assertEqual(case["bytes"], case["operations"] * case["size"])
            self.assertAlmostEqual(case["throughput"], case["operations"] / case["time_ns"] * 1e9,
                                   delta=case["throughput"] / 1e6)
            self.assertGreaterEqual(case["latency_ns"]["p99"], case["latency_ns"]["p50"])
            self.assertEqual(case["operations"], 500)
            self.assertEqual((case["verified"], case["wrong"]), (500 if case["phase"] == "read" else 0, 0))
            self.assertEqual(case["index"], "cceh" if case["store"] == "chunk_store" else None)
        # Each block once more, at the end.
        self.assertEqual([(e["store"], e["wrong"]) for e in document["at_end"]], [(s, 0) for s in stores])
        for end in document["at_end"]:
            self.assertEqual(end["verified"], 8 * 1024 * 1024 // 65536)

    def test_bytes_of_chunk_store_and_of_the_memory(self):
        in_place, redirected = self.cases_of("--store", "chunk_store", "--medium", "counted:dram", "--phases",
                                             "overwrite", "--size", "4K,16K", "--depth", "1")
        self.assertEqual(in_place["medium_counts"]["flushes"], 0)
        self.assertEqual(in_place["store_stats"]["in_place"], in_place["operations"])
        for case in (in_place, redirected):
            self.assertEqual(case["amplification"]["host"], 1)
            self.assertEqual(case["device_io"]["by_stream"]["data"]["written_bytes"], case["bytes"])
        self.assertEqual(redirected["store_stats"]["redirected"], redirected["operations"])
        # An entry is a line, a flush and a fence; merges of rings into maps are the rest.
        merges = redirected["store_stats"]["merges"]
        self.assertEqual(redirected["medium_counts"]["fences"] - 2 * merges, redirected["operations"])
        self.assertLess(redirected["medium_counts"]["flushes"] / redirected["operations"], 2.5)

    def test_rocksdb_meta(self):
        common = ["--phases", "overwrite,read,open", "--size", "4K,16K", "--depth", "8", "--threads", "2",
                  "--device-bytes", "192M"]
        self.need("rocksdb_meta")
        for where in (["--medium", "emulated:aep"], ["--container", "blocks"]):
            document = self.results_of("--store", "rocksdb_meta,rocksdb_meta_deferred,raw", *where, *common)
            deferred = {(case["store"], case["size"]): case["store_stats"].get("deferred", 0)
                        for case in document["cases"] if case["phase"] == "overwrite"}
            self.assertGreater(deferred["rocksdb_meta_deferred", 4096], 100)
            self.assertEqual((deferred["rocksdb_meta_deferred", 16384], deferred["rocksdb_meta", 4096]), (0, 0))
            self.assertTrue(any("not BlueStore" in remark for remark in document["remarks"]), document["remarks"])

    def test_virtual_time_is_of_all_or_of_none(self):
        for words, why in ((["--store", "chunk_store", "--medium", "simulated:aep", "--device", "memory"],
                            "--device simulated:p4610"),
                           (["--store", "chunk_store", "--device", "simulated:p4610"], "--medium simulated:aep"),
                           (["--store", "rocksdb_meta", "--device", "simulated:p4610"], "emulated:p4610")):
            self.assertIn(why, pmlab(*small(*words)).stderr)

    def test_lines_read_are_those_of_each_operation(self):
        for case in self.cases_of("--store", "chunk_store", "--medium", "counted:dram", "--phases", "read,overwrite",
                                  "--size", "16K", "--depth", "1"):
            # The index and the record at least.
            self.assertGreater(case["medium_counts"]["lines_read"] / case["operations"], 1)

    def test_the_mix_of_a_page_store(self):
        for threads in ("1", "2"):
            for case in self.cases_of("--store", "chunk_store,raw_dwb,raw_fpw", "--phases", "pages", "--size", "16K",
                                      "--depth", "8", "--threads", threads, "--operations", "800"):
                with self.subTest(store=case["store"], threads=threads):
                    pages, records = 200, 200
                    self.assertEqual((case["operations"], case["reads"]), (800, 400))
                    self.assertEqual(case["bytes"], 600 * 16384 + records * 4096)
                    self.assertEqual((case["verified"], case["wrong"]), (400, 0))
                    user = pages * 16384 + records * 4096
                    written = case["device_io"]["written_bytes"]
                    self.assertAlmostEqual(case["amplification"]["host"], written / user)
                    if case["store"] == "chunk_store":
                        self.assertEqual(written, user)
                    if case["store"] == "raw_dwb":  # a record fits into the drive's atomic unit
                        self.assertEqual(written, 2 * pages * 16384 + records * 4096)
                    self.assertIsNotNone(case["write_latency_ns"])

    def test_indexes_rings_and_chunks(self):
        for index in ("skip_list", "fast_fair", "fp_tree", "hybrid"):
            case, = self.cases_of("--store", "chunk_store", "--index", index, "--ring", "4", "--chunk", "256K",
                                  "--phases", "overwrite", "--size", "16K", "--depth", "4")
            self.assertEqual((case["index"], case["ring"]), (index, 4))
            self.assertGreater(case["store_stats"]["merges"], case["operations"] / 8)

    def test_a_merge_by_copy_writes_the_data_again(self):
        case, = self.cases_of("--store", "chunk_store", "--merge", "copy", "--phases", "overwrite", "--size", "16K",
                              "--depth", "4")
        self.assertEqual((case["merge"], case["wrong"]), ("copy", 0))
        copied = case["device_io"]["by_stream"]["merge"]["written_bytes"]
        self.assertEqual(case["device_io"]["written_bytes"], case["bytes"] + copied)
        self.assertGreater(case["amplification"]["host"], 1.5)
        self.assertLessEqual(case["amplification"]["host"], 2.1)

    def test_records_on_the_drive(self):
        fill, overwrite, opened = self.cases_of("--store", "chunk_store", "--container", "blocks", "--phases",
                                                "fill,overwrite,open", "--size", "16K", "--depth", "1")
        for case in (fill, overwrite, opened):
            self.assertEqual((case["container"], case["medium"], case["index"], case["wrong"]),
                             ("blocks", None, None, 0))
        # One block of records for each write by itself.
        self.assertGreaterEqual(fill["device_io"]["by_stream"]["index"]["written_bytes"], fill["operations"] * 4096)
        self.assertGreater(overwrite["amplification"]["host"], 1.25)
        self.assertGreater(opened["opening"]["first_read_ns"], 0)

    def test_a_pool_and_files_are_made_and_removed(self):
        with tempfile.TemporaryDirectory(prefix="pmlab-stores-") as folder:
            drive, pool = os.path.join(folder, "drive"), self.file("records.pool")
            document = self.results_of("--store", "chunk_store,raw", "--device", f"file:{drive}", "--device-bytes",
                                       "32M", "--medium", f"pmem:{pool}", "--phases", "fill,open", "--size", "64K",
                                       "--depth", "8", "--operations", "64")
            self.assertEqual([c["store"] for c in document["cases"]], ["chunk_store", "raw", "chunk_store"])
            opening = document["cases"][2]["opening"]
            self.assertGreaterEqual(opening["complete_ns"], opening["first_read_ns"])
            self.assertEqual((os.listdir(folder), os.path.exists(pool)), ([], False))
            # Those that exist stay as they are.
            for path, option, value in ((drive, "--device", f"file:{drive}"), (pool, "--medium", f"pmem:{pool}")):
                with open(path, "wb") as f:
                    f.write(b"ten years of work" * 4096)
                kept = os.stat(path)
                self.assert_fails(2, ["exists", "--overwrite"], *small("--store", "chunk_store", option, value))
                self.assertEqual(os.stat(path).st_mtime_ns, kept.st_mtime_ns)

    def test_a_file_that_has_another_store_is_overwritten(self):
        drive = self.file("drive")
        with open(drive, "wb") as f:
            f.write(bytes(32 << 20))
        for ring in ("16", "5"):
            cases = self.cases_of("--store", "chunk_store", "--device", f"file:{drive}", "--device-bytes", "32M",
                                  "--overwrite", "--phases",
                                  "fill,read", "--size", "64K", "--depth", "4", "--operations", "64", "--repeat", "2",
                                  "--ring", ring)
            self.assertEqual([c["wrong"] for c in cases], [0] * 4)
        self.assertTrue(os.path.exists(drive))

    def test_a_drive_that_another_process_uses(self):
        drive = self.file("drive")
        with open(drive, "wb") as f:
            f.write(bytes(64 << 20))
        with open(drive, "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assert_fails(2, [drive], *small("--store", "raw", "--device", f"file:{drive}", "--device-bytes", "64M",
                                                 "--overwrite"))

    def test_a_drive_that_changes_its_data_is_found(self):
        drive, results = self.file("drive"), self.file("r.json")
        with open(drive, "wb") as f:
            f.write(bytes(16 << 20))
        words = small("--store", "raw", "--device", f"file:{drive}", "--device-bytes", "16M", "--overwrite", "--phases",
                      "read", "--size", "4K", "--depth", "1", "--json", results, "--seconds", "2")
        words = [w for i, w in enumerate(words) if w != "--operations" and words[i - 1] != "--operations"]
        with subprocess.Popen([PMLAB, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            with open(drive, "r+b", buffering=0) as f:
                while program.poll() is None:
                    f.seek(1 << 20)
                    # The volume is filled first; later a block of it is that of another place.
                    f.write(os.pread(f.fileno(), 4096, 2 << 20))
            said = program.stderr.read()
            self.assertEqual(program.returncode, 1, said)
        self.assertIn("wrong answer: raw, read random 4.0 KiB depth 1: block 256, sector 0: has the data of block 512",
                      said)
        self.assertRegex(said, "pmlab: error: [0-9]+ wrong answers; do not trust these figures")
        with open(results, encoding="utf-8") as f:
            document = json.load(f)
        self.assertGreater(document["cases"][0]["wrong"] + document["at_end"][0]["wrong"], 0)

    def test_a_modelled_drive_on_the_real_clock(self):
        case, = self.cases_of("--store", "raw", "--device", "emulated:p4610", "--phases", "read", "--size", "4K",
                              "--depth", "1", "--operations", "200")
        self.assertGreater(case["latency_ns"]["p50"], 60_000)

    @unittest.skipUnless(os.path.exists(os.path.join(os.path.dirname(PMLAB), "pmlab-simulated")),
                         "pmlab-simulated is not built")
    def test_virtual_time_repeats_to_the_digit(self):
        for container in ("pmem", "blocks"):
            first, second = (self.cases_of("--store", "chunk_store,raw", "--container", container, "--medium",
                                           "simulated:aep", "--device",
                                           "simulated:p4610", "--phases", "overwrite", "--size", "16K", "--depth", "4",
                                           "--threads", "2")
                             for _ in range(2))
            self.assertEqual(first, second)
            self.assertEqual({(c["clock"], c["cpu_ns_per_operation"], c["wrong"]) for c in first},
                             {("virtual", None, 0)})
            self.assertGreater(first[0]["latency_ns"]["p50"], 10_000)

    def test_key_value_stores(self):
        stores = there("kv_ssd", "tiered", "rocksdb", "leveldb", "lmdb")
        document = self.pairs_of("--store", ",".join(stores), "--phases", "load,ycsb-a,ycsb-d,ycsb-f,insert,erase,open",
                                 "--depth", "4")
        self.assertEqual({case["store"] for case in document["cases"]}, set(stores))
        for case in document["cases"]:
            with self.subTest(store=case["store"], phase=case["phase"]):
                self.assertEqual(case["wrong"], 0)
                self.assertEqual(case["operations"], {"load": 2000, "open": 1}.get(case["phase"], 500))
                if case["phase"] in ("load", "insert"):
                    self.assertEqual(case["user_bytes"], case["operations"] * 1016)
                if case["store"] == "kv_ssd" and case["user_bytes"]:
                    self.assertEqual((case["amplification"]["host"], case["host_bytes"]), (1, case["user_bytes"]))
                self.assertEqual(case["opening"] is not None, case["phase"] == "open")
        for end in document["at_end"]:
            self.assertEqual(end["wrong"], 0)
            self.assertGreaterEqual(end["verified"], 2500)

    def test_scans_and_a_staging_drive(self):
        document = self.pairs_of("--store", "tiered", "--staging", "memory", "--staging-bytes", "64M", "--phases",
                                 "load,ycsb-e", "--threads", "2")
        load, scans = document["cases"]
        self.assertEqual(document["options"]["staging_bytes"], 64 << 20)
        self.assertEqual((load["staging"], scans["wrong"]), ("memory", 0))
        self.assertGreater(load["staging_io"]["written_bytes"] + load["settling"]["staging_written_bytes"],
                           load["user_bytes"])
        self.assertGreater(scans["scan_latency_ns"]["p50"], 0)

    def test_several_key_value_ssds_share_the_keys(self):
        load, = self.pairs_of("--store", "kv_ssd", "--devices", "3", "--records", "8k", "--value", "4K", "--phases",
                              "load", "--depth", "16")["cases"]
        self.assertEqual((load["devices"], load["wrong"], load["amplification"]["host"]), (3, 0, 1))

    def test_a_memtable_in_a_pool(self):
        pool = self.file("pool")
        load, _ = self.pairs_of("--store", "tiered", "--memtable", "pmem", "--medium", f"pmem:{pool}", "--phases",
                                "load,read")["cases"]
        self.assertEqual((load["memtable"], load["medium"], load["wrong"]), ("pmem", f"pmem:{pool}", 0))
        self.assertGreater(load["space"]["medium_bytes"], 2000 * 1016)
        self.assertFalse(os.path.exists(pool))

    def test_the_table(self):
        said = self.assert_works(*small("--store", "chunk_store,raw", "--phases", "overwrite", "--size", "4K",
                                        "--depth", "1")).stdout.splitlines()
        self.assertIn("of raw", said[0])
        self.assertIn("1.00x", said[2])
        self.assertRegex(said[-1], "^[0-9]+ reads checked, 0 wrong$")

    def test_progress_tells_of_long_work(self):
        done = pmlab("stores", "volumes", "--store", "raw", "--volume-bytes", "8M", "--operations", "100", "--phases",
                     "read")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cases of 1 stores", done.stderr)

    def test_refused_input(self):
        one = ["--store", "chunk_store"]
        for words, parts in (
                ([], ["nothing to measure", "--store"]),
                (["--store", "chunk_stor"], ["no store 'chunk_stor'", "did you mean chunk_store"]),
                (["--store", "raw,raw"], ["raw twice", "--repeat"]),
                *((["--store", "raw,raw_dwb", option, value], [option, "chunk_store", "leave"])
                  for option, value in (("--container", "blocks"), ("--index", "cceh"), ("--merge", "copy"),
                                        ("--ring", "8"), ("--chunk", "1M"))),
                ([*one, "--container", "kv", "--index", "cceh"], ["--index has no effect with --container kv"]),
                ([*one, "--container", "tape"], ["no container 'tape'", "pmem, blocks or kv"]),
                ([*one, "--index", "ccceh"], ["no level-1 index 'ccceh'", "did you mean cceh"]),
                ([*one, "--merge", "never"], ["no merge 'never'", "remap or copy"]),
                ([*one, "--container", "blocks", "--merge", "remap"], ["no maps", "leave --merge out"]),
                ([*one, "--ring", "0"], ["1 to 30 entries"]),
                ([*one, "--ring", "31"], ["1 to 30 entries"]),
                ([*one, "--ring", "many"], ["--ring"]),
                ([*one, "--chunk", "96K"], ["power of two"]),
                ([*one, "--chunk", "2M"], ["1 to 256 of them"]),
                ([*one, "--size", "4000"], ["whole blocks", "multiple of 4K"]),
                ([*one, "--size", "8M"], ["at most 4M"]),
                ([*one, "--size", "0"], ["--size"]),
                ([*one, "--depth", "0"], ["--depth"]),
                ([*one, "--depth", "100k"], ["--depth", "too large"]),
                ([*one, "--threads", "0"], ["--threads"]),
                ([*one, "--phases", "fill,sleep"], ["no phase 'sleep'", "did you mean"]),
                ([*one, "--phases", "mix:101"], ["more than 100 %"]),
                ([*one, "--pattern", "latest"], ["no pattern 'latest'", "zipfian"]),
                ([*one, "--volume-bytes", "1000000"], ["multiple of 4K"]),
                ([*one, "--device-bytes", "8M"], ["too small", "--device-bytes at least"]),
                ([*one, "--volume-bytes", "1M", "--size", "64K", "--depth", "32"],
                 ["too few places", "--volume-bytes"]),
                ([*one, "--device", "nvme0n1"], ["no block device 'nvme0n1'", "file:PATH"]),
                ([*one, "--device", "emulated:p4611"], ["p4611", "p4610"]),
                ([*one, "--medium", "dramm"], ["no medium 'dramm'"]),
                ([*one, "--medium", f"pmem:{self.file('no/folder')}"], ["no folder"]),
                ([*one, "--json", self.file("no/such.json")], ["such.json"]),
        ):
            with self.subTest(words):
                self.assert_fails(2, parts, *small(*words))
        with open(self.file("pool"), "w", encoding="utf-8") as f:
            f.write("of the user")
        at_a_file = small(*one, "--medium", f"pmem:{self.file('pool')}")
        said = self.assert_fails(2, ["exists already", "--overwrite"], *at_a_file)
        self.assertNotIn("--reuse", said.stderr)  # which stores do not have

    def test_refused_input_of_pairs(self):
        one = ["--store", "kv_ssd"]
        for words, parts in (
                ([], ["nothing to measure", "--store"]),
                (["--store", "kv_sd"], ["no key-value store 'kv_sd'", "did you mean kv_ssd"]),
                (["--store", "chunk_store"], ["no key-value store 'chunk_store'"]),
                ([*one, "--phases", "ycsb-g"], ["no phase 'ycsb-g'", "did you mean ycsb-"]),
                ([*one, "--phases", "overwrite"], ["no phase 'overwrite' of key-value stores"]),
                ([*one, "--phases", "ycsb-e"], ["kv_ssd has no order of keys", "ycsb-e scans"]),
                ([*one, "--pattern", "latest"], ["no pattern 'latest' of keys", "zipfian"]),
                ([*one, "--staging", "memory"], ["kv_ssd has no use for a second drive", "--staging"]),
                ([*one, "--staging", "tape"], ["tape"]),
                (["--store", "tiered", "--staging", "simulated:p4610"], ["different clocks"]),
                (["--store", "tiered", "--staging-bytes", "64M"], ["--staging-bytes without", "--staging"]),
                (["--store", "tiered", "--staging", "memory", "--staging-bytes", "1K"], ["give --staging-bytes"]),
                (["--store", "tiered", "--value", "2M"], ["--value 2097152", "at most 1048576"]),
                (["--store", "tiered", "--place", "attic"], ["no place 'attic'", "capacity_only"]),
                (["--store", "tiered", "--memtable", "tape"], ["no memtable 'tape'"]),
                (["--store", "tiered", "--memtable", "pmem"], ["--medium dram", "pmem:PATH"]),
                (["--store", "tiered", "--devices", "2"], ["one capacity drive"]),
                ([*one, "--value", "16"], ["--value 16", "24 bytes"]),
                ([*one, "--value", "3M"], ["--value 3M", "2M"]),
                ([*one, "--key-bytes", "7"], ["--key-bytes 7", "8 to 255"]),
                ([*one, "--key-bytes", "256"], ["--key-bytes 256"]),
                ([*one, "--records", "10", "--depth", "32"], ["too few", "--records"]),
                ([*one, "--records", "0"], ["--records"]),
                ([*one, "--devices", "0"], ["--devices"]),
                ([*one, "--log", "maybe"], ["--log", "on or off"]),
                ([*one, "--loss-ms", "never"], ["--loss-ms"]),
                ([*one, "--volume-bytes", "1M"], ["stores pairs has no option --volume-bytes"]),
                ([*one, "--device-bytes", "2M"], ["superblocks"]),
        ):
            with self.subTest(words):
                self.assert_fails(2, parts, "stores", "pairs", "--quiet", *words)
        self.assert_fails(2, ["stores volumes has no option --records"], "stores", "volumes", "--store", "raw",
                          "--records", "5")

    def test_names_of_the_version_before(self):
        small_run = ["--phases", "read", "--operations", "100", "--repetitions", "1", "--quiet"]
        for kind, now, words in ((["--kind", "kv"], "stores pairs",
                                  ["--store", "kv_ssd", "--keys=2k", "--device-bytes", "64M"]),
                                 ([], "stores volumes", ["--store", "raw", "--volume-bytes", "8M", "--size", "4K"]),
                                 (["--kind=block"], "stores volumes",
                                  ["--store", "raw", "--volume-bytes", "8M", "--size", "4K"])):
            with self.subTest(kind):
                path = self.file("r.json")
                done = pmlab("stores", "bench", *kind, *words, *small_run, "--json", path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"is `{now}` now", done.stderr)
                self.assertIn("`--repetitions` is `--repeat` now", done.stderr)
                with open(path, encoding="utf-8") as f:
                    options = json.load(f)["options"]
                self.assertTrue(options["command"].startswith(f"pmlab {now} "), options["command"])
                self.assertEqual(options.get("records", 2000), 2000)
        self.assert_fails(2, ["no kind of stores 'object'", "stores volumes"], "stores", "bench", "--kind", "object",
                          "--store", "raw")


if __name__ == "__main__":
    main()
