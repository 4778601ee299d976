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
import socket
import struct
import subprocess
import sys
import tempfile
import threading
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


class NbdClient:
    """The NBD protocol, fixed newstyle, as a client. Requests may be sent before the answers of others are read."""

    READ, WRITE, DISCONNECT, FLUSH, TRIM, WRITE_ZEROES = 0, 1, 2, 3, 4, 6
    FUA = 1

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(path)
        self._magic, options, self.server_flags = struct.unpack(">8sQH", self._receive(18))
        assert (self._magic, options) == (b"NBDMAGIC", 0x49484156454f5054)
        self._socket.sendall(struct.pack(">I", 3))

    def close(self):
        self._socket.close()

    def _receive(self, count):
        parts = []
        while count:
            part = self._socket.recv(count)
            if not part:
                raise ConnectionError("the server has gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def option(self, number, data=b""):
        """The answers: [(kind, data)], the last one ends them."""
        self._socket.sendall(b"IHAVEOPT" + struct.pack(">II", number, len(data)) + data)
        answers = []
        while not answers or answers[-1][0] in (2, 3):
            magic, to, kind, length = struct.unpack(">QIII", self._receive(20))
            assert (magic, to) == (0x3e889045565a9, number)
            answers.append((kind, self._receive(length)))
        return answers

    def go(self, name):
        return self.option(7, struct.pack(">I", len(name)) + name.encode() + struct.pack(">H", 0))

    def export_name(self, name):
        """(size, flags), as older clients ask for them."""
        self._socket.sendall(b"IHAVEOPT" + struct.pack(">II", 1, len(name)) + name.encode())
        return struct.unpack(">QH", self._receive(10))

    def send(self, command, cookie, offset=0, length=0, data=b"", flags=0):
        self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, command, cookie, offset, length or len(data))
                             + data)

    def answer(self, bytes_to_read=0):
        """(cookie, error, data)"""
        magic, failed, cookie = struct.unpack(">IIQ", self._receive(16))
        assert magic == 0x67446698
        return cookie, failed, b"" if failed else self._receive(bytes_to_read)

    def do(self, command, offset=0, length=0, data=b"", flags=0):
        self.send(command, 7, offset, length, data, flags)
        cookie, failed, read = self.answer(length if command == self.READ else 0)
        assert cookie == 7
        return read if command == self.READ and not failed else failed


class KvSsd(Example):
    name = "kv_ssd"

    def setUp(self):
        super().setUp()
        on_disk = tempfile.TemporaryDirectory(prefix="pmlab-example-")
        self.addCleanup(on_disk.cleanup)
        self.drive = os.path.join(on_disk.name, "drive")

    def test_pairs_stay(self):
        self.assertEqual(self.answer(self.drive + "?size=64M&memory=64M", "put", "user:17", "Ada"), "")
        self.answer(self.drive, "put", "user:18", "Grace")
        self.answer(self.drive, "put", "item:1", "a book")
        self.assertEqual(self.answer(self.drive, "get", "user:17"), "Ada\n")
        self.answer(self.drive, "put", "user:17", "Ada Lovelace")
        self.assertEqual(self.answer(self.drive, "get", "user:17"), "Ada Lovelace\n")
        self.assertEqual(sorted(self.answer(self.drive, "list", "user").split()), ["user:17", "user:18"])
        self.answer(self.drive, "delete", "user:18")
        self.assertEqual(self.answer(self.drive, "list", "user"), "user:17\n")
        self.assert_refuses("no key user:18", self.drive, "get", "user:18")

    def test_bad_input(self):
        self.assert_refuses("there is no device", self.drive, "get", "user:17")
        self.answer(self.drive + "?size=64M&memory=64M", "put", "user:17", "Ada")
        self.assert_refuses("0x00f", self.drive, "put", "abc", "a key of 3 bytes")
        self.assert_refuses("0x010", self.drive, "delete", "user:18")
        self.assert_refuses("4 bytes", self.drive, "list", "use")
        os.rename(self.drive + ".memory", self.drive + ".gone")
        self.assert_refuses("has no memory file", self.drive, "get", "user:17")


class BlockDevice(Example):
    name = "block_device"
    BLOCK, CHUNK = 4096, 256  # bytes, blocks

    def setUp(self):
        super().setUp()
        on_disk = tempfile.TemporaryDirectory(prefix="pmlab-example-")
        self.addCleanup(on_disk.cleanup)
        self.drive = os.path.join(on_disk.name, "drive")
        self.socket = os.path.join(self.folder, "socket")
        self.running = None
        self.addCleanup(self.kill)

    def start(self, *volumes):
        self.begin(*volumes)
        return self.wait_until_it_serves()

    def begin(self, *volumes):
        self.running = subprocess.Popen([self.program(), self.pool, self.drive, "serve", self.socket, *volumes],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_until_it_serves(self):
        said = []
        for line in self.running.stdout:
            said.append(line.decode())
            if said[-1].startswith("serving"):
                return said
        self.fail(f"it ended: {self.running.stderr.read().decode()}")

    def kill(self):
        if self.running:
            self.running.kill()
            self.running.wait()
            self.running.stdout.close()
            self.running.stderr.close()
            self.running = None

    def client(self, volume=None):
        made = NbdClient(self.socket)
        self.addCleanup(made.close)
        if volume:
            self.assertEqual(made.go(volume)[-1], (1, b""))
        return made

    def assert_checks(self):
        self.assertRegex(self.answer(self.pool, self.drive, "check"), r"^\d+ chunks, \d+ bytes free, all well\n$")

    def test_speaks_nbd(self):
        self.assertEqual(self.start("a=1M", "b=8192"), ["a: 1048576 bytes\n", "b: 8192 bytes\n",
                                                        f"serving at {self.socket}\n"])
        client = self.client()
        self.assertEqual(client.server_flags, 3)
        self.assertEqual(client.option(3), [(2, b"\0\0\0\1a"), (2, b"\0\0\0\1b"), (1, b"")])
        self.assertEqual(client.option(99), [(2**31 + 1, b"")])
        self.assertEqual(client.go("c"), [(2**31 + 6, b"")])
        flags = 1 | 4 | 8 | 32 | 64 | 256
        self.assertEqual(client.go("b"), [(3, struct.pack(">HQH", 0, 8192, flags)),
                                          (3, struct.pack(">HIII", 3, 4096, 4096, 32 << 20)), (1, b"")])
        n = NbdClient
        block = b"x" * 4096
        self.assertEqual(client.do(n.READ, 0, 8192), bytes(8192))
        self.assertEqual(client.do(n.WRITE, 4096, data=block, flags=n.FUA), 0)
        self.assertEqual(client.do(n.READ, 0, 8192), bytes(4096) + block)
        self.assertEqual(client.do(n.FLUSH), 0)
        self.assertEqual(client.do(n.WRITE, 8192, data=block), 28)
        self.assertEqual(client.do(n.READ, 8192, 4096), 22)
        self.assertEqual(client.do(n.WRITE, 512, data=block), 22)
        self.assertEqual(client.do(n.READ, 4096, 512), 22)
        self.assertEqual(client.do(77), 22)
        self.assertEqual(client.do(n.TRIM, 4096, 4096), 0)
        self.assertEqual(client.do(n.READ, 0, 8192), bytes(8192))
        self.assertEqual(client.do(n.WRITE, 0, data=block * 2), 0)
        self.assertEqual(client.do(n.WRITE_ZEROES, 0, 4096), 0)
        other = self.client()
        self.assertEqual(other.export_name("b"), (8192, flags))
        self.assertEqual(other.do(n.READ, 0, 8192), bytes(4096) + block)
        client.send(n.DISCONNECT, 1)
        with self.assertRaises(ConnectionError):
            client.answer()
        self.kill()
        self.assert_checks()

    def test_what_was_answered_survives_kills(self):
        seed = int(os.environ.get("PMLAB_TEST_SEED", time.time_ns() % 1_000_000))
        kills = int(os.environ.get("PMLAB_TEST_KILLS", 32))
        replay = f"replay: PMLAB_TEST_SEED={seed} {sys.executable} {' '.join(sys.argv)} BlockDevice"
        rounds = KillRounds(self, random.Random(seed), replay)
        for number in range(kills):
            rounds.one(number)
        rounds.judge(kills)
        self.kill()
        self.assertGreater(rounds.acknowledged, 4 * kills, replay)
        self.assertGreater(rounds.interrupted, kills, replay)
        self.assert_checks()

    def test_a_kill_while_it_makes_its_files(self):
        for wait in (0.001, 0.005, 0.02, 0.05, 0.1):
            self.begin("a=4M")
            time.sleep(wait)
            self.kill()
        self.start("a=4M")
        self.assertEqual(self.client("a").do(NbdClient.READ, 0, 4 << 20), bytes(4 << 20))

    def test_one_process_at_a_time(self):
        self.start("a=1M")
        self.client("a").do(NbdClient.WRITE, 0, data=b"1" * 4096)
        self.assert_refuses("open", self.pool, self.drive, "serve", self.socket, "a=1M")
        self.assert_refuses("open", self.pool, self.drive, "check")
        self.assert_refuses("is open as a block device already", self.pool + "2", self.drive, "serve",
                            self.socket + "2", "a=1M")
        self.assertEqual(self.client("a").do(NbdClient.READ, 0, 4096), b"1" * 4096, "the first one still serves")

    def test_bad_input(self):
        self.assert_refuses("names no volume", self.pool, self.drive, "serve", self.socket, "a")
        self.assert_refuses("names no volume", self.pool, self.drive, "serve", self.socket, "=1M")
        for size in ("", "0", "1X", "M", "-4096", "2000T", "99999999999999999999"):
            self.assert_refuses("is no size", self.pool, self.drive, "serve", self.socket, f"a={size}")
        self.assert_refuses("multiple of 4096", self.pool, self.drive, "serve", self.socket, "a=5000")
        self.assert_refuses("too long", self.pool, self.drive, "serve", self.folder + "/x" * 100, "a=1M")
        self.assert_refuses("is not a pool", self.file("text", b"no pool"), self.drive, "check")
        self.assert_shows_usage(self.pool)
        self.assert_shows_usage(self.pool, self.drive, "serve", self.socket)


class LongestFlush:
    """Flushes a file of the folder again and again beside a `with` block. `seconds`: the longest time from the begin of
    a flush to that of the next one, less the pause between them: so long this machine let a flusher wait, for its drive
    or for a processor."""

    PAUSE_S = 0.004

    def __init__(self, folder):
        self._path = os.path.join(folder, "flushed")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._flush)
        self.seconds = 0.0

    def _flush(self):
        with open(self._path, "wb", buffering=0) as f:
            last = False
            while not last:
                last = self._ended.is_set()
                begun = time.monotonic()
                os.pwrite(f.fileno(), bytes(4096), 0)
                os.fdatasync(f.fileno())
                time.sleep(self.PAUSE_S)
                self.seconds = max(self.seconds, time.monotonic() - begun - self.PAUSE_S)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()


class TieredEvents(Example):
    name = "tiered_events"
    LOSS_MS = 60

    def setUp(self):
        super().setUp()
        on_disk = tempfile.TemporaryDirectory(prefix="pmlab-example-")
        self.addCleanup(on_disk.cleanup)
        self.on_disk = on_disk.name
        self.drives = [os.path.join(on_disk.name, "fast"), os.path.join(on_disk.name, "large")]

    def append(self, *lines, options=()):
        done = subprocess.run([self.program(), *self.drives, "append", *options], input="\n".join(lines) + "\n",
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split("\n")[:-1]

    def test_events_stay_in_order(self):
        self.assertEqual(self.append("door opened by Ada", "lamp on", "door closed"),
                         ["door 0 1", "lamp 0 2", "door 1 3"])
        self.assertEqual(self.append("door opened by Grace", "do not", "door"), ["door 2 4", "do 0 5", "door 3 6"])
        self.assertEqual(self.answer(*self.drives, "read", "door"),
                         "0 opened by Ada\n1 closed\n2 opened by Grace\n3 \n")
        self.assertEqual(self.answer(*self.drives, "read", "door", "2"), "2 opened by Grace\n3 \n")
        self.assertEqual(self.answer(*self.drives, "read", "window"), "")
        self.assertRegex(self.answer(*self.drives, "check"), r"^sequence 6, \d+ of \d+ segments free, all well\n$")

    def survives_kills(self, bound_s, options):
        """Appends until it is killed. Its events are then a prefix, which has all that were acknowledged longer ago
        than the bound, or, if that is not 0, than the bound and the longest flush of the round."""
        seed = int(os.environ.get("PMLAB_TEST_SEED", time.time_ns() % 1_000_000))
        replay = f"replay: PMLAB_TEST_SEED={seed} {sys.executable} {' '.join(sys.argv)} TieredEvents"
        source = random.Random(seed)
        known, lost = 0, 0
        for number in range(int(os.environ.get("PMLAB_TEST_KILLS", 8))):
            running = subprocess.Popen([self.program(), *self.drives, "append", *options], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            acknowledged = []  # (number, when it was known here)

            def listen(output=running.stdout, into=acknowledged):
                for line in output:
                    into.append((int(line.split()[1]), time.monotonic()))

            def feed(to=running.stdin, first=known):
                try:
                    for n in range(first, first + 1_000_000):
                        to.write(f"t event {n} {'x' * (n * 37 % 400)}\n".encode())
                        to.flush()
                        time.sleep(0.0005)
                except BrokenPipeError:
                    pass
                try:
                    to.close()
                except BrokenPipeError:
                    pass

            threads = [threading.Thread(target=listen), threading.Thread(target=feed)]
            with LongestFlush(self.on_disk) as flush:
                for t in threads:
                    t.start()
                deadline = time.monotonic() + 20
                while not acknowledged and time.monotonic() < deadline:
                    time.sleep(0.005)
                time.sleep(source.random() * 0.4)
                killed = time.monotonic()
                running.kill()
            running.wait()
            for t in threads:
                t.join()
            self.assertTrue(acknowledged, running.stderr.read())
            running.stdout.close()
            running.stderr.close()
            found = self.answer(*self.drives, "read", "t", *[o for o in options if o.startswith("pool")])
            numbers = []
            for line in found.split("\n")[:-1]:
                n, text = line.split(" ", 1)
                self.assertEqual(text, f"event {n} {'x' * (int(n) * 37 % 400)}", replay)
                numbers.append(int(n))
            self.assertEqual(numbers, list(range(len(numbers))), replay)
            for n, when in acknowledged:
                if n < len(numbers):
                    continue
                lost += 1
                self.assertLess(killed - when, bound_s and bound_s + flush.seconds,
                                f"event {n} of round {number}, longest flush {flush.seconds:.3f} s; {replay}")
            known = len(numbers)
        self.assertGreater(known, 100, replay)
        return lost

    def test_a_kill_takes_no_more_than_the_bound(self):
        # An acknowledgement is older than its line here: twice the bound.
        self.survives_kills(2 * self.LOSS_MS / 1000, [f"loss={self.LOSS_MS}"])
        self.assertRegex(self.answer(*self.drives, "check"), r"all well\n$")

    def test_with_memory_a_kill_takes_nothing(self):
        self.assertEqual(self.survives_kills(0, ["loss=0", f"pool={self.pool}"]), 0)
        self.assertRegex(self.answer(*self.drives, "check", f"pool={self.pool}"), r"all well\n$")

    def test_one_process_at_a_time(self):
        running = subprocess.Popen([self.program(), *self.drives, "append"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.stdin.write(b"a 1\n")
        running.stdin.flush()
        running.stdout.readline()
        self.assert_refuses("is open as a block device already", *self.drives, "read", "a")
        running.communicate()
        self.assertEqual(self.answer(*self.drives, "read", "a"), "0 1\n")

    def test_bad_input(self):
        self.assert_shows_usage(*self.drives)
        self.assert_shows_usage(*self.drives, "read")
        self.assert_refuses("No such file", *self.drives, "read", "a")
        self.append("a 1")
        self.assert_refuses("is no number", *self.drives, "read", "a", "x")
        self.assert_refuses("a loss of at most 0 ms without persistent memory", *self.drives, "append", "loss=0")
        self.assert_refuses("the drives are swapped", *reversed(self.drives), "read", "a")
        self.assert_refuses("is open as a block device already", self.drives[0], self.drives[0], "read", "a")
        self.append("b 1", options=())
        others = [d + "2" for d in self.drives]
        first, self.drives = self.drives, others
        self.append("c 1", options=[f"pool={self.pool}"])
        self.assert_refuses("are in persistent memory, and none is given", *others, "read", "c")
        self.assert_refuses("different stores", first[0], others[1], "read", "c")
        self.drives = [d + "3" for d in first]
        self.append("d 1", options=[f"pool={self.pool}3"])
        self.assert_refuses("the memory belongs to another tiered store", *self.drives, "read", "d",
                            f"pool={self.pool}")


class KillRounds:
    """Writes and trims of several clients, until the server is killed; then all of it is read.

    A block holds its volume, its number and the version of the write that it is from, again and again; zeros: none. An
    operation that was not answered is there, whole in each chunk, or not at all."""

    VOLUMES = {"vm1": 6 << 20, "vm2": 3 << 20}
    CONNECTIONS = 3  # each has its own part of each volume
    DEPTH = 3

    def __init__(self, test, source, replay):
        self._test, self._source, self._replay = test, source, replay
        self._versions = {name: [0] * (size // test.BLOCK) for name, size in self.VOLUMES.items()}
        self._open = []  # (volume, first block, blocks, version) of what was sent, and not answered
        self._next = 1
        self._lock = threading.Lock()
        self.acknowledged = self.interrupted = 0

    def one(self, number):
        test = self._test
        self.judge(number)
        self._open = []
        seeds = [self._source.randrange(1 << 30) for _ in range(self.CONNECTIONS * len(self.VOLUMES))]
        threads = [threading.Thread(target=self._write, args=(name, part, random.Random(seeds.pop())))
                   for name in self.VOLUMES for part in range(self.CONNECTIONS)]
        for thread in threads:
            thread.start()
        time.sleep(self._source.uniform(0.005, 0.12))
        test.kill()
        for thread in threads:
            thread.join()
        self.interrupted += len(self._open)

    def _block(self, volume, number, version):
        return struct.pack("<QQQQ", 1 + list(self.VOLUMES).index(volume), number, version, 0x706d6c6162) * 128 \
            if version else bytes(self._test.BLOCK)

    def _write(self, volume, part, source):
        blocks = len(self._versions[volume]) // self.CONNECTIONS
        first, open_ = part * blocks, {}
        try:
            client = self._test.client(volume)
            while True:
                while len(open_) == self.DEPTH:
                    self._reap(client, open_)
                count = source.choice((1, 1, 2, 4, 16, source.randrange(1, 40)))
                start = first + source.randrange(blocks - count + 1)
                if any(start < at + n and at < start + count for _, at, n, _ in open_.values()):
                    continue
                trims = source.random() < 0.1
                with self._lock:
                    version, self._next = self._next, self._next + 1
                    operation = (volume, start, count, 0 if trims else version)
                    self._open.append(operation)
                open_[version] = operation
                data = b"" if trims else b"".join(self._block(volume, start + i, version) for i in range(count))
                client.send(client.TRIM if trims else client.WRITE, version, start * self._test.BLOCK,
                            count * self._test.BLOCK if trims else 0, data)
        except OSError:
            pass  # killed

    def _reap(self, client, open_):
        cookie, failed, _ = client.answer()
        operation = open_.pop(cookie)
        volume, start, count, version = operation
        with self._lock:
            self._open.remove(operation)
            self._versions[volume][start:start + count] = [version if not failed else -failed] * count
            self.acknowledged += 1

    def judge(self, number):
        """Starts the server, and compares its blocks with the model; then the model has them."""
        test, size = self._test, self._test.BLOCK
        test.start(*(f"{name}={size}" for name, size in self.VOLUMES.items()))
        for volume, versions in self._versions.items():
            client = test.client(volume)
            data = client.do(client.READ, 0, len(versions) * size)
            client.close()
            self._settle(volume, versions, data, number)
            for block, version in enumerate(versions):
                test.assertEqual(data[block * size:(block + 1) * size] == self._block(volume, block, version), True,
                                 f"kill {number}: block {block} of {volume} is not that of version {version}; "
                                 f"{self._replay}")

    def _settle(self, volume, versions, data, number):
        size, chunk = self._test.BLOCK, self._test.CHUNK
        for of, start, count, version in self._open:
            if of != volume:
                continue
            for first in sorted({start, *range((start // chunk + 1) * chunk, start + count, chunk)}):
                blocks = range(first, min(start + count, (first // chunk + 1) * chunk))
                new = [data[b * size:(b + 1) * size] == self._block(volume, b, version) for b in blocks]
                # A block that was zeros before a trim is zeros after it: it does not tell the two apart.
                telling = [is_new for b, is_new in zip(blocks, new) if versions[b] != version]
                self._test.assertIn(sum(telling), (0, len(telling)),
                                    f"kill {number}: a part of version {version} is in {volume}, blocks {blocks}: "
                                    f"{new}; {self._replay}")
                if all(new):
                    versions[blocks.start:blocks.stop] = [version] * len(blocks)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
