"""Verdicts on the page: by source, a row for each claim with its media inside."""
import sys
import unittest

import package  # noqa: F401  (where the package is)
from pmlab.report import claims, page
from pmlab.report.memory import Verdicts
from pmlab.report.results import ResultSet


def claim(number, verdict, measured=2.0):
    condition = {"what": "finds", "unit": "x", "measured": measured, "spread": None, "n": 1, "published": None,
                 "at_least": 1.5, "at_most": None, "holds": verdict == "reproduced", "rule": "at least 1.50x"}
    return {"id": number, "claim": f"Text of {number}.", "stand_in": None, "verdict": verdict, "reason": None,
            "conditions": [condition]}


def results(**of_media):
    verdicts = [Verdicts(medium, "", "", {"medium": medium}, found) for medium, found in of_media.items()]
    return ResultSet("", "", "", "", 0, [], [], verdicts=verdicts)


SET = results(first=[claim("K2", "reproduced"), claim("I10", "reproduced"), claim("I2", "undecided")],
              second=[claim("I10", "not reproduced"), claim("H1", "by construction"), claim("Z1", "something new")])


class Grouped(unittest.TestCase):
    def test_a_table_for_each_source_and_a_row_for_each_claim(self):
        tables = claims.by_source(SET)
        self.assertEqual([t.title.split(":")[0] for t in tables],
                         ["Indexes", "Key-value SSD", "Tiered store", "Others"])
        self.assertEqual([row[0] for row in tables[0].rows[1:]], ["I2: Text of I2.", "I10: Text of I10."])
        both = tables[0].rows[2][1].split("\n")
        self.assertEqual([line.split(": ")[0].replace(claims.NO_BREAK, " ") for line in both],
                         ["✓ reproduced on first", "✗ not reproduced on second"])
        self.assertIn("I10 holds on first and not on second", tables[0].sentence)

    def test_one_line_of_all(self):
        self.assertEqual(claims.line(SET), "5 published claims on 2 media, 6 verdicts: 2 reproduced, 1 undecided, 1 "
                         "not reproduced, "
                                           "1 something new, beside 1 by construction.")

    def test_a_verdict_that_is_not_known_has_the_colour_of_text(self):
        for verdict in ("by construction", "something new"):
            self.assertNotIn("<span", page.coloured_lines(claims.signed(verdict)))
        self.assertIn("<span class=v-yes>", page.coloured_lines(claims.signed("reproduced")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
