"""toy_test.py PROGRAM SUBJECT.so FLAGS: `pmlab verify FLAGS` finds the defect of a toy, and nothing in it without."""
import sys
import unittest

from verifier import Verifier

PROGRAM, SUBJECT, *FLAGS = sys.argv[1:]


class Toy(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, SUBJECT)

    def test_its_defect_is_found(self):
        self.verifier.choose(1)
        self.verifier.expect_found(*FLAGS)

    def test_without_the_defect_it_is_clean(self):
        self.verifier.choose(0)
        self.verifier.expect_clean(*FLAGS, "--budget", "1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
