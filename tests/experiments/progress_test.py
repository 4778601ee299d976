"""Progress: plain lines into a file, a last line that moves on a terminal."""
import io
import sys
import unittest

import package  # noqa: F401  (finds pmlab)
from pmlab.run.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(stream, quiet=False):
    progress = Progress(quiet, stream)
    progress.moving(0, 2, {"a/one": 3}, None)
    progress.say("[1/2] a/one: 4 s, about 60 s left")
    progress.moving(1, 2, {"a/two": 1, "a/three": 2}, 61)
    progress.warn("a warning")
    progress.end()
    return stream.getvalue()


class ProgressTest(unittest.TestCase):
    def test_plain_lines(self):
        self.assertEqual(shown(io.StringIO()), "[1/2] a/one: 4 s, about 60 s left\na warning\n")
        self.assertEqual(shown(io.StringIO(), quiet=True), "a warning\n")
        self.assertEqual(shown(Terminal(), quiet=True), "a warning\n")

    def test_a_terminal_has_a_line_that_moves(self):
        erase = "\r\033[K"
        self.assertEqual(shown(Terminal()), f"{erase}[0/2] a/one (3 s)"
                         f"{erase}[1/2] a/one: 4 s, about 60 s left\n"
                         f"{erase}[1/2] a/two (1 s), a/three (2 s), about 61 s left"
                         f"{erase}a warning\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
