"""Stores in virtual time: a repeat has a layout of its own, and nothing else changes its figures.

    python3 bench/tests/stores/layouts_test.py build/release/bin/pmlab
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PMLAB = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "pmlab"
VOLUMES = ["volumes", "--medium", "simulated:aep", "--device", "simulated:p4610", "--volume-bytes", "16M",
           "--device-bytes", "256M", "--operations", "500", "--phases", "overwrite", "--size", "4K", "--depth", "32"]
PAIRS = ["pairs", "--store", "kv_ssd", "--medium", "simulated:dram", "--device", "simulated:pm983-kv", "--records",
         "2000", "--value", "1000", "--phases", "load,update,insert", "--operations", "500", "--threads", "2",
         "--depth", "4"]
# The P4610's 4 KB writes a second in the steady state, by its datasheet; into its buffer there are three times as many.
STEADY = 199e3
BUFFER_BYTES = 9437184


def results(*words):
    """The last of options that are given twice counts."""
    given = {}
    rest = iter(words[1:])
    for option in rest:
        given[option] = next(rest)
    with tempfile.TemporaryDirectory(prefix="pmlab-layouts-") as folder:
        path = os.path.join(folder, "r.json")
        command = [PMLAB, "stores", words[0], *(w for both in given.items() for w in both), "--quiet", "--json", path]
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=250, check=True)
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def cases(*words):
    """By store, phase, size, depth and repetition."""
    return {(c["store"], c["phase"], c.get("size"), c["depth"],
             c["repetition"]): {k: v for k, v in c.items() if k != "repetition"}
            for c in results(*words)["cases"]}


class Layouts(unittest.TestCase):
    def test_a_repeat_alone_has_its_figures(self):
        for name, words in (("volumes", [*VOLUMES, "--store", "chunk_store,raw"]), ("pairs", PAIRS)):
            with self.subTest(name):
                three, third = cases(*words, "--repeat", "3"), cases(*words, "--layout", "3")
                self.assertEqual({k[:-1]: v for k, v in three.items() if k[-1] == 3},
                                 {k[:-1]: v for k, v in third.items()})
                # Inserts into a key-value SSD that has room take what they take, wherever they go.
                changed = {key[0] for key in third
                           if len({three[(*key[:-1], repetition)]["time_ns"] for repetition in (1, 2, 3)}) > 1}
                self.assertEqual(changed, {key[0] for key in third}, "layouts change nothing")

    def test_options_say_which(self):
        self.assertEqual(results(*VOLUMES, "--store", "raw", "--layout", "2")["options"]["layout"], 2)

    def test_other_stores_change_nothing(self):
        both = cases(*VOLUMES, "--store", "chunk_store,raw")
        for store in ("chunk_store", "raw"):
            with self.subTest(store):
                alone = cases(*VOLUMES, "--store", store)
                self.assertEqual(alone, {k: v for k, v in both.items() if k[0] == store})

    def test_a_case_before_changes_nothing_of_the_drive(self):
        """Depth 1 leaves its buffer empty, 64 KB full."""
        for name, before in (("depth 1", ["--depth", "1,32"]), ("64 KB", ["--size", "64K,4K"]),
                             ("reads", ["--phases", "read,overwrite"])):
            with self.subTest(name):
                key = ("raw", "overwrite", 4096, 32, 1)
                self.assertEqual(cases(*VOLUMES, "--store", "raw", *before)[key],
                                 cases(*VOLUMES, "--store", "raw")[key])

    def test_a_case_before_hardly_changes_a_store(self):
        """Its free space goes on."""
        key = ("chunk_store", "overwrite", 4096, 32, 1)
        after, alone = (cases(*VOLUMES, "--store", "chunk_store", "--depth", depths)[key]["throughput"]
                        for depths in ("1,32", "32"))
        self.assertAlmostEqual(after / alone, 1, delta=0.05)

    def test_a_drive_is_measured_in_its_steady_state(self):
        for case in cases(*VOLUMES, "--store", "raw", "--repeat", "3").values():
            self.assertGreaterEqual(case["bytes"], 4 * BUFFER_BYTES - case["size"])
            self.assertAlmostEqual(case["throughput"] / STEADY, 1, delta=0.2)

    def test_layouts_are_of_virtual_time(self):
        done = subprocess.run([PMLAB, "stores", "volumes", "--store", "raw", "--layout", "2"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--layout is of virtual time, and drive memory is on a real clock", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
