"""Simulated and counted figures repeat to the digit: those of the smoke scale are compared with pinned_figures.csv.

A change that moves a figure changes the table in the same commit, with the reason. To make the table again:

    python3 tests/experiments/pinned_test.py build/release/bin/pmlab --update

The figures are those of one compiler and its flags, which the first line of the table names. A build by another one is
not compared (exit status 77, which ctest takes for skipped).
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pinned_figures.csv")
# Between them each index, cache, hybrid, their restarts, and every simulated profile.
EXPERIMENTS = ["ablation_cache", "ablation_place", "adaptive_cache", "adaptive_hybrid", "cache", "cache_parallel",
               "cache_size", "cache_threads", "counted", "hybrid", "hybrid_restart", "placement", "placement_cxl",
               "recovery", "which_index", "which_strings", "ycsb"]
WITH_MEDIA_BYTES = ["which_index"]
COUNTED = ["pm_lines_read", "device_lines_read", "device_lines_written", "flushes", "fences"]
COLUMNS = ["cell", "index", "threads", "phase", "figure"]
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


def read():
    with open(TABLE, encoding="utf-8", newline="") as f:
        build = f.readline().rstrip("\n")
        return build, {tuple(row[c] for c in COLUMNS): row["value"] for row in csv.DictReader(f)}


def write(build, table):
    with open(TABLE, "w", encoding="utf-8", newline="") as f:
        f.write(build + "\n")
        rows = csv.writer(f, lineterminator="\n")
        rows.writerow([*COLUMNS, "value"])
        rows.writerows([*key, value] for key, value in table.items())


def moved(old, new):
    """A line for each figure that is not as it was."""
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key, "not there"), new.get(key, "not there")
        if before == after:
            continue
        ratio = ""
        if key in old and key in new and float(before) != 0:
            ratio = f" ({100 * (float(after) / float(before) - 1):+.2f} %)"
        cell, index, threads, phase, figure = key
        yield f"  {cell}, {index}, {threads} threads, {phase}: {figure} {before} -> {after}{ratio}"


def main():
    pmlab = os.path.abspath(sys.argv[1])
    build, new = measure(pmlab, EXPERIMENTS)
    if "--update" in sys.argv[2:]:
        write(build, new)
        print(f"{TABLE}: {len(new)} figures")
        return
    pinned_build, old = read()
    if build != pinned_build:
        print(f"not compared: this build is\n  {build}\nand the table of\n  {pinned_build}")
        sys.exit(SKIPPED)
    lines = list(moved(old, new))
    if lines:
        sys.exit("\n".join([f"{len(lines)} of {len(old)} pinned figures moved:", *lines,
                            "If that is meant, give the reason in the commit that has the new table:",
                            "  python3 tests/experiments/pinned_test.py build/release/bin/pmlab --update"]))
    print(f"{len(new)} figures are as pinned")


if __name__ == "__main__":
    main()
