"""Outputs: files are replaced whole; what is no file is written through; what could not be written is an error."""
import json
import os
import stat
import subprocess
import threading
import unittest

from program import PMLAB, ProgramTest, main, pmlab

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
