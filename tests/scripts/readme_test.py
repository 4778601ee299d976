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
        documents = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("results/*.md")]
        self.assertGreater(len(documents), 5)
        for document in documents:
            text = CODE.sub("", document.read_text())
            targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^":]+)"', text)
            for target in targets:
                with self.subTest(document=document.name, target=target):
                    self.assertTrue((document.parent / target).exists())


if __name__ == "__main__":
    unittest.main()
