"""`pmlab run`: runs, resumes after it was killed, continues after a cell that fails, refuses invalid options."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import PMLAB, ProgramTest, main, pmlab  # noqa: E402

SMALL = """
title = "Small"
about = "Two indexes on two media."
shows = "beyond the paper"
[arguments]
index = ["cceh", "fast_fair"]
operations = "{operations}"
records = "1k"
phases = ["read"]
[matrix]
medium = ["simulated:aep", "simulated:classic", "dram", "pmem:{{pool}}"]
[[chart]]
kind = "bars"
x = "medium"
y = "latency"
series = "index"
"""


class Run(ProgramTest):
    def experiment(self, text=None, name="small.toml", operations="1k"):
        return self.write(name, (text or SMALL.format(operations=operations)).encode())

    def run_it(self, *arguments, out="out", status=0):
        done = pmlab("run", "--out", self.file(out), "--scale", "smoke", "--pools", self.folder, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def manifest(self, out="out"):
        with open(os.path.join(self.file(out), "manifest.json"), encoding="utf-8") as f:
            return json.load(f)

    def raw(self, cell, out="out"):
        with open(os.path.join(self.file(out), "raw", cell + ".json"), encoding="utf-8") as f:
            return json.load(f)

    def test_runs_checks_and_records(self):
        done = self.run_it(self.experiment())
        manifest = self.manifest()
        names = sorted(r["name"] for r in manifest["runs"])
        self.assertEqual(names, ["small/dram", "small/pmem-pool", "small/simulated-aep", "small/simulated-classic"])
        for run in manifest["runs"]:
            self.assertEqual((run["status"], run["experiment"]), (0, "small"))
            self.assertIn("--verify", run["command"])
            document = self.raw(run["name"])
            self.assertTrue(document["options"]["verify"])
            self.assertTrue(all(r["wrong_answers"] == 0 for r in document["results"]))
        self.assertEqual(manifest["experiments"][0]["charts"][0]["y"], "latency")
        self.assertEqual(manifest["machine"]["commit"], manifest["runs"][0]["commit"])
        self.assertTrue(manifest["machine"]["compiler"])
        self.assertIn("left", done.stderr)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("pmlab-run-")], [], "pools are left")
        with open(os.path.join(self.file("out"), "doctor.txt"), encoding="utf-8") as f:
            self.assertIn("cpu", f.read())

    def test_records_what_other_programs_did(self):
        self.run_it(self.experiment())
        manifest = self.manifest()
        self.assertGreaterEqual(manifest["load"], 0)
        for run in manifest["runs"]:
            if "simulated" in run["name"]:
                self.assertEqual((run["load"], run["other_cpus"]), (None, None), "it has no real clock")
            else:
                self.assertGreaterEqual(run["load"], 0)
                self.assertGreaterEqual(run["other_cpus"], 0)

    def test_a_terminal_shows_the_cell_that_runs(self):
        terminal, other_end = os.openpty()
        with subprocess.Popen([PMLAB, "run", self.experiment(), "--out", self.file("out"), "--scale", "smoke",
                               "--pools", self.folder], stdout=subprocess.DEVNULL, stderr=other_end) as running:
            os.close(other_end)
            said = b""
            try:
                while block := os.read(terminal, 4096):
                    said += block
            except OSError:
                pass  # it has ended
        os.close(terminal)
        self.assertEqual(running.returncode, 0, said)
        lines = said.decode().replace("\r\n", "\n")
        self.assertRegex(lines, r"\r\x1b\[K\[0/4\] small/[a-z-]+ \(0 s\)", "no time left yet: no cell has ended")
        self.assertRegex(lines, r"\r\x1b\[K\[3/4\] small/pmem-pool \(0 s\), about \d+ s left")
        self.assertRegex(lines, r"\r\x1b\[K\[4/4\] small/pmem-pool: \d+ s\n")

    def test_results_are_never_overwritten(self):
        experiment = self.experiment()
        self.run_it(experiment)
        again = self.run_it(experiment, status=2)
        self.assertIn("holds results already", again.stderr)
        kept = self.run_it(experiment, "--resume")
        self.assertIn("0 cells ran, 4 were there", kept.stdout)

    def test_a_resume_that_measures_nothing_keeps_the_load(self):
        path = os.path.join(self.file("out"), "manifest.json")
        self.run_it(self.experiment())
        manifest = self.manifest()
        manifest["load"] = 123.5
        with open(path, "w", encoding="utf-8") as f:
            json.dump(manifest, f)
        self.run_it(self.experiment(), "--resume")
        self.assertEqual(self.manifest()["load"], 123.5)
        self.run_it(self.experiment(operations="2k"), "--resume")
        self.assertNotEqual(self.manifest()["load"], 123.5)

    def test_resume_runs_what_has_other_arguments(self):
        self.run_it(self.experiment())
        done = self.run_it(self.experiment(operations="2k"), "--resume")
        self.assertIn("4 cells ran, 0 were there", done.stdout)
        self.assertEqual(self.raw("small/dram")["options"]["operations"], 2000)

    def test_one_experiment_first_and_then_all(self):
        """As scripts/run.sh does: what ran first is kept, and the order of all is that of a run of all."""
        one = 'title = "One"\nabout = "A count."\nshows = "beyond the paper"\n[arguments]\nindex = "cceh"\n' \
              'records = "1k"\noperations = "1k"\nphases = ["read"]\n[matrix]\nmedium = ["counted:dram"]\n' \
              '[[chart]]\nkind = "bars"\nx = "phase"\ny = "flushes"\nseries = "index"\n'
        paths = [self.experiment(one, f"{name}.toml") for name in ("a", "b", "c")]
        self.run_it(paths[1])
        done = self.run_it(*paths, "--resume")
        self.assertIn("2 cells ran, 1 were there, 0 failed", done.stdout)
        manifest = self.manifest()
        for part in ("experiments", "planned", "runs"):
            self.assertEqual([p["name"][0] for p in manifest[part]], ["a", "b", "c"])

    def test_resume_runs_what_has_damaged_results(self):
        experiment = self.experiment()
        self.run_it(experiment)
        raw = os.path.join(self.file("out"), "raw", "small")
        first, second, third, fourth = (os.path.join(raw, name) for name in sorted(os.listdir(raw)))
        with open(first, encoding="utf-8") as f:
            whole = f.read()
        with open(fourth, encoding="utf-8") as f:
            of_another = f.read()
        for path, content in ((first, whole[:len(whole) // 2]), (second, ""), (third, of_another)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(content)
        done = self.run_it(experiment, "--resume")
        self.assertIn("3 cells ran, 1 were there", done.stdout)
        with open(third, encoding="utf-8") as f:
            self.assertNotEqual(f.read(), of_another)

    def test_resume_after_a_kill(self):
        # Cells with a thousand repeats take minutes: the run is killed before they end.
        slow = SMALL.format(operations="1k").replace('operations = "1k"', 'seconds = "0.05"').replace(
            "[matrix]", '[matrix]\nrepeat = ["1", "1000"]')
        # Simulated cells would begin with the longest.
        slow = slow.replace('"simulated:aep", "simulated:classic", ', "")
        path = self.experiment(slow)
        with subprocess.Popen([PMLAB, "run", path, "--out", self.file("out"), "--scale", "smoke", "--pools",
                               self.folder],
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
            for line in running.stderr:
                if line.startswith("[1/"):
                    break
            os.killpg(running.pid, signal.SIGKILL)
        before = {r["name"]: r for r in self.manifest()["runs"]}
        self.assertGreaterEqual(len(before), 1)
        for name in before:
            self.raw(name)
        self.experiment(slow.replace('"1000"', '"2"'))
        done = self.run_it(path, "--resume")
        self.assertIn("have results", done.stderr)
        after = {r["name"]: r for r in self.manifest()["runs"]}
        for name, run in before.items():
            if "1000" not in name:
                self.assertEqual(run, after[name], "was there, and was run again")
        self.assertTrue(all(r["status"] == 0 for n, r in after.items() if "1000" not in n))
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("pmlab-run-")], [], "pools are left")

    def test_a_cell_that_fails_is_loud_and_takes_no_other_one_with_it(self):
        text = SMALL.format(operations="1k").replace('"dram"', '"counted:simulated:aep"')
        done = self.run_it(self.experiment(text), status=1)
        self.assertIn("small/counted-simulated-aep: FAILED", done.stderr)
        self.assertIn("alone: pmlab bench", done.stderr)
        endings = {r["name"]: r for r in self.manifest()["runs"]}
        self.assertEqual(sum(r["status"] == 0 for r in endings.values()), 3)
        failed = endings["small/counted-simulated-aep"]
        self.assertTrue(failed["message"])
        self.assertIn(failed["message"], done.stderr)

    def test_a_cell_with_invalid_rows_counts_and_is_told(self):
        text = SMALL.format(operations="1k").replace('"simulated:aep", "simulated:classic", "dram", "pmem:{pool}"',
                                                     '"emulated:dram"')
        done = self.run_it(self.experiment(text.replace("[matrix]", "threads = 64\n[matrix]")))
        self.assertIn("small/emulated-dram: some rows are INVALID", done.stderr)
        self.assertEqual([run["status"] for run in self.manifest()["runs"]], [0])
        self.assertTrue(all(r["invalid"] for r in self.raw("small/emulated-dram")["results"]))

    def test_an_interrupt_stops_and_says_how_to_go_on(self):
        text = SMALL.format(operations="1k").replace('operations = "1k"', 'seconds = "60"').replace(
            '"simulated:aep", "simulated:classic", ', "")
        with subprocess.Popen([PMLAB, "run", self.experiment(text), "--out", self.file("out"), "--pools", self.folder],
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
            time.sleep(2)
            os.killpg(running.pid, signal.SIGINT)
            _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 128 + signal.SIGINT, said)
        self.assertIn("interrupted", said)
        self.assertIn("--resume", said)

    def cells_of(self, folder):
        """Processes that run cells of this test: their pools are in its folder."""
        found = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if b"bench" in words and any(folder.encode() in word for word in words):
                found.append(process)
        return found

    def test_a_signal_to_pmlab_alone_ends_its_cells_and_the_run_goes_on_later(self):
        slow = SMALL.format(operations="1k").replace('operations = "1k"', 'seconds = "0.05"').replace(
            "[matrix]", '[matrix]\nrepeat = ["1", "1000"]').replace('"simulated:aep", "simulated:classic", ', "")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                out = f"out{number}"
                path = self.experiment(slow)
                with subprocess.Popen([PMLAB, "run", path, "--out", self.file(out), "--scale", "smoke", "--pools",
                                       self.folder], stderr=subprocess.PIPE, text=True) as running:
                    for line in running.stderr:
                        if line.startswith("[2/"):
                            break
                    time.sleep(0.3)
                    running.send_signal(number)
                    _, said = running.communicate(timeout=60)
                self.assertEqual(running.returncode, 128 + number, said)
                self.assertIn("--resume", said)
                self.assertEqual(self.cells_of(self.folder), [], "a cell continues")
                self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("pmlab-run-")], [],
                                 "pools are left")
                noted = self.manifest(out)
                self.assertEqual([r["status"] for r in noted["runs"]], [0, 0])
                self.assertEqual(noted["pools"], "")
                self.experiment(slow.replace('"1000"', '"2"'))
                done = self.run_it(path, "--resume", out=out)
                self.assertIn("2 cells ran, 2 were there", done.stdout)

    def test_a_manifest_that_cannot_be_written_ends_the_run_with_an_error(self):
        # Cells on simulated media run side by side; one of them runs for seconds after the other has ended.
        slow = SMALL.format(operations="20k").replace(', "dram", "pmem:{pool}"', "").replace(
            'operations = "20k"', "").replace("[matrix]", '[matrix]\noperations = ["1k", "200k"]').replace(
            ', "simulated:classic"', "")
        with subprocess.Popen([PMLAB, "run", self.experiment(slow), "--out", self.file("out"),
                               "--pools", self.folder], stderr=subprocess.PIPE, text=True) as running:
            for line in running.stderr:
                if line.startswith("[1/"):
                    break
            os.rename(self.file("out"), self.file("moved"))
            with open(self.file("out"), "w", encoding="utf-8"):
                pass
            _, said = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 2, said)
        self.assertIn("pmlab: error: ", said)
        self.assertIn("manifest.json", said)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("pmlab-run-")], [], "pools are left")

    def test_a_killed_pmlab_takes_its_cells_with_it(self):
        slow = SMALL.format(operations="1k").replace('operations = "1k"', 'seconds = "60"').replace(
            '"simulated:aep", "simulated:classic", ', "")
        with subprocess.Popen([PMLAB, "run", self.experiment(slow), "--out", self.file("out"), "--pools", self.folder],
                              stderr=subprocess.DEVNULL) as running:
            deadline = time.monotonic() + 60
            while not self.cells_of(self.folder) and time.monotonic() < deadline:
                time.sleep(0.05)
            running.kill()
        deadline = time.monotonic() + 10
        while self.cells_of(self.folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.cells_of(self.folder), [])

    def test_claims_are_judged_where_they_were_measured(self):
        done = self.run_it("hybrid")
        for medium in ("simulated-aep", "simulated-classic"):
            with open(os.path.join(self.file("out"), "claims", medium + ".json"), encoding="utf-8") as f:
                found = {c["id"]: c for c in json.load(f)["claims"]}
            self.assertEqual(list(found), ["I1", "I2", "I3"])
            for claim in found.values():
                self.assertIn(claim["verdict"], ("reproduced", "not reproduced", "undecided"))
        self.assertIn("6 verdicts on 3 claims", done.stdout)
        judged = self.assert_works("claims", "--from", self.file("out"), "I1")
        self.assertIn("claims on simulated:classic", judged.stdout)
        self.assert_fails(2, ["cannot be read"], "claims", "--from", self.file("none"))
        self.assert_fails(2, ["is about indexes", "pmlab run"], "claims", "--medium", "dram", "I1")

    def test_a_drive_lies_beside_the_results_and_is_removed(self):
        text = ('title = "Drives"\nabout = "Two."\nshows = "beyond the paper"\nkind = "microbench"\nclaims = ["M22"]\n'
                '[arguments]\nsuite = "quick"\nfilter = "^drive-(read|write)$"\ndevice_bytes = "32M"\n'
                '[matrix]\ndevice = ["simulated:p4610", "file:{drive}"]\n')
        done = self.run_it(self.experiment(text, "drives.toml"))
        self.assertIn("not measured: M22", done.stdout, "there is no memory to compare the drive with")
        document = self.raw("drives/file-drive")
        self.assertEqual(document["machine"]["medium"], "file:" + self.file("out/drives-file-drive.drive"))
        self.assertEqual(sorted(os.listdir(self.file("out"))), ["claims", "doctor.txt", "log", "manifest.json", "raw"])
        self.assertEqual({run["name"]: run["load"] is None for run in self.manifest()["runs"]},
                         {"drives/simulated-p4610": True, "drives/file-drive": False})
        with open(self.file("out/claims/drive.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["claims"][0]["verdict"], "not measured")

    def test_list_and_dry_run_run_nothing(self):
        listed = self.assert_works("run", "--list").stdout
        for name in ("hybrid", "memory", "placement", "ycsb", "cache_size", "recovery", "counted"):
            self.assertRegex(listed, rf"(?m)^{name} ")
        planned = self.assert_works("run", self.experiment(), "--dry-run").stdout
        self.assertIn("small/simulated-aep: pmlab bench --medium simulated:aep --index cceh,fast_fair", planned)
        self.assertFalse(os.path.exists(self.file("out")))

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["--list"], ["--dry-run"], ["--help"]):
                done = subprocess.run([PMLAB, "run", *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, "^pmlab: error: cannot write to standard output: No space left on "
                                 "device; .*\n$")

    def test_every_experiment_has_options_that_exist(self):
        for scale in ("smoke", "quick", "full"):
            self.assertGreater(len(self.assert_works("run", "--dry-run", "--scale", scale).stdout.splitlines()), 30)

    def test_bad_input(self):
        def bad(parts, *arguments):
            self.assert_fails(2, parts, "run", *arguments)
        bad(["no experiment 'hybird'", "did you mean 'hybrid'"], "hybird", "--list")
        bad(["no scale 'quikc'", "quick"], "--scale", "quikc")
        bad(["no folder for the results", "--out"], "hybrid")
        bad(["small.toml:11: pmlab bench has no option --mediun", "did you mean --medium"],
            self.experiment(SMALL.format(operations="1k").replace("medium =", "mediun =")), "--list")
        bad(["small", "no index 'ceh'", "did you mean cceh"],
            self.experiment(SMALL.format(operations="1k").replace('"cceh"', '"ceh"')), "--dry-run")
        bad(["small", "no claim 'I99'", "did you mean I"],
            self.experiment(SMALL.format(operations="1k").replace("[arguments]", 'claims = ["I99"]\n[arguments]')),
            "--dry-run")
        bad(["not TOML"], self.experiment("title = = 1"), "--list")
        bad(["two experiments are called"], "hybrid", "hybrid", "--list")
        bad(["cannot make pools"], "answers", "--out", self.file("x"), "--pools", self.file("none"))


if __name__ == "__main__":
    main()
