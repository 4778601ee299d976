"""store_buffers_test.py PROGRAM INDEXES MISSING_FENCE.so: x86's store buffers, and when rounds have them."""
import sys
import unittest

from verifier import Verifier

PROGRAM, INDEXES, MISSING_FENCE = sys.argv[1:]


class StoreBuffers(unittest.TestCase):
    def verifier(self, mutation):
        made = Verifier(self, PROGRAM, MISSING_FENCE)
        made.choose(mutation)
        return made

    def test_a_missing_fence_is_no_defect_of_sequential_consistency(self):
        self.verifier(1).expect_clean("--schedules", "--memory-order", "sc", "--budget", "2")

    def test_half_of_the_rounds_have_store_buffers(self):
        self.verifier(1).expect_found("--schedules")

    def test_crashes_and_store_buffers_together(self):
        self.verifier(0).expect_clean("--crashes", "--schedules", "--memory-order", "tso", "--budget", "1")

    def test_the_indexes_are_clean_with_store_buffers(self):
        self.verifier(0).expect_clean_index(INDEXES, "--schedules", "--crashes", "--memory-order", "tso", "--budget",
                                            "1")

    def test_a_replay_names_its_memory_order(self):
        _, output, _ = self.verifier(1).run("--subject", MISSING_FENCE, "--schedules", "--memory-order", "tso")
        self.assertIn(" --memory-order tso", output.split("to reproduce it:\n", 1)[1])

    def test_bad_input(self):
        for arguments, problem in ((["--memory-order", "arm"], "there is no memory order 'arm'"),
                                   (["--memory-order", "tso", "--search", "bounded"], "bounded search")):
            status, output, _ = self.verifier(0).run("--index", "cceh", "--schedules", *arguments)
            self.assertEqual(status, 2)
            self.assertIn(problem, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
