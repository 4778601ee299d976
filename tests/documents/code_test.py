"""The C++ blocks of README.md and docs/ compile as they stand there, beside the variables that their text names.

    code_test.py COMPILER FLAG...
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from document import blocks_of, pages

COMPILER = sys.argv[1:]
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
         "-Wno-unused-variable", "-Wno-unused-but-set-variable"]

# Blocks that are lines of a file which is compiled elsewhere, or have parts that the reader is to write.
LINES_OF_A_FILE = {
    "README.md": "examples/embed.cpp",
    "docs/adding-a-medium.md": "examples/own_medium.cpp",
    "docs/adding-an-index.md": "indexes/include/pmlab/indexes/null_index.hpp",
    "docs/drive-profiles.md": "a header of the tools, which are not installed",
    "docs/memory-model.md": "a comment alone",
    "docs/own-index.md": "examples/own_index",
    "docs/verification.md": "a class without its members' bodies",
}
# Declarations that the first block of a page uses, and those behind it.
POOL = "media::pmem pool(path);"
DRIVES = "blocks::file fast(path), slow(path), drive(path), flash(path);"
BYTES = "std::vector<std::byte> data(4096), buffer(4096); std::uint64_t offset = 0, length = 4096;"
BEFORE = {
    "docs/blocks.md": ["",
                       "blocks::file drive(path); blocks::buffer data(32 * 4096); auto report = [](auto, auto) {};"],
    "docs/cache.md": [""],
    "docs/chunk-store.md": [BYTES, DRIVES, POOL + DRIVES],
    "docs/embedding.md": ["", "pmlab::media::pmem pool(path); auto ship = [](auto, auto) {};", ""],
    "docs/hosts.md": ["", "", ""],
    "docs/hybrid.md": [""],
    "docs/kv-ssd.md": ["std::vector<std::string_view> keys; std::vector<std::byte> value, more;"],
    "docs/strings.md": ["", POOL],
    "docs/tiered.md": ["std::string key, value; auto use = [](auto, auto) {};", DRIVES],
}
INCLUDE = re.compile(r"(?m)^#include .*\n")


def code_pages():
    return {page: blocks for page in pages() if (blocks := [b for b in blocks_of(page) if b[0] == "cpp"])}


def functions_of(page, blocks):
    """Each block of a page in a function. The first one of a page names the namespaces for all of it."""
    named = "".join(re.findall(r"(?m)^(?:using namespace|namespace \w+ =).*;\n", blocks[0][2]))
    for number, ((_, line, block), before) in enumerate(zip(blocks, BEFORE[page])):
        name = re.sub(r"\W", "_", f"{page}_{number}")
        yield (f"void {name}([[maybe_unused]] const char* path) {{\n{named if number or before else ''}{before}\n{{\n"
               f'#line {line} "{page}"\n{INCLUDE.sub("", block)}}}\n}}\n')


def program():
    """One, since the headers take longer than the blocks."""
    compiled = {page: blocks for page, blocks in code_pages().items() if page in BEFORE}
    includes = [text for blocks in compiled.values() for _, _, block in blocks for text in INCLUDE.findall(block)]
    standard = [f"#include <{name}>\n" for name in ("array", "chrono", "span", "string", "vector")]
    return "".join([*includes, *standard, *(f for page, blocks in compiled.items()
                                            for f in functions_of(page, blocks))])


class Code(unittest.TestCase):
    def test_every_block_is_known(self):
        known = {page: len(before) for page, before in BEFORE.items()}
        found = {page: len(blocks) for page, blocks in code_pages().items() if page not in LINES_OF_A_FILE}
        self.assertEqual(found, known, "add the declarations that a block uses to BEFORE")

    def test_every_block_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "pages.cpp")
            with open(source, "w", encoding="utf-8") as file:
                file.write(program())
            done = subprocess.run([*COMPILER, *FLAGS, source], capture_output=True, text=True, check=False, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
