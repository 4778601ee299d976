"""Targets of the report are compared as claims are: a spread that crosses the limit is undecided."""
import sys
import unittest
from types import SimpleNamespace

import package  # noqa: F401
from pmlab.report import targets
from pmlab.report.results import Measurement, Run


def run_of(*speeds_of, medium="pmem:/pool"):
    """One call of `pmlab bench`: (index, threads, operations per second in each repeat)."""
    measurements = [Measurement("a", index, medium, "read", threads, 1, [{"throughput_ops_per_s": s} for s in speeds])
                    for index, threads, speeds in speeds_of]
    return Run("a", "", "", {"medium": medium}, {"records": 1000}, [], [], measurements)


class Targets(unittest.TestCase):
    def verdict(self, target, *speeds_of, **more):
        finding = target.measure(SimpleNamespace(runs=[run_of(*speeds_of, **more)]))
        return finding and target.verdict(finding)

    def test_ratios(self):
        target = targets.ratio("cceh", "pmdk_hash", "read", 20)
        for ours, verdict in (([210, 220, 230], "met"), ([190, 180, 170], "not met"), ([190, 220, 230], "undecided")):
            self.assertEqual(self.verdict(target, ("cceh", 1, ours), ("pmdk_hash", 1, [10, 10, 10])), verdict)

    def test_a_change_of_the_machine_that_falls_on_all_alike_is_no_spread(self):
        target = targets.ratio("cceh", "pmdk_hash", "read", 20)
        self.assertEqual(self.verdict(target, ("cceh", 1, [210, 105, 420]), ("pmdk_hash", 1, [10, 5, 20])), "met")

    def test_one_repeat_near_the_limit(self):
        target = targets.scaling("cceh", "read", 1.9)
        self.assertEqual(self.verdict(target, ("cceh", 1, [100]), ("cceh", 2, [195])), "undecided")
        self.assertEqual(self.verdict(target, ("cceh", 1, [100]), ("cceh", 2, [250])), "met")
        self.assertEqual(self.verdict(target, ("cceh", 1, [100]), ("cceh", 2, [110])), "not met")

    def test_other_clocks_are_not_compared(self):
        target = targets.scaling("cceh", "read", 1.9)
        self.assertIsNone(self.verdict(target, ("cceh", 1, [100]), ("cceh", 2, [195]), medium="simulated:aep"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
