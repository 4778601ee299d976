"""The README's example is the one that is compiled and run, and no document leads nowhere."""

import re
import unittest

from planted_tree import REPOSITORY

# Not links: text in a code block or between backquotes.
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


class Documents(unittest.TestCase):
    def test_example_is_the_compiled_one(self):
        blocks = re.findall(r"```cpp\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.S)
        self.assertIn((REPOSITORY / "examples" / "embed.cpp").read_text(), blocks)

    def test_links_lead_somewhere(self):
        """To a file that is there, and to a heading that it has."""
        documents = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("results/*.md")]
        self.assertGreater(len(documents), 5)
        anchors_checked = 0
        for document in documents:
            text = CODE.sub("", document.read_text())
            links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text) + [(s, "") for s in re.findall(r'src="([^":]+)"', text)]
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
        section = (REPOSITORY / "README.md").read_text().split("\n## Licence\n")[1]
        for term in ("non-commercial use", "GPL", "undecided", "Apache License", "(CITATION.bib)", "(CITATION.cff)"):
            self.assertIn(term, " ".join(section.split()))
        cff = dict(re.findall(r'^(\w+): "?([^"\n]+)"?$', (REPOSITORY / "CITATION.cff").read_text(), re.M))
        bib = {key: value.replace("{", "").replace("}", "")
               for key, value in re.findall(r"^  (\w+) += \{(.*)\},$", (REPOSITORY / "CITATION.bib").read_text(), re.M)}
        self.assertEqual({key: bib[key] for key in ("title", "version", "license")},
                         {key: cff[key] for key in ("title", "version", "license")})

    def test_first_screen(self):
        """The thesis with its two charts of the published results, three commands, and the claims' number."""
        screen = (REPOSITORY / "README.md").read_text().split("\n## ")[0]
        self.assertEqual(re.findall(r'src="([^"]+)"', screen),
                         [f"results/quick/charts/thesis-{device}.svg" for device in ("aep", "classic")])
        block = re.search(r"```sh\n(.*?)```", screen, re.S)[1]
        self.assertEqual(len(block.strip().splitlines()), 3)
        declared = "".join(p.read_text() for p in REPOSITORY.glob("docs/claims.md"))
        claims = set(re.findall(r"^\| ([A-Z]\d+) \|", declared, re.M))
        self.assertIn(f"each of {len(claims)} claims", screen)

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
