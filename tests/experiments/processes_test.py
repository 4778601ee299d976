"""Children: their output, their endings, and that no signal leaves one behind."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from package import ROOT
from pmlab import processes
from pmlab.errors import Failure, Interrupted

# Its child starts one of its own, and each writes its number.
PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
from pmlab import errors, processes
try:
    processes.run(["sh", "-c", "echo $$ > {0}/child; sh -c 'echo $$ > {0}/grandchild; exec sleep 60'; true"])
except errors.Interrupted as e:
    print(e.signal)
    sys.exit(e.status)
"""


def lives(number):
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Processes(unittest.TestCase):
    def test_output_and_status(self):
        self.assertEqual(processes.capture(["sh", "-c", "echo a; printf b; exit 3"]), (3, "a\nb\n"))
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            self.assertEqual(processes.run(["sh", "-c", "echo a; echo b >&2"], output=log, merge_errors=True), 0)
            with open(log, encoding="utf-8") as f:
                self.assertEqual(f.read(), "a\nb\n")
        lines = []
        processes.run(["printf", "a\\nb\\xff"], on_line=lines.append)
        self.assertEqual(lines, ["a", "b\N{REPLACEMENT CHARACTER}"])

    def test_what_cannot_be_run_or_does_not_end(self):
        with self.assertRaisesRegex(Failure, "cannot run no-such-program: No such file"):
            processes.run(["no-such-program"])
        with self.assertRaisesRegex(Failure, "ended by signal 9"):
            processes.run(["sh", "-c", "kill -9 $$"])
        for more in ({}, {"on_line": lambda line: None}):
            begun = time.monotonic()
            with self.assertRaisesRegex(Failure, "timed out after 0.2 s"):
                processes.run(["sleep", "60"], timeout=0.2, **more)
            self.assertLess(time.monotonic() - begun, 10)
        with self.assertRaises(Interrupted):
            processes.run(["sh", "-c", "kill -INT $$"])

    def test_an_error_while_reading_ends_the_child(self):
        def refuse(line):
            raise ValueError(line)
        with self.assertRaisesRegex(ValueError, "^[0-9]+$") as raised:
            processes.run(["sh", "-c", "echo $$; exec sleep 60"], on_line=refuse)
        self.assertFalse(lives(int(str(raised.exception))))

    def parent(self, folder):
        """A process that runs PARENT, once its grandchild lives; and both numbers."""
        running = subprocess.Popen([sys.executable, "-B", "-c", PARENT.format(folder),
                                    os.path.join(ROOT, "experiments")],
                                   stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        names = [os.path.join(folder, name) for name in ("child", "grandchild")]
        while not all(os.path.exists(n) and os.path.getsize(n) for n in names) and time.monotonic() < deadline:
            time.sleep(0.02)
        numbers = []
        for name in names:
            with open(name, encoding="utf-8") as f:
                numbers.append(int(f.read()))
        self.assertTrue(all(map(lives, numbers)))
        return running, numbers

    def test_signals_reach_all_that_a_child_started(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number), tempfile.TemporaryDirectory() as folder:
                running, below = self.parent(folder)
                running.send_signal(number)
                said, _ = running.communicate(timeout=30)
                self.assertEqual((running.returncode, said), (128 + number, f"{int(number)}\n"))
                deadline = time.monotonic() + 5
                while any(map(lives, below)) and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.assertEqual([n for n in below if lives(n)], [])

    def test_a_signal_while_a_child_is_being_started_reaches_it_once(self):
        start = subprocess.Popen

        def start_and_signal(*arguments, **options):
            child = start(*arguments, **options)
            os.kill(os.getpid(), signal.SIGTERM)
            return child
        told = []
        with processes.signals(), \
                unittest.mock.patch.object(subprocess, "Popen", start_and_signal), \
                unittest.mock.patch.object(processes, "_tell", lambda child, number: told.append((child.pid, number))):
            child = processes.Child(["sleep", "60"])
        self.assertEqual(told, [(child.pid, signal.SIGTERM)])
        os.killpg(child.pid, signal.SIGTERM)
        with self.assertRaises(Interrupted):
            child.wait()

    def test_a_killed_parent_takes_its_child_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            running, (child, grandchild) = self.parent(folder)
            running.kill()
            running.stdout.close()
            running.wait(timeout=30)
            deadline = time.monotonic() + 5
            while lives(child) and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertFalse(lives(child))
            with contextlib.suppress(ProcessLookupError):
                os.kill(grandchild, signal.SIGKILL)  # which only its own parent knew


class ProcessesWithoutPidfd(Processes):
    """The same where the kernel does not know pidfd_open."""

    def setUp(self):
        refused = unittest.mock.patch.object(os, "pidfd_open", side_effect=OSError(38, "Function not implemented"))
        refused.start()
        self.addCleanup(refused.stop)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
