"""All claims: those of the files in the folder `declared`, which are found by being there."""

import functools
import importlib
from pathlib import Path

from ..errors import Failure

_SUBJECTS = "MI"  # memory, indexes; other letters after them


def _place(claim):
    letter = claim.id[0]
    return (_SUBJECTS.index(letter) if letter in _SUBJECTS else len(_SUBJECTS), letter, int(claim.id[1:]))


@functools.cache
def every_claim():
    """M1 to M26, then I1 to I11, then claims with other letters. Raises Failure: two have the same id."""
    found = {}
    for file in sorted((Path(__file__).parent / "declared").glob("[!_]*.py")):
        for claim in importlib.import_module(f"{__package__}.declared.{file.stem}").CLAIMS:
            if claim.id in found:
                raise Failure(f"two claims have the id {claim.id}, one of them in {file.name}", "give it a free number")
            found[claim.id] = claim
    return tuple(sorted(found.values(), key=_place))
