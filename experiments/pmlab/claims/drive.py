"""A solid-state drive beside the memory: claim M22 compares with it.

The drive is modelled on a virtual clock, from its datasheet (docs/drive-profiles.md): the verdict is the same on every
machine, whatever drive that has."""

import os
import tempfile

from .. import processes, programs
from ..errors import Failure
from ..json_files import read_json

DRIVE = "simulated:p4610"  # sold beside the first generation of Optane
CASES = ("drive-read", "drive-write")  # cases of every suite of drives: peak bandwidth


def drive_cases(document):
    """The cases that M22 needs, of what `pmlab microbench --device --json` wrote; none, if it is of another drive.
    Raises KeyError, TypeError: it is no such document."""
    if document["machine"]["medium"] != DRIVE:
        return []
    return [case for case in document["cases"] if case["name"] in CASES]


def measure_drive():
    """These cases, measured: a second. Raises Failure."""
    with tempfile.NamedTemporaryFile(prefix="pmlab-drive-") as written:
        words = ["microbench", "--device", DRIVE, "--suite", "quick", "--filter", f"^({'|'.join(CASES)})$", "--quiet"]
        if processes.run([programs.pmlab(), *words, "--json", written.name], output=os.devnull) != 0:
            raise Failure(f"the drive {DRIVE} could not be measured", "see the complaint above")
        return drive_cases(read_json(written.name))
