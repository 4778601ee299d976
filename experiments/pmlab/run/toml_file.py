"""A TOML file, with the line of each key: errors name it. tomllib itself does not keep lines."""

import re
import tomllib

from ..errors import Failure
from ..spelling import nearest

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]#]+?)\s*\]")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_LINE = re.compile(r"\(at (?:line (\d+)|end of document)")


def _parts(dotted):
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _lines_of_keys(text):
    """{(table, ..., key): line}; a table of a [[list]] is known by its number: ("chart", 0, "kind")."""
    lines, path, counts = {}, (), {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            path = _parts(header[2])
            lines.setdefault(path, number)
            if header[1] == "[[":
                counts[path] = counts.get(path, -1) + 1
                path = (*path, counts[path])
                lines[path] = number
        elif key := _KEY.match(line):
            lines.setdefault((*path, *_parts(key[1])), number)
    return lines


class TomlFile:
    """`table`: its content. Raises Failure: not TOML."""

    def __init__(self, text, name):
        self.name = name
        try:
            self.table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            found = _LINE.search(str(problem))
            line = found[1] if found and found[1] else len(text.splitlines())
            what = _LINE.sub("", str(problem)).split("  ")[0].rstrip(" ,()")
            what = re.sub(r", column \d+\)?$", "", what).strip()
            raise Failure(f"{name}:{line}: not TOML: {what}", "correct that line") from None
        self._lines = _lines_of_keys(text)

    def place(self, *path):
        """ "FILE:LINE" of a key, or "FILE" where its line is not known."""
        line = self._lines.get(path)
        return f"{self.name}:{line}" if line else self.name

    def refuse_unknown_keys(self, table, known, *path):
        """Raises Failure, with the nearest, if a key of `table`, which is at `path`, is none of `known`."""
        for key in table:
            if key not in known:
                raise Failure(f"{self.place(*path, key)}: key '{key}' is not known",
                              f"did you mean '{nearest(key, known)}'? docs/experiments.md lists them")

    def text(self, value, *path):
        """A text or a number as it would be typed."""
        if isinstance(value, str):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return repr(value).removesuffix(".0")
        raise Failure(f"{self.place(*path)}: {path[-1]} is neither a text nor a number",
                      "write it as on the command line, in quotation marks")

    def texts(self, value, *path):
        """A list of them."""
        if not isinstance(value, list) or not value:
            raise Failure(f"{self.place(*path)}: {path[-1]} is no list", f'write {path[-1]} = ["..."]')
        return [self.text(one, *path) for one in value]
