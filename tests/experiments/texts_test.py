"""Texts as users bring them, and files that are written: in every form, in any locale, never a traceback."""
import gzip
import lzma
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import package  # noqa: F401  (finds the package)
from pmlab import texts
from pmlab.errors import Failure
from pmlab.json_files import read_json, write_json

TEXT = "title = 'T'\nabout = 'Ä'\n"


class Texts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "file"

    def refused(self, *parts, path=None):
        with self.assertRaises(Failure) as caught:
            texts.read_text(path or self.path, "experiment")
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_every_form_has_the_same_text(self):
        data = TEXT.encode()
        for content in (data, b"\xef\xbb\xbf" + data, gzip.compress(data), gzip.compress(b"\xef\xbb\xbf" + data),
                        gzip.compress(data[:5]) + gzip.compress(data[5:]), lzma.compress(data)):
            self.path.write_bytes(content)
            self.assertEqual(texts.read_text(self.path, "experiment"), TEXT)

    def test_what_cannot_be_read_is_refused(self):
        for content, *parts in (
                (TEXT.encode("utf-16"), "UTF-16", "iconv -f UTF-16"),
                ("title = 1\n".encode("utf-16-le"), "UTF-16LE", "iconv"),
                ("title = 1\n".encode("utf-16-be"), "UTF-16BE", "iconv"),
                (TEXT.encode("utf-32"), "UTF-32", "iconv"),
                (TEXT.encode("latin-1"), "line 2 has a byte 0xc4", "ISO-8859-1"),
                (gzip.compress(TEXT.encode())[:-5], "damaged or truncated gzip"),
                (gzip.compress(TEXT.encode())[:12], "damaged or truncated gzip"),
                (gzip.compress(TEXT.encode()) + b"more", "damaged or truncated gzip"),
                (lzma.compress(TEXT.encode())[:-5], "damaged or truncated xz"),
                (b"\x28\xb5\x2f\xfd and more", "zstd", "zstd -dc"),
                (b"BZh91AY", "bzip2", "bunzip2"), (b"PK\x03\x04", "zip", "unzip"),
                (b"a = 1\nb\0", "is no text: line 2 has a zero byte")):
            with self.subTest(content=content[:20]):
                self.path.write_bytes(content)
                self.refused(f"experiment {self.path}", *parts)
        self.refused("No such file", path=self.folder / "none")
        self.refused("Is a directory", path=self.folder)
        self.refused("zero byte", path="a\0b")

    def test_what_never_ends_is_refused_in_bounded_memory(self):
        member = gzip.compress(b" " * (1 << 24))
        for content in (member * 64, lzma.compress(b" " * (65 << 20), preset=0)):
            self.path.write_bytes(content)
            self.refused(f"experiment {self.path}", "has more than 67108864 bytes, decompressed")
        self.refused("has more than 67108864 bytes", path="/dev/zero")

    def test_a_fifo_is_written_once_it_has_a_reader(self):
        os.mkfifo(self.path)
        code = "import sys; from pmlab import texts; texts.write_text(sys.argv[1], 'line\\n' * 100_000)"
        with subprocess.Popen([sys.executable, "-B", "-c", code, str(self.path)],
                              cwd=os.path.join(package.ROOT, "experiments"),
                              stderr=subprocess.PIPE, text=True) as writer:
            self.assertEqual(writer.stderr.readline(), f"pmlab: waiting for a reader of {self.path}\n")
            self.assertEqual(self.path.read_text(encoding="utf-8"), "line\n" * 100_000)
            self.assertEqual(writer.wait(60), 0)

    def test_names_that_are_no_utf8_are_escaped(self):
        name = os.fsdecode(b"m\xe4r \xc3\xa4")
        write_json(str(self.path), {name: [name, {"a": name}]})
        self.assertEqual(read_json(self.path), {"m\\xe4r ä": ["m\\xe4r ä", {"a": "m\\xe4r ä"}]})
        texts.write_text(self.path, f"<p>{name}</p>")
        self.assertEqual(self.path.read_bytes(), "<p>m\\xe4r ä</p>".encode())
        other = self.folder / name
        texts.write_text(other, "x")
        texts.check_writable(other)
        self.assertEqual(texts.read_text(other, "experiment"), "x")

    def test_places_are_tried_before(self):
        texts.write_text(self.path, "old")
        texts.check_writable(self.path)
        texts.check_writable(self.folder / "new")
        texts.check_folder(self.folder / "some" / "where")
        self.assertEqual(os.listdir(self.folder), ["file"])
        self.assertEqual(self.path.read_text(encoding="utf-8"), "old")
        for check, path, part in ((texts.check_writable, self.folder, "it is a folder"),
                                  (texts.check_writable, self.folder / "none" / "file", "no folder"),
                                  (texts.check_writable, self.path / "file", "no folder"),
                                  (texts.check_writable, "/dev/full", "No space left"),
                                  (texts.check_writable, self.folder / ("x" * 300), "File name too long"),
                                  (texts.check_folder, self.path, "is no folder"),
                                  (texts.check_folder, self.path / "in", "is no folder")):
            with self.subTest(path=path), self.assertRaisesRegex(Failure, part):
                check(path)

    def test_a_file_size_limit_is_met_before(self):
        code = ("import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
                "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); from pmlab import texts; "
                "texts.check_writable(sys.argv[1])")
        done = subprocess.run([sys.executable, "-B", "-c", code, str(self.path)],
                              cwd=os.path.join(package.ROOT, "experiments"),
                              capture_output=True, text=True, check=False)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class Program(unittest.TestCase):
    """The commands, in other locales."""

    def run_package(self, *words, **environment):
        return subprocess.run([sys.executable, "-B", "-m", "pmlab", *words],
                              cwd=os.path.join(package.ROOT, "experiments"),
                              env=os.environ | {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"} | environment,
                              capture_output=True, check=False)

    def test_messages_are_utf8_in_any_locale(self):
        for locale in ("C", "POSIX", "C.UTF-8"):
            done = self.run_package("report", "Ä".encode() + b"\xe4", LC_ALL=locale)
            self.assertEqual(done.returncode, 2)
            self.assertNotIn(b"Traceback", done.stderr)
            self.assertIn("Ä".encode() + b"\\xe4", done.stderr)

    def test_results_that_are_no_results_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            raw = Path(folder) / "raw"
            raw.mkdir()
            for content in (b"[]", b"null", b"", b"\xff\xfe[\0]\0", b"[" * 100_000, b'{"schema": 1, "results": 7}',
                            b'{"schema": 1, "results": [7]}'):
                (raw / "one.json").write_bytes(content)
                done = self.run_package("report", folder)
                with self.subTest(content=content[:30]):
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertNotIn(b"Traceback", done.stderr)
                    self.assertNotIn(b"a defect of pmlab", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
