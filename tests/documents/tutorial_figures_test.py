"""The figures of docs/tutorial.md are those of its commands, which are in virtual time. Argument: the program."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from document import commands_of, text_of

PMLAB = os.path.abspath(sys.argv[1])
PAGE = re.sub(r"\s+", " ", text_of("tutorial.md"))


def measured(*parts):
    """The JSON of the page's command that has all of these parts."""
    command, = [c for c in commands_of("tutorial.md") if all(p in c for p in parts)]
    with tempfile.TemporaryDirectory(prefix="pmlab-test-") as folder:
        path = os.path.join(folder, "r.json")
        words = command.replace("build/release/bin/pmlab", PMLAB) + f" --quiet --json {path}"
        subprocess.run(words, shell=True, check=True, stdout=subprocess.DEVNULL, timeout=500)
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def throughputs(*parts):
    return {(r["index"], r["phase"]): r["throughput_ops_per_s"] for r in measured(*parts)["results"]}


class Figures(unittest.TestCase):
    def test_reads_of_the_device(self):
        cases = {c["name"]: c["value"] for c in measured("microbench", "simulated:aep")["cases"]}
        ratio = cases["read-latency/pattern=random/access_bytes=64"] / cases["read-latency-dram/pattern=random"]
        self.assertIn(f"| random read of 64 B against DRAM | {ratio:.1f}x |", PAGE)

    def test_the_answer_depends_on_the_device(self):
        on = {d: throughputs("cceh,level_hashing", f"simulated:{d}") for d in ("aep", "classic")}
        reads = {d: t["cceh", "read"] / t["fast_fair", "read"] for d, t in on.items()}
        inserts = {d: t["fp_tree", "insert"] / t["fast_fair", "insert"] for d, t in on.items()}
        for said in (f"CCEH reads {reads['aep']:.1f} times as fast as FAST-FAIR on `aep` and {reads['classic']:.1f} "
                     "times as fast on `classic`",
                     f"FP-tree inserts {inserts['aep']:.1f} times as fast as FAST-FAIR on `aep` and "
                     f"{inserts['classic']:.1f} times as fast on `classic`"):
            self.assertIn(said, PAGE)

    def test_points_and_ranges(self):
        plus, bare = "hybrid_index_plus", "hybrid_index"
        on = {d: throughputs("hybrid_index,", f"simulated:{d}") for d in ("aep", "classic")}
        self.assertIn(f"HybridIndex+ reads {on['aep'][plus, 'read'] / on['aep'][bare, 'read']:.1f} times as fast; on "
                      f"`classic` HybridIndex does, {on['classic'][bare, 'read'] / on['classic'][plus, 'read']:.1f} "
                      "times. Its inserts are the faster ones on both", PAGE)
        for figures in on.values():
            self.assertGreater(figures[bare, "insert"], figures[plus, "insert"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
