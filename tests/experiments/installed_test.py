"""An installed pmlab runs, judges and reports without the source tree. Arguments: the program, the build folder."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[2])
CMAKE = sys.argv[3]

EXPERIMENT = """
title = "Only here"
about = "An experiment that only the installed pmlab has."
shows = "beyond the paper"
[arguments]
index = "cceh"
medium = "counted:dram"
records = "1k"
operations = "1k"
phases = ["read"]
[[chart]]
kind = "standard"
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pmlab-installed-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        done = subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix, "--component", "programs"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        # The program would find the source tree, too, where its own files are missing: this one is not there.
        (cls.prefix / "share/pmlab/experiments/only_here.toml").write_text(EXPERIMENT)

    def pmlab(self, *arguments, status=0):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PMLAB_", "PYTHON"))}
        done = subprocess.run([self.prefix / "bin/pmlab", *map(str, arguments)], cwd=self.folder, env=environment,
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_runs_and_reports(self):
        # Modules that would be found first, if the current folder were searched.
        for name in ("json.py", "pmlab.py"):
            (self.folder / name).write_text("raise SystemExit('taken from the current folder')\n")
        out = self.folder / "out"
        done = self.pmlab("run", "only_here", "trace", "--scale", "smoke", "--out", out)
        self.assertIn("2 cells ran", done.stdout)
        manifest = json.loads((out / "manifest.json").read_text())
        self.assertEqual([e["name"] for e in manifest["experiments"]], ["only_here", "trace"])
        self.assertIn("cpu", (out / "doctor.txt").read_text())
        self.pmlab("report", out)
        self.assertIn("Only here", (out / "index.html").read_text())
        self.assertEqual(list(self.prefix.rglob("__pycache__")), [], "the prefix may belong to root")

    def test_jobs_are_exported(self):
        jobs = self.folder / "jobs"
        self.pmlab("run", "only_here", "--export", "snakemake", "--out", jobs)
        self.assertEqual(sorted(str(p.relative_to(jobs)) for p in jobs.rglob("*") if p.is_file()),
                         ["Snakefile", "experiments/only_here.toml", "plan.json", "slurm/config.v8+.yaml",
                          "slurm/config.yaml", "slurm/status.py"])

    def test_the_licence_is_installed(self):
        self.assertEqual((self.prefix / "share/doc/pmlab/LICENSE").read_text(), (SOURCE / "LICENSE").read_text())

    def test_claims(self):
        self.assertIn("M1 ", self.pmlab("claims", "--list").stdout)

    def test_a_quantity_is_added_as_the_document_has_it(self):
        """In a copy of the package, with nothing compiled."""
        added = re.search(r"^QUANTITIES\[.*$", (SOURCE / "docs/experiments.md").read_text(), re.MULTILINE)[0]
        with (self.prefix / "share/pmlab/experiments/pmlab/report/quantities.py").open("a") as quantities:
            quantities.write(added + "\n")
        mine = self.folder / "tail.toml"
        mine.write_text(EXPERIMENT.replace("counted:dram", "dram").replace(
            'kind = "standard"', 'kind = "bars"\nx = "index"\ny = "p999"\nseries = "index"'))
        out = self.folder / "tail"
        self.pmlab("run", mine, "--out", out)
        self.pmlab("report", out)
        self.assertIn("99.9 % of the operations", (out / "index.html").read_text())

    def test_a_python_that_is_not_there(self):
        environment = {**os.environ, "PMLAB_PYTHON": str(self.folder / "no-python")}
        done = subprocess.run([self.prefix / "bin/pmlab", "run"], env=environment, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^pmlab: error: cannot run .*no-python: No such file or directory; install "
                         "package")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
