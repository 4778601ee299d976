"""The claims that experiments are evidence for: their names, and their verdicts on what a run left."""

import re

from .. import processes, programs
from ..errors import FAILURE, Failure


def every_claim():
    """Names of the claims: "M1", "I1"."""
    status, text = processes.capture([programs.pmlab(), "claims", "--list"])
    if status != 0:
        raise Failure("pmlab does not tell its claims", "build or install all of pmlab again", FAILURE)
    return re.findall(r"^([MI]\d+)\b", text, re.MULTILINE)


def judge(folder, claims):
    """Judges these claims from a folder of results; prints the verdicts in a line."""
    processes.run([programs.pmlab(), "claims", "--from", folder, *claims])
