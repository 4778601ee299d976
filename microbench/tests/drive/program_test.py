"""`pmlab microbench --device`: results, the comparison with fio, and refused input."""
import json
import os
import shutil
import stat
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "cli"))
from program import DOCS, ProgramTest, fields_of, main  # noqa: E402

ONE_READ = "^random-read/bytes=4096/depth=32$"


class Drive(ProgramTest):
    def setUp(self):
        super().setUp()
        on_disk = tempfile.TemporaryDirectory(prefix="pmlab-drive-")
        self.addCleanup(on_disk.cleanup)
        self.drive = os.path.join(on_disk.name, "drive")

    def results_of(self, device, *more, size="8M"):
        path = self.file("r.json")
        self.assert_works("microbench", "--device", device, "--suite", "quick", "--quiet", "--device-bytes", size,
                          "--json", path, *more)
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def by_name(self, document):
        return {case["name"]: case for case in document["cases"]}

    def test_memory(self):
        document = self.results_of("memory")
        self.assertEqual((document["schema"], document["kind"], document["failure"]), (1, "drive", None))
        cases = self.by_name(document)
        for name in ("drive-read", "drive-write"):
            self.assertEqual(cases[name]["claims"], ["M22"])
            self.assertEqual(cases[name]["unit"], "GiB/s")
        for case in cases.values():
            of_requests = case["requests_per_s"] * case["case"]["bytes"] / 2**30
            self.assertAlmostEqual(case["value"] / of_requests, 1, places=6)
            self.assertGreaterEqual(case["latency_ns"]["p90"], case["latency_ns"]["p50"])
            self.assertIsNone(case["fio"])
        with open(os.path.join(DOCS, "blocks.md"), encoding="utf-8") as f:
            page = f.read()
        self.assertEqual([field for field in fields_of(document) if f"`{field}`" not in page
                          and f'"{field}"' not in page], [])

    def test_a_simulated_drive_is_as_its_datasheet_and_repeats_to_the_digit(self):
        documents = [self.results_of("simulated:p4610", size="2G") for _ in range(2)]
        first, second = (self.by_name(document) for document in documents)
        self.assertEqual(documents[0]["machine"]["clock"]["source"], "virtual")
        self.assertIn("of the drive", documents[0]["device"]["scale"])
        # Published: 3.2 and 2.08 GB/s in order, 77 us a read, 199,000 random writes per second.
        for name, figure, published in (("drive-read", "value", 3.2e9 / 2**30),
                                        ("drive-write", "value", 2.08e9 / 2**30),
                                        ("random-write/bytes=4096/depth=32", "requests_per_s", 199_000)):
            self.assertAlmostEqual(first[name][figure] / published, 1, delta=0.15)
        self.assertAlmostEqual(first["random-read/bytes=4096/depth=1"]["latency_ns"]["p50"] / 77_000, 1, delta=0.15)
        self.assertGreater(first["random-write/bytes=4096/depth=32"]["write_amplification"], 1.5)
        for name, case in first.items():
            self.assertEqual(case, second[name])
            self.assertTrue(case["exact"])

    def test_an_emulated_drive_takes_real_time(self):
        case, = self.results_of("emulated:p4610", "--filter", "^random-read/bytes=4096/depth=1$", size="2G")["cases"]
        self.assertGreaterEqual(case["latency_ns"]["p50"], 70_000)

    def test_a_file_is_made_and_removed(self):
        document = self.results_of(f"file:{self.drive}", "--filter", "^random-write/bytes=4096/depth=1/until=flush$",
                                   "--fio", "off")
        self.assertFalse(os.path.exists(self.drive))
        case, = document["cases"]
        self.assertEqual(case["case"]["until"], "flush")
        self.assertIn("direct I/O", document["device"]["way"])
        self.assertEqual(document["device"]["blocks"] * document["device"]["block_bytes"], 8 << 20)

    def test_latency_buckets(self):
        for case in self.results_of("simulated:p4610", size="2G")["cases"]:
            buckets, latency = case["latency_buckets"], case["latency_ns"]
            self.assertEqual(sum(count for _, count in buckets), latency["samples"])
            times = [ns for ns, _ in buckets]
            self.assertEqual(times, sorted(set(times)))
            mean = sum(ns * count for ns, count in buckets) / latency["samples"]
            self.assertAlmostEqual(mean / latency["mean"], 1, delta=0.01)
            self.assertAlmostEqual(times[-1] / latency["max"], 1, delta=0.01)

    def test_writes_settle_before_they_are_measured(self):
        document = self.results_of("memory", "--settle", "0.6", "--filter", "bytes=4096/depth=1")
        self.assertEqual(document["options"]["settle_seconds"], 0.6)
        settled = {case["case"]["operation"]: case["settling"] for case in document["cases"]}
        self.assertIsNone(settled["read"])
        self.assertGreater(settled["write"]["rounds"], 0)
        self.assertGreater(settled["write"]["seconds"], 0)
        if not settled["write"]["reached"]:
            self.assertGreaterEqual(settled["write"]["seconds"], 0.6)
            self.assertTrue(any("not steady" in note for case in document["cases"] for note in case["notes"]))
        simulated = self.results_of("simulated:p4610", "--settle", "0.6", "--filter", "random-write/bytes=4096/depth=1",
                                    size="2G")
        self.assertEqual({str(case["settling"]) for case in simulated["cases"]}, {"None"})

    def test_a_file_that_exists_needs_overwrite(self):
        with open(self.drive, "wb") as f:
            f.write(b"ten years of work" * 4096 * 200)
            f.truncate(4 << 20)
        kept = os.stat(self.drive)
        self.assert_fails(2, ["exists", "--overwrite"], "microbench", "--device", f"file:{self.drive}", "--suite",
                          "quick")
        self.assertEqual(os.stat(self.drive).st_mtime_ns, kept.st_mtime_ns)
        self.results_of(f"file:{self.drive}", "--overwrite", "--filter", "^random-write/bytes=4096/depth=32$", "--fio",
                        "off")
        self.assertEqual(os.stat(self.drive).st_size, 4 << 20)

    def test_a_file_with_holes_is_refused(self):
        with open(self.drive, "wb") as f:
            f.truncate(4 << 20)
        self.assert_fails(2, ["not preallocated", "blocks::create_file"], "microbench", "--device",
                          f"file:{self.drive}", "--overwrite", "--suite", "quick")

    def test_fio_measures_the_same_file(self):
        if shutil.which("fio") is None:
            self.skipTest("fio is not installed")
        case, = self.results_of(f"file:{self.drive}", "--filter", ONE_READ)["cases"]
        self.assertGreater(case["fio"]["requests_per_s"], 0)
        # Far from the target, which needs a quiet machine: this shows that both measure the same thing.
        self.assertGreater(case["fio"]["ratio"], 0.2)
        self.assertLess(case["fio"]["ratio"], 5)

    def test_a_fio_that_fails(self):
        folder = self.file("bin")
        os.mkdir(folder)
        fio = os.path.join(folder, "fio")
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{folder}:{path}"
        for text, said in (("exit 3", "fio failed in case random-read/bytes=4096/depth=32: io_uring: status 3; libaio: "
                            "status 3"),
                           ('for w; do case $w in --output=*) echo "{}" >"${w#--output=}" ;; esac; done',
                            "names no requests a second")):
            with open(fio, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\n{text}\n")
            os.chmod(fio, stat.S_IRWXU)
            self.assert_fails(1, [said, "--fio off"], "microbench", "--device", f"file:{self.drive}", "--suite",
                              "quick", "--device-bytes", "2M", "--quiet", "--filter", ONE_READ)
            self.assertFalse(os.path.exists(self.drive))

    def test_the_suites(self):
        for suite, least in (("quick", 8), ("drive", 70), ("full", 800)):
            said = self.assert_works("microbench", "--device", "memory", "--suite", suite, "--list").stdout
            self.assertGreaterEqual(int(said.splitlines()[-1].split()[0]), least)
        for bytes_of, depth in ((512, 1), (4096, 256), (1 << 20, 32)):
            self.assertIn(f"random-write/bytes={bytes_of}/depth={depth} ",
                          self.assert_works("microbench", "--device", "memory", "--list").stdout)

    def test_refused_input(self):
        for words, parts in (
                (["--device", "nvme0n1"], ["no block device 'nvme0n1'", "file:PATH"]),
                (["--device", "simulated:p4611"], ["p4611", "p4610"]),
                (["--device", "simulated:"], ["no block device"]),
                (["--device", "memory", "--suite", "paper"], ["no suite 'paper' of drives"]),
                (["--device", "memory", "--device-bytes", "1000"], ["--device-bytes a multiple of 1M"]),
                (["--device", "memory", "--filter", "("], ["no regular expression"]),
                (["--device", "memory", "--filter", "nothing"], ["leaves no case"]),
                (["--device", "memory", "--medium", "dram"], ["--medium is about a memory"]),
                (["--device", "memory", "--reuse"], ["--reuse is about a pool"]),
                (["--device", "memory", "--fio", "on"], ["--fio on needs a file"]),
                (["--device-bytes", "8M"], ["--device-bytes needs --device"]),
                (["--settle", "3"], ["--settle needs --device"]),
                (["--device", "memory", "--settle", "soon"], ["--settle", "soon"]),
                (["--suite", "drive"], ["suite drive needs --device"])):
            with self.subTest(words=words):
                self.assert_fails(2, parts, "microbench", *words)


if __name__ == "__main__":
    main()
