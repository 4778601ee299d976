"""jobs_test.py PROGRAM SUBJECT.so INDEX: several processes have the rounds of a search, and each round is as in one."""
import re
import sys
import unittest

from verifier import Verifier

PROGRAM, SUBJECT, INDEX = sys.argv[1:]


class Jobs(unittest.TestCase):
    def setUp(self):
        self.verifier = Verifier(self, PROGRAM, SUBJECT)

    def counts(self, *arguments):
        status, output, _ = self.verifier.run("--index", INDEX, "--rounds", "24", "--quiet", *arguments)
        self.assertEqual(status, 0, output)
        return re.search(r"\d+ rounds, \d+ crash states \(\d+ different ones judged, \d+ of them of recoveries",
                         output)[0], \
            re.search(r"(\d+) schedules", output)[1]

    def test_so_many_rounds_are_the_same_in_any_number_of_processes(self):
        alone = self.counts()
        for jobs in ("2", "5", "40"):
            self.assertEqual(self.counts("--jobs", jobs), alone, jobs)

    def test_a_violation_of_any_process_ends_all_and_is_found_again(self):
        self.verifier.choose(1)
        self.verifier.expect_found("--schedules", "--threads", "4", "--jobs", "3")

    def test_without_a_defect_it_is_clean(self):
        self.verifier.choose(0)
        self.verifier.expect_clean("--schedules", "--threads", "4", "--jobs", "3", "--budget", "2")

    def test_bad_input(self):
        for arguments, text in ((["--jobs", "0"], "--jobs is 0; give 1 to 64"), (["--jobs", "65"], "--jobs is 65"),
                                (["--jobs", "2", "--exhaustive"], "--exhaustive has one process"),
                                (["--jobs", "2", "--schedules", "--search", "bounded"], "bounded has one process"),
                                (["--steps", "1,,2"], "--steps ''"), (["--steps", "1,"], "--steps ''"),
                                (["--index", "x" * 300], "there is no index"),
                                (["--index", "x" * 300 + "(cceh)"], "nothing is called")):
            status, output, _ = self.verifier.run("--index", INDEX, *arguments)
            self.assertEqual(status, 2, output)
            self.assertIn(text, output)
            self.assertEqual(len(output.splitlines()), 1, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
