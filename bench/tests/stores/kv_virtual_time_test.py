"""Key-value SSDs in virtual time: two runs have the same digits, answers are right, the firmware is the limit, and
devices add up.

    python3 bench/tests/stores/kv_virtual_time_test.py build/release/bin/pmlab
"""
import json
import os
import subprocess
import sys
import tempfile

COMMON = ["stores", "pairs", "--store", "kv_ssd", "--medium", "simulated:aep", "--device",
          "simulated:pm983-kv", "--records", "4000", "--value", "1000", "--phases", "load,read", "--pattern", "random",
          "--operations", "4000", "--quiet"]
# Published for values of 1024 bytes: an insert, and a read.
PUBLISHED = {"load": 131e3, "read": 143e3}


def run(pmlab, folder, *more):
    path = os.path.join(folder, "results.json")
    subprocess.run([pmlab, *COMMON, *more, "--json", path], stdout=subprocess.DEVNULL, timeout=200, check=True)
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    for case in document["cases"]:
        assert case["clock"] == "virtual" and case["wrong"] == 0, case
    return {case["phase"]: case["operations"] / case["time_ns"] * 1e9 for case in document["cases"]}


def main():
    pmlab = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="pmlab-virtual-") as folder:
        one = run(pmlab, folder, "--depth", "64")
        again = run(pmlab, folder, "--depth", "64")
        assert one == again, f"two runs differ: {one}, {again}"
        for phase, published in PUBLISHED.items():
            away = abs(one[phase] / published - 1)
            assert away < 0.15, f"{phase}: {one[phase]:.0f} a second, published {published:.0f}"
        four = run(pmlab, folder, "--devices", "4", "--threads", "4", "--depth", "64")
        # Each has a processor of its own: no device keeps a thread from the others.
        for phase, alone in one.items():
            assert four[phase] > 3.5 * alone, f"{phase}: {four[phase]:.0f} a second of four devices, {alone:.0f} of one"
    print(one, four)


if __name__ == "__main__":
    main()
