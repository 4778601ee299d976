"""A verdict whose spread crosses its limit is undecided; counts have no spread, and a single repeat does not show
it."""
import sys
import unittest

import package  # noqa: F401
from pmlab.claims.claim import NS, TIMES, Claim, Condition
from pmlab.claims.evidence import Evidence
from pmlab.claims.figure import MARGIN_OF_ONE
from pmlab.claims.judging import NOT_REPRODUCED, REPRODUCED, UNDECIDED, judge
from pmlab.claims.limits import Measured, at_least, at_most, between, keeps
from pmlab.claims.quantity import measured, ratio
from pmlab.claims.result_set import cases_of_bench
from pmlab.claims.spread import measure
from pmlab.claims.tables import verdicts_table, verdicts_to_json


def case(name, *values, medium="dram", **more):
    return {"name": name, "medium": medium, "value": sorted(values)[len(values) // 2], "values": list(values),
            "unit": "ns", "skipped": None} | more


def evidence_of(*cases):
    return Evidence({"schema": 1, "cases": list(cases), "machine": {"medium": "dram"}}, "test")


def claim_of(limits, *quantities, unit=NS):
    return Claim("X1", "It is so.", "nowhere", ["memory"],
                 [Condition(f"quantity {i}", unit, q, limits) for i, q in enumerate(quantities or (measured("a"),))])


class Limits(unittest.TestCase):
    def test_a_spread_that_touches_both_sides_decides_nothing(self):
        def spread(low, high):
            return Measured((low + high) / 2, low, high, 5)
        for limits, holds, fails, crosses in ((at_least(10), (10, 12), (8, 9.9), (9, 11)),
                                              (at_most(10), (8, 10), (10.1, 12), (9, 11)),
                                              (between(10, 20), (10, 20), (21, 22), (19, 21)),
                                              (between(10, 20), (12, 13), (8, 9), (9, 11)),
                                              (between(10, 20), (12, 13), (8, 9), (9, 21))):
            self.assertIs(keeps(spread(*holds), limits), True)
            self.assertIs(keeps(spread(*fails), limits), False)
            self.assertIsNone(keeps(spread(*crosses), limits))

    def test_a_value_that_is_no_number_decides_nothing(self):
        nan, infinity = float("nan"), float("inf")
        for limits in (at_least(1), at_most(1)):
            for low, value, high in ((nan, nan, nan), (infinity, infinity, infinity), (nan, 5, 6), (0.1, 0.2, nan),
                                     (4, 5, infinity)):
                self.assertIsNone(keeps(Measured(value, low, high), limits))


class Spread(unittest.TestCase):
    def test_is_from_the_least_to_the_most_repeat(self):
        found = measure(measured("a"), evidence_of(case("a", 90, 100, 130)))
        self.assertEqual((found.value, found.low, found.high, found.n), (100, 90, 130, 3))

    def test_is_scaled_as_the_figure_is(self):
        found = measure(measured("a"), evidence_of(case("a", 90, 100, 130, medium="emulated:aep", scale=2.0)))
        self.assertEqual((found.value, found.low, found.high), (50, 45, 65))

    def test_of_other_figures_of_a_case_is_that_of_its_value(self):
        found = measure(measured("a", "reads/latency_ns/mean"),
                        evidence_of(case("a", 90, 100, 130, reads={"latency_ns": {"mean": 200}})))
        self.assertEqual((found.value, found.low, found.high), (200, 180, 260))

    def test_one_repeat_is_given_a_margin_whatever_its_clock(self):
        for medium in ("dram", "emulated:aep", "simulated:aep"):
            found = measure(measured("a"), evidence_of(case("a", 100, medium=medium)))
            self.assertAlmostEqual(found.low, 100 * (1 - MARGIN_OF_ONE))
            self.assertAlmostEqual(found.high, 100 * (1 + MARGIN_OF_ONE))
            self.assertEqual(found.n, 1)

    def test_simulated_repeats_are_of_several_layouts_and_spread(self):
        found = measure(measured("a"), evidence_of(case("a", 90, 100, 130, medium="simulated:aep")))
        self.assertEqual((found.value, found.low, found.high, found.n), (100, 90, 130, 3))

    def test_a_count_has_none_but_its_repeats(self):
        def amplified(**more):
            return measure(measured("b", "media/read_amplification"),
                           evidence_of(case("b", 90, 100, 130, media={"read_amplification": 4.0}, **more)))
        self.assertTrue(amplified(medium="simulated:aep").exact)
        self.assertTrue(amplified(counted=True).exact)
        again = [{"media": {"read_amplification": figure}} for figure in (3.5, 4.0, 4.1)]
        found = amplified(medium="simulated:aep", repeats=again)
        self.assertEqual((found.low, found.high), (3.5, 4.1))

    def test_bytes_on_a_real_clock_are_not_exact(self):
        def written(**more):
            return measure(measured("b", "device_io/written_bytes"),
                           evidence_of(case("b", 100, device_io={"written_bytes": 1000}, **more)))
        found = written(clock="real")
        self.assertEqual((found.low, found.high), (900, 1100))
        found = written(clock="real", repeats=[{"device_io": {"written_bytes": n}} for n in (950, 1000, 1200)])
        self.assertEqual((found.low, found.high), (950, 1200))
        self.assertTrue(written(clock="virtual").exact)
        self.assertTrue(measure(measured("b", "operations"), evidence_of(case("b", 100, clock="real",
                                                                              operations=50))).exact)

    def test_of_figures_that_were_measured_apart_adds_in_squares(self):
        found = measure(ratio(measured("a"), measured("b")), evidence_of(case("a", 97, 100, 103),
                                                                         case("b", 100, 100, 100)))
        self.assertAlmostEqual(found.low, 0.97)
        self.assertAlmostEqual(found.high, 1.03)
        e = evidence_of(case("a", 97, 100, 103), case("b", 100 / 1.04, 100, 100 / 0.96))
        found = measure(ratio(measured("a"), measured("b")), e)
        self.assertAlmostEqual(found.low, 0.95)
        self.assertAlmostEqual(found.high, 1.05)

    def test_a_figure_that_is_used_twice_changes_in_both_places(self):
        self.assertTrue(measure(ratio(measured("a"), measured("a")), evidence_of(case("a", 50, 100, 200))).exact)


def bench_of(ours, theirs, medium="dram"):
    """Results of two indexes that took turns."""
    return {"schema": 1, "machine": {"medium": medium}, "results": [
        {"index": index, "threads": 1, "phase": "read", "repeat": i + 1, "throughput_ops_per_s": speed,
         "latency_ns": {"mean": 1e9 / speed}} for index, speeds in (("ours", ours), ("theirs", theirs))
        for i, speed in enumerate(speeds)]}


def ratio_of_bench(document, other=None):
    cases = cases_of_bench(document, "e", "e/all") + (cases_of_bench(other, "f", "f/all") if other else [])
    below = "f" if other else "e"
    quantity = ratio(measured("e/index=ours/threads=1/phase=read"),
                     measured(f"{below}/index=theirs/threads=1/phase=read"))
    return measure(quantity, evidence_of(*cases))


class Turns(unittest.TestCase):
    def test_a_change_of_the_machine_that_falls_on_all_alike_is_no_spread(self):
        found = ratio_of_bench(bench_of([200, 100, 150], [100, 50, 75]))
        self.assertEqual((found.value, found.low, found.high, found.n), (2, 2, 2, 3))

    def test_the_quantity_is_taken_of_each_repeat(self):
        found = ratio_of_bench(bench_of([200, 100, 150], [100, 80, 60]))
        self.assertEqual((found.value, found.low, found.high), (150 / 80, 1.25, 2.5))

    def test_cells_that_were_measured_apart_are_no_turns(self):
        document = bench_of([200, 100, 150], [100, 50, 75])
        found = ratio_of_bench(document, document)
        self.assertLess(found.low, 1.5)
        self.assertGreater(found.high, 2.5)

    def test_numbers_of_threads_are_measured_one_after_the_other(self):
        one, four = bench_of([200, 100, 150], [100, 50, 75]), bench_of([200, 100, 150], [100, 50, 75])
        for result in four["results"]:
            result["threads"] = 4
        e = evidence_of(*cases_of_bench(one | {"results": one["results"] + four["results"]}, "e", "e/all"))

        def speed(index, threads):
            return measured(f"e/index={index}/threads={threads}/phase=read")
        gaps = [ratio(speed("ours", threads), speed("theirs", threads)) for threads in (1, 4)]
        self.assertTrue(measure(ratio(*gaps), e).exact, "each gap is of turns")
        self.assertFalse(measure(ratio(speed("ours", 4), speed("ours", 1)), e).exact)

    def test_simulated_cells_spread_as_their_layouts_do(self):
        found = ratio_of_bench(bench_of([200, 100, 150], [100, 80, 60], "simulated:aep"))
        self.assertEqual((found.value, found.low, found.high, found.n), (150 / 80, 1.25, 2.5, 3))
        self.assertFalse(ratio_of_bench(bench_of([200], [100], "simulated:aep")).exact)

    def test_one_repeat_over_0_is_no_number(self):
        document = bench_of([200, 100, 150], [100, 80, 75])
        document["results"][4] |= {"throughput_ops_per_s": 0}
        self.assertFalse(ratio_of_bench(document).is_number)


class Verdicts(unittest.TestCase):
    def verdict(self, limits, *cases):
        quantities = [measured(c["name"]) for c in cases]
        return judge(claim_of(limits, *quantities), evidence_of(*cases))

    def test_a_spread_that_crosses_the_limit_is_undecided(self):
        self.assertEqual(self.verdict(at_most(140), case("a", 90, 100, 130)).verdict, REPRODUCED)
        self.assertEqual(self.verdict(at_most(80), case("a", 90, 100, 130)).verdict, NOT_REPRODUCED)
        for limit in (110, 95):
            judgement = self.verdict(at_most(limit), case("a", 90, 100, 130))
            self.assertEqual(judgement.verdict, UNDECIDED)
            self.assertIsNone(judgement.findings[0].holds)
            self.assertEqual(judgement.reason, f"quantity 0: spread 90 ns to 130 ns crosses its limit, at most {limit} "
                             "ns (3 repeats)")

    def test_one_repeat_near_the_limit_is_undecided(self):
        for medium in ("dram", "simulated:aep"):
            judgement = self.verdict(at_most(105), case("a", 100, medium=medium))
            self.assertEqual(judgement.verdict, UNDECIDED)
            self.assertIn("1 repeat, each figure taken to be within 10 %", judgement.reason)
            self.assertEqual(self.verdict(at_most(120), case("a", 100, medium=medium)).verdict, REPRODUCED)

    def test_a_quotient_of_0_passes_no_limit(self):
        for limits in (at_least(2), at_most(2)):
            for above in (0, 100):
                e = evidence_of(case("a", above, above, above), case("b", 0, 0, 0))
                judgement = judge(claim_of(limits, ratio(measured("a"), measured("b")), unit=TIMES), e)
                self.assertEqual((judgement.verdict, judgement.findings[0].holds), (UNDECIDED, None))
                self.assertEqual(judgement.reason, "quantity 0: no number, as a figure in it is over 0")
                table = verdicts_table([judgement], e)
                self.assertIn("x/0 ?", table)
                self.assertNotIn("spread x/0", table)
                self.assertIsNone(verdicts_to_json([judgement], e, "x")["claims"][0]["conditions"][0]["spread"])

    def test_a_condition_that_fails_decides_beside_undecided_ones(self):
        self.assertEqual(self.verdict(at_most(110), case("a", 90, 100, 130), case("b", 200, 210, 220)).verdict,
                         NOT_REPRODUCED)
        self.assertEqual(self.verdict(at_most(110), case("a", 90, 100, 130), case("b", 50, 51, 52)).verdict, UNDECIDED)

    def test_the_json_has_value_limit_spread_and_repeats(self):
        e = evidence_of(case("a", 90, 100, 130), case("b", 100, 100, 100, medium="simulated:aep"))
        judgement = judge(claim_of(at_most(110), measured("a"), measured("b")), e)
        first, second = verdicts_to_json([judgement], e, "pmlab claims")["claims"][0]["conditions"]
        self.assertEqual((first["what"], first["measured"], first["at_most"], first["spread"], first["n"],
                          first["holds"]),
                         ("quantity 0", 100, 110, [90, 130], 3, None))
        self.assertEqual((second["measured"], second["spread"], second["n"], second["holds"]), (100, None, 3, True))
        table = verdicts_table([judgement], e)
        self.assertIn("100 ns ?", table)
        self.assertIn("spread 90 ns to 130 ns of 3 repeats", table)
        self.assertIn("undecided 1", table)

    def test_a_ratio_near_its_limit_on_a_loaded_machine(self):
        """One run under load: the medians alone would have decided it."""
        cases = cases_of_bench(bench_of([330, 100, 110, 95, 105], [100, 100, 100, 100, 100]), "e", "e/all")
        quantity = ratio(measured("e/index=ours/threads=1/phase=read"), measured("e/index=theirs/threads=1/phase=read"))
        judgement = judge(claim_of(at_most(1.2), quantity, unit=TIMES), evidence_of(*cases))
        self.assertEqual(judgement.findings[0].measured.value, 1.05)
        self.assertEqual(judgement.verdict, UNDECIDED)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
