"""slurm_test.py PROGRAM: real workers, a real Slurm and a real Snakemake. Whatever is killed, the merged results are
byte for byte those of one machine. Minutes; needs slurmctld, slurmd, slurm-client, munge and snakemake of Debian."""
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import slurm
from matrix import contents, experiment

PMLAB = os.path.abspath(sys.argv[1])
SEED = int(os.environ.get("PMLAB_TEST_SEED", random.randrange(10**6)))
SHARDS = 64
SEEDS = (1, 1920)
CAMPAIGN = ["--index", "cceh,fast_fair", "--threads", "4", "--quiet"]
PATIENCE = 900  # seconds


def pmlab(*words):
    return subprocess.run([PMLAB, *words], capture_output=True, text=True, check=False)


class Cluster(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pmlab-cluster-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.random = random.Random(SEED)
        print(f"PMLAB_TEST_SEED={SEED} repeats the order of {self.id()}", flush=True)

    def works(self, *words):
        done = pmlab(*map(str, words))
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def assert_same(self, serial, merged, least):
        one, other = contents(serial), contents(merged)
        self.assertEqual(sorted(one), sorted(other))
        self.assertGreaterEqual(len(one), least)
        self.assertEqual([name for name in one if one[name] != other[name]], [])
        print(f"{len(one)} files of {merged.name} are byte for byte those of the serial run", flush=True)

    def add_pages(self, *folders):
        """Where matplotlib is there."""
        pages = [pmlab("report", str(folder)) for folder in folders]
        if any(page.returncode != 0 for page in pages):
            self.assertIn("matplotlib", pages[0].stderr)
            print("no matplotlib: pages are not compared", flush=True)

    def until(self, what, is_so):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), deadline, f"no {what} within {PATIENCE} s")
            time.sleep(0.2)


class OnSlurm(Cluster):
    def setUp(self):
        super().setUp()
        missing = slurm.missing()
        if missing:
            self.skipTest(f"no {', '.join(missing)} here: packages slurmctld, slurmd, slurm-client, munge")
        self.slurm = self.enterContext(slurm.Slurm(self.folder / "slurm", cpus=max(2, os.cpu_count())))
        self.killed = []

    def submit(self, name, words):
        return self.slurm.said("sbatch", "--parsable", "--no-requeue", f"--job-name={name}", "--cpus-per-task=1",
                               f"--output={self.folder}/{name}.%j.log", f"--wrap={shlex.join(map(str, words))}").strip()

    def state(self, job):
        return next((w.split("=")[1] for w in self.slurm.said("scontrol", "show", "job", job).split()
                     if w.startswith("JobState=")),
                    "")

    def kill_one(self, wanted, count):
        """Kills a worker whose name contains `wanted`, with all its processes, until it is seen that one died of it."""
        def has_died():
            for job, name in self.slurm.jobs().items():
                if wanted not in name:
                    continue
                time.sleep(self.random.uniform(0, 0.4))
                self.slurm.said("scancel", "--signal=KILL", "--full", job)
                self.until(f"end of {name}", lambda j=job: self.state(j) not in ("RUNNING", "COMPLETING", "PENDING"))
                if self.state(job) != "COMPLETED":
                    self.killed.append(name)
            return len(self.killed) >= count
        self.until(f"{wanted} to kill", has_died)

    def test_64_shards_and_ranges_in_random_order_with_two_workers_killed(self):
        text = self.folder / "small.toml"
        text.write_text(experiment(indexes=("cceh", "fast_fair", "fp_tree", "skip_list"),
                                   records=("300", "500", "700", "900"),
                                   threads=("1", "2", "3")))
        run = ["run", text, "hybrid_restart", "memory", "--scale", "smoke", "--quiet"]
        verify = ["verify", *CAMPAIGN]
        started = time.monotonic()
        self.works(*run, "--out", self.folder / "serial")
        self.works(*verify, "--seeds", f"{SEEDS[0]}..{SEEDS[1]}", "--out", self.folder / "serial-campaign")
        print(f"serial: {time.monotonic() - started:.0f} s", flush=True)
        jobs = {}
        each = (SEEDS[1] - SEEDS[0] + 1) // SHARDS
        for number in range(1, SHARDS + 1):
            first = SEEDS[0] + (number - 1) * each
            jobs[f"shard-{number}"] = [PMLAB, *run, "--shard", f"{number}/{SHARDS}"]
            jobs[f"range-{number}"] = [PMLAB, *verify, "--seeds", f"{first}..{first + each - 1}"]
        order = list(jobs)
        self.random.shuffle(order)
        started = time.monotonic()

        def submit(name):
            return self.submit(name, [*jobs[name], "--out", self.folder / name, "--resume"])
        numbers = {name: submit(name) for name in order}
        self.kill_one("range-", 1)
        self.kill_one("shard-", 2)
        print(f"killed: {', '.join(self.killed)}", flush=True)
        for name in self.killed:
            self.assertNotEqual(pmlab("merge", str(self.folder / name), "--out", str(self.folder / "none")).returncode,
                                0)
            numbers[name] = submit(name)
        self.until("end of the jobs", lambda: not self.slurm.said("squeue", "--noheader"))
        self.assertEqual({name: self.state(job) for name, job in numbers.items() if self.state(job) != "COMPLETED"}, {})
        print(f"{len(jobs)} jobs: {time.monotonic() - started:.0f} s", flush=True)
        for kind, serial in (("shard-", "serial"), ("range-", "serial-campaign")):
            merged = self.folder / f"merged-{serial}"
            self.works("merge", *(self.folder / name for name in order if name.startswith(kind)), "--out", merged)
        self.add_pages(self.folder / "serial", self.folder / "merged-serial")
        self.assert_same(self.folder / "serial", self.folder / "merged-serial", least=96)
        self.assert_same(self.folder / "serial-campaign", self.folder / "merged-serial-campaign", least=1)

    def test_the_exported_workflow_and_its_profile(self):
        need_snakemake(self)
        serial, serial_campaign, jobs = export_small(self)
        words = ["snakemake", "--profile", "slurm", "--jobs", "8", "--latency-wait", "10",
                 "--max-status-checks-per-second", "5"]
        with open(self.folder / "snakemake.log", "wb") as log:
            with subprocess.Popen(words, cwd=jobs, stdout=log, stderr=log, env=self.slurm.environment) as engine:
                self.kill_one("pmlab-", 2)
                status = engine.wait(PATIENCE)
        said = (self.folder / "snakemake.log").read_text()
        self.assertEqual(status, 0, said[-4000:])
        self.assertIn("Trying to restart job", said)
        print(f"killed: {', '.join(self.killed)}", flush=True)
        self.assert_same(serial, jobs / "results", least=12)
        self.assert_same(serial_campaign, jobs / "campaign-1", least=1)


def need_snakemake(test):
    if not shutil.which("snakemake"):
        test.skipTest("no snakemake here: package snakemake")


def export_small(test):
    """(results of a serial run, of a serial campaign, the exported folder)"""
    text = test.folder / "small.toml"
    text.write_text(experiment())
    test.works("run", text, "hybrid_restart", "--scale", "smoke", "--quiet", "--out", test.folder / "serial")
    campaign = ["--index", "cceh,fast_fair", "--threads", "4"]
    test.works("verify", *campaign, "--seeds", "1..160", "--quiet", "--out", test.folder / "serial-campaign")
    test.works("run", text, "hybrid_restart", "--scale", "smoke", "--export", "snakemake", "--out",
               test.folder / "jobs", "--campaign", shlex.join([*campaign, "--seeds", "1..160"]), "--ranges", "8")
    return test.folder / "serial", test.folder / "serial-campaign", test.folder / "jobs"


class OnOneMachine(Cluster):
    def test_a_killed_engine_goes_on_with_all_that_was_measured(self):
        need_snakemake(self)
        serial, serial_campaign, jobs = export_small(self)
        words = ["snakemake", "--cores", "2", "--rerun-incomplete"]
        with subprocess.Popen(words, cwd=jobs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True) as engine:
            self.until("cell that ended", lambda: any(jobs.glob("cells/*/*.done")) or engine.poll() is not None)
            os.killpg(engine.pid, signal.SIGKILL)
        done = {marker: marker.with_suffix("") for marker in jobs.glob("cells/*/*.done")}
        dates = {folder: json.loads((folder / "manifest.json").read_text())["started"] for folder in done.values()}
        self.assertGreaterEqual(len(done), 1)
        self.assertFalse((jobs / "results").exists())
        again = subprocess.run(words, cwd=jobs, capture_output=True, text=True, check=False)
        self.assertIn("unlock", again.stdout + again.stderr)
        time.sleep(1.1)
        for more in (["--unlock"], []):
            done = subprocess.run([*words, *more], cwd=jobs, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        for folder, date in dates.items():
            self.assertEqual(json.loads((folder / "manifest.json").read_text())["started"], date, "was run again")
        self.assert_same(serial, jobs / "results", least=12)
        self.assert_same(serial_campaign, jobs / "campaign-1", least=1)

    def test_cells_with_a_real_clock_run_alone(self):
        need_snakemake(self)
        text = self.folder / "clock.toml"
        text.write_text(experiment(records=("300",)).replace('"simulated:classic"', '"dram"'))
        self.works("run", text, "--scale", "smoke", "--export", "snakemake", "--out", self.folder / "jobs")
        done = subprocess.run(["snakemake", "--cores", "2"], cwd=self.folder / "jobs", capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        manifest = json.loads((self.folder / "jobs" / "clocked" / "manifest.json").read_text())
        self.assertEqual([run["name"] for run in manifest["runs"]],
                         ["clock/dram_cceh_300_1", "clock/dram_fast_fair_300_1"])
        merged = json.loads((self.folder / "jobs" / "results" / "manifest.json").read_text())
        self.assertEqual((len(merged["runs"]), merged["caveats"]), (4, []))
        self.assertRegex(done.stderr, r"rule clocked:[^@]*threads: 2")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[2:]])
