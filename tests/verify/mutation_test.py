"""mutation_test.py PROGRAM SUBJECT.so DATA.toml NAME: `pmlab verify` finds the mutation NAME of DATA, within a minute,
and its replay command finds it again. NAME `none`: the subject without a mutation is clean.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations"))
import plant  # noqa: E402
from verifier import Verifier  # noqa: E402

PROGRAM, SUBJECT, DATA, NAME = sys.argv[1:5]


class Mutation(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, SUBJECT)

    if NAME == "none":

        def test_the_original_is_clean(self):
            self.verifier.choose(0)
            what = plant.clean_flags(DATA)
            self.verifier.expect_clean(*what, "--crashes", "--budget", "2")
            self.verifier.expect_clean(*what, "--schedules", "--threads", "4", "--budget", "2")

    else:

        def test_it_is_found_and_found_again(self):
            number, mutation = next((n, m) for n, m in plant.mutations_in(DATA) if m["name"] == NAME)
            if "waits_for" in mutation:
                self.skipTest("not reached yet: " + mutation["waits_for"])
            self.verifier.choose(number)
            self.verifier.expect_found(*mutation["verify"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
