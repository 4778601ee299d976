"""Traces, and files of keys, run on real indexes with every answer checked."""
import gzip
import json
import lzma
import os
import resource
import subprocess
import time

from program import DATA, PMLAB, ProgramTest, main


def data(name):
    return os.path.join(DATA, name)


class Traces(ProgramTest):
    def traced(self, *arguments):
        result = self.file("r.json")
        self.assert_works("bench", "--quiet", "--verify", "--json", result, *arguments)
        with open(result, encoding="utf-8") as f:
            return json.load(f)

    def test_official_ycsb_in_two_files(self):
        for threads in ("1", "2"):
            document = self.traced("--index", "cceh,fast_fair,std_map", "--threads", threads, "--trace",
                                   data("ycsb-a.load.txt"), "--trace", data("ycsb-a.run.txt"))
            self.assertEqual([r["phase"] for r in document["results"]], ["load"] * 3 + ["trace"] * 3)
            self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0})
            self.assertGreater(document["results"][3]["operations"], 0)

    def test_gzip_scans_and_go_ycsb(self):
        for name in ("ycsb-f.txt.gz", "ycsb-e.txt", "go-ycsb-a.txt"):
            document = self.traced("--index", "fast_fair", "--trace", data(name))
            self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0}, name)

    def test_a_hash_leaves_scans_out(self):
        document = self.traced("--index", "cceh,fast_fair", "--trace", data("ycsb-e.txt"))
        self.assertEqual([(s["index"], s["phase"]) for s in document["skipped"]], [("cceh", "trace")])

    def test_each_format_that_the_documentation_shows(self):
        for names in (["index-microbench.load.txt", "index-microbench.run.txt"], ["twitter.csv"], ["kvcache.csv"],
                      ["oracle-general.bin"], ["sosd.uint64"], ["sosd.uint32"]):
            for medium in ("dram", "simulated:aep"):
                with self.subTest(names=names, medium=medium):
                    document = self.traced("--index", "fast_fair", "--threads", "2", "--medium", medium,
                                           *(word for name in names for word in ("--trace", data(name))))
                    self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0})
                    self.assertGreater(document["results"][-1]["operations"], 50)

    def test_what_was_no_operation_is_said(self):
        trace = self.write("trace", b"INSERT usertable user1 [ ]\nhello\n\nREAD usertable user2 [ ]\n")
        document = self.traced("--index", "cceh", "--trace", trace)
        remarks = "\n".join(document["remarks"])
        self.assertIn(f"2 of 4 lines of trace {trace} were no operations; the first is line 2: 'hello'", remarks)
        self.assertIn("1 of 1 operations of the trace's run are of keys that are not there then", remarks)
        document = self.traced("--index", "cceh", "--trace", self.write("none", b"READ t user1 [ ]\n"))
        self.assertIn("no keys were loaded", "\n".join(document["remarks"]))

    def test_a_load_alone_is_measured(self):
        document = self.traced("--index", "cceh", "--trace", self.write("load", b"INSERT 1\nINSERT 2\n"))
        self.assertEqual([r["phase"] for r in document["results"]], ["load"])

    def test_formats_that_are_named(self):
        trace = self.write("trace", b"INSERT 1\nREAD 1\n")
        self.traced("--index", "cceh", "--trace", trace, "--trace-format", "index-microbench")
        self.assert_fails(2, [trace + ":1"], "bench", "--index", "cceh", "--trace", trace, "--trace-format", "twitter")
        self.assert_fails(2, ["did you mean twitter?"], "bench", "--index", "cceh", "--trace", trace, "--trace-format",
                          "twiter")
        self.assert_fails(2, ["--trace-format", "--trace"], "bench", "--index", "cceh", "--trace-format", "twitter")

    def test_pipes(self):
        command = f"{PMLAB} bench --quiet --index cceh --trace <(printf 'INSERT 1\\nREAD 1\\n')"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run(["bash", "-c", command + " --medium simulated:aep"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is a pipe or a device", done.stderr)

    def test_a_pipe_that_nobody_writes_to_is_waited_for_and_said(self):
        pipe = self.file("pipe")
        os.mkfifo(pipe)
        with subprocess.Popen([PMLAB, "bench", "--quiet", "--index", "cceh", "--trace", pipe],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            self.assertEqual(program.stderr.readline(), f"pmlab: waiting for a program that writes to {pipe}\n")
            with open(pipe, "w", encoding="utf-8") as f:
                f.write("INSERT 1\n")
                f.flush()
                time.sleep(0.1)
                f.write("READ 1\n")
            self.assertIn("read", program.stdout.read())
            self.assertEqual(program.wait(60), 0)

    def test_devices_without_an_end(self):
        self.assert_fails(2, ["/dev/zero", "zero byte"], "bench", "--index", "cceh", "--trace", "/dev/zero")
        self.assert_fails(2, ["/dev/null"], "bench", "--index", "cceh", "--trace", "/dev/null")

    def test_pipes_of_what_is_read_more_than_once(self):
        pipe = self.file("pipe.toml")
        os.mkfifo(pipe)
        keys = f"strings(cceh,keys={pipe})"
        for words in (("bench", "--index", keys), ("bench", "--index", keys, "--medium", "simulated:aep"),
                      ("bench", "--index", "cceh", "--medium", "simulated:" + pipe),
                      ("bench", "--index", "cceh", "--medium", "emulated:" + pipe),
                      ("stores", "pairs", "--store", "kv_ssd", "--medium", "simulated:aep", "--device",
                       "simulated:" + pipe),
                      ("bench", "--index", "cceh", "--medium", "simulated:aep", "--trace", pipe)):
            with self.subTest(words=words):
                self.assert_fails(2, [pipe, "is a pipe or a device"], *words, "--quiet")

    def test_a_small_file_that_becomes_a_large_one_is_refused(self):
        bomb = self.write("bomb.toml", gzip.compress(b"#" * (64 << 20)))
        for words in (("bench", "--index", "cceh", "--medium", "simulated:" + bomb), ("microbench", "--suite", bomb)):
            with self.subTest(words=words):
                self.assert_fails(2, [bomb, "bytes, decompressed"], *words)

    def test_a_gigabyte_that_is_no_text_ends_soon(self):
        """A gigabyte, and a tenth of the memory that it would take: of each form, for each kind of file."""
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        block = 1 << 24
        for filling, said in ((b"\0", "zero byte"), (b"x", "MiB"), (b"\n", "empty lines")):
            for form, packed in (("gz", gzip.compress(filling * block) * 64),
                                 ("xz", lzma.compress(filling * block, preset=0) * 64)):
                bomb = self.write(f"bomb.{form}", packed)
                for words in (("bench", "--index", "cceh", "--trace", bomb),
                              ("bench", "--index", f"strings(cceh,keys={bomb})")):
                    with self.subTest(filling=filling, form=form, words=words):
                        done = subprocess.run([PMLAB, *words], capture_output=True, text=True, timeout=300, check=False,
                                              preexec_fn=limited)
                        self.assertEqual(done.returncode, 2, done.stderr)
                        self.assertRegex(done.stderr, f"pmlab: error: {bomb}:[0-9]+: .*({said}|bytes)")
        bomb = self.write("bomb.gz", gzip.compress(b"\0" * block) * 64)
        self.assert_fails(2, [bomb, "line 1 has a zero byte"], "pool", "load", bomb, self.file("new.pool"))
        self.assertFalse(os.path.exists(self.file("new.pool")))
        comments = self.write("lines.gz", gzip.compress(b"x\n" * (block // 2)) * 64)
        self.assert_fails(2, [comments + ":1048577", "are no operation"], "bench", "--index", "cceh", "--trace",
                          comments)

    def test_files_of_keys_in_every_form_are_the_same_keys(self):
        keys = [b"key%d" % i for i in range(500)]
        text = b"\n".join(keys) + b"\n"
        entries = set()
        for name, content in (("lf.txt", text), ("crlf.txt", text.replace(b"\n", b"\r\n")),
                              ("cr.txt", text.replace(b"\n", b"\r")),
                              ("zero.txt", text.replace(b"\n", b"\0")), ("mark.txt", b"\xef\xbb\xbf" + text),
                              ("packed.gz", gzip.compress(text)), ("packed.xz", lzma.compress(text)),
                              ("cut.txt", text[:-1])):
            path = self.write(name, content)
            done = self.assert_works("bench", "--quiet", "--index", f"strings(cceh,keys={path})", "--records", "1k",
                                     "--operations", "1k", "--phases", "read", "--verify", "--json", "-")
            document = json.loads(done.stdout)
            entries.add((document["results"][0]["entries"], document["results"][0]["bytes_per_key"]["dram"]))
        self.assertEqual(len(entries), 1, entries)

    def test_lines_of_keys_are_used_refused_or_counted(self):
        def bench(content, name="keys.txt"):
            return ("bench", "--quiet", "--index", f"strings(cceh,keys={self.write(name, content)})", "--records", "1k",
                    "--operations", "1k", "--phases", "read")
        done = self.assert_works(*bench(b"a\n\nb\na\n"))
        self.assertIn(f"of the 4 lines of {self.file('keys.txt')}, 1 are empty and 1 are there before: 2 keys",
                      done.stdout)
        self.assert_fails(2, ["keys.txt:2", "control characters"], *bench(b"a\nb\x01c\nd\n"))
        self.assert_fails(2, ["keys.txt:2", "bytes"], *bench(b"a\n" + b"x" * 70_000 + b"\n"))
        self.assert_fails(2, ["keys.txt", "no lines"], *bench(b""))
        self.assert_fails(2, ["keys.txt", "UTF-16", "iconv"], *bench("a\nb\n".encode("utf-16")))
        with open(data("sosd.uint64"), "rb") as f:
            self.assert_fails(2, ["keys.txt", "keys of SOSD", "--trace"], *bench(f.read()))
        self.assert_fails(2, ["keys.txt", "truncated gzip"], *bench(gzip.compress(b"a\nb\n" * 1000)[:-9]))

    def test_bad_traces(self):
        self.assert_fails(2, [self.file("missing")], "bench", "--index", "cceh", "--trace", self.file("missing"))
        broken = self.write("broken", b"INSERT usertable user1 [ ]\nREAD usertable usurper [ ]\n")
        self.assert_fails(2, [broken + ":2"], "bench", "--index", "cceh", "--trace", broken)
        empty = self.write("empty", b"")
        self.assert_fails(2, [empty], "bench", "--index", "cceh", "--trace", empty)
        scans = self.write("scans", b"INSERT 1\nSCAN 1 10\n")
        self.assert_fails(2, [scans, "(index-microbench)", "1 scans", "grep -v"], "bench", "--index", "cceh", "--trace",
                          scans)
        self.assert_fails(2, ["trace '-' is standard input", "is read twice", "give a file"],
                          "bench", "--index", "cceh", "--trace", "-", "--medium", "simulated:aep")


if __name__ == "__main__":
    main()
