"""page_test.py CMAKELISTS PAGE: the data of the scoreboard name planted defects that tests find, and docs/scoreboard.md
is of these data.
"""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bugs  # noqa: E402
import page  # noqa: E402

CMAKELISTS, PAGE = map(pathlib.Path, sys.argv[1:])
REMEDY = "; make the page again: pmlab verify --scoreboard --markdown docs/scoreboard.md"


class Page(unittest.TestCase):
    def setUp(self):
        self.data = bugs.read()
        self.page = PAGE.read_text()

    def test_every_toy_of_the_data_has_a_test(self):
        build = CMAKELISTS.read_text()
        for twin in sorted({d.twin for d in self.data.defects.values() if d.library.startswith("toy_")}):
            self.assertRegex(build, rf"\b{twin}\b", f"no test finds the toy {twin}")

    def test_every_program_of_the_data_has_a_test_of_its_defects(self):
        build = (CMAKELISTS.parent / "programs.cmake").read_text()
        for defect in self.data.defects.values():
            if defect.is_program:
                test = re.search(rf"pmlab_program_test\({defect.twin} \S+ (\"[^\"]+\"|\S+) (\d+)\)", build)
                self.assertIsNotNone(test, f"no test finds the defects of {defect.twin}")
                self.assertEqual(test.group(1).strip('"'), defect.flags[1])
                self.assertLessEqual(defect.number, int(test.group(2)), defect.full_name)

    def test_every_defect_of_a_toy_has_its_number(self):
        for defect in self.data.defects.values():
            if not defect.library.startswith("toy_"):
                continue
            text = (bugs.HERE.parent / "toys" / f"{defect.twin}.cpp").read_text()
            if listed := re.search(r"enum defect : int \{(.*?)\};", text, re.DOTALL):
                self.assertLessEqual(defect.number, listed.group(1).count(",") + 1, defect.full_name)
            else:
                self.assertEqual(defect.number, 1, defect.full_name)

    def test_what_the_page_says_of_the_bugs_is_what_the_data_say(self):
        for part in (page.head(self.data), page.tail(self.data)):
            self.assertIn("\n".join(part).strip(), self.page, "the page is not of these data" + REMEDY)
        rows = [line.split(" | ")
                for line in self.page.partition(page.COLUMNS)[2].partition("\n\n")[0].splitlines()[2:]]
        given = [[cell.strip("| ") for cell in row[:page.LAST_FIXED]] for row in rows]
        expected = [page.fixed_cells(b) for b in self.data.bugs if b.defect]
        self.assertEqual(given, expected, "the rows are not of these data" + REMEDY)

    def test_every_twin_was_found(self):
        rows = self.page.partition(page.COLUMNS)[2].partition("\n\n")[0].splitlines()[2:]
        self.assertEqual(len(rows), sum(bool(b.defect) for b in self.data.bugs))
        for line in rows:
            self.assertIn("| yes |", line)

    def test_a_defect_that_was_read_from_a_place_says_so(self):
        inferred = [b for b in self.data.bugs if b.inferred]
        self.assertGreater(len(inferred), 0)
        for bug in inferred:
            self.assertRegex(self.page, rf"\| {re.escape(bug.name)} \|.*\*\(inferred: ")
        self.assertIn(f"{len(inferred)} bugs are marked *inferred*", self.page)

    def test_data_that_name_no_planted_defect_are_refused(self):
        text = (bugs.HERE / "bugs.toml").read_text()
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder) / "bugs.toml"
            for change in (("twin = \"cceh.duplicate_is_accepted\"", "twin = \"cceh.no_such_mutation\""),
                           ("twin = \"claimed_slot.a_slot", "twin = \"claimed_slot.another_slot"),
                           ("bugs = 47", "bugs = 46")):
                self.assertIn(change[0], text)
                wrong.write_text(text.replace(*change))
                with self.assertRaises(bugs.Wrong):
                    bugs.read(wrong)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
