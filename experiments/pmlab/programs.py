"""Where the program pmlab is, and the files that lie beside it."""

import os
from pathlib import Path

from . import errors

_PACKAGE = Path(__file__).resolve().parent


def pmlab():
    """The path of the C++ program: that which called this package, otherwise the release build of the source tree."""
    named = os.environ.get("PMLAB_PROGRAM")
    if named:
        return named
    built = _PACKAGE.parents[1] / "build" / "release" / "bin" / "pmlab"
    if built.exists():
        return str(built)
    raise errors.Failure("there is no program pmlab beside this package",
                         "name it in the environment variable PMLAB_PROGRAM, or build target pmlab_program")


def experiments():
    """The folder of the experiments (*.toml): beside the package, in the source tree and where pmlab is installed."""
    return _PACKAGE.parent


def source():
    """The folder that has experiments/ and the traces of tests/data/: the source tree, or PREFIX/share/pmlab of an
    installed pmlab. None: it has no traces, which a cell needs."""
    tree = _PACKAGE.parents[1]
    return tree if (tree / "tests" / "data").is_dir() else None


def facts_of_indexes():
    """The file with the facts of the indexes, in the source tree and where pmlab is installed."""
    return _PACKAGE.parents[1] / "indexes" / "indexes.json"
