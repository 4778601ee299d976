"""Outputs: files are replaced whole; what is no file is written through; what could not be written is an error."""
import csv
import json
import os
import stat
import subprocess
import threading
import unittest

from program import DOCS, PMLAB, ProgramTest, main, on_terminal, pmlab

SMALL = ("bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1k", "--phases", "read")


class Outputs(ProgramTest):
    def assert_is_results(self, text):
        self.assertEqual(json.loads(text)["results"][0]["index"], "cceh")

    def test_a_device_stays_a_device(self):
        self.assert_works(*SMALL, "--json", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_device_is_an_error_and_stays_a_device(self):
        done = pmlab(*SMALL, "--json", "/dev/full")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("pmlab: error: ", done.stderr)
        self.assertIn("/dev/full", done.stderr)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_a_fifo_gets_the_document(self):
        path = self.file("fifo")
        os.mkfifo(path)
        read = []

        def read_all():
            with open(path, encoding="utf-8") as f:
                read.append(f.read())

        reader = threading.Thread(target=read_all, daemon=True)
        reader.start()
        self.assert_works(*SMALL, "--json", path)
        reader.join(60)
        self.assert_is_results(read[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))

    def test_a_link_stays_a_link(self):
        target = self.write("target.json", b"old")
        os.symlink("target.json", self.file("link.json"))
        self.assert_works(*SMALL, "--json", self.file("link.json"))
        self.assertTrue(os.path.islink(self.file("link.json")))
        with open(target, encoding="utf-8") as f:
            self.assert_is_results(f.read())
        self.assertEqual(sorted(os.listdir(self.folder)), ["link.json", "target.json"])

    def test_a_dash_is_standard_output_and_the_table_goes_elsewhere(self):
        done = self.assert_works(*SMALL, "--json", "-")
        self.assert_is_results(done.stdout)
        self.assertIn(" M/s ", done.stderr)
        self.assertFalse(os.path.exists("-"))

    def test_a_table_with_commas(self):
        done = self.assert_works(*SMALL, "--index", "cache(cceh,mode=serial)", "--repeat", "2", "--csv", "-", "--json",
                                 self.file("r.json"))
        rows = list(csv.DictReader(done.stdout.splitlines()))
        with open(self.file("r.json"), encoding="utf-8") as f:
            results = json.load(f)["results"]
        self.assertEqual(len(rows), len(results))
        for row, result in zip(rows, results):
            self.assertEqual((row["index"], row["phase"], row["repeat"]),
                             (result["index"], result["phase"], str(result["repeat"])))
            self.assertEqual(float(row["throughput_ops_per_s"]), result["throughput_ops_per_s"])
            self.assertEqual(float(row["latency_p99_9_ns"]), result["latency_ns"]["p99_9"])
            self.assertEqual((row["flushes"], row["media_bytes_read"], row["invalid"]), ("", "", ""))
        self.assertIn(" M/s ", done.stderr)
        with open(os.path.join(DOCS, "results-schema.md"), encoding="utf-8") as f:
            documented = f.read()
        for column in rows[0]:
            self.assertIn(f"`{column}`", documented)
        self.assert_fails(2, ["--json -", "--csv -"], *SMALL, "--json", "-", "--csv", "-")

    def test_the_table_with_commas_has_what_is_counted(self):
        done = self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1k", "--phases",
                                 "update", "--medium", "counted:dram", "--csv", "-")
        update = next(row for row in csv.DictReader(done.stdout.splitlines()) if row["phase"] == "update")
        self.assertEqual((update["flushes"], update["device_lines_written"], update["media_bytes_written"]), ("1", "1", "256"))

    def test_colours_on_a_terminal_only(self):
        wrong = ("bench", "--index", "ceh")
        on = os.environ | {"TERM": "xterm"}
        self.assertIn("\x1b[1;31mpmlab: error:\x1b[0m ", on_terminal(*wrong, env=on)[2])
        self.assertNotIn("\x1b", on_terminal(*wrong, env=on | {"NO_COLOR": "1"})[2])
        self.assertNotIn("\x1b", on_terminal(*wrong, env=on | {"TERM": "dumb"})[2])
        self.assertNotIn("\x1b", pmlab(*wrong, env=on).stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_standard_output_on_a_full_device_is_an_error(self):
        for arguments in (SMALL, ("list",), ("doctor",), ("--help",), ("--version",), ("help", "bench"),
                          ("run", "--list"), ("claims", "--list"), ("microbench", "--list"),
                          (*SMALL, "--medium", "simulated:aep")):
            with self.subTest(arguments=arguments), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PMLAB, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=240,
                                      check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stderr.count("pmlab: error: "), 1, done.stderr)
                self.assertIn("standard output", done.stderr)


if __name__ == "__main__":
    main()
