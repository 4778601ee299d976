"""Signals: the work of a command ends with it, and what was unfinished is gone."""
import os
import signal
import subprocess
import time
import unittest

from program import PMLAB, ProgramTest, main


def processes_in_group(group):
    """Those that run, by their process group."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as f:
                state, _, of_group = f.read().rsplit(")", 1)[1].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(of_group) == group and state != "Z":
            found.append(int(name))
    return found


def until(condition, seconds=60):
    """Waits for the condition; returns its last value."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(.02)
    return condition()


class Signals(ProgramTest):
    def assert_ends(self, number, working, *arguments):
        """The program alone gets the signal, when working(its process) is true; its children end with it."""
        with subprocess.Popen([PMLAB, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as program:
            self.assertTrue(until(lambda: working(program) or program.poll() is not None))
            self.assertIsNone(program.poll(), program.stderr.read() if program.poll() is not None else "")
            os.kill(program.pid, number)
            self.assertEqual(program.wait(60), -number)
            self.assertTrue(until(lambda: not processes_in_group(program.pid), 5), "a child is left behind")

    def has_children(self, program):
        return len(processes_in_group(program.pid)) > 1

    def is_simulating(self, program):
        with open(f"/proc/{program.pid}/comm", encoding="utf-8") as f:
            return f.read().startswith("pmlab-simulated"[:15])

    def test_a_simulated_run(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assert_ends(number, self.is_simulating, "bench", "--index", "fast_fair", "--medium", "simulated:aep",
                             "--quiet")

    def test_a_verification(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assert_ends(number, self.has_children, "verify", "--index", "cceh", "--crashes", "--budget", "60")

    def test_a_dump_leaves_no_unfinished_file(self):
        self.assert_works("bench", "--index", "fast_fair", "--records", "300k", "--operations", "1k", "--phases",
                          "read", "--medium", "pmem:" + self.file("p"), "--keep", "--quiet")
        self.assert_ends(signal.SIGTERM, lambda program: len(os.listdir(self.folder)) > 1, "pool", "dump",
                         self.file("p"),
                         "--output", self.file("entries.txt"))
        self.assertEqual(os.listdir(self.folder), ["p"])

    def test_a_pool_that_is_being_filled_is_removed(self):
        with open(self.file("text"), "w", encoding="utf-8") as f:
            f.write('# pmlab-dump 1 {"root":"a","index":"skip_list_pm"}\n')
            f.writelines(f"{key} {key}\n" for key in range(1, 300_001))
        self.assert_ends(signal.SIGTERM, lambda program: len(os.listdir(self.folder)) > 1, "pool", "load",
                         self.file("text"), self.file("new"))
        self.assertEqual(os.listdir(self.folder), ["text"])

    def test_a_signal_that_is_ignored_stays_so(self):
        """As nohup starts a program."""
        with subprocess.Popen([PMLAB, "bench", "--index", "cceh", "--records", "1k", "--seconds", "1", "--phases",
                               "read", "--medium", "pmem:" + self.file("p"), "--quiet"], stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as program:
            self.assertTrue(until(lambda: os.listdir(self.folder)))
            os.kill(program.pid, signal.SIGHUP)
            self.assertEqual(program.wait(60), 0)


if __name__ == "__main__":
    main()
