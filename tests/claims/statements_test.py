"""The rules of the claims against the statements of their sources: a figure just inside of each limit passes, one just
outside does not, and the published figure passes always."""
import sys
import tomllib
import unittest
from pathlib import Path

import package
from pmlab.claims.catalogue import every_claim
from pmlab.claims.limits import Measured, keeps

# (claim, place of the condition, its figures just inside, just outside), in its unit.
_EDGES = [
    ("M9", 2, [1.06], [1.04]),  # a minimum, and no plateau
    ("M9", 3, [1.06], [1.04]),
    ("M10", 2, [12.1], [11.9]),
    ("I1", 0, [1.51, 2.24], [1.49, 2.26]),
    ("U1", 0, [6.91, 12.26], [6.89, 12.27]),
    ("U2", 0, [5.48, 9.73], [5.47, 9.74]),
    ("U2", 1, [2.03, 3.59], [2.02, 3.61]),
    ("U3", 0, [2.41, 4.26], [2.39, 4.27]),
    ("U3", 1, [2.11, 3.73], [2.09, 3.74]),
    ("U3", 2, [1.28, 2.26], [1.27, 2.27]),
    ("U3", 3, [1.17, 2.06], [1.16, 2.07]),
    ("U4", 0, [3.16, 5.59], [3.14, 5.61]),
    ("U4", 1, [3.31, 5.86], [3.29, 5.87]),
    ("U5", 0, [9.76, 17.33], [9.74, 17.34]),
    ("U5", 1, [3.01, 5.33], [2.99, 5.34]),
    ("U5", 2, [2.26, 3.99], [2.24, 4.01]),
    ("U6", 0, [1351, 2399], [1349, 2401]),
    ("U6", 1, [3101, 5599], [3099, 5601]),
    ("U7", 0, [2.01], [1.99]),
    ("U10", 1, [30.1, 59.9], [29.9, 60.1]),
    ("U14", 0, [0.951], [0.949]),
    ("U15", 0, [249e6], [251e6]),
    ("U15", 1, [249e6], [251e6]),
    ("U19", 0, [2.11, 3.73], [2.09, 3.74]),
    ("K8", 0, [16.1], [15.9]),
    ("K8", 1, [18.1], [17.9]),
    ("K8", 2, [6.4], [6.6]),
    *(("K9", place, [0.84, 1.5], [0.83]) for place in (1, 2, 3, 4)),
    ("K11", 0, [4.01], [3.99]),
    ("H5", 0, [19.9], [20.1]),
    *(("H7", place, [2.01], [1.99]) for place in range(4)),
    *(("H11", place, [2.01], [1.99]) for place in (0, 2, 3, 4)),
]
_CLAIMS = {claim.id: claim for claim in every_claim()}


def passes(condition, value):
    return keeps(Measured(value, value, value), condition.must_be)


class Statements(unittest.TestCase):
    def test_limits_are_where_the_sources_have_them(self):
        for name, place, inside, outside in _EDGES:
            condition = _CLAIMS[name].conditions[place]
            for values, expected in ((inside, True), (outside, False)):
                for value in values:
                    self.assertIs(passes(condition, value), expected, f"{name}, {condition.what}: {value}")

    def test_what_was_published_passes(self):
        figures = 0
        for claim in _CLAIMS.values():
            for condition in claim.conditions:
                stated, rule = condition.published, condition.must_be
                if stated is None:
                    continue
                figures += 1
                self.assertTrue(stated.low <= rule.high and rule.low <= stated.high, f"{claim.id}, {condition.what}")
                if stated.low == stated.high:
                    self.assertTrue(passes(condition, stated.low), f"{claim.id}, {condition.what}")
        self.assertGreater(figures, 60)

    def test_figures_in_a_claim_are_published_ones(self):
        for name, figures in (("U2", (7.3, 2.7)), ("U3", (3.2, 2.8, 1.7, 1.55)), ("U5", (13, 4, 3)),
                              ("U6", (1800, 4200)),
                              ("U15", (236e6, 236e6)), ("H2", (2.3, 2.1)), ("M12", (7, 2))):
            stated = [c.published.low for c in _CLAIMS[name].conditions if c.published]
            self.assertEqual(tuple(stated), figures, name)

    def test_those_without_their_partner_or_true_by_construction_are_named(self):
        self.assertEqual([name for name, claim in _CLAIMS.items() if claim.partner], ["K11", "U1", "U4", "U19"])
        self.assertEqual([name for name, claim in _CLAIMS.items() if claim.by_construction], ["H9", "K1", "K3"])

    def test_each_is_fed_by_an_experiment_so_that_a_run_shows_it(self):
        """Also those that a campaign decides, and those that no experiment measures: H8, K4, K13."""
        fed = set()
        for file in (Path(package.ROOT) / "experiments").glob("*.toml"):
            fed.update(tomllib.loads(file.read_text()).get("claims", []))
        self.assertEqual(set(_CLAIMS) - fed, set())

    def test_a_source_is_not_compared_with_itself(self):
        """The drive itself is the limit that a ring of 16 must reach."""
        self.assertEqual(_CLAIMS["U14"].cases, [
            f"ring/ring=16/store={store}/phase=overwrite/pattern=random/size=4K/depth=32"
            for store in ("chunk_store", "raw")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
