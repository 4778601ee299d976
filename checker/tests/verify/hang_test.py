"""hang_test.py PROGRAM LOCK_IN_PM.so: a hang is shown by steps, and stays the report while its history gets shorter."""
import sys
import unittest

from verifier import Verifier

PROGRAM, SUBJECT = sys.argv[1:]


class Hang(unittest.TestCase):
    def test_the_report_names_steps_and_place_and_survives_shrinking(self):
        verifier = Verifier(self, PROGRAM, SUBJECT)
        verifier.choose(1)
        status, output, seconds = verifier.run("--subject", SUBJECT, "--crashes", "--shrink", "6")
        self.assertEqual(status, 1, output)
        self.assertIn("hang: recovery, or an operation after it: no end after ", output)
        self.assertIn("lock_in_pm.cpp:", output)
        self.assertIn("  crash during ", output)
        self.assertLess(seconds, 60)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
