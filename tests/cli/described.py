"""The fields that docs/results-schema.md describes, and those of a document that pmlab wrote."""
import os
import re

from program import DOCS

KINDS = {"number": (int, float), "string": (str,), "boolean": (bool,), "object": (dict,), "null": (type(None),),
         "array of strings": (list,), "array of numbers": (list,), "array of objects": (list,)}


def documented_fields(command="bench"):
    """Path -> type of every field in the tables of the page's part about `pmlab COMMAND`."""
    with open(os.path.join(DOCS, "results-schema.md"), encoding="utf-8") as f:
        parts = re.split(r"^# The results of `pmlab (.*)`\n", f.read(), flags=re.MULTILINE)
    part = dict(zip(parts[1::2], parts[2::2]))[command]
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|", part, re.MULTILINE))


def walk(value, path=""):
    """(path, value) of every field, objects of arrays under path[]."""
    if isinstance(value, dict):
        for key, inner in value.items():
            here = f"{path}.{key}" if path else key
            yield here, inner
            yield from walk(inner, here)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner, path + "[]")


def seen_fields(test, documents, documented):
    """The paths of the fields in the documents. Fails `test` at one that is not documented, or of another type."""
    seen = set()
    for document in documents:
        for path, value in walk(document):
            test.assertIn(path, documented, "not in docs/results-schema.md")
            allowed = [kind for name in documented[path].split(" or ") for kind in KINDS[name]]
            test.assertIs(type(value) in allowed, True, f"{path}: {value!r} is no {documented[path]}")
            seen.add(path)
    return seen
