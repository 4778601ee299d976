"""Pool files: nothing that was there is lost, nothing that was made is left."""
import os
import signal
import subprocess
import time

from program import PMLAB, ProgramTest, main, there

SMALL = ("--records", "20k", "--operations", "20k", "--quiet")


class Pools(ProgramTest):
    def test_pools_go_when_the_run_is_over(self):
        indexes = there("cceh", "fast_fair", "pmdk_hash")
        done = self.assert_works("bench", "--index", ",".join(indexes), "--medium", "pmem:" + self.file("p"),
                                 "--threads", "1,2", *SMALL)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn(f"/ {indexes[-1]}", done.stdout)

    def test_several_indexes_have_a_pool_each_beside_the_path(self):
        indexes = there("cceh", "fast_fair", "pmdk_radix")
        self.assert_works("bench", "--index", ",".join(indexes), "--medium", "pmem:" + self.file("p"), "--keep", *SMALL)
        self.assertEqual(sorted(os.listdir(self.folder)), [f"p.{index}" for index in indexes])

    def test_a_file_that_is_there_is_left_alone(self):
        path = self.write("thesis.txt", b"ten years of work")
        medium = ("bench", "--index", "cceh", "--medium", "pmem:" + path, *SMALL)
        self.assert_fails(2, [path, "--reuse", "--overwrite"], *medium)
        self.assert_fails(2, [path, "not a pool"], *medium, "--overwrite")
        self.assert_fails(2, [path], *medium, "--reuse")
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"ten years of work")

    def test_keep_then_reuse_then_overwrite(self):
        bench = ("bench", "--index", "fast_fair", "--medium", "pmem:" + self.file("p"), *SMALL)
        self.assert_works(*bench, "--keep")
        done = self.assert_works(*bench, "--reuse", "--verify", "--phases", "read,update,scan,insert,erase")
        self.assertIn("the pool held the 20000 entries already", done.stdout)
        self.assertEqual(os.listdir(self.folder), ["p"], "what the run did not make it does not remove")
        self.assert_fails(2, ["20000 entries", "30000", "--records 20000"], "bench", "--index", "fast_fair", "--medium",
                          "pmem:" + self.file("p"), "--reuse", "--records", "30k", "--quiet")
        self.assert_fails(2, [self.file("p"), "exists already"], *bench)
        self.assert_works(*bench, "--overwrite")
        self.assertEqual(os.listdir(self.folder), [])

    def test_reuse_adds_nothing(self):
        pool = ("--medium", "pmem:" + self.file("p"))
        for index in there("cceh", "pmdk_hash", "cache(cceh)"):
            self.assert_fails(2, ["no pool", self.file("p")], "bench", "--index", index, *pool, "--reuse", *SMALL)
        self.assertEqual(os.listdir(self.folder), [])
        self.assert_works("bench", "--index", "cceh", *pool, "--keep", *SMALL)
        before = self.assert_works("pool", "info", self.file("p")).stdout
        for index in ("fast_fair", "cache(fast_fair)", "hybrid_index_plus"):
            self.assert_fails(2, [self.file("p"), "'cceh' (cceh)", "no fast_fair", "--index cceh"], "bench", "--index",
                              index, *pool, "--reuse", *SMALL)
        self.assert_fails(2, ["'cceh' (cceh)"], "bench", "--index", "strings(cceh)", *pool, "--reuse", *SMALL)
        self.assert_fails(2, ["no fast_fair"], "bench", "--index", "fast_fair", "--medium",
                          "counted:pmem:" + self.file("p"), "--reuse", *SMALL)
        self.assertEqual(self.assert_works("pool", "info", self.file("p")).stdout, before)
        self.assert_works("bench", "--index", "cache(cceh)", *pool, "--reuse", *SMALL, "--phases", "read")

    def test_a_pool_in_use_is_not_overwritten(self):
        bench = ("bench", "--index", "cceh", "--medium", "pmem:" + self.file("p"), "--quiet", "--records", "20k")
        with subprocess.Popen([PMLAB, *bench, "--seconds", "100", "--phases", "read"]) as run:
            deadline = time.monotonic() + 60
            while not os.path.exists(self.file("p")) and time.monotonic() < deadline:
                time.sleep(0.05)
            same = os.stat(self.file("p")).st_ino
            self.assert_fails(2, [self.file("p"), "in use"], *bench, "--overwrite")
            self.assertEqual(os.stat(self.file("p")).st_ino, same)
            run.send_signal(signal.SIGINT)
            run.wait(60)

    def test_a_pool_that_cannot_be_opened_is_named_and_left(self):
        self.assert_works("bench", "--index", "cceh", "--medium", "pmem:" + self.file("p"), "--keep", *SMALL)
        reuse = ("--medium", "pmem:" + self.file("p"), "--reuse", *SMALL)
        for index in there("pmdk_hash"):
            self.assert_fails(2, [self.file("p"), index], "bench", "--index", index, *reuse)
        os.truncate(self.file("p"), os.path.getsize(self.file("p")) // 2)
        self.assert_fails(2, [self.file("p")], "bench", "--index", "cceh", *reuse)
        self.assertEqual(os.listdir(self.folder), ["p"])

    def test_a_pool_that_is_full_in_the_middle_of_the_load(self):
        for index in there("cceh", "fast_fair", "pmdk_hash", "pmdk_skiplist", "pmdk_radix"):
            with self.subTest(index=index):
                self.assert_fails(1, ["full", "of 10000000 records were loaded", "--pool-size"], "bench", "--index",
                                  index, "--medium", "pmem:" + self.file("p"), "--pool-size", "32M", "--records", "10M",
                                  "--quiet")
                self.assertEqual(os.listdir(self.folder), [])

    def test_an_interrupt_removes_the_pools(self):
        indexes = there("cceh", "fast_fair", "pmdk_hash")
        with subprocess.Popen([PMLAB, "bench", "--index", ",".join(indexes), "--medium", "pmem:" + self.file("p"),
                               "--records", "100k", "--seconds", "100", "--phases", "read", "--quiet"]) as run:
            deadline = time.monotonic() + 60
            while len(os.listdir(self.folder)) < len(indexes) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.3)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(60), -signal.SIGINT)
        self.assertEqual(os.listdir(self.folder), [])

    def test_reopen_finds_everything_again(self):
        indexes = there("cceh", "fast_fair", "pmdk_hash", "pmdk_skiplist", "pmdk_radix")
        done = self.assert_works("bench", "--index", ",".join(indexes), "--medium",
                                 "pmem:" + self.file("p"), "--phases", "insert,reopen,read,update,erase", "--repeat",
                                 "2", "--verify", *SMALL)
        self.assertEqual(done.stdout.count("  reopen  "), len(indexes), done.stdout)


if __name__ == "__main__":
    main()
