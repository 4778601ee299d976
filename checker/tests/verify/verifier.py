"""Shared by the tests in this folder: running `pmlab-simulated verify`."""
import os
import shlex
import subprocess
import time

# A violation must be found in so many seconds.
LONGEST_SEARCH = 60


class Verifier:
    """`subject`: the shared object that is verified."""

    def __init__(self, test, program, subject):
        self.test = test
        self.program = program
        self.subject = subject
        self.environment = dict(os.environ)

    def choose(self, mutation):
        self.environment["PMLAB_MUTATION"] = str(mutation)

    def run(self, *arguments):
        """(exit status, output, seconds)"""
        start = time.monotonic()
        done = subprocess.run([self.program, "verify", *arguments], capture_output=True, text=True, check=False,
                              timeout=2 * LONGEST_SEARCH, env=self.environment)
        return done.returncode, done.stdout + done.stderr, time.monotonic() - start

    def expect_clean_index(self, index, *arguments):
        self.expect_status_0("--index", index, *arguments)

    def expect_clean(self, *arguments):
        self.expect_status_0("--subject", self.subject, *arguments)

    def expect_status_0(self, *arguments):
        # The whole budget is used. One process: the tests beside this one have the other processors.
        jobs = [] if "--jobs" in arguments else ["--jobs", "1"]
        status, output, _ = self.run(*arguments, *jobs)
        self.test.assertEqual(status, 0, output)
        print(output)

    def shows(self, *arguments):
        """Whether this run finds a violation."""
        status, output, seconds = self.run("--subject", self.subject, "--shrink", "0", *arguments)
        print(f"status {status} in {seconds:.2f} s\n{output}")
        return status == 1 and "to reproduce it:\n" in output

    def expect_found(self, *arguments):
        """A violation is found, and shown again by the command that is printed. Returns the report."""
        return self.expect_status_1("--subject", self.subject, *arguments)

    def expect_found_index(self, index, *arguments):
        return self.expect_status_1("--index", index, *arguments)

    def expect_status_1(self, *arguments):
        status, output, seconds = self.run("--shrink", "0", "--budget", str(LONGEST_SEARCH), *arguments)
        self.test.assertEqual(status, 1, output)
        print(f"found in {seconds:.2f} s\n{output}")
        self.test.assertLess(seconds, LONGEST_SEARCH)
        self.test.assertIn("to reproduce it:\n", output)
        replay = shlex.split(output.split("to reproduce it:\n", 1)[1].splitlines()[0])
        self.test.assertEqual(replay[:2], ["pmlab", "verify"])
        status, again, _ = self.run(*replay[2:], "--shrink", "0")
        self.test.assertEqual(status, 1, f"the replay command does not show it again\n{output}\n{again}")
        return output
