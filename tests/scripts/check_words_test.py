"""scripts/check_words finds each listed pattern where text is, and nothing in code."""

import tomllib
import unittest

from planted_tree import SCRIPTS, PlantedTree

SOUND_CODE = """\
// A reader validates the version. REQUIRES: no concurrent writer.
void add() {
  const int anew = what_comes();  // (P1) commit
  throw error("the pool is full", "use a larger pool");
}
"""


class CheckWords(PlantedTree):
    def check(self, path, text):
        self.plant(path, text)
        return self.run_script("check_words")

    def test_sound_file(self):
        self.assert_clean(self.check("base/include/pmlab/base/a.hpp", SOUND_CODE))

    def test_comment(self):
        text = SOUND_CODE.replace("A reader validates", "Whoever reads validates")
        self.assert_found(self.check("base/include/pmlab/base/a.hpp", text),
                          "base/include/pmlab/base/a.hpp:1: 'Whoever'", "write: the thread")

    def test_comment_behind_code(self):
        text = SOUND_CODE.replace("(P1) commit", "(P1) nobody waits")
        self.assert_found(self.check("base/include/pmlab/base/a.hpp", text), "a.hpp:3: 'nobody'")

    def test_fragment_that_opens_with_of(self):
        text = SOUND_CODE.replace("A reader validates the version.", "Of a reader: the version.")
        self.assert_found(self.check("a.hpp", text), "a.hpp:1: 'Of'", "write: the noun first")
        text = SOUND_CODE.replace("REQUIRES: no", "Of these, one is wrong. REQUIRES: no")
        self.assert_found(self.check("a.hpp", text), "a.hpp:1: 'Of'")
        self.assert_found(self.check("a.hpp", SOUND_CODE.replace("the pool is", "Of the pool, it is")), "a.hpp:4: 'Of'")
        self.plant("a.hpp", SOUND_CODE)
        self.assert_found(self.check("a.py", 'a = 1  # one\n\n\ndef b():\n    """Of one read."""\n'), "a.py:5: 'Of'")
        self.assert_found(self.check("a.py", 'add("--a", help="0 if not given. Of kv, pairs")\n'), "a.py:1: 'Of'")

    def test_comment_behind_code_that_opens_with_of(self):
        self.assert_found(self.check("a.hpp", "int bytes = 0;  // of DRAM\n"), "a.hpp:1:", "write: the noun first")
        self.plant("a.hpp", SOUND_CODE)
        self.assert_found(self.check("a.py", "LEVEL = 0.05  # of the test\n"), "a.py:1:")
        self.assert_found(self.check("a.py", "LEVEL = 1 / 20  # of the test\n"), "a.py:1:")
        self.assert_found(self.check("a.py", "SIGN = '#'  # of a comment\n"), "a.py:1:")

    def test_long_line(self):
        for path, sign in (("a.hpp", "//"), ("a.py", "#"), ("a.sh", "#")):
            words = "word " * 23
            self.assert_clean(self.check(path, f"{sign} {words}\n"))
            self.assert_found(self.check(path, f"{sign} {words}and more\n"), f"{path}:1: a line of 12",
                              "at most 120")
            self.plant(path, "\n")
        code = "text('" + "word " * 23 + "', 1)\n"
        self.assert_found(self.check("a.py", code), "a.py:1: a line of 12")
        self.plant("a.py", "\n")
        self.assert_clean(self.check("a.sh", code))

    def test_of_inside_a_sentence(self):
        self.assert_clean(self.check("a.hpp", "// The bytes of a value,\n// of DRAM.\nint OfBytes;  // bytes of "
                                     "DRAM\nsay(Of(bytes));\n"))

    def test_across_the_end_of_a_line(self):
        self.assert_found(self.check("a.cpp", "// This comment lists what\n// comes next.\n"), "a.cpp:1: 'what comes'")

    def test_not_across_code(self):
        self.assert_clean(self.check("a.cpp", "// Rules for what\nint a;\nint b;\n// comes later.\n"))

    def test_message(self):
        text = SOUND_CODE.replace("the pool is full", "somebody filled the pool")
        self.assert_found(self.check("a.cpp", text), "a.cpp:4: 'somebody'")

    def test_word_in_quotes_is_no_message(self):
        self.assert_clean(self.check("a.cpp", 'const char* const name = "nobody";\n'))

    def test_python(self):
        self.assert_found(self.check("a.py", '"""Does it.\n\nSays so.\n"""\nanew = 1\n'), "a.py:3: 'Says so'")
        self.assert_clean(self.check("a.py", '"""Does it."""\nanew = 1\n'))

    def test_script_without_suffix(self):
        self.assert_found(self.check("scripts/x", "#!/bin/bash\n# Everybody runs it.\n"), "scripts/x:2: 'Everybody'")

    def test_toml(self):
        self.assert_found(self.check("a.toml", 'about = "made anew at open"\n'), "a.toml:1: 'anew'")

    def test_code_of_planted_defects_is_not_checked(self):
        self.assert_clean(self.check("a.toml", "original = '''\n// nobody waits\n'''\nmutated = \"nobody waits\"\n"))

    def test_page(self):
        self.assert_found(self.check("docs/a.md", "The file says what is there.\n"), "docs/a.md:1: 'says what'")
        self.assert_clean(self.check("docs/a.md", "Call `whoever()`.\n\n```cpp\nnobody(says, so);\n```\n"))

    def test_comment_in_code_of_a_page(self):
        self.assert_found(self.check("docs/a.md", "```sh\nrun  # what comes next\n```\n"), "docs/a.md:2: 'what comes'")

    def test_history_and_results_are_not_checked(self):
        self.assert_clean(self.check("CHANGELOG.md", "Nobody waits.\n"))
        self.assert_clean(self.check("results/a.md", "Nobody waits.\n"))

    def test_each_pattern_has_a_reason_and_a_replacement(self):
        for stated in tomllib.loads((SCRIPTS / "plain_words.toml").read_text())["words"]:
            with self.subTest(stated["pattern"]):
                self.assertTrue(stated["because"] and stated["write"])


if __name__ == "__main__":
    unittest.main()
