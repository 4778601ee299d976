"""pmlab.results and pmlab.figures: a row for each measurement, its parameters in columns. Argument: the program."""
import csv
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(sys.argv[1])
SKIPPED = 77

EXPERIMENT = """
title = "Two sizes"
about = "Figures of two sizes."
shows = "beyond the paper"
[arguments]
index = ["cceh", "cache(cceh)"]
medium = "simulated:aep"
operations = "500"
phases = ["read", "insert"]
threads = [1, 2]
repeat = 2
[matrix]
records = ["500", "1k"]
[[chart]]
kind = "standard"
"""


def run(*words, status=0):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"


class DataFrames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        (cls.folder / "sizes.toml").write_text(EXPERIMENT)
        cls.out = cls.folder / "out"
        run(PROGRAM, "run", cls.folder / "sizes.toml", "--out", cls.out)
        cls.measured = pmlab.results(cls.out)

    def documents(self):
        return {str(p.relative_to(self.out / "raw").with_suffix("")): json.loads(p.read_text())
                for p in sorted((self.out / "raw").rglob("*.json"))}

    def test_a_row_for_each_measurement(self):
        documents = self.documents()
        self.assertEqual(len(documents), 2)
        self.assertEqual(len(self.measured), sum(len(d["results"]) for d in documents.values()))
        for name, document in documents.items():
            rows = self.measured[self.measured["cell"] == name]
            for row, result in zip(rows.to_dict("records"), document["results"]):
                for column in ("index", "medium", "threads", "phase", "repeat", "throughput_ops_per_s", "entries"):
                    self.assertEqual(row[column], result[column])
                self.assertEqual(row["latency_ns.p99"], result["latency_ns"]["p99"])
                self.assertEqual(row["options.records"], document["options"]["records"])
                self.assertEqual(row["machine.simulation.last_level_ns"],
                                 document["machine"]["simulation"]["last_level_ns"])
                self.assertEqual((row["experiment"], row["kind"]), ("sizes", "bench"))
        self.assertEqual(list(self.measured["values.records"].unique()), ["500", "1k"])
        self.assertEqual(self.measured.attrs["failed"], [])

    def test_columns_are_for_grouping(self):
        """Numbers are numbers, and no cell holds a list or an object."""
        medians = self.measured.groupby(["index", "phase", "threads",
                                         "options.records"])["throughput_ops_per_s"].median()
        self.assertEqual(len(medians), 2 * 3 * 2 * 2)
        self.assertEqual(set(self.measured["options.threads"]), {"1,2"})
        for column in self.measured:
            self.assertFalse(any(isinstance(v, (list, dict)) for v in self.measured[column]), column)
        # Only one of the two indexes has a cache.
        self.assertNotIn("cache", self.measured)
        self.assertEqual(set(self.measured[self.measured["cache.hits"].notna()]["index"]), {"cache(cceh)"})
        self.assertTrue(self.measured["bytes_per_key.pm"].dtype.kind == "f")

    def test_columns_are_fields_of_the_schema(self):
        """Every field of the document is described, so every column is."""
        schema = (SOURCE / "docs/results-schema.md").read_text()
        described = {n.removeprefix("results[].") for n in re.findall(r"^\| `([^`]+)` \|", schema, re.M)}
        parts = re.compile(r"^(cache|hybrid)\.|^values\.|^(experiment|cell|kind)$")
        self.assertEqual([c for c in self.measured if c not in described and not parts.match(c)], [])

    def test_microbenchmarks(self):
        folder = self.folder / "memory" / "raw" / "memory"
        folder.mkdir(parents=True)
        run(PROGRAM, "microbench", "--medium", "simulated:aep", "--suite", "quick", "--filter", "read-latency",
            "--json", folder / "aep.json")
        cases = json.loads((folder / "aep.json").read_text())["cases"]
        table = pmlab.results(self.folder / "memory")
        self.assertEqual(list(table["name"]), [c["name"] for c in cases])
        self.assertEqual(list(table["value"]), [c["value"] for c in cases])
        self.assertEqual(list(table["case.access_bytes"]), [c["case"]["access_bytes"] for c in cases])
        self.assertEqual(set(table["kind"]), {"microbench"})
        self.assertEqual(set(table["experiment"]), {"memory"})

    def test_drives(self):
        """A document of `pmlab microbench --suite drive`, shortened."""
        folder = self.folder / "drives" / "raw" / "drive"
        folder.mkdir(parents=True)
        case = {"name": "read/depth=4", "about": "reads", "case": {"operation": "read", "bytes": 4096, "depth": 4},
                "value": 7.5, "unit": "thousand/s", "latency_ns": {"p50": 80.0}, "fio": None}
        (folder / "file.json").write_text(json.dumps({"schema": 1, "kind": "drive", "machine": {"cpu": "x"},
                                                      "cases": [case], "device": {"sectors": 9},
                                                      "options": {"suite": "drive"}}))
        row = pmlab.results(self.folder / "drives").to_dict("records")[0]
        expected = {"kind": "drive", "name": "read/depth=4", "case.depth": 4, "value": 7.5, "latency_ns.p50": 80.0,
                    "machine.cpu": "x", "device.sectors": 9, "options.suite": "drive"}
        self.assertEqual({key: row[key] for key in expected}, expected)

    def test_published_figures(self):
        folder = SOURCE / "results/quick"
        with open(folder / "results.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        figures = pmlab.figures(folder)
        self.assertEqual(list(figures.columns), list(rows[0]))
        self.assertEqual([f"{v:.6g}" for v in figures["value"]],
                         [f"{float(r['value']):.6g}" if r["value"] else "nan" for r in rows])
        for column in ("chart", "panel", "series", "x", "unit"):
            self.assertEqual(list(figures[column]), [r[column] for r in rows])

    def says(self, problem, remedy, read, folder):
        with self.assertRaises(pmlab.errors.Failure) as raised:
            read(folder)
        self.assertIn(problem, raised.exception.problem)
        self.assertIn(remedy, raised.exception.remedy)

    def test_bad_input(self):
        self.says("no folder", "pmlab run", pmlab.results, self.folder / "nowhere")
        empty = self.folder / "empty"
        (empty / "raw").mkdir(parents=True)
        self.says("no results below raw/", "pmlab run", pmlab.results, empty)
        self.says("is published", "pmlab.figures", pmlab.results, SOURCE / "results/quick")
        self.says("holds no results.csv", "--publish", pmlab.figures, self.out)
        for name, content, problem in (("other", '{"schema": 2}', "has schema 2"), ("none", "[]", "has schema None"),
                                       ("torn", '{"schema": 1, "results"', "is no JSON"),
                                       ("less", '{"schema": 1, "results": []}', "lacks or spoils 'machine'")):
            bad = self.folder / name / "raw"
            bad.mkdir(parents=True)
            (bad / "cell.json").write_text(content)
            with self.subTest(name):
                self.says(problem, "", pmlab.results, bad.parent)

    def test_a_failed_cell_is_named(self):
        import shutil
        folder = self.folder / "failed"
        shutil.copytree(self.out, folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["runs"][0]["status"] = 1
        (folder / "manifest.json").write_text(json.dumps(manifest))
        table = pmlab.results(folder)
        self.assertEqual(table.attrs["failed"], [manifest["runs"][0]["name"]])
        self.assertEqual(set(table["cell"]), {manifest["runs"][1]["name"]})

    def test_without_pandas(self):
        program = "import sys; sys.modules['pandas'] = None; import pmlab; pmlab.results(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", program, self.out], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(SOURCE / "experiments")})
        self.assertIn("no pandas is there, which holds the results; install package python3-pandas", done.stderr)


if __name__ == "__main__":
    if not importlib.util.find_spec("pandas"):
        print("no pandas here: scripts/setup.sh --with-dev-tools installs it")
        sys.exit(SKIPPED)
    sys.path.insert(0, str(SOURCE / "experiments"))
    import pmlab
    import pmlab.errors
    unittest.main(argv=sys.argv[:1])
