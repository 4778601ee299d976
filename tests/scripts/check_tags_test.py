"""scripts/check_tags finds every kind of violation, and nothing in a file that has none."""

import unittest

from planted_tree import PlantedTree

SOUND = """\
// Survives a crash (C7), see (I1).
void add() {
  // (P1) < (P2): one line, so no crash image holds the key without its value (C8).
  value.store(v, std::memory_order_release);  // (P1)
  key.store(k, std::memory_order_release);    // (P2) commit
  media::persist(medium_, *line);             // (P3) before the lock is released: what a reader returns is durable
}
"""


class CheckTags(PlantedTree):
    def check(self, text):
        self.plant("indexes/include/pmlab/indexes/index.hpp", text)
        return self.run_script("check_tags")

    def test_sound_file(self):
        self.assert_clean(self.check(SOUND))

    def test_tag_without_rule(self):
        self.assert_found(self.check(SOUND.replace(" before the lock is released: what a reader returns is durable",
                                                   "")),
                          "indexes/include/pmlab/indexes/index.hpp:6: tag (P3) has no rule")

    def test_rule_as_a_sentence(self):
        text = SOUND.replace(" before the lock is released: what a reader returns is durable", "")
        self.assert_clean(self.check(text.replace("\n}", "\n  // (P3) comes last: the reader waits for it.\n}")))

    def test_mere_mention_is_no_rule(self):
        text = SOUND.replace(" before the lock is released: what a reader returns is durable", "")
        self.assert_found(self.check(text.replace("\n}", "\n  // See also (P3).\n}")), "tag (P3) has no rule")

    def test_rule_names_absent_tag(self):
        self.assert_found(self.check(SOUND.replace("(P1) < (P2)", "(P1) < (P2) < (U9)")), "names tag (U9)")

    def test_mention_of_absent_tag_of_a_known_series(self):
        self.assert_found(self.check(SOUND.replace("(C8)", "as (P7)")), "names tag (P7)")

    def test_tag_used_twice(self):
        self.assert_found(self.check(SOUND.replace("// (P2) commit", "// (P1)")), "tag (P1) already marks line 4",
                          "names tag (P2)")

    def test_untagged_flush(self):
        self.assert_found(self.check(SOUND + "void f() {\n  medium_.fence();\n}\n"),
                          "indexes/include/pmlab/indexes/index.hpp:9", "carries no tag")

    def test_tag_on_a_later_line_of_the_statement(self):
        self.assert_clean(self.check(SOUND.replace("*line);             // (P3)",
                                                   "\n                 *line);  // (P3)")))

    def test_media_may_flush_without_tag(self):
        self.plant("media/include/pmlab/media/wrapper.hpp", "void flush() {\n  medium_.flush(a, b);\n}\n")
        self.assert_clean(self.check(SOUND))

    def test_slashes_in_a_string_are_no_comment(self):
        self.assert_clean(self.check(SOUND + 'const char* s = "// (P9) < (P8)";\n'))


if __name__ == "__main__":
    unittest.main()
