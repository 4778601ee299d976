"""persistence_test.py PROGRAM INDEXES MISSING_FLUSH.so LOCK_IN_PM.so: each persistence domain leaves its own states."""
import sys
import unittest

from verifier import Verifier

PROGRAM, INDEXES, MISSING_FLUSH, LOCK_IN_PM = sys.argv[1:]
# A hybrid, a cache and string keys over some.
COMBINATIONS = "hybrid_index,cache(cceh),strings_fp_tree"


class Persistence(unittest.TestCase):
    def verifier(self, subject, mutation):
        made = Verifier(self, PROGRAM, subject)
        made.choose(mutation)
        return made

    def test_a_missing_flush_is_a_defect_where_the_caches_are_lost(self):
        for domain in ("adr", "gpf-may-fail"):
            self.verifier(MISSING_FLUSH, 1).expect_found("--crashes", "--persistence", domain)

    def test_and_none_where_they_survive(self):
        for domain in ("eadr", "gpf"):
            self.verifier(MISSING_FLUSH, 1).expect_clean("--crashes", "--persistence", domain, "--budget", "2")

    def test_a_lock_that_stays_held_is_a_defect_everywhere(self):
        self.verifier(LOCK_IN_PM, 1).expect_found("--crashes", "--persistence", "eadr")

    def test_the_indexes_are_clean_where_caches_survive(self):
        self.verifier("", 0).expect_clean_index(f"{INDEXES},{COMBINATIONS}", "--persistence", "eadr", "--budget", "1.5")

    def test_an_unknown_domain_is_bad_input(self):
        status, output, _ = self.verifier("", 0).run("--index", "cceh", "--persistence", "flash")
        self.assertEqual(status, 2)
        self.assertIn("adr, eadr, gpf, gpf-may-fail", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
