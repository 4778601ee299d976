"""Facts from the C++ program: machine and build, its options, wrong names of indexes."""

import json

from . import processes, programs
from .errors import FAILURE, Failure


def facts(indexes=()):
    """{"machine": ..., "options": {"bench": [...], "microbench": [...], "stores_volumes": [...],
    "stores_pairs": [...]}, "left_out": [...],
    "problems": {name: problem}}: see tools/cli/facts.hpp. `indexes`: names to be checked, as --index has them."""
    words = [programs.pmlab(), "facts"]
    for name in indexes:
        words += ["--index", name]
    status, text = processes.capture(words)
    if status != 0:
        raise Failure(f"{words[0]} does not list its options", "build or install all of pmlab again", FAILURE)
    return json.loads(text)
