"""Simulated and counted figures repeat to the digit: those of the smoke scale are compared with pinned_figures.csv.

A change that moves a figure changes the table in the same commit, with the reason. To make the table again:

    python3 tests/experiments/pinned_test.py build/release/bin/pmlab --update

The figures are those of one compiler and its flags, which the first line of the table names. A build by another one is
not compared (exit status 77, which ctest takes for skipped).
"""
import json
import os
import subprocess
import sys
import tempfile

from pinned_table import PinnedTable

TABLE = PinnedTable(__file__, "pinned_figures.csv", ["cell", "index", "threads", "phase", "figure"])
# Between them each index, cache, hybrid, their restarts, and every simulated profile.
EXPERIMENTS = ["ablation_cache", "ablation_place", "adaptive_cache", "adaptive_hybrid", "cache", "cache_parallel",
               "cache_size", "cache_threads", "counted", "hybrid", "hybrid_restart", "placement", "placement_cxl",
               "recovery", "which_index", "which_strings", "ycsb"]
WITH_MEDIA_BYTES = ["which_index"]
COUNTED = ["pm_lines_read", "device_lines_read", "device_lines_written", "flushes", "fences"]
SKIPPED = 77


def figures_of(result, experiment):
    if result["per_operation"] is not None:
        yield from ((name, result["per_operation"][name]) for name in COUNTED)
    elif result["restart"] is not None:
        yield "seconds", result["seconds"]
        yield from ((name, value) for name, value in result["restart"].items() if value is not None)
    else:
        yield "throughput_ops_per_s", result["throughput_ops_per_s"]
        if experiment in WITH_MEDIA_BYTES and result["phase"] != "load":
            yield from ((f"media_bytes_{way}", result["media_bytes"][way]) for way in ("read", "written"))


def measure(pmlab, experiments):
    """The build, and {(cell, index, threads, phase, figure): value}; values are text, as the documents have them."""
    table, build = {}, None
    with tempfile.TemporaryDirectory(prefix="pmlab-pinned-") as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run([pmlab, "run", *experiments, "--scale", "smoke", "--out", out, "--pools", folder,
                               "--quiet"],
                              capture_output=True, text=True, timeout=280, check=False)
        if done.returncode != 0:
            sys.exit(f"the smoke scale does not run:\n{done.stdout}\n{done.stderr}")
        for experiment in experiments:
            raw = os.path.join(out, "raw", experiment)
            for name in sorted(os.listdir(raw)):
                with open(os.path.join(raw, name), encoding="utf-8") as f:
                    document = json.load(f, parse_float=str, parse_int=str)
                medium = document["machine"]["medium"]
                if not medium.startswith(("simulated:", "counted:")):
                    continue
                if medium.startswith("simulated:"):
                    build = "# " + document["machine"]["compiler"] + " " + document["machine"]["flags"]
                for result in document["results"]:
                    key = (f"{experiment}/{name.removesuffix('.json')}", result["index"], result["threads"],
                           result["phase"])
                    for figure, value in figures_of(result, experiment):
                        table[(*key, figure)] = value
    return build, table


def main():
    pmlab = os.path.abspath(sys.argv[1])
    build, new = measure(pmlab, EXPERIMENTS)
    if "--update" in sys.argv[2:]:
        TABLE.write(build, new)
        return
    if not TABLE.is_of(build):
        sys.exit(SKIPPED)
    TABLE.expect(new)


if __name__ == "__main__":
    main()
