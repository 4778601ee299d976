"""Invented results of `pmlab microbench --suite paper` and of `pmlab claims`, for the tests of the report."""

import itertools
import json
import math
import pathlib
import tomllib

import sample_results

SUITE = pathlib.Path(__file__).resolve().parent.parent.parent / "microbench" / "memory" / "suites" / "paper.toml"
DESCRIPTION = {"name", "about", "claims", "published", "published_unit"}
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _bytes(text):
    text = str(text)
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def _figures(case):
    """A value that follows from the case's fields."""
    size, threads = _bytes(case.get("access_bytes", 64)), case.get("threads", 1)
    dram = case.get("medium") == "dram"
    if case.get("measure") == "latency":
        return (100 if dram else 300) + size * 0.4 * threads, "ns"
    return (50 if dram else 1 + min(size, 256) / 64), "GiB/s"


def _case(group, fields, name, published):
    value, unit = _figures(fields)
    side = {"threads": 1, "accesses": 10, "gib_per_s": 1.5, "ns_per_access": 800.0, "latency_ns": {"mean": 900.0}}
    known = published is not None and not math.isnan(published)
    return {"name": name, "group": group["name"], "medium": "simulated:aep", "scale": 1, "skipped": None,
            "value": value, "unit": unit, "reads": side, "writes": side, "published": published if known else None,
            "published_unit": group.get("published_unit") if known else None}


def cases():
    """Every case of the suite, with its name as `pmlab microbench` makes it."""
    suite = tomllib.loads(SUITE.read_text())
    found = []
    for group in suite["case"]:
        fields = suite["defaults"] | {k: v for k, v in group.items() if k not in DESCRIPTION}
        axes = [k for k, v in fields.items() if isinstance(v, list)]
        combinations = list(itertools.product(*(fields[a] for a in axes)))
        published = group.get("published", [None] * len(combinations))
        for values, figure in zip(combinations, published if isinstance(published, list) else [published]):
            name = group["name"] + "".join(f"/{a}={v}" for a, v in zip(axes, values))
            found.append(_case(group, fields | dict(zip(axes, values)), name, figure))
    return found


def memory(skip=None):
    """A document of all cases; those whose name has a match of the expression `skip` are skipped."""
    document = {"schema": 1, "kind": "microbench", "machine": sample_results.MACHINE | {"medium": "simulated:aep"},
                "remarks": [],
                "cases": cases()}
    for case in document["cases"]:
        if skip and skip.search(case["name"]):
            case |= {"skipped": "16 threads need as many CPUs", "value": None, "unit": None, "reads": None,
                     "writes": None}
    return json.loads(json.dumps(document))


def _condition(measured, holds):
    return {"what": "64 B: random over sequential", "unit": "x", "measured": measured, "published": 1.8,
            "at_least": 1.5, "at_most": None, "holds": holds, "rule": "at least 1.50x"}


def claims():
    entries = [("M1", "reproduced", None, [_condition(2.5, True)]),
               ("M2", "not reproduced", None, [_condition(1.25, False), _condition(1.75, True)]),
               ("M22", "not applicable", "no drive <named>", [_condition(None, None)])]
    return {"schema": 1, "kind": "claims", "machine": {"medium": "simulated:aep"}, "options": {},
            "claims": [{"id": i, "claim": f"Claim {i}.", "verdict": v, "reason": r, "conditions": c, "cases": []}
                       for i, v, r, c in entries]}
