"""performance_test.py PROGRAM INDEXES EXTRA_FLUSH.so: `pmlab verify --performance` names the lines of flushes and
fences that have no effect, and ours have a reason each."""
import sys
import unittest

from verifier import Verifier

PROGRAM, INDEXES, EXTRA_FLUSH = sys.argv[1:]
OURS = f"{INDEXES},chunk_store,kv_ssd"
LINES = {"flush of a line without new stores": "nothing new in the line",
         "flush of memory that is not persistent": "not persistent",
         "fence without a flush before it": "nothing to wait for"}


class Performance(unittest.TestCase):
    def run_toy(self, mutation):
        verifier = Verifier(self, PROGRAM, EXTRA_FLUSH)
        verifier.choose(mutation)
        return verifier.run("--subject", EXTRA_FLUSH, "--performance", "--rounds", "4")

    def test_each_wasteful_line_of_the_toy_is_named(self):
        status, output, _ = self.run_toy(1)
        self.assertEqual(status, 1, output)
        source = __file__.replace("performance_test.py", "toys/extra_flush.cpp")
        with open(source, encoding="utf-8") as f:
            lines = f.read().splitlines()
        for kind, comment in LINES.items():
            number = next(n for n, line in enumerate(lines, 1) if line.endswith("// " + comment))
            row = next(line for line in output.splitlines() if kind in line)
            self.assertIn(f"toys/extra_flush.cpp:{number} (", row)
            self.assertIn(" 100.0 % ", row)
        self.assertIn("3 lines with some that have none, 3 without a reason", output)

    def test_without_its_defect_none_is(self):
        status, output, _ = self.run_toy(0)
        self.assertEqual(status, 0, output)
        self.assertIn("each has an effect", output)
        # Flushes of the medium are those of the toy, which lies in a folder of the checker and is no part of it.
        self.assertIn("toys/slot_map.hpp:", output)
        self.assertNotIn("media/medium.hpp", output)

    def test_ours_have_an_effect_or_a_reason(self):
        status, output, _ = Verifier(self, PROGRAM, "").run("--index", OURS, "--performance", "--rounds", "6")
        self.assertEqual(status, 0, output)

    def test_a_budget_without_a_round_is_no_verdict(self):
        status, output, _ = Verifier(self, PROGRAM, "").run("--index", "cceh", "--performance", "--budget", "1e-9")
        self.assertEqual(status, 2, output)
        self.assertIn("no round has ended", output)

    def test_bad_input(self):
        for flag in (["--crashes"], ["--schedules"], ["--persistence", "eadr"]):
            status, output, _ = Verifier(self, PROGRAM, "").run("--index", "cceh", "--performance", *flag)
            self.assertEqual(status, 2, output)
            self.assertIn("of one thread, without crashes", output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
