"""Each header of the library tells a compiler of another language one line: which one it needs."""
import re
import subprocess
import unittest

from planted_tree import REPOSITORY

REQUIREMENTS = "pmlab/base/requirements.hpp"
# For indexes of others, in C or C++17: docs/own-index.md.
OF_OTHERS = {"pmlab/pibench/pool.hpp", "pmlab/pibench/tree_api.hpp"}


def errors_of(header, *flags):
    """The errors of the compiler, without the line of each at which it stops."""
    includes = [f"-I{folder}" for folder in sorted(REPOSITORY.glob("*/include"))]
    done = subprocess.run(["c++", *flags, "-fsyntax-only", *includes, "-x", "c++", "-"], input=f"#include <{header}>\n",
                          capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
    return [line for line in re.findall(r"error: (.*)", done.stderr) if not line.startswith("compilation stops here")]


def first_include_of(header):
    """What the compiler reads first, behind comments and the guard; None: something else."""
    [path] = REPOSITORY.glob(f"*/include/{header}")
    text = re.sub(r"//.*", "", path.read_text())
    found = re.match(r"\s*#pragma once\s*#include <([^>]+)>", text)
    return found[1] if found else None


class Requirements(unittest.TestCase):
    def test_each_header_begins_with_them(self):
        headers = {str(path.relative_to(room)) for room in REPOSITORY.glob("*/include") for path in room.rglob("*.hpp")}
        headers -= OF_OTHERS | {REQUIREMENTS}
        self.assertGreater(len(headers), 150)
        for header in sorted(headers):
            with self.subTest(header):
                first = first_include_of(header)
                self.assertTrue(first == REQUIREMENTS or first in headers, first)

    def test_the_one_line(self):
        for flags, need in ((("-std=c++17",), "C++20: compile with -std=c++20"),
                            (("-std=c++20", "-fno-exceptions"), "exceptions, by which")):
            for header in (REQUIREMENTS, "pmlab/indexes/cceh.hpp", "pmlab/stores/tiered.hpp"):
                with self.subTest(header, flags=flags):
                    errors = errors_of(header, *flags)
                    self.assertEqual(len(errors), 1, errors[:3])
                    self.assertIn(f"pmlab needs {need}", errors[0])

    def test_what_is_for_indexes_of_others_needs_none(self):
        self.assertEqual(errors_of("pmlab/pibench/tree_api.hpp", "-std=c++17", "-fno-exceptions"), [])
        self.assertEqual(errors_of("pmlab/pibench/pool.hpp", "-std=c++17"), [])

    def test_the_language_that_is_needed_is_enough(self):
        self.assertEqual(errors_of(REQUIREMENTS, "-std=c++20"), [])


if __name__ == "__main__":
    unittest.main()
