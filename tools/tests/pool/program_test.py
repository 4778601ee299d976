"""`pmlab pool`: a scenario for each command and for each bad input, pools of killed processes, damaged ones."""
import json
import os
import random
import signal
import socket
import subprocess
import time
import unittest

from program import INDEXES, PMLAB, ProgramTest, main, pmlab


class Pool(ProgramTest):
    def bench(self, *arguments):
        return (PMLAB, "bench", "--medium", "pmem:" + self.file("p"), "--keep", "--quiet", *arguments)

    def make(self, index, records="20k"):
        subprocess.run([*self.bench("--index", index), "--records", records, "--operations", "20k", "--phases",
                        "insert,erase"],
                       check=True, capture_output=True, timeout=240)
        return self.file("p")

    def content(self, path):
        with open(path, "rb") as f:
            return f.read()

    def overwrite(self, path, at, data):
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(data)

    def killed(self, index):
        """A pool whose process was killed at work: while it loaded, or in the updates after that."""
        with subprocess.Popen([*self.bench("--index", index), "--records", "500k", "--seconds", "100", "--phases",
                               "update", "--pool-size", "96M"]) as run:
            deadline = time.monotonic() + 60
            while not os.path.exists(self.file("p")) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(random.uniform(0.7, 1.8))
            run.send_signal(signal.SIGKILL)
        self.assertEqual(run.returncode, -signal.SIGKILL)
        return self.file("p")

    def test_info(self):
        path = self.make("fast_fair")
        before = self.content(path)
        text = self.assert_works("pool", "info", path).stdout
        for part in (path, "survives", "pmlab-pool-1", "fast_fair 1", "20000", "depth"):
            self.assertIn(part, text)
        said = json.loads(self.assert_works("pool", "info", path, "--json").stdout)
        self.assertEqual(said["file_bytes"], os.path.getsize(path))
        self.assertGreater(said["allocated_bytes"], 16 * 20000)
        [root] = said["roots"]
        self.assertEqual((root["name"], root["layout"], root["layout_version"], root["entries"]),
                         ("fast_fair", "fast_fair", 1, 20000))
        self.assertGreater(root["depth"], 1)
        self.assertEqual(self.content(path), before, "looking at it changed it")

    def test_string_keys(self):
        for words, options, layout in (("cceh", ",values=blobs", "strings_hashed_blobs"),
                                       ("skip_list", "", "strings_digital_words"),
                                       ("woart", ",values=blobs", "strings_tree_blobs"),
                                       ("woart", ",form=trie", "strings_digital_words")):
            with self.subTest(words=words, options=options):
                path = self.make(f"strings({words}{options})", "2k")
                said = {r["name"]: r for r in json.loads(self.assert_works("pool", "info", path,
                                                                           "--json").stdout)["roots"]}
                self.assertEqual((said[words + ":s"]["layout"], said[words + ":s"]["entries"]), (layout, 2000))
                self.assertIn(words + ":s: sound, 2000 entries", self.assert_works("pool", "check", path).stdout)
                self.assert_fails(2, ["words of string keys", "--root " + words + ":s"], "pool", "dump", path, "--root",
                                  words)
                text = self.assert_works("pool", "dump", path).stdout
                header = json.loads(text.split("\n")[0].removeprefix("# pmlab-dump 1 "))
                self.assertEqual((header["root"], header["index"], header["entries"]), (words, words, 2000))
                self.assertEqual(text.count("\n"), 2001)
                self.write("text", text.encode())
                self.assert_works("pool", "load", self.file("text"), self.file("loaded"))
                self.assertEqual(self.assert_works("pool", "dump", self.file("loaded")).stdout, text)
                # Over another index, the keys are unchanged.
                self.assert_works("pool", "load", self.file("text"), self.file("other"), "--index", "fast_fair")
                self.assertEqual(self.assert_works("pool", "dump", self.file("other")).stdout.split("\n")[1:],
                                 text.split("\n")[1:])
                self.assertIn("2000 entries copied, which are all",
                              self.assert_works("pool", "repair", path, "--output", self.file("new")).stdout)
                self.assertEqual(self.assert_works("pool", "dump", self.file("new")).stdout, text)
                for made in ("text", "loaded", "other", "new"):
                    os.remove(self.file(made))
                os.remove(path)

    def test_check(self):
        path = self.make("cceh")
        self.assertIn("cceh: sound, 20000 entries", self.assert_works("pool", "check", path).stdout)
        self.assertTrue(json.loads(self.assert_works("pool", "check", path, "--json").stdout)["roots"][0]["sound"])

    def test_two_roots_in_a_pool(self):
        entries = "".join(f"{key} {key * key}\n" for key in range(5000))
        text = self.write("t.txt", "".join(
            f'# pmlab-dump 1 {{"root":"{root}","index":"{index}","layout_version":1,"entries":5000{left}}}\n{entries}'
            for root, index, left in (("orders", "fast_fair", ',"roots_left":1'),
                                      ("by customer", "cceh", ""))).encode())
        # A text that was cut off between two roots.
        self.assert_fails(2, ["1 roots are there", "there are 2"], "pool", "load",
                          self.write("cut.txt", self.content(text)[:self.content(text).rindex(b"#")]), self.file("cut"))
        path = self.file("new")
        self.assert_works("pool", "load", text, path)
        roots = json.loads(self.assert_works("pool", "info", path, "--json").stdout)["roots"]
        self.assertEqual([(r["name"], r["layout"], r["entries"]) for r in roots],
                         [("orders", "fast_fair", 5000), ("by customer", "cceh", 5000)])
        self.assertEqual(self.assert_works("pool", "dump", path).stdout.encode(), self.content(text))
        one = self.assert_works("pool", "dump", path, "--root", "by customer").stdout
        self.assertTrue(one.startswith('# pmlab-dump 1 {"root":"by customer"') and one.endswith(entries))
        self.assert_works("pool", "repair", path, "--root", "orders", "--output", self.file("one"))
        self.assertIn("orders: sound, 5000 entries\n", self.assert_works("pool", "check", self.file("one")).stdout)

    def test_dump_load_dump_is_the_same(self):
        for index in INDEXES:
            with self.subTest(index=index):
                path = self.make(index)
                text = self.file("entries.txt")
                self.assert_works("pool", "dump", path, "--output", text)
                lines = self.content(text).decode().splitlines()
                self.assertEqual(len(lines), 20001)
                self.assertIn(f'"index":"{index}"', lines[0])
                keys = [int(line.split()[0]) for line in lines[1:]]
                self.assertEqual(keys, sorted(set(keys)))
                self.assertIn("20000 entries", self.assert_works("pool", "load", text, self.file("new"), "--size",
                                                                 "64M").stdout)
                self.assert_works("pool", "check", self.file("new"))
                self.assertEqual(os.path.getsize(self.file("new")), 64 << 20)
                self.assertEqual(self.assert_works("pool", "dump", self.file("new")).stdout.encode(),
                                 self.content(text))
                for name in ("p", "new", "entries.txt"):
                    os.remove(self.file(name))

    def test_load_into_an_index_over_another_one(self):
        """Only its part in the pool would be made."""
        for header, options in (("cceh", ["--index", "strings(cceh)"]), ("cceh", ["--index", "cache(fast_fair)"]),
                                ("strings(cceh)", [])):
            with self.subTest(header=header, options=options):
                with open(self.file("text"), "w", encoding="utf-8") as f:
                    f.write(f'# pmlab-dump 1 {{"root":"r","index":"{header}","layout_version":1,"entries":1}}\n1 2\n')
                self.assert_fails(2, [options[-1] if options else header, "has no root in a pool",
                                      "name an index of pmlab"],
                                  "pool", "load", self.file("text"), self.file("new"), *options)
                self.assertFalse(os.path.exists(self.file("new")))

    def test_load_into_another_index_and_from_stdin(self):
        text = '# pmlab-dump 1 {"root":"orders","index":"cceh"}\n9 1\n3 18446744073709551615\n'
        done = subprocess.run([PMLAB, "pool", "load", "-", self.file("new"), "--index", "fp_tree"], input=text,
                              text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        dumped = self.assert_works("pool", "dump", self.file("new")).stdout.splitlines()
        self.assertEqual(dumped[1:], ["3 18446744073709551615", "9 1"])
        self.assertIn('"root":"orders","index":"fp_tree"', dumped[0])

    def test_standard_input_is_read_as_it_was_given(self):
        """Not opened again by its name."""
        text = b'# pmlab-dump 1 {"root":"orders","index":"cceh"}\n9 1\n'
        load = [PMLAB, "pool", "load", "-", self.file("new")]
        ours, given = socket.socketpair()
        with ours, given:
            os.set_blocking(given.fileno(), False)
            with subprocess.Popen(load, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True) as run:
                for half in (text[:30], text[30:]):
                    time.sleep(0.1)
                    ours.sendall(half)
                ours.shutdown(socket.SHUT_WR)
                said = run.communicate(timeout=60)[0]
        self.assertEqual(run.returncode, 0, said)
        os.remove(self.file("new"))
        # What was read before is not read again.
        with open(self.write("text", b"a title\n" + text), "rb", buffering=0) as file:
            file.read(len(b"a title\n"))
            done = subprocess.run(load, stdin=file, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 entries in cceh", done.stdout)
        with open(self.file("unread"), "wb") as file:
            done = subprocess.run([*load[:-1], self.file("other")], stdin=file, capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("dump '-' cannot be read: Bad file descriptor", done.stderr)

    def test_an_answer_that_cannot_be_written_says_nothing_about_the_pool(self):
        path = self.make("cceh", "1k")
        for command in (("info", path), ("check", path), ("check", path, "--json"), ("dump", path)):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                done = subprocess.run([PMLAB, "pool", *command], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stderr.count("pmlab: error: cannot write to standard output: No space left"), 1,
                                 done.stderr)
                self.assertEqual(done.stderr.count("pmlab: error: "), 1, done.stderr)

    def test_a_killed_process(self):
        for index in INDEXES:
            with self.subTest(index=index):
                path = self.killed(index)
                before = self.content(path)
                self.assertIn("sound", self.assert_works("pool", "check", path).stdout)
                dumped = self.assert_works("pool", "dump", path).stdout
                self.assertGreater(dumped.count("\n"), 100, "it was killed before it worked")
                self.assertIn("which are all", self.assert_works("pool", "repair", path, "--output",
                                                                 self.file("new")).stdout)
                self.assertEqual(self.assert_works("pool", "dump", self.file("new")).stdout, dumped)
                self.assertTrue(self.content(path) == before, "looking at it changed it")
                os.remove(path)
                os.remove(self.file("new"))

    def test_a_broken_index_is_found_and_what_is_left_is_saved(self):
        path = self.make("fast_fair")
        dumped = self.assert_works("pool", "dump", path).stdout.splitlines()
        key = int(dumped[5000].split()[0])
        places = self.content(path).split(key.to_bytes(8, "little"))
        self.assertGreater(len(places), 1)
        at = 0
        for part in places[:-1]:
            at += len(part)
            self.overwrite(path, at, bytes([255] * 8))
            at += 8
        before = self.content(path)
        done = self.assert_fails(1, ["1 of 1 roots", "repair"], "pool", "check", path)
        self.assertIn("fast_fair: NOT SOUND\n  ", done.stdout)
        self.assertFalse(json.loads(pmlab("pool", "check", path, "--json").stdout)["roots"][0]["sound"])
        done = self.assert_fails(1, ["damaged", "is sound"], "pool", "repair", path, "--output", self.file("new"))
        self.assertIn("entries copied", done.stdout)
        self.assert_works("pool", "check", self.file("new"))
        saved = set(self.assert_works("pool", "dump", self.file("new")).stdout.splitlines()[1:])
        self.assertGreaterEqual(len(saved & set(dumped)), 19900)
        self.assertEqual(self.content(path), before, "the damaged file was changed")

    def test_flipped_bytes_of_the_table_of_roots(self):
        path = self.make("cceh", "1k")
        sound = self.content(path)
        table = sound.find(b"cceh".ljust(24, b"\0") * 2) - 8
        self.assertGreater(table, 0)
        said = set()
        for seed in range(40):
            source = random.Random(seed)
            data = bytearray(sound)
            for _ in range(3):
                data[table + source.randrange(64)] ^= 1 << source.randrange(8)
            self.write("p", data)
            for command in (("info",), ("check",), ("dump",), ("repair", "--output", self.file("new"))):
                done = pmlab("pool", command[0], path, *command[1:], "--timeout", "10")
                errors = [line for line in done.stderr.splitlines() if line.startswith("pmlab: error: ")]
                self.assertIn(done.returncode, (0, 1, 2), f"seed {seed}: {command}")
                self.assertEqual(len(errors), 0 if done.returncode == 0 else 1,
                                 f"seed {seed}: {command}: {done.stderr}")
                said.add((command[0], done.returncode))
                if os.path.exists(self.file("new")):
                    os.remove(self.file("new"))
            self.assertEqual(self.content(path), bytes(data))
        self.assertTrue({("info", 0), ("check", 1)} <= said, said)

    def test_dump_goes_to_what_is_no_file(self):
        path = self.make("cceh", "1k")
        text = self.assert_works("pool", "dump", path).stdout
        self.assertEqual(self.assert_works("pool", "dump", path, "--output", "-").stdout, text)
        self.assertEqual(os.listdir(self.folder), ["p"])
        # By a link, so that a defect harms no device of this machine.
        os.symlink("/dev/full", self.file("full"))
        self.assert_fails(2, [self.file("full"), "No space left"], "pool", "dump", path, "--output", self.file("full"))
        self.assertTrue(os.path.islink(self.file("full")))
        os.mkfifo(self.file("fifo"))
        with subprocess.Popen(["cat", self.file("fifo")], stdout=subprocess.PIPE, text=True) as reader:
            self.assert_works("pool", "dump", path, "--output", self.file("fifo"))
            self.assertEqual(reader.stdout.read(), text)
        self.assertEqual(sorted(os.listdir(self.folder)), ["fifo", "full", "p"])

    def test_bench_ends_in_one_error_on_a_damaged_pool(self):
        ended = set()
        for index in ("cceh", "skip_list_pm"):
            path = self.make(index, "1k")
            sound = self.content(path)
            heap = sound.find(index.encode().ljust(24, b"\0") * 2)
            used = [at for at in range(0, len(sound), 8) if any(sound[at:at + 8])]
            for seed in range(12):
                source = random.Random(seed)
                data = bytearray(sound)
                for at in source.sample([at for at in used if (at < heap) == (seed % 2 == 0)], 3):
                    data[at:at + 8] = source.choice((bytes(8), source.randbytes(8)))
                if seed == 11:  # the root leads into libpmemobj's own words
                    data[heap + 48:heap + 56] = (4096).to_bytes(8, "little")
                self.write("p", data)
                done = pmlab("bench", "--index", index, "--medium", "pmem:" + path, "--reuse", "--quiet", "--records",
                             "1k", "--operations", "2k", "--phases", "read")
                errors = [line for line in done.stderr.splitlines() if line.startswith("pmlab: error: ")]
                self.assertIn(done.returncode, (0, 1, 2), f"{index}, seed {seed}: {done.stderr}")
                self.assertEqual(len(errors), 0 if done.returncode == 0 else 1, f"{index}, seed {seed}: {done.stderr}")
                ended.add(done.returncode)
            os.remove(path)
        self.assertEqual(ended, {0, 2}, "no damage was found, or all of it was")

    def test_bench_leaves_a_pool_alone_that_lost_its_name(self):
        path = self.make("cceh", "1k")
        os.rename(path, path + ".unfinished")
        once = ("--records", "1k", "--operations", "1k", "--phases", "read")
        self.assert_fails(2, [path + ".unfinished", "--reuse", "--overwrite"], *self.bench("--index", "cceh")[1:],
                          *once)
        self.assert_works(*self.bench("--index", "cceh", "--reuse", "--verify")[1:], *once)
        self.assertEqual(os.listdir(self.folder), ["p"])

    def looks_at(self, path, *before):
        """What info, check and dump print of a pool, run by the command `before`."""
        said = []
        for command in ("info", "check", "dump"):
            done = subprocess.run([*before, PMLAB, "pool", command, path], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append(done.stdout)
        return said

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become another user")
    def test_a_pool_of_another_user_that_can_only_be_read(self):
        path = self.make("cceh", "1k")
        before, text = self.looks_at(path), self.content(path)
        os.chmod(path, 0o444)
        os.chmod(self.folder, 0o555)
        self.assertEqual(self.looks_at(path, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"), before)
        self.assertEqual(self.content(path), text)

    def test_a_pool_on_a_mount_that_can_only_be_read(self):
        private = ("unshare", "--map-root-user", "--mount") if os.geteuid() else ("unshare", "--mount")
        path = self.make("cceh", "1k")
        before = self.looks_at(path)
        mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'
        if subprocess.run([*private, "sh", "-c", mount, self.folder], capture_output=True, check=False).returncode != 0:
            self.skipTest("nothing can be mounted here")
        self.assertEqual(self.looks_at(path, *private, "sh", "-c", mount + ' && exec "$@"', self.folder), before)

    def test_bad_input(self):
        missing, text = self.file("missing"), self.write("t.txt", b"ten years of work" * 1000000)
        for command in ("info", "check", "dump"):
            self.assert_fails(2, ["there is no pool at " + missing], "pool", command, missing)
            self.assert_fails(2, [text, "not a pool"], "pool", command, text)
            self.assert_fails(2, [self.folder, "it is no file"], "pool", command, self.folder)
            self.assert_fails(2, ["/dev/null is not a pool: it is no device of persistent memory"], "pool", command,
                              "/dev/null")
        self.assert_fails(2, ["there is no pool"], "pool", "repair", missing, "--output", self.file("new"))
        self.assert_fails(2, ["--output", "never repaired in its place"], "pool", "repair", missing)
        self.assert_fails(2, ["no command"], "pool")
        self.assert_fails(2, ["did you mean info"], "pool", "inof", missing)
        self.assert_fails(2, ["did you mean --json"], "pool", "info", missing, "--jsn")
        self.assert_fails(2, ["--timeout"], "pool", "info", missing, "--timeout", "soon")
        self.assert_fails(2, ["cannot be read"], "pool", "load", missing, self.file("new"))
        self.assert_fails(2, ["t.txt:1"], "pool", "load", text, self.file("new"))
        unnamed = self.write("u.txt", b'# pmlab-dump 1 {"root":"r"}\n')
        done = self.assert_fails(2, ['the header has no text "index"'], "pool", "load", unnamed, self.file("new"))
        self.assertEqual(done.stderr.count("u.txt:1"), 1, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["t.txt", "u.txt"])

    def test_what_is_there_is_never_overwritten(self):
        path, text = self.make("cceh", "1k"), self.file("d.txt")
        self.assert_works("pool", "dump", path, "--output", text)
        for arguments in (("dump", path, "--output", path), ("dump", path, "--output", text), ("load", text, path),
                          ("repair", path, "--output", path), ("repair", path, "--output", text)):
            before = {name: self.content(self.file(name)) for name in os.listdir(self.folder)}
            self.assert_fails(2, ["exists already"], "pool", *arguments)
            self.assertEqual({name: self.content(self.file(name)) for name in os.listdir(self.folder)}, before)

    def test_pools_of_others(self):
        path, new = self.make("cceh", "1k"), self.file("new")
        self.assert_fails(2, ["no root 'ceh'", "did you mean 'cceh'"], "pool", "dump", path, "--root", "ceh")
        self.overwrite(path, 4096, b"pmlab-pool-9")
        self.assert_fails(2, ["pmlab-pool-9", "this build reads pmlab-pool-1"], "pool", "info", path)
        self.overwrite(path, 4096, b"pmemkv\0\0\0\0\0\0")
        self.assert_fails(2, ["'pmemkv'"], "pool", "info", path)
        self.overwrite(path, 4096, b"pmlab-pool-1")
        table = self.content(path).find(b"cceh".ljust(24, b"\0") * 2)
        self.overwrite(path, table + 24, b"strings")
        self.assertIn("strings 1", self.assert_works("pool", "info", path).stdout)
        self.assert_fails(1, ["could not be checked"], "pool", "check", path)
        self.assert_fails(2, ["'strings'", "--root"], "pool", "dump", path)
        self.assert_fails(2, ["'strings'", "--root"], "pool", "repair", path, "--output", new)
        self.overwrite(path, table + 24, b"cceh\0\0\0")
        self.overwrite(path, table - 8, (7).to_bytes(8, "little"))
        self.assertIn("version 7", self.assert_works("pool", "info", path).stdout)
        self.assert_fails(1, ["could not be checked"], "pool", "check", path)
        self.assertFalse(os.path.exists(new))

    def test_a_pool_that_is_open_elsewhere(self):
        with subprocess.Popen([*self.bench("--index", "cceh"), "--records", "1k", "--seconds", "100", "--phases",
                               "read"]) as run:
            try:
                deadline = time.monotonic() + 60
                while not os.path.exists(self.file("p")) and time.monotonic() < deadline:
                    time.sleep(0.05)
                for command in (("info",), ("check",), ("dump",), ("repair", "--output", self.file("new"))):
                    self.assert_fails(2, ["open in another process", "close it"], "pool", command[0], self.file("p"),
                                      *command[1:])
            finally:
                run.kill()

    def test_a_new_pool_that_is_too_small_is_not_left_behind(self):
        path = self.make("cceh", "500k")
        text = self.file("d.txt")
        self.assert_works("pool", "dump", path, "--output", text)
        self.assert_fails(2, ["full after", "of the 500000 entries", "--size"], "pool", "load", text, self.file("new"),
                          "--size", "10M")
        self.assert_fails(2, ["too small"], "pool", "load", text, self.file("new"), "--size", "1M")
        self.assert_fails(2, ["--size"], "pool", "load", text, self.file("new"), "--size", "much")
        self.assert_fails(2, ["std_map"], "pool", "load", text, self.file("new"), "--index", "std_map")
        self.assertEqual(sorted(os.listdir(self.folder)), ["d.txt", "p"])


if __name__ == "__main__":
    main()
