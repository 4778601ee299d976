"""The commands that a document tells its reader to type."""
import dataclasses
import glob
import os
import re

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SHELL = ("sh", "bash", "shell", "console")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Command:
    """A line of a shell block, with the lines that continue it, without its comment."""

    page: str  # its path in the repository
    line: int
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def pages():
    """README.md and the pages of docs/, as paths in the repository."""
    found = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    return ["README.md", *sorted(os.path.relpath(path, ROOT) for path in found)]


def text_of_page(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read()


def text_of(name):
    return text_of_page(os.path.join("docs", name))


def blocks_of(page):
    """(language, number of its first line, text) of each fenced block."""
    text = text_of_page(page)
    return [(block[1], text[:block.start(2)].count("\n") + 1, block[2]) for block in BLOCK.finditer(text)]


def commands_of_page(page):
    """The commands of its shell blocks, in their order."""
    found = []
    for language, first, text in blocks_of(page):
        if language not in SHELL:
            continue
        joined, number = "", first
        for i, line in enumerate(text.splitlines(), first):
            number = number if joined else i
            joined += line.removesuffix("\\")
            if line.endswith("\\"):
                continue
            command = re.sub(r"(^|\s+)#\s.*$", "", joined).strip()
            if command:
                found.append(Command(page, number, command))
            joined = ""
    return found


def commands_of(name):
    """The texts of the commands of docs/NAME, in their order."""
    return [command.text for command in commands_of_page(os.path.join("docs", name))]
