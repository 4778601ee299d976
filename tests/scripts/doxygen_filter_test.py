"""scripts/doxygen_filter: which comments become documentation, and that every line stays where it was."""

import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

from planted_tree import REPOSITORY, SCRIPTS

LOADER = importlib.machinery.SourceFileLoader("doxygen_filter", str(SCRIPTS / "doxygen_filter"))
FILTER = importlib.util.module_from_spec(importlib.util.spec_from_loader("doxygen_filter", LOADER))
LOADER.exec_module(FILTER)

HEADER = """// What it is, with a <tag> and `code<x>`.
//
//   an example;
//
// More.
#pragma once

#include <string>  // not this

namespace n {

// Does it.
inline int f(int x) {
  // Why.
  return x;  // how
}

// ---- a heading ----

struct s {
  int a = 0;  // bytes
  // One.
  template <class T>
  void g(T t) {
    int local = 0;  // local
  }
};

}  // namespace n
"""

SHOWN = """/** What it is, with a \\<tag\\> and `code<x>`.

\\verbatim    an example;
\\endverbatim
More.
\\file */

#include <string>  // not this

namespace n {

/** Does it. */
inline int f(int x) {
  // Why.
  return x;  // how
}

// ---- a heading ----

struct s {
  int a = 0;  ///< bytes
/** One. */
  template <class T>
  void g(T t) {
    int local = 0;  // local
  }
};

}  // namespace n
"""


def shown(path):
    return "\n".join(FILTER.shown(path.read_text().splitlines(), FILTER.descriptions(path.parent.name))) + "\n"


class DoxygenFilter(unittest.TestCase):
    def test_what_becomes_documentation(self):
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder) / "a.hpp"
            header.write_text(HEADER)
            self.assertEqual([line.rstrip() for line in shown(header).splitlines()], SHOWN.splitlines())

    def test_members_of_a_concept_have_its_words(self):
        text = shown(REPOSITORY / "indexes/include/pmlab/indexes/null_index.hpp")
        line = next(line for line in text.splitlines() if "outcome insert(" in line)
        self.assertIn("/** Concept `point_index`: inserted, exists, full */", line)

    def test_every_line_stays_where_it_was(self):
        for folder in ("base", "media", "sync", "indexes", "cache", "hybrid", "strings"):
            for header in REPOSITORY.glob(f"*/include/pmlab/{folder}/*.hpp"):
                with self.subTest(header=header.name):
                    self.assertEqual(shown(header).count("\n"), header.read_text().count("\n"))


if __name__ == "__main__":
    unittest.main()
