"""Fills in which tests exercise each row of docs/known-defects.md.

usage: list_known_defects.py [--check]

The first two columns of the document's tables and the remarks are written by hand; the column of tests is written by
this script: a test whose name has a row's tag as one of its words (F1_..., ..._C9_...) exercises that row, and so does
a mutation of ROOM/tests/mutations/*.toml that names the row and that `pmlab verify` must find. With --check nothing is
written, and the exit status is 0 if the document is up to date.
A row without a test must have a remark with the reason.
"""
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "known-defects.md"
TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
TAG = re.compile(r"[FCAPLS]\d+")
OWNER = {"L": "level_hashing", "P": "fp_tree", "S": "skip_list"}
ROW = re.compile(r"\| ([FCAPLS]\d+) \| (.*?) \| (.*?) \| (.*?) \|$")


def tests_by_row():
    """{row: [test]}, the tests in the order of files and lines."""
    found = {}
    for path in sorted([*ROOT.glob("tests/**/*.cpp"), *ROOT.glob("*/tests/**/*.cpp")]):
        for suite, name in TEST.findall(path.read_text()):
            for tag in TAG.findall(" ".join(word for word in name.split("_") if TAG.fullmatch(word))):
                found.setdefault(tag, []).append(f"{suite}.{name}")
    for path in sorted(ROOT.glob("*/tests/mutations/*.toml"), key=lambda path: path.stem):
        for mutation in tomllib.loads(path.read_text())["mutation"]:
            for tag in mutation.get("rows", []):
                # The rows of Level hashing, FP-tree and skip list are theirs to show.
                if tag[0] in "FCA" or OWNER.get(tag[0]) == path.stem:
                    found.setdefault(tag, []).append(f"verify.{path.stem}_mutation.{mutation['name']}")
    return found


def rewritten(text, tests):
    """The document with its column of tests brought up to date; complains of rows without test and remark."""
    lines, rows, wrong = [], [], []
    for line in text.splitlines():
        if row := ROW.match(line):
            tag, must_hold, _, remark = row.groups()
            rows.append(tag)
            named = "<br>".join(f"`{test}`" for test in tests.get(tag, [])) or "none yet"
            if named == "none yet" and remark.strip() in ("", "-"):
                wrong.append(f"{DOCUMENT.name}: row {tag} has neither a test nor a remark with the reason")
            line = f"| {tag} | {must_hold} | {named} | {remark} |"
        lines.append(line)
    wrong += [f"tests name row {tag}, which {DOCUMENT.name} does not have" for tag in sorted(set(tests) - set(rows))]
    wrong += [f"{DOCUMENT.name} has row {tag} twice" for tag in sorted({t for t in rows if rows.count(t) > 1})]
    return "\n".join(lines) + "\n", wrong


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    old = DOCUMENT.read_text()
    new, wrong = rewritten(old, tests_by_row())
    if wrong:
        sys.exit("\n".join(wrong))
    if sys.argv[1:] == ["--check"]:
        if new != old:
            sys.exit(f"{DOCUMENT.name} is out of date; run indexes/tests/list_known_defects.py")
    else:
        DOCUMENT.write_text(new)


main()
