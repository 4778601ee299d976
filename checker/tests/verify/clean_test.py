"""clean_test.py PROGRAM INDEX: nothing is found in an index of pmlab. The bounded part of scripts/campaign.sh."""
import sys
import unittest

from verifier import Verifier

PROGRAM, INDEX = sys.argv[1:]


class Clean(unittest.TestCase):
    def test_crashes_and_schedules(self):
        verifier = Verifier(self, PROGRAM, None)
        verifier.expect_clean_index(INDEX, "--crashes", "--budget", "1.2")
        verifier.expect_clean_index(INDEX, "--crashes", "--schedules", "--threads", "4", "--budget", "1.2")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
