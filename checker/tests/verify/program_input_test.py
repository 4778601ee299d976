"""program_input_test.py PMLAB MISUSE MISUSE_STATIC: runs and checks that give no verdict end with status 2 and one
line."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PMLAB, MISUSE, MISUSE_STATIC = sys.argv[1:]


class Input(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def verify(self, program, check="true", *options, **more):
        budget = [] if "--budget" in options else ["--budget", "1"]
        return subprocess.run([PMLAB, "verify", "--program", program, "--check", check, "--quiet", *budget, *options],
                              capture_output=True, text=True, check=False, timeout=100, cwd=self.folder.name,
                              env=dict(os.environ, TMPDIR=self.folder.name), **more)

    def refused(self, text, *arguments):
        done = self.verify(*arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual([f for f in os.listdir(self.folder.name) if f.startswith("pmlab-") and "other" not in f], [])

    def test_programs(self):
        for how, text in {"no_pool": "maps no pool", "fork": "makes a process by fork", "aborts": "died of signal 6",
                          "faults": "died of signal 11", "fails": "ended with status 3, and no crash of it was judged",
                          "second_file": "maps a second file", "writes_around": "went around the recorder",
                          "never_ends": "did not end within 10 s",
                          "odd_size": "the size of its pool is no multiple of 4096 bytes; give it such a size"}.items():
            with self.subTest(how):
                self.refused(text, f"{MISUSE} {how} {{}}")

    def test_what_a_program_said_last_is_in_the_message(self):
        self.refused("whose last line is: no luck today", f"{MISUSE} fails {{}}")

    def test_files_that_are_no_programs(self):
        script = os.path.join(self.folder.name, "script")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(script, 0o755)
        self.refused("is a script", f"{script} {{}}")
        self.refused("is linked statically", f"{MISUSE_STATIC} sound {{}}")
        self.refused("cannot read the program", "./not_there {}")
        self.refused("is no program", f"{self.folder.name} {{}}")
        self.refused("is not executable", __file__)
        self.refused("has a quote without its end", f"{MISUSE} 'sound")

    def test_checks(self):
        sound = f"{MISUSE} sound {{}}"
        self.refused("died of signal 11", sound, "kill -SEGV $$; true")
        self.refused("the check cannot be run", sound, "./not_there")
        self.refused("the check cannot be run", sound, "exit 126; true")
        for status in (125, 128):
            self.refused(f"ended with status {status}, which is no verdict", sound, f"exit {status}; true")
        self.refused("made no mark 'never'", sound, "true", "--after", "never")

    def test_a_check_that_works_and_faults_on_a_state_is_a_violation(self):
        # It faults where nothing of the program's stores is there.
        done = self.verify(f"{MISUSE} sound {{}}", "test $(tr -d '\\000' < {} | wc -c) -gt 0 || kill -SEGV $$")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the check died of signal 11 (Segmentation fault)", done.stdout)

    def test_options(self):
        sound = f"{MISUSE} sound {{}}"
        self.refused("--program excludes", sound, "true", "--index", "cceh")
        self.refused("--check has an empty value", sound, "")
        for option in (["--performance"], ["--schedules"], ["--threads", "2"], ["--rounds", "3"], ["--operations", "9"],
                       ["--keys", "9"]):
            self.refused(f"so {option[0]} has no effect", sound, "true", *option)
        self.refused("--states must be at least 2", sound, "true", "--states", "1")

    def test_a_parent_that_ignores_the_end_of_children_hides_no_violation(self):
        done = self.verify(f"{MISUSE} sound {{}}", "exit 1; true",
                           preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_a_sound_run_is_judged_completely(self):
        done = self.verify(f"{MISUSE} sound {{}}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("complete: these are all states of this run", done.stdout)
        # Before the msync with and without the store, and after the mark with it.
        self.assertIn("3 different states checked", done.stdout)

    def test_only_a_pass_that_ends_is_complete(self):
        # 100 points of 16 states, of which each one's first is the last of the one before; and 3 as in a sound run.
        all_states = 1503
        for check, budget in ("true", "60"), ("sleep 0.005; true", "4"):
            done = self.verify(f"{MISUSE} points {{}}", check, "--budget", budget)
            self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
            checked = int(re.search(r"(\d+) different states checked", done.stdout).group(1))
            self.assertEqual("  complete: " in done.stdout, checked == all_states, done.stdout)
            if check == "true":
                self.assertEqual(checked, all_states, done.stdout)

    def test_a_first_pass_that_does_not_end_is_no_success(self):
        done = self.verify(f"{MISUSE} points {{}}", "sleep 0.3; true")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout,
                         r"not complete: the budget of 1 s ended in the first pass, at step \d+ of the \d+ recorded")

    def test_a_violation_stands_if_the_check_dies_on_another_state(self):
        # One of the four lines is ahead: unsound. Two are: the check dies; a state of this kind is met when less is
        # lost.
        check = ("set -- $(od -An -tu8 -v -j64 -N256 {}); "
                 "case $((($1 + $9 + ${17} + ${25}) % 4)) in 1) exit 1;; 2) sleep 0.3; kill -KILL $$;; esac")
        done = self.verify(f"{MISUSE} points {{}}", check, "--budget", "60", "--seed", "1")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the check ended with status 1", done.stdout)

    def test_the_printed_check_has_the_path_in_place_of_braces(self):
        done = self.verify(f"{MISUSE} points {{}}", "test $(od -An -tu8 -j64 -N8 {}) -lt 1", "--after", "one")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        again = done.stdout.split("to check it again:\n", 1)[1].strip()
        self.assertNotIn("{}", again)
        self.assertEqual(subprocess.run(again, shell=True, check=False, capture_output=True,
                                        cwd=self.folder.name).returncode, 1)

    def judged(self, how, *options):
        done = self.verify(f"{MISUSE} {how} {{}}", "true", *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_what_a_thread_has_flushed_is_durable(self):
        # Beside stores of other threads to the page, of which those that are open for a step need no step of their own.
        self.assertIn(" 1 different states checked", self.judged("flushed_by_threads", "--after", "flushed"))

    def test_an_instruction_may_store_to_many_pages(self):
        self.assertIn("31 stores", self.judged("repeats", "--states", "2"))

    def test_a_program_may_block_all_signals(self):
        self.assertIn("3 stores", self.judged("blocks_signals"))

    def test_holes_of_a_pool_stay_holes(self):
        self.judged("sparse")  # a pool of 256 MB
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 128 << 10)

    def test_a_signal_leaves_no_file_and_no_program(self):
        program = subprocess.Popen([PMLAB, "verify", "--program", f"{MISUSE} never_ends {{}}", "--check", "true",
                                    "--quiet"],
                                   cwd=self.folder.name, env=dict(os.environ, TMPDIR=self.folder.name))
        children = pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children")
        while not any(name.endswith(".pool") for name in os.listdir(self.folder.name)):
            time.sleep(0.01)
        child = int(children.read_text().split()[0])
        program.terminate()
        self.assertEqual(program.wait(timeout=60), -signal.SIGTERM)
        self.assertEqual([f for f in os.listdir(self.folder.name) if f.startswith("pmlab-")], [])
        for _ in range(1000):
            if not os.path.exists(f"/proc/{child}"):
                return
            time.sleep(0.01)
        self.fail("the program runs on")

    def test_stores_of_several_threads_are_all_recorded(self):
        done = self.verify(f"{MISUSE} threads {{}}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("257 stores", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
