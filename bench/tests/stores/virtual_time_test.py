"""Stores in virtual time: two runs have the same digits, and those of virtual_time_figures.csv; and the drive is the
limit.

The second run is of a copy of the program at a longer path, with another environment: all that a run allocates lies in
the machine's heap, so neither moves a figure. Another build of the same sources may: the compiler places code and
constants by names of folders, too. So times of one thread of chunk_store may be a thousandth from the table, and
percentiles a step of their histogram. With several threads it changes their order: there the table has the drive alone.

A change that moves a figure changes the table in the same commit, with the reason. To make the table again:

    python3 bench/tests/stores/virtual_time_test.py build/release/bin/pmlab --update

The figures are those of one compiler and its flags, which the first line of the table names; those of another build are
not compared with it.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "experiments"))
from pinned_table import PinnedTable  # noqa: E402

TABLE = PinnedTable(__file__, "virtual_time_figures.csv", ["run", "store", "case", "figure"])
COMMON = ["stores", "volumes", "--medium", "simulated:aep", "--device", "simulated:p4610",
          "--volume-bytes", "32M", "--operations", "1500", "--repeat", "3", "--quiet"]
RUNS = {
    "one thread": ["--store", "chunk_store,raw", "--phases", "overwrite", "--size", "4K,16K", "--depth", "1,32"],
    "four threads": ["--store", "chunk_store,raw", "--phases", "fill,mix-a", "--size", "16K", "--depth", "8",
                     "--threads", "4", "--index", "skip_list", "--ring", "4"],
}


def copy_at_a_longer_path(pmlab, folder):
    """The copy of the program, and of the libraries that a run of a store loads."""
    simulated = os.path.join("lib", "pmlab", "simulated")
    build = os.path.dirname(os.path.dirname(pmlab))
    to = os.path.join(folder, "a-path-that-is-longer-than-that-of-the-program" * 3)
    shutil.copytree(os.path.join(build, simulated), os.path.join(to, simulated),
                    ignore=shutil.ignore_patterns("verify"))
    os.makedirs(os.path.join(to, "bin"))
    for program in ("pmlab", "pmlab-simulated"):
        shutil.copy(os.path.join(build, "bin", program), os.path.join(to, "bin"))
    return os.path.join(to, "bin", "pmlab")


def run(pmlab, more, folder, environment):
    path = os.path.join(folder, "results.json")
    subprocess.run([pmlab, *COMMON, *more, "--json", path], stdout=subprocess.DEVNULL, timeout=280, check=True,
                   env={**os.environ, **environment})
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def figures_of(name, document):
    for case in document["cases"]:
        assert case["clock"] == "virtual" and case["wrong"] == 0, case
        key = (name, case["store"], f"{case['phase']} {case['pattern']} {case['size']} depth {case['depth']}, layout "
               f"{case['repetition']}")
        yield (*key, "time_ns"), case["time_ns"]
        yield (*key, "p50_ns"), case["latency_ns"]["p50"]
        yield (*key, "p99_ns"), case["latency_ns"]["p99"]
        yield (*key, "written_bytes"), case["device_io"]["written_bytes"]


def measure(pmlab):
    table, build = {}, None
    with tempfile.TemporaryDirectory(prefix="pmlab-virtual-") as folder:
        copy = copy_at_a_longer_path(pmlab, folder)
        for name, more in RUNS.items():
            first, second = run(pmlab, more, folder, {}), run(copy, more, folder, {"PMLAB_TEST_LENGTH": "x" * 99})
            figures = dict(figures_of(name, first))
            again = dict(figures_of(name, second))
            moved = [f"{key}: {value}, then {again[key]}" for key, value in figures.items() if again[key] != value]
            if moved:
                sys.exit("\n".join(["two runs differ:", *moved]))
            table |= {key: str(value) for key, value in figures.items()}
            build = "# " + first["machine"]["compiler"] + " " + first["machine"]["flags"]
    return build, table


def is_pinned(key):
    run_of, store, case, _ = key
    return run_of == "one thread" or (store == "raw" and not case.startswith("mix"))


def agree(key, pinned, value):
    _, store, _, figure = key
    if pinned is None or value is None or store == "raw" or figure == "written_bytes":
        return pinned == value
    return abs(float(value) / float(pinned) - 1) <= (0.001 if figure == "time_ns" else 0.016)


def main():
    build, table = measure(os.path.abspath(sys.argv[1]))
    table = {key: value for key, value in table.items() if is_pinned(key)}
    time_of = {key: float(value) for key, value in table.items() if key[3] == "time_ns"}
    raw, ours = (statistics.median(time_of["one thread", store, f"overwrite random 4096 depth 32, layout {n}",
                                           "time_ns"] for n in (1, 2, 3))
                 for store in ("raw", "chunk_store"))
    ratio = raw / ours
    if ratio < 0.95:
        sys.exit(f"4 KiB random overwrites at depth 32 reach {ratio:.3f} of the drive, less than 0.95")
    if "--update" in sys.argv[2:]:
        TABLE.write(build, table)
    elif TABLE.is_of(build):
        TABLE.expect(table, agree)


if __name__ == "__main__":
    main()
