"""Shards of a run and ranges of a campaign: merged, they are byte for byte those of one machine; all that does not fit
together is refused, and nothing that was measured is lost."""
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import PMLAB, ProgramTest, main, pmlab  # noqa: E402

from matrix import contents, experiment  # noqa: E402

EXPERIMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "experiments")
SHARDS = 4
CAMPAIGN = ["--index", "cceh,fast_fair", "--threads", "4", "--quiet"]


class ClusterTest(ProgramTest):
    def read(self, *path):
        with open(os.path.join(self.folder, *path), encoding="utf-8") as f:
            return json.load(f)

    def change(self, path, change):
        document = self.read(path)
        change(document)
        self.write(path, json.dumps(document).encode())

    def assert_same(self, serial, merged, least):
        """`least`: so many files are compared."""
        one, other = contents(self.file(serial)), contents(self.file(merged))
        self.assertEqual(sorted(one), sorted(other))
        self.assertGreaterEqual(len(one), least)
        self.assertEqual([name for name in one if one[name] != other[name]], [])

    def refused(self, parts, *folders, out="refused", more=()):
        done = self.assert_fails(2, parts, "merge", *map(self.file, folders), "--out", self.file(out), *more)
        self.assertFalse(os.path.exists(self.file(out)), "something was written")
        return done


class Shards(ClusterTest):
    def words(self, *more):
        return ["run", self.file("small.toml"), "hybrid_restart", "--scale", "smoke", "--pools", self.folder, "--quiet",
                *more]

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.mkdtemp(prefix="pmlab-test-")
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.write("small.toml", experiment().encode())
        self.names = [f"shard{number}" for number in range(1, SHARDS + 1)]
        for number, name in enumerate(self.names, 1):
            made = os.path.join(self.made, name)
            if not os.path.exists(made):
                self.assert_works(*self.words("--shard", f"{number}/{SHARDS}", "--out", made))
            shutil.copytree(made, self.file(name))

    def merge(self, *folders, out="merged", more=()):
        return self.assert_works("merge", *map(self.file, folders), "--out", self.file(out), *more)

    def serial(self):
        self.assert_works(*self.words("--out", self.file("serial")))

    def test_merged_is_serial(self):
        self.serial()
        self.merge(*reversed(self.names))
        # Two media of a claim, and the cells.
        self.assert_same("serial", "merged", least=12)
        pages = [pmlab("report", self.file(name)) for name in ("serial", "merged")]
        if all(page.returncode == 0 for page in pages):
            self.assert_same("serial", "merged", least=20)
        else:
            self.assertIn("matplotlib", pages[0].stderr)

    def test_each_cell_is_in_one_shard_and_a_later_run_goes_on_with_the_merged_folder(self):
        runs = [run["name"] for name in self.names for run in self.read(name, "manifest.json")["runs"]]
        self.assertEqual(len(runs), 10)
        self.assertEqual(sorted(runs), sorted(p["name"] for p in self.read("shard1", "manifest.json")["planned"]))
        self.merge(*self.names)
        done = self.assert_works(*self.words("--resume", "--out", self.file("merged")))
        self.assertIn("0 cells ran, 10 were there", done.stdout)

    def test_cells_with_a_real_clock_are_in_one_shard(self):
        text = experiment().replace('"simulated:classic"', '"dram", "pmem:{pool}"')
        self.write("clock.toml", text.encode())
        planned = [self.assert_works("run", self.file("clock.toml"), "--dry-run", "--shard",
                                     f"{n}/{SHARDS}").stdout.splitlines()
                   for n in range(1, SHARDS + 1)]
        self.assertEqual(sum(map(len, planned)), 12)
        self.assertEqual(sum(any("simulated" not in line for line in lines) for lines in planned), 1)
        self.assertEqual(self.assert_works("run", self.file("clock.toml"), "--dry-run", "--shard", "40/40").stdout, "")

    def test_a_missing_shard_is_named(self):
        self.refused(["of 10 cells are missing: small/", "shard 3/4"], "shard1", "shard2", "shard4")
        done = self.merge("shard1", "shard2", "shard4", more=["--incomplete"])
        self.assertRegex(done.stdout, r"note: \d of 10 cells are missing")
        self.assertTrue(self.read("merged", "manifest.json")["caveats"])
        done = self.assert_works(*self.words("--resume", "--out", self.file("merged")))
        self.assertNotIn("0 cells ran", done.stdout)

    def test_a_cell_that_is_there_twice(self):
        cell = self.read("shard2", "manifest.json")["runs"][0]["name"]
        shutil.copytree(self.file("shard2"), self.file("again"))
        self.assertIn(f"{cell} is in 2 folders, the same in each", self.merge(*self.names, "again").stdout)
        self.change(f"again/raw/{cell}.json", lambda d: d["results"][0].update(operations=1))
        self.refused([f"two results of cell {cell} differ", "again", "shard2"], *self.names, "again")

    def test_what_does_not_fit_together(self):
        def changed(change, file="manifest.json"):
            shutil.rmtree(self.file("other"), ignore_errors=True)
            shutil.copytree(self.file("shard2"), self.file("other"))
            self.change(f"other/{file}", change)
            return ["shard1", "other", "shard3", "shard4"]
        cell = self.read("shard2", "manifest.json")["runs"][0]["name"]
        self.refused(["two builds: commit", "'abc'"], *changed(lambda d: d["machine"].update(commit="abc")))
        self.refused(["two builds: compiler"], *changed(lambda d: d["machine"].update(compiler="icc")))
        self.refused([f"cell {cell}", "of another build, commit abc"],
                     *changed(lambda d: d["runs"][0].update(commit="abc")))
        self.refused(["of scale smoke", "of scale full"], *changed(lambda d: d.update(scale="full")))
        self.refused(["manifest.json is of schema 2"], *changed(lambda d: d.update(schema=2)))
        self.refused([f"{cell}.json is of schema 7"], *changed(lambda d: d.update(schema=7), f"raw/{cell}.json"))
        self.refused(["experiment small is another one in"],
                     *changed(lambda d: d["planned"][0].update(command="pmlab bench --records 7")))
        self.refused(["has no list of planned cells"], *changed(lambda d: d.pop("planned")))
        self.refused(["is damaged"], *changed(lambda d: d["runs"][0].pop("status")))
        self.refused(["of neither `pmlab run` nor `pmlab verify`"], *changed(lambda d: d.update(kind="other")))
        changed(lambda d: None)
        os.remove(self.file(f"other/raw/{cell}.json"))
        self.refused([f"{cell}.json is missing", "--resume"], "shard1", "other", "shard3", "shard4")
        self.write(f"other/raw/{cell}.json", b'{"schema": 1, "resu')
        self.refused([f"{cell}.json is no JSON", "--resume"], "shard1", "other", "shard3", "shard4")
        self.refused(["are one folder"], "shard1", "shard1/../shard1")
        self.refused(["there is no folder"], "shard1", "none")
        os.makedirs(self.file("empty"))
        self.refused(["holds no manifest.json"], *self.names, "empty")
        self.assert_fails(2, ["no folders to merge"], "merge", "--out", self.file("x"))
        self.assert_fails(2, ["no folder for the result"], "merge", self.file("shard1"))
        self.assert_fails(2, ["shard1 is there already"], "merge", *map(self.file, self.names), "--out",
                          self.file("shard1"))

    def test_real_clocks_of_several_machines(self):
        self.write("clock.toml", experiment(records=["300"]).replace('"simulated:aep", "simulated:classic"',
                                                                     '"dram"').encode())
        cells = [line.split(":")[0] for line in self.assert_works("run", self.file("clock.toml"),
                                                                  "--dry-run").stdout.splitlines()]
        for name, cell in zip(("here", "there"), cells, strict=True):
            self.assert_works("run", self.file("clock.toml"), "--scale", "smoke", "--cell", cell, "--quiet", "--out",
                              self.file(name))
        self.assertEqual(self.merge("here", "there", out="one").stdout.count("note: "),
                         self.merge(*self.names, out="simulated").stdout.count("note: "), "one machine is no caveat")

        def moved(document):
            document["runs"][0]["host"] = "node7"
            document["hosts"] = {"node7": document["machine"]}
        self.change("there/manifest.json", moved)
        self.assertIn("note: Cells with a real clock ran on 2 machines of one kind", self.merge("here", "there").stdout)
        self.assertIn("node7", self.read("merged", "manifest.json")["caveats"][0])
        if pmlab("report", self.file("merged")).returncode == 0:
            with open(self.file("merged/index.html"), encoding="utf-8") as page:
                text = page.read()
            self.assertIn("class=warn>Cells with a real clock ran on 2 machines of one kind", text)
            self.assertIn("<dt>Started</dt>", text, "a real clock's figures have a date")
        self.change("there/manifest.json", lambda d: d["hosts"]["node7"].update(cpu="Another"))
        self.refused(["ran on different machines", "node7 (cpu 'Another')", "--other-machines"], "here", "there")
        self.assertIn("ran on different machines", self.merge("here", "there", out="all",
                                                              more=["--other-machines"]).stdout)

    def test_a_worker_with_a_full_disk_loses_nothing(self):
        script = """
            mount -t tmpfs -o size=80k none "$1/worker" || exit 77
            "$2" run "$1/small.toml" --scale smoke --out "$1/worker/out" --quiet && exit 1
            ls "$1/worker/out/raw/small" | wc -l
            mount -o remount,size=64m "$1/worker"
            "$2" run "$1/small.toml" --scale smoke --out "$1/worker/out" --quiet --resume || exit 1
        """
        os.makedirs(self.file("worker"))
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", self.folder,
                               PMLAB],
                              capture_output=True, text=True, check=False, timeout=120)
        if done.returncode == 77 or "unshare: " in done.stderr:
            self.skipTest("no tmpfs may be mounted here")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertRegex(done.stdout, r"\d cells ran, [1-7] were there, 0 failed")

    def test_a_merge_without_space_leaves_the_parts_and_nothing_else(self):
        before = {name: contents(self.file(name)) for name in self.names}

        def little_space():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        done = pmlab("merge", *map(self.file, self.names), "--out", self.file("merged"), preexec_fn=little_space)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, r"^pmlab: error: cannot write .*merged: File too large; ")
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("merged")], [])
        self.assertEqual(before, {name: contents(self.file(name)) for name in self.names})

    def test_bad_shards_and_cells(self):
        for text, parts in (("5/4", ["no shard 5/4", "4/4"]), ("0/4", ["no shard 0/4"]),
                            ("3", ["'3' is no shard", "3/64"]),
                            ("1/0", ["no shard 1/0"]), ("-1/4", ["is no shard"])):
            self.assert_fails(2, parts, *self.words(f"--shard={text}", "--out", self.file("x")))
        self.assert_fails(2, ["no cell 'small/x'", "did you mean small/"],
                          *self.words("--cell", "small/x", "--dry-run"))
        self.assert_fails(2, ["both choose"], *self.words("--cell", "small/x", "--shard", "1/2"))

    def test_a_cell_that_fails_is_in_the_merged_folder_too(self):
        text = experiment(records=["300"]).replace('"simulated:classic"', '"counted:simulated:aep"')
        self.write("failing.toml", text.encode())
        for number in (1, 2):
            done = pmlab("run", self.file("failing.toml"), "--scale", "smoke", "--shard", f"{number}/2", "--quiet",
                         "--out", self.file(f"failing{number}"))
            self.assertEqual(done.returncode, 1, done.stderr)
        done = self.assert_fails(1, ["2 cells failed"], "merge", self.file("failing1"), self.file("failing2"), "--out",
                                 self.file("merged"))
        self.assertIn("4 cells of 2 folders", done.stdout)
        self.assertEqual(len(contents(self.file("merged"))), 2)


class Ranges(ClusterTest):
    def verify(self, seeds, out, *more, status=0, words=CAMPAIGN):
        done = pmlab("verify", *words, "--seeds", seeds, "--out", self.file(out), *more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_merged_is_serial(self):
        self.verify("5..60", "serial")
        for number, seeds in enumerate(("5..17", "18..18", "19..40", "41..60")):
            self.verify(seeds, f"range{number}")
        done = self.assert_works("merge", *(self.file(f"range{n}") for n in (2, 0, 3, 1)), "--out", self.file("merged"))
        self.assertIn("cceh: seeds 5..60, ", done.stdout)
        self.assert_same("serial", "merged", least=1)

    def test_a_killed_range_goes_on_where_it_was_recorded(self):
        self.verify("1..600", "serial", words=["--index", "cceh", "--threads", "4", "--quiet"])
        words = ["verify", "--index", "cceh", "--threads", "4", "--quiet", "--seeds", "1..600", "--out",
                 self.file("killed")]
        with subprocess.Popen([PMLAB, *words], stdout=subprocess.DEVNULL, start_new_session=True) as running:
            deadline = time.monotonic() + 60
            while running.poll() is None and time.monotonic() < deadline:
                campaign = ("killed", "campaign.json")
                if os.path.exists(self.file("/".join(campaign))) and self.read(*campaign)["indexes"][0]["done"]:
                    break
                time.sleep(0.02)
            os.killpg(running.pid, signal.SIGKILL)
        done = self.read("killed", "campaign.json")["indexes"][0]["done"]
        self.assertGreater(done, 0)
        self.assertLess(done, 600)
        self.refused(["killed is not finished", f"seeds {done + 1}..600 of cceh"], "killed")
        self.assert_fails(2, ["holds a campaign already", "--resume"], *words)
        self.assert_fails(2, ["holds another campaign"], *words, "--resume", "--keys", "50")
        self.assert_works(*words, "--resume")
        self.assert_same("serial", "killed", least=1)

    def test_ranges_that_do_not_fit(self):
        for name, seeds in (("a", "1..9"), ("b", "10..12"), ("d", "12..14"), ("e", "15..16")):
            self.verify(seeds, name)
        self.refused(["seeds 12..12 are in", "in "], "a", "b", "d")
        self.refused(["seeds 10..11 are missing", "--seeds 10..11"], "a", "d")
        shutil.copytree(self.file("b"), self.file("again"))
        self.assertIn("the same in both", self.assert_works("merge", *map(self.file, ("a", "b", "again")), "--out",
                                                            self.file("merged")).stdout)
        self.change("again/campaign.json", lambda d: d["indexes"][0].update(rounds=7))
        self.refused(["two results of seeds 10..12 differ"], "a", "b", "again")
        self.change("again/campaign.json", lambda d: d.update(schema=3))
        self.refused(["campaign.json is of schema 3"], "a", "again")
        self.verify("10..12", "keys", "--keys", "50")
        self.refused(["different campaigns: keys 120 and 50"], "a", "keys")
        self.verify("10..12", "cceh", words=["--index", "cceh", "--threads", "4", "--quiet"])
        self.refused(["is of cceh, fast_fair, and", "of cceh"], "a", "cceh")
        self.change("b/manifest.json", lambda d: d["machine"].update(commit="abc"))
        self.refused(["two builds"], "a", "b")
        os.remove(self.file("b/campaign.json"))
        commit = self.read("a", "manifest.json")["machine"]["commit"]
        self.change("b/manifest.json", lambda d: d["machine"].update(commit=commit))
        self.refused(["b holds no campaign.json"], "a", "b")
        self.write("small.toml", experiment().encode())
        self.assert_works("run", self.file("small.toml"), "--scale", "smoke", "--shard", "9/9", "--quiet", "--out",
                          self.file("run"))
        self.refused(["is of `pmlab verify", "of `pmlab run`"], "a", "run")

    def test_bad_seeds(self):
        for text, parts in (("7", ["'7' is no range", "1..6400"]), ("9..3", ["ends before it begins", "3..9"]),
                            ("1..", ["is no range"]), ("..3", ["is no range"]), ("1..3x", ["is no range"]),
                            ("1..99999999999999999", ["too high"])):
            self.assert_fails(2, parts, "verify", "--index", "cceh", "--seeds", text)
        self.assert_fails(2, ["--budget has no effect"], "verify", "--index", "cceh", "--seeds", "1..2", "--budget",
                          "3")
        self.assert_fails(2, ["bounded search"], "verify", "--index", "cceh", "--seeds", "1..2", "--search", "bounded")
        self.assert_fails(2, ["--out records a range"], "verify", "--index", "cceh", "--out", self.file("x"))
        self.assert_fails(2, ["--resume goes on"], "verify", "--index", "cceh", "--seeds", "1..2", "--resume")


class Lasting(ClusterTest):
    def test_a_file_below_raw_has_neither_date_nor_duration_nor_path(self):
        made = {"schema": 1, "machine": {"cpu": "x", "date": "2026-01-01T00:00:00Z"}, "cases": [1e-7, 10**17, "\u00e9"],
                "options": {"command": "pmlab microbench --json /mine/x.json", "seed": 1}, "seconds": 7.5}
        self.write("x.json", json.dumps(made).encode())
        program = ("import sys; from pmlab.run.lasting import keep_the_lasting; "
                   "print(keep_the_lasting(sys.argv[1], ['microbench', '--suite', 'a b']))")
        done = subprocess.run([sys.executable, "-B", "-c", program, self.file("x.json")], capture_output=True,
                              text=True, check=False, env={**os.environ, "PYTHONPATH": EXPERIMENTS})
        self.assertEqual((done.stdout, done.stderr), ("2026-01-01T00:00:00Z\n", ""))
        made["machine"]["date"] = made["seconds"] = None
        made["options"]["command"] = "pmlab microbench --suite 'a b'"
        self.assertEqual(self.read("x.json"), made)


class Locks(ClusterTest):
    def test_two_processes_do_not_work_in_one_folder(self):
        self.write("small.toml", experiment().encode())
        os.makedirs(self.file("out"))
        other = os.open(self.file("out"), os.O_RDONLY)
        self.addCleanup(os.close, other)
        fcntl.flock(other, fcntl.LOCK_EX)
        self.assert_fails(2, ["another `pmlab run` works in"], "run", self.file("small.toml"), "--out",
                          self.file("out"))
        self.assert_fails(2, ["another `pmlab verify` works in"], "verify", "--index", "cceh", "--seeds", "1..2",
                          "--out", self.file("out"))


class Export(ClusterTest):
    def export(self, *more, out="jobs"):
        return ["run", "--export", "snakemake", "--scale", "smoke", "--out", self.file(out), *more]

    def test_the_plan_has_each_cell_and_each_seed_once(self):
        self.write("small.toml", experiment().replace('"simulated:classic"', '"dram", "pmem:{pool}"').encode())
        self.assert_works(*self.export(self.file("small.toml"), "--campaign", "--index cceh --threads 4 --seeds 3..21",
                                       "--ranges", "4"))
        plan = self.read("jobs", "plan.json")
        self.assertEqual(len(plan["cells"]), 4)
        self.assertEqual(len(plan["clocked"]["cells"]), 8)
        self.assertTrue(all(c["minutes"] >= 10 and c["mem_mb"] >= 1000 for c in [*plan["cells"], plan["clocked"]]))
        self.assertEqual(plan["campaigns"][0]["words"], ["--index", "cceh", "--threads", "4"])
        ranges = plan["campaigns"][0]["ranges"]
        self.assertEqual((ranges[0][0], ranges[-1][1], len(ranges)), (3, 21, 4))
        self.assertTrue(all(a[1] + 1 == b[0] for a, b in zip(ranges, ranges[1:])))
        for name in ("Snakefile", "experiments/small.toml", "slurm/config.yaml", "slurm/config.v8+.yaml"):
            self.assertTrue(os.path.exists(self.file(f"jobs/{name}")), name)
        self.assertTrue(os.access(self.file("jobs/slurm/status.py"), os.X_OK))
        self.assert_fails(2, ["jobs is there already"], *self.export(self.file("small.toml")))
        self.assert_works(*self.export("--campaign", "--index cceh --seeds 1..2", out="campaign"))
        self.assertEqual(self.read("campaign", "plan.json")["cells"], [])

    def test_bad_input(self):
        self.assert_fails(2, ["no engine 'make'", "snakemake"], "run", "--export", "make", "--out", self.file("x"))
        self.assert_fails(2, ["--shard has no effect"], *self.export("--shard", "1/2"))
        self.assert_fails(2, ["no folder for the Snakefile"], "run", "--export", "snakemake")
        self.assert_fails(2, ["has no seeds"], *self.export("--campaign", "--index cceh"))
        self.assert_fails(2, ["--out, which each job"], *self.export("--campaign", "--index cceh --seeds 1..2 --out x"))
        self.assert_fails(2, ["'x' is no number of jobs"], *self.export("--campaign", "--index cceh --seeds 1..2",
                                                                        "--ranges", "x"))
        self.assert_fails(2, ["--campaign is for jobs"], "run", "--campaign", "--index cceh")
        done = pmlab(*self.export("--campaign", "--index ceh --seeds 1..2"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean cceh", done.stderr)


if __name__ == "__main__":
    main()
