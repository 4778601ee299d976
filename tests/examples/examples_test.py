#!/usr/bin/env python3
"""The examples, run as a newcomer runs them: their results, after a restart and a kill too, and their messages for bad
input.

usage: examples_test.py FOLDER [unittest arguments], with the programs example_NAME in FOLDER
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

FOLDER = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = "The pool, the index: THE pool.\nNaïve pools; pooling 42 times!\n"


class Example(unittest.TestCase):
    """Has a folder of its own on tmpfs (where there is tmpfs), removed afterwards."""

    name = ""

    def setUp(self):
        shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="pmlab-example-", dir=shared_memory)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.pool = os.path.join(self.folder, "pool")

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    def program(self):
        return os.path.join(FOLDER, f"example_{self.name}")

    def run_it(self, *words, given=""):
        return subprocess.run([self.program(), *map(str, words)], input=given.encode(), capture_output=True, timeout=60,
                              check=False)

    def answer(self, *words, given=""):
        done = self.run_it(*words, given=given)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode()

    def assert_refuses(self, part, *words, given=""):
        done = self.run_it(*words, given=given)
        self.assertEqual(done.returncode, 1, done)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(f"{self.name}: error: "), lines)
        self.assertIn(part, lines[0])
        self.assertIn("; ", lines[0], "no remedy")

    def assert_shows_usage(self, *words):
        done = self.run_it(*words)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn(f"usage: {self.name} ", done.stderr.decode())


class WordCount(Example):
    name = "word_count"

    def test_counts_in_byte_order(self):
        text = self.file("text", TEXT.encode())
        self.assertEqual(self.answer(text),
                         "1 42\n1 index\n1 naïve\n2 pool\n1 pooling\n1 pools\n3 the\n1 times\n8 words\n")

    def test_words_with_a_beginning(self):
        self.assertEqual(self.answer("-", "pool", given=TEXT), "2 pool\n1 pooling\n1 pools\n3 words\n")
        self.assertEqual(self.answer("-", "x", given=TEXT), "0 words\n")

    def test_a_large_text(self):
        words = [f"w{random.Random(n).randrange(5000)}" for n in range(50_000)]
        expected = {}
        for word in words:
            expected[word] = expected.get(word, 0) + 1
        lines = [f"{expected[word]} {word}" for word in sorted(expected)]
        self.assertEqual(self.answer(self.file("text", " ".join(words).encode())).splitlines(),
                         [*lines, f"{len(expected)} words"])

    def test_bad_input(self):
        self.assert_refuses("cannot read", os.path.join(self.folder, "none"))
        self.assert_refuses("too long", self.file("text", b"x" * 70_000))
        self.assert_shows_usage()
        self.assertEqual(self.answer(self.file("empty", b"")), "0 words\n")


class SessionStore(Example):
    name = "session_store"

    def test_sessions_survive_a_restart(self):
        self.assertEqual(self.answer(self.pool, "put", "alice", 1000, "cart: 2 books"), "kept\n")
        self.assertEqual(self.answer(self.pool, "get", "alice"), "cart: 2 books\n")
        self.assertEqual(self.answer(self.pool, "get", "bob"), "none\n")
        self.assertEqual(self.answer(self.pool, "put", "alice", 1000, "cart: empty"), "kept\n")
        self.assertEqual(self.answer(self.pool, "get", "alice"), "cart: empty\n")

    def test_sessions_end(self):
        answers = self.answer(self.pool, given="put a 0 x\nput b 1 y\nput c 1000 z\nget a\nget c\nexpire\n").split("\n")
        self.assertEqual(answers[:5], ["kept", "kept", "kept", "none", "z"])
        self.assertIn(answers[5], ("forgot 1", "forgot 2"))
        time.sleep(2.1)
        self.assertEqual(self.answer(self.pool, "get", "b"), "none\n")
        self.assertEqual(self.answer(self.pool, given="expire\nexpire\nget c\n"),
                         f"forgot {2 - int(answers[5][-1])}\nforgot 0\nz\n")

    def test_what_was_answered_survives_a_kill(self):
        with subprocess.Popen([self.program(), self.pool], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            for n in range(500):
                running.stdin.write(f"put user{n % 300} 1000 visit {n}\n".encode())
                running.stdin.flush()
                self.assertEqual(running.stdout.readline(), b"kept\n")
            running.kill()
        asked = "".join(f"get user{n}\n" for n in range(301))
        expected = [f"visit {n + 300 if n < 200 else n}" for n in range(300)]
        self.assertEqual(self.answer(self.pool, given=asked).splitlines(), [*expected, "none"])

    def test_bad_input(self):
        self.assert_refuses("is no command", self.pool, "forget", "alice")
        self.assert_refuses("is no command", self.pool, "get")
        self.assert_refuses("is no number of seconds", self.pool, "put", "alice", "soon", "x")
        self.assert_refuses("is not a pool", self.file("text", b"no pool"), "get", "alice")
        self.assert_refuses("check that the folder exists", os.path.join(self.folder, "no/pool"), "get", "alice")
        self.assert_shows_usage()


class OwnMedium(Example):
    name = "own_medium"

    def test_counts_the_fences_of_inserts(self):
        lines = self.answer().splitlines()
        self.assertEqual(lines[0], "cceh       1.00 fences per insert")
        of_a_tree = re.fullmatch(r"fast_fair  (\d\.\d\d) fences per insert", lines[1])
        # One for each insert, and those of splits and shifts across lines.
        self.assertGreater(float(of_a_tree[1]), 1)
        self.assertLess(float(of_a_tree[1]), 3)

    def test_the_page_shows_the_example(self):
        source = (ROOT / "examples" / "own_medium.cpp").read_text()
        shown = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "adding-a-medium.md").read_text(), re.S)
        self.assertEqual(shown, [re.search(rf"// \[{part}\]\n(.*?)// \[{part}\]", source, re.S)[1]
                                 for part in ("medium", "use")])


class SecondaryIndex(Example):
    name = "secondary_index"

    def test_ranges_by_price(self):
        given = "set 7 500\nset 3 200\nset 5 200\nset 9 900\nbetween 200 500\nset 3 600\nbetween 200 500\nprice 3\n"
        self.assertEqual(self.answer(self.pool, given=given),
                         "set\n" * 4 + "3 at 200, 5 at 200, 7 at 500\nset\n5 at 200, 7 at 500\n600\n")
        self.assertEqual(self.answer(self.pool, "between", 0, 2**32 - 1), "5 at 200, 7 at 500, 3 at 600, 9 at 900\n")
        self.assertEqual(self.answer(self.pool, "between", 901, 1000), "none\n")
        self.assertEqual(self.answer(self.pool, "price", 4), "none\n")

    def test_many_articles_and_a_kill(self):
        source = random.Random(1)
        prices = {}
        with subprocess.Popen([self.program(), self.pool], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            for _ in range(2000):
                number, price = source.randrange(400), source.randrange(100)
                running.stdin.write(f"set {number} {price}\n".encode())
                running.stdin.flush()
                self.assertEqual(running.stdout.readline(), b"set\n")
                prices[number] = price
            running.kill()
        expected = sorted((price, number) for number, price in prices.items() if 20 <= price <= 60)
        self.assertEqual(self.answer(self.pool, "between", 20, 60),
                         ", ".join(f"{number} at {price}" for price, number in expected) + "\n")

    def test_bad_input(self):
        self.assert_refuses("is no command", self.pool, "set", "1")
        self.assert_refuses("is not a number", self.pool, "set", "one", "2")
        self.assert_refuses("is too large", self.pool, "price", 2**32)
        self.assert_refuses("is not a pool", self.file("text", b"no pool"), "price", 1)
        self.assert_shows_usage()


class Orders(Example):
    name = "orders"

    def test_orders_stay(self):
        self.assertEqual(self.answer(self.pool, "add", 300, 7, 2, 999), "added\n")
        self.assertEqual(self.answer(self.pool, "add", 5, 8, 1, 100), "added\n")
        self.assertEqual(self.answer(self.pool, "add", 300, 1, 1, 1), "exists\n")
        self.assertEqual(self.answer(self.pool, "show", 300), "300: 2 of article 7 at 999 cents\n")
        self.assertEqual(self.answer(self.pool, "show", 4), "none\n")
        self.assertEqual(self.answer(self.pool, "from", 0),
                         "5: 1 of article 8 at 100 cents\n300: 2 of article 7 at 999 cents\n")
        self.assertEqual(self.answer(self.pool, "cancel", 5), "cancelled\n")
        self.assertEqual(self.answer(self.pool, "cancel", 5), "none\n")
        self.assertEqual(self.answer(self.pool, "from", 0), "300: 2 of article 7 at 999 cents\n")

    def test_bad_input(self):
        self.assert_refuses("is no command", self.pool, "drop", "1")
        self.assert_refuses("is not a number", self.pool, "show", "one")
        self.assert_refuses("is not a pool", self.file("text", b"no pool"), "show", 1)
        self.assert_shows_usage(self.pool)


class CachedFastFair(Example):
    name = "cached_fast_fair"

    def test_the_cache_answers_what_is_read_often(self):
        source = random.Random(1)
        writes = [f"{key} {key * key}" for key in range(10_000)]
        # Nine of ten reads are of one key in a hundred.
        reads = [str(source.randrange(100 if source.random() < 0.9 else 20_000)) for _ in range(50_000)]
        found = sum(int(key) < 10_000 for key in reads)
        said = self.answer(self.pool, self.file("log", "\n".join(writes + reads).encode()))
        head, hits = said.removesuffix(" in the cache\n").rsplit(", ", 1)
        self.assertEqual(head, f"10000 writes, 50000 reads, {found} found")
        self.assertGreater(int(hits), 25_000)
        # The tree is still there, the cache is empty again: the first read of a key uses the tree.
        self.assertRegex(self.answer(self.pool, "-", given="\n".join(map(str, range(1000)))),
                         r"^0 writes, 1000 reads, 1000 found, 0 in the cache\n$")

    def test_bad_input(self):
        self.assert_refuses("cannot read", self.pool, os.path.join(self.folder, "none"))
        self.assert_refuses("is not a number", self.pool, "-", given="x\n")
        self.assert_refuses("is too small", self.pool, "-", 0)
        self.assert_refuses("is not a pool", self.file("text", b"no pool"), "-")
        self.assert_shows_usage(self.pool)


class BlockLog(Example):
    name = "block_log"

    def setUp(self):
        super().setUp()
        on_disk = tempfile.TemporaryDirectory(prefix="pmlab-example-")
        self.addCleanup(on_disk.cleanup)
        self.log = os.path.join(on_disk.name, "log")

    def test_lines_stay(self):
        self.assertEqual(self.answer(self.log, "append", "one", "two"), "1\n2\n")
        self.assertEqual(self.answer(self.log, "append", "three"), "3\n")
        self.assertEqual(self.answer(self.log, "show"), "1 one\n2 two\n3 three\n")

    def test_a_torn_line_was_never_there(self):
        self.answer(self.log, "append", "one", "two" * 1000)
        with open(self.log, "r+b") as f:
            f.seek(4096 + 2048)  # what a power failure may leave: half of the sectors
            f.write(bytes(2048))
        self.assertEqual(self.answer(self.log, "show"), "1 one\n")
        self.assertEqual(self.answer(self.log, "append", "zwei"), "2\n")
        self.assertEqual(self.answer(self.log, "show"), "1 one\n2 zwei\n")

    def test_what_was_answered_survives_a_kill(self):
        words = [f"line {n}" for n in range(250)]
        with subprocess.Popen([self.program(), self.log, "append", *words], stdout=subprocess.PIPE) as running:
            for n in range(100):
                self.assertEqual(running.stdout.readline(), f"{n + 1}\n".encode())
            running.kill()
            answered = 100 + len(running.stdout.read().splitlines())
        lines = self.answer(self.log, "show").splitlines()
        self.assertGreaterEqual(len(lines), answered)
        self.assertEqual(lines, [f"{n + 1} line {n}" for n in range(len(lines))])

    def test_bad_input(self):
        self.assert_refuses("is too long", self.log, "append", "x" * 5000)
        self.assert_refuses("is full", self.log, "append", *["x"] * 257)
        self.assert_refuses("cannot make", os.path.join(self.folder, "none/log"), "show")
        self.assert_refuses("at least", self.file("text", b"no log"), "show")
        self.assert_refuses("not preallocated", self.sparse(), "show")
        self.assert_shows_usage(self.log)

    def sparse(self):
        path = self.log + ".sparse"
        with open(path, "wb") as f:
            f.truncate(1 << 20)
        return path


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
