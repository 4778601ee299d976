"""JSON files: read with errors that name the file, written whole or not at all (texts.py)."""

import json
import math
import sys

from .errors import Failure
from .texts import is_standard_output, printable, read_text, write_text


def read_json(path):
    """Raises Failure: the file cannot be read, or is no JSON."""
    text = read_text(path, "file")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Failure(f"{printable(path)} is no JSON", "give a file that pmlab wrote with --json") from None


def _without_infinities(value):
    """JSON has no infinity and no NaN: null."""
    if isinstance(value, dict):
        return {key: _without_infinities(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinities(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path, document):
    """As `write_text`; bytes of names that are no UTF-8 are escaped."""
    write_text(path, json.dumps(_printable(_without_infinities(document)), indent=2, ensure_ascii=False) + "\n")


def _printable(value):
    """Before the text is JSON: there a backslash has a meaning."""
    if isinstance(value, dict):
        return {printable(key): _printable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_printable(one) for one in value]
    return printable(value) if isinstance(value, str) else value


def table_beside(path):
    """Where a table goes whose JSON goes to `path`: standard error, if that is standard output."""
    return sys.stderr if is_standard_output(path) else sys.stdout
