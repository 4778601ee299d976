"""Limits of the process (ulimit): an error with the cause, nothing left behind, and no verdict about an index."""
import os
import resource
import unittest

from program import ProgramTest, main, pmlab


def limited(limit, most):
    return lambda: resource.setrlimit(limit, (most, most))


class Limits(ProgramTest):
    def assert_refused(self, parts, limit, most, *words):
        done = pmlab(*words, preexec_fn=limited(limit, most))
        self.assertIn(done.returncode, (1, 2), done.stdout + done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("pmlab: error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn("; ", errors[0], "no remedy")
        for part in parts:
            self.assertIn(part, errors[0])
        return done

    def test_a_limit_on_the_size_of_files(self):
        """It was a signal, and left files behind."""
        dump = self.write("text", b'# pmlab-dump 1 {"root":"a","index":"skip_list_pm"}\n1 1\n')
        small = ("--quiet", "--index", "cceh", "--records", "1k", "--operations", "1k", "--phases", "read")
        for words in (("bench", *small, "--medium", "pmem:" + self.file("pool")),
                      ("stores", "volumes", "--quiet", "--store", "raw", "--device", "file:" + self.file("drive")),
                      ("pool", "load", dump, self.file("pool"))):
            with self.subTest(words=words[:2]):
                self.assert_refused(["File too large"], resource.RLIMIT_FSIZE, 1 << 20, *words)
                self.assertEqual(os.listdir(self.folder), ["text"])

    def test_a_limit_on_the_stack(self):
        """It was a fault of the memory (SIGSEGV)."""
        for words in (("list",), ("bench", "--quiet", "--index", "cceh", "--records", "1k")):
            self.assert_refused(["512 KiB of stack", "ulimit -s 8192"], resource.RLIMIT_STACK, 512 << 10, *words)

    def test_a_limit_on_open_files_is_named(self):
        pool = self.file("pool")
        self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1k", "--phases",
                          "read", "--medium", "pmem:" + pool, "--keep")
        self.assert_refused(["Too many open files", "ulimit -n"], resource.RLIMIT_NOFILE, 5, "pool", "info", pool)

    def test_too_little_memory_for_a_pool_is_named(self):
        """The remedy was to check that it is a pool."""
        pool = self.file("pool")
        self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "1k", "--operations", "1k", "--phases",
                          "read", "--medium", "pmem:" + pool, "--pool-size", "1G", "--keep")
        done = self.assert_refused(["Cannot allocate memory", "ulimit -v"], resource.RLIMIT_AS, 800 << 20,
                                   "pool", "info", pool)
        self.assertNotIn("check that it is", done.stderr)

    def test_too_little_memory_is_no_violation(self):
        """It was one: "an operation throws"."""
        done = self.assert_refused(["cceh cannot be verified", "cannot map its memory", "ulimit -v"],
                                   resource.RLIMIT_AS, 64 << 20,
                                   "verify", "--quiet", "--index", "cceh", "--rounds", "1")
        self.assertNotIn("VIOLATION", done.stdout)


if __name__ == "__main__":
    main()
