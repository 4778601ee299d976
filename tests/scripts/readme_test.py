"""The README has its order, its example is the compiled one, its figures are the published ones. Every link of a
document leads to a file and to a heading."""

import csv
import json
import re
import unittest

from planted_tree import REPOSITORY

README = REPOSITORY / "README.md"
PUBLISHED = REPOSITORY / "results" / "quick"

# Not links: text in a code block or between backquotes.
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


class Documents(unittest.TestCase):
    def test_example_is_the_compiled_one(self):
        blocks = re.findall(r"```cpp\n(.*?)```", README.read_text(), re.S)
        self.assertIn((REPOSITORY / "examples" / "embed.cpp").read_text(), blocks)

    def test_links_lead_somewhere(self):
        """To a file that is there, and to a heading that it has."""
        documents = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("results/*.md")]
        self.assertGreater(len(documents), 5)
        anchors_checked = 0
        for document in documents:
            text = CODE.sub("", document.read_text())
            links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text)
            links += [(target, "") for target in re.findall(r'src="([^":]+)"', text)]
            for target, anchor in links:
                with self.subTest(document=document.name, target=target, anchor=anchor):
                    path = document.parent / target if target else document
                    self.assertTrue(path.exists())
                    if anchor:
                        anchors_checked += 1
                        self.assertIn(anchor, anchors_of(path.read_text()))
        self.assertGreater(anchors_checked, 20)

    def test_licence_and_citations(self):
        """The README names the licences of the originals and ours; both citations state the same."""
        section = README.read_text().split("\n## Licence\n")[1]
        for term in ("non-commercial use", "GPL", "undecided", "Apache License", "(CITATION.bib)", "(CITATION.cff)"):
            self.assertIn(term, " ".join(section.split()))
        cff = dict(re.findall(r'^(\w+): "?([^"\n]+)"?$', (REPOSITORY / "CITATION.cff").read_text(), re.M))
        bib = {key: value.replace("{", "").replace("}", "")
               for key, value in re.findall(r"^  (\w+) += \{(.*)\},$", (REPOSITORY / "CITATION.bib").read_text(), re.M)}
        self.assertEqual({key: bib[key] for key in ("title", "version", "license")},
                         {key: cff[key] for key in ("title", "version", "license")})

    def test_readme_is_short_and_in_order(self):
        text = README.read_text()
        self.assertLessEqual(text.count("\n"), 120)
        self.assertEqual(re.findall("^## (.*)$", text, re.M),
                         ["Why it matters now", "The result", "I compare", "I embed", "I check mine", "The indexes",
                          "What may be cited", "Where things are", "Licence"])
        for name in ("I compare", "I embed", "I check mine"):
            self.assertIn("```sh\n", section_of(README, name), name)

    def test_charts_and_claims(self):
        """The charts of the thesis, and the sums of the scorecard, which scripts/scorecard makes."""
        result = section_of(README, "The result")
        self.assertEqual(re.findall(r'src="([^"]+)"', result),
                         [f"results/quick/charts/thesis-{device}.svg" for device in ("aep", "classic")])
        rows = re.findall(r"^\| \[\w[^|]*\|([ \d|]*)\|$", (REPOSITORY / "docs" / "stores.md").read_text(), re.M)
        self.assertEqual(len(rows), 4)
        sums = map(sum, zip(*(map(int, row.split("|")) for row in rows)))
        claims, reproduced, by_construction, failed, undecided, inapplicable, unmeasured = sums
        self.assertIn(f"each of {claims} claims of four published sources: {reproduced} reproduced, {failed} not, "
                      f"{undecided} undecided, {by_construction} true by construction, {inapplicable} not applicable "
                      f"here, {unmeasured} not measured", " ".join(result.split()))

    def test_figures_are_those_of_the_published_run(self):
        result = " ".join(section_of(README, "The result").split())
        self.assertEqual(re.search(r"does ([\d.]+) to ([\d.]+) times the finds of HybridIndex ", result).groups(),
                         rounded(hybrid_ratios("thesis-aep", "")))
        self.assertEqual(re.search(r"assumed \(right\), it does ([\d.]+) to ([\d.]+) times the finds", result).groups(),
                         rounded(hybrid_ratios("thesis-classic", "")))
        self.assertEqual(rounded(hybrid_ratios("hybrid-throughput", "Insert, simulated:aep")),
                         re.search(r"and ([\d.]+) to ([\d.]+) times its inserts", result).groups())
        with open(PUBLISHED / "claims.csv", newline="", encoding="utf-8") as file:
            beside = {row["quantity"]: row["measured"] for row in csv.DictReader(file) if row["claim"] == "H11"}
        stated = re.search(r"reaches ([\d.]+) of its load, ([\d.]+) of its YCSB A, ([\d.]+) of its C and ([\d.]+) of "
                           r"its E, with ([\d.]+) of its bytes to the drives in the load",
                           " ".join(section_of(README, "I embed").split()))
        self.assertEqual(stated.groups(), tuple(f"{float(beside[quantity]):.2f}" for quantity in (
            "load: tiered over RocksDB", "YCSB A: tiered over RocksDB", "YCSB C: tiered over RocksDB",
            "YCSB E: tiered over RocksDB",
            "load, bytes to both drives for each of the user's: tiered over RocksDB")))

    def test_placement_on_cxl_memory(self):
        """The README has the figures of the table in docs/experiments.md."""
        table = section_of(REPOSITORY / "docs" / "experiments.md", "Does placement follow the device on CXL memory?")
        found = [(float(tree) / float(hashed)) for hashed, tree in
                 re.findall(r"^\| `(?:cxl|nv)-\w+` \| ([\d.]+) / ([\d.]+) \|", table, re.M)]
        self.assertEqual(len(found), 3)
        self.assertIn("[{} to {} times".format(*rounded(found)), section_of(README, "Why it matters now"))

    def test_every_index_and_every_room(self):
        facts = {index["name"]: index for index in json.loads((REPOSITORY / "indexes" / "indexes.json").read_text())
                 if index.get("verified", True)}
        self.assertGreater(len(facts), 10)
        rows = re.findall(r"^\| (`.*?) \|", section_of(README, "The indexes"), re.M)
        self.assertEqual(sorted(re.findall(r"`(\w+)`", " ".join(rows))), sorted(facts))
        detailed = re.findall(r"^\| [\[`](\w+)[\]`].*? \| .* \| (.*) \| (.*) \| (.*) \|$",
                              section_of(REPOSITORY / "docs" / "embedding.md", "The indexes"), re.M)
        self.assertEqual(sorted(detailed), sorted((name, index["in_medium"], index["in_dram"], index["opening"])
                                                  for name, index in facts.items()))
        rooms = {path.parent.name for path in REPOSITORY.glob("*/CMakeLists.txt")} - {"build"}
        self.assertGreater(len(rooms), 10)
        self.assertLessEqual(rooms, set(re.findall(r"\[(\w+)/\]", section_of(README, "Where things are"))))

    def test_every_page_is_in_one_group(self):
        index = REPOSITORY / "docs" / "README.md"
        groups = ["Start", "Use", "Extend", "Method", "Reference"]
        self.assertEqual(re.findall("^## (.*)$", index.read_text(), re.M)[:5], groups)
        listed = [page for group in groups
                  for page in re.findall(r"^\| \[([\w-]+\.md)\]", section_of(index, group), re.M)]
        self.assertEqual(sorted(set(listed) - {"CONTRIBUTING.md"}),
                         sorted(path.name for path in index.parent.glob("*.md") if path != index))
        self.assertEqual(len(listed), len(set(listed)))

    def test_traces_and_keys_are_there_or_made_before(self):
        """Each file of a trace, or of keys, is in the repository, or an earlier line of the same block makes it."""
        used = 0
        for document in [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")]:
            for block in re.findall(r"```sh\n(.*?)```", document.read_text(), re.S):
                made = set()
                for line in block.replace("\\\n", " ").splitlines():
                    for path in re.findall(r"--trace (\S+)", line) + re.findall(r"keys=([\w./-]+\.txt)", line):
                        used += 1
                        with self.subTest(document=document.name, path=path):
                            self.assertTrue(path in made or (REPOSITORY / path).is_file())
                    made |= made_by(line)
        self.assertGreater(used, 4)


def section_of(page, name):
    """The text below the heading `name` of a page, up to the next heading of the same depth."""
    depth, text = re.search(rf"^(##+) {re.escape(name)}\n(.*)", page.read_text(), re.M | re.S).groups()
    return re.split(rf"^{depth} ", text, maxsplit=1, flags=re.M)[0]


def hybrid_ratios(chart, panel):
    """HybridIndex+ over HybridIndex, for each number of threads of a published chart."""
    values = {}
    with open(PUBLISHED / "results.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["chart"], row["panel"]) == (chart, panel):
                values[row["series"], row["x"]] = float(row["value"])
    return [value / values["HybridIndex", threads]
            for (series, threads), value in values.items() if series == "HybridIndex+"]


def rounded(ratios):
    """The least and the most of them, as the README has them."""
    return f"{min(ratios):.1f}", f"{max(ratios):.1f}"


def anchors_of(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    found, seen = set(), {}
    for heading in headings:
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if anchor in seen else anchor)
        seen[anchor] = seen.get(anchor, 0) + 1
    return found


def made_by(line):
    """The files that a line of a shell makes, as far as documents have such lines."""
    files = set(re.findall(r"> (\S+)", line))
    if "make_traces.sh" in line:
        def given(option, otherwise):
            found = re.search(rf"--{option} (\S+)", line)
            return found[1] if found else otherwise
        end = ".txt.gz" if "--gzip" in line else ".txt"
        start = f"{given('out', 'traces')}/{given('generator', 'ycsb')}-{given('workload', 'a')}"
        files |= {f"{start}.{part}{end}" for part in ("load", "run")}
    return files


if __name__ == "__main__":
    unittest.main()
