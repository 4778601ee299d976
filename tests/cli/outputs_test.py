"""Outputs: files are replaced whole; what is no file is written through; what could not be written is an error."""
import csv
import json
import os
import resource
import signal
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

    def test_what_cannot_be_written_is_known_before_the_work(self):
        many = ("bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1000G", "--phases", "read")
        with open(self.file("closed"), "w", encoding="utf-8"):
            pass
        for path, part in ((self.folder, "folder"), (self.file("none/r.json"), "make it first"),
                           ("/dev/full", "No space left"),
                           (self.file("x" * 256), "File name too long"), (self.file("closed/r.json"), "no folder")):
            for option in ("--json", "--csv"):
                with self.subTest(path=path, option=option):
                    self.assert_fails(2, [part], *many, option, path)
        self.assert_fails(2, ["--json and --csv would both write"], *many, "--json", self.file("a"), "--csv",
                          os.path.join(self.folder, ".", "a"))
        os.symlink("a", self.file("b"))
        self.assert_fails(2, ["would both write"], *many, "--json", self.file("a"), "--csv", self.file("b"))
        done = subprocess.run([PMLAB, *many, "--json", "-"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=False, preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 2)
        self.assertIn("standard output: it is closed", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["b", "closed"])

    def test_a_file_system_that_is_full_is_known_before_the_work(self):
        def little():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([PMLAB, "bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1000G",
                               "--phases", "read", "--json", self.file("r.json")], capture_output=True, text=True,
                              check=False, preexec_fn=little)
        self.assertEqual(done.returncode, 2)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_names_that_are_no_utf8_are_escaped(self):
        pool = os.fsencode(self.file("m")) + b"\xe4r.pool"
        done = subprocess.run([PMLAB, *SMALL, "--medium", b"pmem:" + pool, "--json", self.file("r.json")],
                              capture_output=True, check=False, env=os.environ | {"LC_ALL": "C"})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.file("r.json"), encoding="utf-8") as f:
            self.assertIn("m\\xe4r.pool", json.load(f)["options"]["command"])

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

    def test_a_fifo_without_a_reader_is_waited_for_and_said(self):
        path = self.file("fifo")
        os.mkfifo(path)
        for option in ("--json", "--csv"):
            with self.subTest(option=option), subprocess.Popen([PMLAB, *SMALL, option, path], stdout=subprocess.DEVNULL,
                                                               stderr=subprocess.PIPE, text=True) as program:
                self.assertEqual(program.stderr.readline(), f"pmlab: waiting for a reader of {path}\n")
                with open(path, encoding="utf-8") as f:
                    self.assertIn("cceh", f.read())
                self.assertEqual(program.wait(60), 0)
        with subprocess.Popen([PMLAB, *SMALL, "--json", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as program:
            self.assertIn("waiting for a reader", program.stderr.readline())
            program.send_signal(signal.SIGINT)
            self.assertEqual(program.wait(60), -signal.SIGINT)

    def test_what_is_no_result_is_not_replaced(self):
        """A pool, an archive or another text in the place of a result was lost."""
        pool = self.write("pool", b"PMEMOBJ\0" + bytes(8192))
        text = self.write("text", b"# notes\n")
        result = self.write("r.json", b'{"results": []}')
        for path, command in ((pool, (*SMALL, "--json")), (pool, (*SMALL, "--csv")), (text, (*SMALL, "--json")),
                              (pool, ("microbench", "--json")), (text, ("microbench", "--json")),
                              (text, ("stores", "volumes", "--store", "raw", "--json")),
                              (text, ("stores", "pairs", "--store", "kv_ssd", "--json")),
                              (pool, ("compare", result, result, "--json")),
                              (text, ("compare", result, result, "--json")),
                              (text, ("claims", "--json")), (text, ("claims", "--results"))):
            with self.subTest(path=path, command=command[0]):
                with open(path, "rb") as f:
                    before = f.read()
                self.assert_fails(2, [path, "nothing was overwritten"], *command, path)
                with open(path, "rb") as f:
                    self.assertEqual(f.read(), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["pool", "r.json", "text"])
        self.assert_works(*SMALL, "--json", result, "--csv", text)

    def test_a_link_stays_a_link(self):
        target = self.write("target.json", b"{}")
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

    def test_a_path_to_standard_output_is_standard_output(self):
        # A pipe by its name, and the file that the shell opened.
        path = self.file("r.json")
        with open(path, "wb") as out:
            for name, to in (("/dev/stdout", subprocess.PIPE), (path, out)):
                with self.subTest(name):
                    done = subprocess.run([PMLAB, *SMALL, "--json", name], stdout=to, stderr=subprocess.PIPE,
                                          check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(b" M/s ", done.stderr)
                    if to == subprocess.PIPE:
                        self.assert_is_results(done.stdout)
        with open(path, encoding="utf-8") as f:
            self.assert_is_results(f.read())
        with open(path, "wb") as out:
            done = subprocess.run([PMLAB, "compare", path, path, "--json", path], stdout=out, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual((done.returncode, done.stderr.count(b"pmlab: error:")), (1, 1), "the shell emptied it")
        self.assert_fails(2, ["--json - and --csv /dev/stdout would both"], *SMALL, "--json", "-", "--csv",
                          "/dev/stdout")

    def test_closed_streams(self):
        for words in ((*SMALL, "--json", self.file("r.json")), ("list",), ("compare", "--help"), ("run", "--list")):
            for closed in ((1,), (1, 2), (0, 1, 2)):
                with self.subTest(words=words, closed=closed):
                    done = subprocess.run([PMLAB, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                          check=False, preexec_fn=lambda numbers=closed: [os.close(n) for n in numbers])
                    self.assertEqual(done.returncode, 1)
                    if 2 not in closed:
                        self.assertIn(b"cannot write to standard output", done.stderr)
                        self.assertNotIn(b"Traceback", done.stderr)
        with open(self.file("r.json"), encoding="utf-8") as f:
            self.assert_is_results(f.read())

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_standard_error_ends_nothing_early(self):
        with open("/dev/full", "wb", buffering=0) as full:
            done = subprocess.run([PMLAB, "list"], stdout=full, stderr=full, check=False)
        self.assertEqual(done.returncode, 1)

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
        done = self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1k",
                                 "--phases", "update", "--medium", "counted:dram", "--csv", "-")
        update = next(row for row in csv.DictReader(done.stdout.splitlines()) if row["phase"] == "update")
        self.assertEqual((update["flushes"], update["device_lines_written"], update["media_bytes_written"]),
                         ("1", "1", "256"))

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
