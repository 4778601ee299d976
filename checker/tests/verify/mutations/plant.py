#!/usr/bin/env python3
"""Writes mutated copies of headers: every mutation of a data file is in them, and one is chosen at run time.

    plant.py DATA.toml --source ROOT --into TREE

The original text of each mutation that DATA lists is replaced, in a copy of its file below TREE/pmlab, by

    if (::pmlab_mutation == 7) { mutated } else { original }          where the original ends with ; or }
    (::pmlab_mutation == 7 ? (mutated) : (original))                  otherwise: an expression

so that one compilation serves all of them. TREE comes before pmlab's own folder on the include path. The number of a
mutation is its place in DATA, from 1; number 0 is the original. Originals may be equal, and lie in one another.

Status 1, and a word on stderr, if an original is not there exactly once: the source has changed, and the mutation must
follow it.
"""
import argparse
import pathlib
import re
import sys
import tomllib

DECLARATION = '\n// Planted by checker/tests/verify/mutations/plant.py.\nextern "C" const int pmlab_mutation;\n'


SOURCE = pathlib.Path(__file__).resolve().parents[4]


def data_files(source=SOURCE):
    """{NAME: path} of ROOM/tests/mutations/NAME.toml, in the order of names"""
    return {path.stem: path for path in sorted(source.glob("*/tests/mutations/*.toml"), key=lambda path: path.stem)}


class NotThere(Exception):
    pass


def mutations_in(path):
    """[(number, mutation)]"""
    with open(path, "rb") as f:
        return list(enumerate(tomllib.load(f)["mutation"], 1))


def complete_search(path):
    """(crash points, states, openings, outcomes) of `pmlab verify --exhaustive` with the history of complete_test.py;
    empty: they are not recorded yet."""
    with open(path, "rb") as f:
        return tuple(tomllib.load(f).get("complete_search", ()))


def clean_flags(path):
    """Further options of `pmlab verify` for sound subjects; empty unless the data has `clean`."""
    with open(path, "rb") as f:
        return tomllib.load(f).get("clean", [])


def edits_of(mutation):
    """A mutation is one edit, and more where its list `also` has some."""
    return [mutation, *mutation.get("also", [])]


def place_of(text, original, file, name):
    if (count := text.count(original)) != 1:
        raise NotThere(f"{name}: {file} holds its original text {count} times, not once:\n{original}")
    start = text.index(original)
    end = start + len(original)
    # A comment at the end of the original goes on to the end of its line.
    if "//" in original.splitlines()[-1]:
        end = text.index("\n", end)
    return start, end


def choice(original, alternatives):
    """`alternatives`: [(number, text)]"""
    if re.sub(r"\s*//[^\n]*$", "", original).endswith((";", "}")):
        branches = "".join(f"if (::pmlab_mutation == {n}) {{\n{text.rstrip()}\n}} else " for n, text in alternatives)
        return branches + "{\n" + original + "\n}"
    for number, text in reversed(alternatives):
        original = f"(::pmlab_mutation == {number} ? ({text.strip()}) : ({original}))"
    return original


def planted(text, places):
    """`text` with all choices. `places`: {(start, end): [(number, mutated text)]}; one may lie in another."""

    def render(start, end, inner):
        """text[start:end], with the choices of `inner`: those that lie in it, in order, outer ones before theirs."""
        result = ""
        at = start
        while inner:
            first, *inner = inner
            own = [p for p in inner if p[1] <= first[1]]
            inner = inner[len(own):]
            if inner and inner[0][0] < first[1]:
                raise NotThere(f"two original texts overlap:\n{text[first[0]:first[1]]}\n--\n{text[slice(*inner[0])]}")
            result += text[at:first[0]] + choice(render(*first, own), places[first])
            at = first[1]
        return result + text[at:end]

    return render(0, len(text), sorted(places, key=lambda p: (p[0], -p[1])))


def plant(data, source, tree):
    places = {}  # file -> {(start, end): [(number, text)]}
    texts = {}
    for number, mutation in mutations_in(data):
        for edit in edits_of(mutation):
            file = edit["file"]
            text = texts.setdefault(file, (source / file).read_text())
            original = edit["original"].strip()
            place = place_of(text, original, file, mutation["name"])
            places.setdefault(file, {}).setdefault(place, []).append((number, edit["mutated"]))
    for file, choices in places.items():
        target = tree / file.partition("/include/")[2]
        target.parent.mkdir(parents=True, exist_ok=True)
        header, guard, rest = planted(texts[file], choices).partition("#pragma once\n")
        target.write_text(header + guard + DECLARATION + rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="pmlab's source folder")
    parser.add_argument("--into", type=pathlib.Path, required=True)
    given = parser.parse_args()
    try:
        plant(given.data, given.source, given.into)
    except NotThere as problem:
        sys.exit(f"{given.data}: {problem}")


if __name__ == "__main__":
    main()
