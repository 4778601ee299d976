"""JSON files: read with errors that name the file, written whole or not at all. As core/output_file.hpp has it in C++."""

import json
import math
import os
import stat
import sys
import tempfile
from pathlib import Path

from .errors import Failure

STANDARD_OUTPUT = "-"


def read_json(path):
    """Raises Failure: the file cannot be read, or is no JSON."""
    try:
        return json.loads(Path(path).read_bytes())
    except OSError:
        raise Failure(f"{path} cannot be read", "check the path and its permissions") from None
    except (ValueError, RecursionError):
        raise Failure(f"{path} is no JSON", "give a file that pmlab wrote with --json") from None


def _cannot_write(path, reason, remedy):
    return Failure(f"cannot write results to {path}: {reason}", remedy)


def check_writable(path):
    """Raises Failure if `write_json` will not be able to write there: it is better known before a long measurement."""
    if path == STANDARD_OUTPUT:
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise _cannot_write(path, "it is a folder", "name a file")
    if os.path.exists(path) and not os.path.isfile(path):
        if not os.access(path, os.W_OK):
            raise _cannot_write(path, "Permission denied", "check its permissions")
    elif not os.path.isdir(folder):
        raise _cannot_write(path, f"there is no folder {folder}", "make it first")
    elif not os.access(folder, os.W_OK):
        raise _cannot_write(path, "Permission denied", "check the folder's permissions")


def _is_standard_output(path):
    try:
        return os.path.samestat(os.stat(path), os.fstat(1))
    except OSError:
        return False


def _replace(path, text):
    """After a power failure the name leads to the old content or to the new one. A link stays a link."""
    target = os.path.realpath(path)
    old = os.stat(target) if os.path.exists(target) else None
    number, unfinished = tempfile.mkstemp(prefix=os.path.basename(target) + ".unfinished.",
                                          dir=os.path.dirname(target))
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(number)
            # mkstemp keeps others out; a result is as readable as any file of the user.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(number, stat.S_IMODE(old.st_mode) if old else 0o666 & ~mask)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise


def _without_infinities(value):
    """JSON has no infinity and no NaN: null."""
    if isinstance(value, dict):
        return {key: _without_infinities(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinities(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path, document):
    """"-" is standard output; devices and FIFOs are written as they are; other files are replaced as a whole. Raises
    Failure: not all of it could be written, and the old file is as it was."""
    text = json.dumps(_without_infinities(document), indent=2, ensure_ascii=False) + "\n"
    try:
        if path == STANDARD_OUTPUT or _is_standard_output(path):
            sys.stdout.write(text)
        elif os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            _replace(path, text)
    except OSError as problem:
        raise Failure(f"cannot write {path}: {problem.strerror}",
                      "check the path, its permissions and its space") from None


def table_beside(path):
    """Where a table goes whose JSON goes to `path`: standard error, if that is standard output."""
    return sys.stderr if path == STANDARD_OUTPUT else sys.stdout
