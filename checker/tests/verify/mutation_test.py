"""mutation_test.py PROGRAM SUBJECT.so DATA.toml NAME: `pmlab verify` finds the mutation NAME of DATA. NAME `none`: the
subject without a mutation is clean.

The round that showed it before shows it again (mutations/record_replays.py). If none is recorded, or this round does
not show it any more, a search must find it within a minute, and its replay command must find it again.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations"))
import plant  # noqa: E402
import record_replays  # noqa: E402
from verifier import Verifier  # noqa: E402

PROGRAM, SUBJECT, DATA, NAME = sys.argv[1:5]


class Mutation(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, SUBJECT)

    if NAME == "none":

        def test_the_original_is_clean(self):
            self.verifier.choose(0)
            what = plant.clean_flags(DATA)
            # Short: clean_test.py searches the source itself for longer, and this only finds choices that change it.
            self.verifier.expect_clean(*what, "--crashes", "--budget", "0.7")
            self.verifier.expect_clean(*what, "--schedules", "--threads", "4", "--budget", "0.7")

    else:

        def test_it_is_found_and_found_again(self):
            number, mutation = next((n, m) for n, m in plant.mutations_in(DATA) if m["name"] == NAME)
            if "waits_for" in mutation:
                self.skipTest("not reached yet: " + mutation["waits_for"])
            self.verifier.choose(number)
            replay = record_replays.recorded(DATA).get(NAME)
            if not replay or not self.verifier.shows(*replay):
                self.verifier.expect_found(*mutation["verify"])
            if "sound" in mutation:  # options with which it is no defect
                self.verifier.expect_clean(*mutation["sound"], "--budget", "3")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
