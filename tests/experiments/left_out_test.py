"""Peers that pmlab was built without: `pmlab run` measures the rest of each list and names them, and so does the page.
A script in the place of the program has invented results."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from package import HEAD, INDEXES, OPTIONS, ROOT
from pmlab.errors import Failure
from pmlab.indexes import swept
from pmlab.merge.parts import read_parts
from pmlab.merge.results import collect
from pmlab.run.experiment import experiment_names, load_experiment, parse_experiment
from pmlab.run.left_out import lines, without
from pmlab.run.plan import plan
from pmlab.spelling import split_list

PACKAGES = [{"title": "oneTBB", "indexes": ["tbb_hash"], "stores": [], "remedy": "install package libtbb-dev"},
            {"title": "libpmemobj-cpp", "indexes": ["pmdk_hash", "pmdk_skiplist"], "stores": [],
             "remedy": "install package libpmemobj-cpp-dev"},
            {"title": "RocksDB", "indexes": [], "stores": ["rocksdb", "rocksdb_meta"],
             "remedy": "install package librocksdb-dev"}]

PROGRAM = f"""#!{sys.executable}
import json, os, sys
sys.path.insert(0, {os.path.join(ROOT, "tests", "scripts")!r})
import sample_results
words = sys.argv[1:]
if words[0] == "facts":
    print(json.dumps({{"machine": sample_results.MACHINE, "options": {OPTIONS!r}, "problems": {{}},
                      "left_out": json.loads(os.environ["LEFT_OUT"])}}))
elif words[0] == "bench":
    indexes = words[words.index("--index") + 1].split(",")
    results = [sample_results.result(index, "read", medium="dram") for index in indexes]
    with open(words[words.index("--json") + 1], "w") as file:
        json.dump(sample_results.document(results, medium="dram"), file)
"""

EXPERIMENT = HEAD + """
[arguments]
phases = ["read"]
[matrix]
index = ["cceh,tbb_hash,pmdk_hash", "tbb_hash", "cceh"]
[[chart]]
kind = "bars"
x = "index"
y = "throughput"
series = "phase"
"""


def cells_of(text, scale="quick"):
    return plan(parse_experiment(HEAD + text, "mine.toml", OPTIONS), scale, INDEXES)


class Without(unittest.TestCase):
    def test_lists_lose_what_is_left_out(self):
        cells = cells_of('[arguments]\nrecords = "1k"\n[matrix]\n'
                         'index = ["cceh,tbb_hash,std_map,pmdk_hash",\n "cache(fast_fair,mode=x),cache(tbb_hash)", '
                         '"tbb_hash", "a"]\n')
        kept, left_out = without(cells, PACKAGES)
        self.assertEqual([cell.value("--index") for cell in kept], ["cceh,std_map", "cache(fast_fair,mode=x)", "a"])
        self.assertEqual([cell.values["index"] for cell in kept], ["cceh,std_map", "cache(fast_fair,mode=x)", "a"])
        self.assertEqual([cell.name for cell in kept],
                         [cell.name for cell in cells if cell.values["index"] != "tbb_hash"])
        by_title = {one.title: one for one in left_out}
        self.assertEqual(by_title["oneTBB"].names, ["tbb_hash", "cache(tbb_hash)"])
        self.assertEqual(by_title["oneTBB"].cells, ["mine/tbb_hash"])
        self.assertEqual((by_title["libpmemobj-cpp"].names, by_title["libpmemobj-cpp"].cells), (["pmdk_hash"], []))
        self.assertEqual(list(lines(left_out))[0],
                         "tbb_hash, cache(tbb_hash) left out of mine; so are the cells mine/tbb_hash: pmlab was built "
                         "without oneTBB; install package libtbb-dev")

    def test_stores_too_and_an_index_of_theirs_is_another_thing(self):
        cells = cells_of('kind = "stores_volumes"\n[arguments]\nindex = "tbb_hash"\n[matrix]\n'
                         '"merge + store" = ["on + kv_ssd,rocksdb", "off + rocksdb", "other + raw,rocksdb_meta"]\n')
        kept, left_out = without(cells, PACKAGES)
        self.assertEqual([(cell.value("--store"), cell.value("--index")) for cell in kept],
                         [("kv_ssd", "tbb_hash"), ("raw", "tbb_hash")])
        self.assertEqual(kept[0].values, {"merge": "on", "store": "kv_ssd"})
        self.assertEqual([(one.title, one.names) for one in left_out], [("RocksDB", ["rocksdb", "rocksdb_meta"])])

    def test_a_baseline_that_is_left_out_is_not_asked_for(self):
        cell, = cells_of('[arguments]\nindex = "cceh,tbb_hash"\n')
        for baseline, kept in (("tbb_hash", ""), ("cceh", "cceh")):
            cell.words = ["bench", "--index", "cceh,tbb_hash", "--baseline", baseline, "--verify"]
            (changed,), _ = without([cell], PACKAGES)
            self.assertEqual((changed.value("--baseline"), changed.words[-1]), (kept, "--verify"))

    def test_with_everything_nothing_changes(self):
        cells = [cell for name in experiment_names() for cell in plan(load_experiment(name, OPTIONS), "quick", swept())]
        self.assertEqual(without(cells, []), (cells, []))

    def test_our_experiments_measure_their_own_indexes_and_stores_without_any_peer(self):
        peers = {"tbb_hash", "pmdk_hash", "pmdk_skiplist", "pmdk_radix", "rocksdb", "rocksdb_meta", "leveldb", "lmdb"}
        package = {"title": "all", "indexes": sorted(peers), "stores": [], "remedy": ""}
        for name in experiment_names():
            cells = plan(load_experiment(name, OPTIONS), "quick", swept())
            kept, left_out = without(cells, [package])
            self.assertTrue(kept, name)
            for cell in kept:
                for text in [*cell.all_values("--index"), *cell.all_values("--store")]:
                    self.assertFalse(peers & set(split_list(text)), cell.words)
            self.assertEqual({c.name for c in cells},
                             {c.name for c in kept} | {n for one in left_out for n in one.cells})


class Run(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "mine.toml").write_text(EXPERIMENT)
        (self.folder / "pmlab").write_text(PROGRAM)
        (self.folder / "pmlab").chmod(0o755)

    def pmlab(self, *words, left_out=tuple(PACKAGES), status=0):
        environment = {**os.environ, "PMLAB_PROGRAM": str(self.folder / "pmlab"), "LEFT_OUT": json.dumps(left_out),
                       "PYTHONPATH": os.path.join(ROOT, "experiments")}
        done = subprocess.run([sys.executable, "-m", "pmlab", *words], env=environment, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def run_it(self, *more, **how):
        return self.pmlab("run", str(self.folder / "mine.toml"), "--out", str(self.folder / "out"), *more, **how)

    def manifest(self):
        return json.loads((self.folder / "out" / "manifest.json").read_text())

    def page(self):
        self.pmlab("report", str(self.folder / "out"))
        return (self.folder / "out" / "index.html").read_text()

    def test_runs_the_rest_and_names_them_everywhere(self):
        done = self.run_it()
        self.assertIn("pmlab: note: tbb_hash left out of mine; so are the cells mine/tbb_hash: pmlab was built without "
                      "oneTBB; install package libtbb-dev\n", done.stderr)
        self.assertIn("pmlab: note: pmdk_hash left out of mine: pmlab was built without libpmemobj-cpp", done.stderr)
        self.assertNotIn("RocksDB", done.stderr)
        self.assertIn("2 cells ran, 0 were there, 0 failed", done.stdout)
        manifest = self.manifest()
        self.assertEqual([run["status"] for run in manifest["runs"]], [0, 0])
        self.assertEqual([p["name"] for p in manifest["planned"]], ["mine/cceh-tbb_hash-pmdk_hash", "mine/cceh"])
        self.assertEqual({(one["title"], *one["names"]) for one in manifest["left_out"]},
                         {("oneTBB", "tbb_hash"), ("libpmemobj-cpp", "pmdk_hash")})
        page = self.page()
        self.assertIn("Missing from the charts: tbb_hash left out of mine", page)
        self.assertIn("<dt>Left out</dt><dd>tbb_hash (pmlab was built without oneTBB); pmdk_hash (pmlab was built "
                      "without libpmemobj-cpp)</dd>", page)

    def test_with_the_packages_again_they_are_measured(self):
        self.run_it()
        done = self.run_it("--resume", left_out=())
        self.assertIn("2 cells ran, 1 were there", done.stdout)
        self.assertNotIn("note", done.stderr)
        self.assertEqual(self.manifest()["left_out"], [])
        page = self.page()
        self.assertNotIn("Missing from the charts", page)
        self.assertNotIn("Left out", page)

    def test_a_cell_that_is_left_out_names_the_package(self):
        said = self.run_it("--cell", "mine/tbb_hash", status=2).stderr
        self.assertIn("cell 'mine/tbb_hash' is left out: pmlab was built without oneTBB; "
                      "install package libtbb-dev", said)

    def test_list_and_dry_run(self):
        self.assertRegex(self.pmlab("run", str(self.folder / "mine.toml"), "--list").stdout, r"(?m)^mine .* 2 cells ")
        planned = self.pmlab("run", str(self.folder / "mine.toml"), "--dry-run")
        self.assertEqual(planned.stdout.count("mine/"), 2)
        self.assertNotIn("tbb_hash,", planned.stdout)
        self.assertIn("note: tbb_hash", planned.stderr)

    def test_parts_that_leave_out_different_peers_are_not_merged(self):
        folders = [self.folder / name for name in ("one", "other")]
        for folder, left_out in zip(folders, (PACKAGES, ())):
            self.pmlab("run", str(self.folder / "mine.toml"), "--out", str(folder), left_out=left_out)
        parts = read_parts([str(folder) for folder in folders])
        with self.assertRaises(Failure) as refused:
            collect(parts)
        self.assertRegex(str(refused.exception),
                         "mine has other indexes or stores in .*other.* without libpmemobj-cpp, oneTBB; build both")
        self.pmlab("merge", str(folders[0]), "--out", str(self.folder / "out"))
        self.assertEqual(len(self.manifest()["left_out"]), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
