"""The indexes that pmlab offers, with the facts of each: indexes/indexes.json, in its order. `pmlab list --json` shows
the same facts."""

import json
from functools import cache

from . import errors, programs


@cache
def offered():
    """All of them, as the file has them. docs/adding-an-index.md lists the facts."""
    path = programs.facts_of_indexes()
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise errors.Failure(f"cannot read the facts of the indexes, {path}: {problem}",
                             "run the package in pmlab's source tree, or install all of pmlab",
                             errors.FAILURE) from None


def verified():
    """Those that keep their entries: all but the null index."""
    return [index for index in offered() if index.get("verified", True)]


def swept():
    """Those that a family in an experiment stands for, in the order of their names."""
    return sorted(verified(), key=lambda index: index["name"])
