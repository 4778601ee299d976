"""toy_test.py PROGRAM FOLDER TOY: each defect of a toy of the scoreboard is found, and nothing in it without. FOLDER
holds its shared object.
"""
import os
import pathlib
import sys
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                                         "..")]
import bugs  # noqa: E402
from verifier import Verifier  # noqa: E402

PROGRAM, FOLDER, TOY = sys.argv[1:]
DEFECTS = [d for d in bugs.read().defects.values() if d.twin == TOY]


class Toy(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, str(pathlib.Path(FOLDER) / f"toy_{TOY}.so"))

    def test_each_defect_is_found_and_found_again(self):
        self.assertTrue(DEFECTS)
        for defect in DEFECTS:
            with self.subTest(defect.name):
                self.verifier.choose(defect.number)
                self.verifier.expect_found(*defect.flags)

    def test_without_a_defect_it_is_clean(self):
        self.verifier.choose(0)
        for flags in sorted({d.flags for d in DEFECTS}):
            self.verifier.expect_clean(*flags, "--budget", "1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
