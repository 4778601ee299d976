"""`pmlab pod`: processes on one memory, some of which are killed; what it must find; bad input."""
import os
import pathlib
import re
import signal
import subprocess
import time

from program import PMLAB, ProgramTest, main, pmlab

INDEXES = ("shared_dash", "shared_ring", "shared_space", "shared_tree")


class Pod(ProgramTest):
    def run_pod(self, *arguments):
        folder = pathlib.Path(self.file("memories"))
        folder.mkdir(exist_ok=True)
        done = pmlab("pod", "--quiet", "--folder", str(folder), *arguments)
        self.left = sorted(path.name for path in folder.iterdir())
        for path in folder.iterdir():
            path.unlink()
        return done

    def counts(self, output):
        return {name: int(count) for count, name in re.findall(
            r"(\d+) (rounds|operations|hosts killed|in the middle|joined|lines came or went)", output)}

    def test_kills_lose_nothing(self):
        for index in INDEXES:
            for mode in ((), ("--coherence", "partial"), ("--coherence", "partial", "--stale-copies"),
                         ("--coherence", "none", "--stale-copies")):
                with self.subTest(index=index, mode=mode):
                    done = self.run_pod("--index", index, "--rounds", "4", "--kills", "2", "--operations", "1500",
                                        *mode)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                    counts = self.counts(done.stdout)
                    self.assertEqual(counts["rounds"], 4)
                    self.assertEqual(counts["hosts killed"], 8)
                    # Two of four hosts do all of theirs.
                    self.assertGreaterEqual(counts["operations"], 4 * 2 * 1500)
                    self.assertEqual("lines came or went" in counts, "--stale-copies" in mode)
                    self.assertIn("no violation", done.stdout)
                    self.assertEqual(self.left, [])

    def test_what_is_left_out_is_found(self):
        for index in ("shared_dash", "shared_space", "shared_tree"):
            for omitted in ("refresh", "publish"):
                with self.subTest(index=index, omitted=omitted):
                    done = self.run_pod("--index", index, "--coherence", "partial", "--stale-copies", "--omit", omitted,
                                        "--rounds", "5", "--operations", "1500")
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertRegex(done.stdout, r"violation in round \d\n  \S")
                    self.assertEqual(len(self.left), 1)
                    self.assertIn(self.left[0], done.stdout.splitlines()[-1])

    def test_without_kills_no_host_dies(self):
        done = self.run_pod("--rounds", "2", "--kills", "0", "--hosts", "2", "--operations", "500")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "shared_tree: 2 rounds, 2000 operations: no violation\n")

    def test_a_signal_leaves_no_file_and_no_process(self):
        folder = pathlib.Path(self.file("memories"))
        folder.mkdir()
        with subprocess.Popen([os.path.abspath(PMLAB), "pod", "--quiet", "--folder", str(folder), "--rounds", "1000",
                               "--operations", "100k"]) as running:
            while not list(folder.iterdir()):
                time.sleep(0.01)
            time.sleep(0.2)
            running.send_signal(signal.SIGTERM)
            self.assertEqual(running.wait(30), -signal.SIGTERM)
        # The hosts are killed with it.
        for _ in range(300):
            if not list(folder.iterdir()):
                break
            time.sleep(0.1)
        self.assertEqual(list(folder.iterdir()), [])

    def test_bad_input(self):
        for arguments, text in (
                (["--index", "cceh"], "index 'cceh' is not made to be shared by hosts; use shared_dash, shared_ring, "),
                (["--hosts", "1"], "--hosts"), (["--hosts", "9"], "--hosts"),
                (["--hosts", "2", "--kills", "2"], "--kills is 2, of 2 hosts; give 0 to 1"),
                (["--coherence", "some"], "--coherence 'some' is unknown; use full, partial, none"),
                (["--coherence", "none"], "give --stale-copies, too"),
                (["--stale-copies"], "--stale-copies has no effect with --coherence full"),
                (["--omit", "refresh"], "--omit is about --stale-copies"),
                (["--coherence", "none", "--stale-copies", "--omit", "all"], "--omit 'all' is unknown"),
                (["--operations", "3", "--stays", "4"], "--stays is 4, with 3 operations of a host"),
                (["--operations", "0"], "--operations"), (["--keys", "1G"], "--keys"),
                (["--folder", "/no/such/folder"], "/no/such/folder is no folder")):
            with self.subTest(arguments):
                done = pmlab("pod", *arguments)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(text, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    main()
