"""Where the Python package of the experiments is, for its unit tests. Argument, where there is one: the program
pmlab."""
import os
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "experiments"))
if len(sys.argv) > 1:
    os.environ["PMLAB_PROGRAM"] = os.path.abspath(sys.argv[1])

# As a program reports them; enough for the tests.
OPTIONS = {"bench": ["index", "medium", "records", "operations", "threads", "workload", "phases", "distribution",
                     "verify", "cpu-cache", "repeat", "batch", "trace", "huge-pages", "seconds", "persistence",
                     "reopen", "scan-length", "hosts", "coherence"],
           "microbench": ["suite", "medium", "layouts", "device", "device-bytes"],
           "stores_volumes": ["store", "container", "medium", "device", "device-bytes", "volume-bytes", "index",
                              "merge", "ring", "chunk", "phases", "pattern", "size", "depth", "threads", "operations",
                              "seconds", "repeat", "seed", "cache"],
           "stores_pairs": ["store", "medium", "device", "device-bytes", "phases", "pattern", "depth", "threads",
                            "operations", "seconds", "repeat", "seed", "staging", "staging-bytes", "devices", "records",
                            "key-bytes", "value", "cache", "memory", "loss-ms", "log", "place", "memtable"]}
INDEXES = [{"name": name, "ordered": ordered} for name, ordered in (("cceh", False), ("fast_fair", True),
                                                                    ("fp_tree", True))]
HEAD = 'title = "T"\nabout = "A"\nshows = "figure 17"\n'
