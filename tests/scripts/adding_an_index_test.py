"""docs/adding-an-index.md, followed step by step with a copy of the source that has no null index.

usage: adding_an_index_test.py PMLAB_SIMULATED files|build
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-an-index.md").read_text()
NAME = "null_index"
MOST_FILES = 8
# Files in a source tree that are built, generated or recorded.
LEFT_OUT = shutil.ignore_patterns(".*", "build*", "results", "docs", "__pycache__")

# Prints what the Python package and the shared tests in Python make of an index.
ASK = """
import json, sys
sys.dont_write_bytecode = True
sys.path[:0] = ["experiments", "tests/cli", "tests/experiments"]
name = sys.argv.pop(1)
from package import OPTIONS
from pmlab.indexes import swept
from pmlab.report import names, style
from pmlab.run.experiment import experiment_names, load_experiment
from pmlab.run.plan import plan
from program import INDEXES
def takes(experiment):
    return any(name in cell.value("--index") for cell in plan(load_experiment(experiment, OPTIONS), "full", swept()))
colour = style.colour_of(name)
print(json.dumps({"title": names.index_title(name), "colour": colour, "dark": style.DARK[colour],
                  "swept by": [e for e in experiment_names() if takes(e)], "tested": name in INDEXES}))
"""


def block_after(text, heading):
    """The code block that follows `text` in the section `heading`."""
    section = PAGE[PAGE.index(heading):]
    return re.search(r"```\w+\n(.*?)```", section[section.index(text):], re.S)[1]


def files_of_the_page(name):
    """The paths in the page's table of files, for an index of this name."""
    table = PAGE[:PAGE.index("## 1. The header")]
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    return [path.replace("NAME", name) for row in rows for path in re.findall(r"`([^`]+)`", row)]


class AddingAnIndex(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pmlab-adding-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.source = self.folder / "source"
        shutil.copytree(ROOT, self.source, ignore=LEFT_OUT)
        self.offered = self.source / "indexes" / "indexes.json"
        self.header(NAME).unlink()
        self.offered.write_text(self.offered.read_text().replace(",\n" + block_after("", "## 2. The entry"), "\n"))
        self.assertNotIn(NAME, self.offered.read_text())

    def header(self, name):
        return self.source / "indexes" / "include" / "pmlab" / "indexes" / f"{name}.hpp"

    def add(self, entry):
        """Behind the others."""
        self.offered.write_text(self.offered.read_text().rstrip().removesuffix("\n]") + f",\n{entry}]\n")
        json.loads(self.offered.read_text())

    def run_in(self, *command, fails=False, folder=None):
        done = subprocess.run(list(map(str, command)), cwd=folder or self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode != 0, fails, done.stdout[-4000:])
        return done.stdout

    def configure(self, fails=False):
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        return self.run_in("cmake", "-G", "Ninja", "-S", self.source, "-B", "build", "-DCMAKE_BUILD_TYPE=Release",
                           *launcher, fails=fails)

    def build(self, target):
        self.run_in("cmake", "--build", "build", "--target", target)

    def built(self, path):
        return (self.folder / "build" / path).read_text()

    def contents(self):
        return {str(path.relative_to(self.source)): path.read_bytes() for path in self.source.rglob("*")
                if path.is_file()}


class Files(AddingAnIndex):
    def test_the_files_of_the_page_are_enough(self):
        """An index that keeps its entries, as far as a configured build tells: programs, shared tests, verification,
        experiments and report have it, and no file but those of the page was touched."""
        name = "small_index"
        before = self.contents()
        self.header(name).write_text(block_after("", "## 1. The header").replace(NAME, name))
        self.add(block_after("", "## 2. The entry").replace(NAME, name).replace(', "verified": false', "")
                 .replace("#c4c4c4", "#123456").replace("#6a6a6a", "#abcdef"))
        (self.source / "indexes" / "tests" / f"{name}_test.cpp").write_text("// A scenario of its own.\n")
        (self.source / "indexes" / "tests" / "mutations" / f"{name}.toml").write_text(
            '[[mutation]]\nname = "of_size"\nfile = "indexes/include/pmlab/indexes/small_index.hpp"\n'
            'original = "return 0;"\nmutated = "return 1;"\nverify = ["--crashes"]\n')
        touched = {path for path, content in self.contents().items() if before.get(path) != content}
        self.configure()

        for path, part in (("bench/catalogue/offered", "keeps::entries"), ("checker/verify/subject", name),
                           ("tools/pibench/index", name), ("tools/pibench/cache", name)):
            self.assertIn(part, self.built(f"{path}/{name}.cpp"), path)
        self.assertIn(f'"name": "{name}"', self.built("tools/cli/index_facts.cpp"), "pmlab list")
        lists = self.built("tests/support/generated/offered_indexes.hpp")
        for part in (f"#include <pmlab/indexes/{name}.hpp>", f"TEMPLATE class {name}<Medium>;"):
            self.assertIn(part, lists)
        self.assertEqual(lists.count(f"Each<indexes::{name}>"), 2, "all indexes, and the ordered ones")
        tests = self.run_in("ctest", "-N", "--test-dir", "build")
        for test in (f"verify.{name}_is_clean", f"verify.strings_{name}_is_clean",
                     f"verify.{name}_is_clean_unoptimised",
                     f"verify.{name}_mutation.of_size", f"verify.{name}_is_searched_completely",
                     f"test_indexes_{name}_NOT_BUILT"):
            self.assertRegex(tests, rf": (indexes\.)?{re.escape(test)}\n")

        said = json.loads(self.run_in(sys.executable, "-c", ASK, name, folder=self.source))
        self.assertEqual((said["title"], said["colour"], said["dark"], said["tested"]),
                         (name, "#123456", "#abcdef", True))
        self.assertLessEqual({"answers", "counted", "ordered", "recovery", "scans", "trace", "which_index",
                              "which_strings", "ycsb"},
                             set(said["swept by"]))
        self.assertNotIn("hashes", said["swept by"])

        page = files_of_the_page(name)
        self.assertLessEqual(touched, set(page))
        self.assertEqual(len(touched), 4, touched)
        self.assertLessEqual(len(page), MOST_FILES, page)

    def test_a_fact_that_is_missing_is_named(self):
        self.add(block_after("", "## 2. The entry").replace('"colour": "#c4c4c4", ', ""))
        self.assertIn("an index has no colour;", self.configure(fails=True))

    def test_shows_the_header_as_it_is(self):
        self.assertEqual(block_after("", "## 1. The header"),
                         (ROOT / "indexes" / "include" / "pmlab" / "indexes" / f"{NAME}.hpp").read_text())
        self.assertIn(block_after("", "## 2. The entry"), (ROOT / "indexes" / "indexes.json").read_text())

    def test_the_page_lists_the_facts(self):
        section = PAGE[PAGE.index("## 2. The entry"):PAGE.index("## 3. The tests")]
        listed = {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)}
        self.assertEqual(listed, {fact for index in json.loads((ROOT / "indexes" / "indexes.json").read_text())
                                  for fact in index})

    def test_vectors_are_loaded_by_those_that_say_so(self):
        def includes(header, seen):
            for path in re.findall(r"#include <(pmlab/[\w/.]+)>", header.read_text()):
                found = next(ROOT.glob(f"*/include/{path}"))
                if found not in seen:
                    seen.add(found)
                    includes(found, seen)
            return {path.name for path in seen}
        for index in json.loads((ROOT / "indexes" / "indexes.json").read_text()):
            header = ROOT / "indexes/include/pmlab/indexes" / f"{index.get('header', index['name'])}.hpp"
            with self.subTest(index=index["name"]):
                self.assertEqual("four_words.hpp" in includes(header, set()), index.get("loads_vectors", False))


class Build(AddingAnIndex):
    def test_the_page(self):
        # 1 and 2: the program has it, here the one for the simulated machine, which loads its indexes when it starts.
        self.header(NAME).write_text(block_after("", "## 1. The header"))
        self.add(block_after("", "## 2. The entry"))
        self.configure()
        self.build(f"pmlab_simulated_{NAME}")
        program = pathlib.Path(shutil.copytree(os.path.dirname(PROGRAM), self.folder / "build" / "bin",
                                               dirs_exist_ok=True)) / os.path.basename(PROGRAM)
        shown = self.run_in(program, "bench", "--index", NAME, "--medium", "simulated:dram", "--records", "1k",
                            "--operations", "1k", "--json", "results.json")
        self.assertIn(NAME, shown)
        results = json.loads((self.folder / "results.json").read_text())["results"]
        self.assertEqual({r["index"] for r in results}, {NAME})

        # 3: the tests have it, and an index that keeps nothing fails them. (Alone, to build less.)
        self.offered.write_text(self.offered.read_text().replace(', "verified": false', ""))
        self.configure()
        one = f"Each<indexes::{NAME}>"
        self.assertIn(one, self.built("tests/support/generated/offered_indexes.hpp"))
        template = self.source / "tests" / "support" / "offered_indexes.hpp.in"
        template.write_text(template.read_text().replace("@offered@", one))
        self.configure()
        self.build("test_indexes_durable")
        said = self.run_in(self.folder / "build" / "indexes" / "tests" / "test_indexes_durable",
                           f"--gtest_filter=*/{NAME}_on_pmem.*A3*", fails=True)
        self.assertIn("FAILED", said)
        self.assertIn("1 FAILED TEST", said)


if __name__ == "__main__":
    PROGRAM, PART = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], PART.title()], verbosity=2)
