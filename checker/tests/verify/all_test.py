"""all_test.py PROGRAM SUBJECT.so: a search that goes on lists both defects of a toy, and a known one does not end
it."""
import os
import sys
import tempfile
import unittest

from verifier import Verifier

PROGRAM, SUBJECT = sys.argv[1:]
PLACES = ("(set)", "(take)")


class All(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, SUBJECT)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.verifier.choose(1)

    def search(self, *arguments):
        """(status, output, the listed violations)"""
        status, output, _ = self.verifier.run("--subject", SUBJECT, "--crashes", "--rounds", "8", "--quiet",
                                              *arguments)
        return status, output, [line for line in output.splitlines() if "; pmlab verify " in line]

    def known(self, lines):
        path = os.path.join(self.folder.name, "known")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in lines)
        return path

    def test_both_are_listed_each_once_for_each_kind(self):
        status, output, listed = self.search("--all")
        self.assertEqual(status, 1, output)
        for place in PLACES:
            self.assertTrue(any(place in line for line in listed), output)
        self.assertEqual(len({line.split("; pmlab ", 1)[0] for line in listed}), len(listed), output)

    def test_a_known_one_is_passed_over_and_the_other_found(self):
        _, output, listed = self.search("--all")
        for place, other in (PLACES, PLACES[::-1]):
            of_place = [line for line in listed if place in line]
            status, output, rest = self.search("--all", "--known", self.known(of_place))
            self.assertEqual(status, 1, output)
            self.assertTrue(rest and all(other in line for line in rest), output)
            status, output, _ = self.search("--known", self.known(of_place))
            self.assertEqual(status, 1, output)
            self.assertIn("1 VIOLATION", output)
        status, output, _ = self.search("--all", "--known", self.known(listed))
        self.assertEqual(status, 0, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
