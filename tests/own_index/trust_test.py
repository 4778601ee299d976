"""`pmlab verify` accuses no library that is only slow, large or odd, and gives no verdict where it can give none."""
import os
import resource
import shutil
import subprocess
import time

from own_index import BUILT, PMLAB, OwnIndexTest, main

ODD = os.path.join(BUILT, "libown_odd.so")


class Trust(OwnIndexTest):
    def verify(self, odd, *arguments, status=0, library=ODD):
        """(output, errors, seconds) of a run that ends with `status`."""
        start = time.monotonic()
        environment = dict(os.environ, ODD=odd)
        done = subprocess.run([PMLAB, "verify", "--library", library, "--quiet", *arguments], capture_output=True,
                              text=True, check=False, timeout=150, cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr, time.monotonic() - start

    def expect_no_verdict(self, odd, parts, *arguments, library=ODD):
        output, errors, _ = self.verify(odd, "--crashes", *arguments, status=2, library=library)
        self.assertEqual(output, "")
        self.assertEqual(len(errors.splitlines()), 1, errors)
        for part in ["pmlab: error: ", "; ", *parts]:
            self.assertIn(part, errors)

    def test_a_slow_library_is_no_hang_and_the_budget_holds(self):
        # Its round takes minutes; a budget that only held between rounds would not end it.
        for budget in (2, 4):
            output, _, seconds = self.verify("slow", "--crashes", "--budget", str(budget))
            self.assertIn("no violation", output)
            reported = float(output.split(" s: no violation")[0].split()[-1])
            self.assertLess(reported, 1.1 * budget + 0.5, output)
            # The program's start and the names of the functions; on a busy machine.
            self.assertLess(seconds, budget + 10)

    def test_searches_that_write_to_persistent_memory_pass_the_audit(self):
        for how in (["--crashes"], ["--schedules", "--threads", "3"]):
            output, _, _ = self.verify("counts", "--rounds", "6", "--keys", "8", "--operations", "8", *how)
            self.assertIn("6 rounds", output)
            self.assertIn("no violation", output)

    def test_the_output_of_a_library_does_not_reach_the_report(self):
        output, errors, _ = self.verify("chatty", "--crashes", "--rounds", "1", "--keys", "8", "--operations", "8")
        self.assertTrue(output.startswith("libown_odd.so: "), output)
        self.assertNotIn("CHATTER", output + errors)

    def test_large_arenas_do_not_exhaust_the_machine(self):
        output, _, _ = self.verify("large", "--crashes", "--budget", "6", "--keys", "4", "--operations", "3",
                                   "--pool-size", "320MiB")
        self.assertIn("no violation", output)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1536 << 10)  # KiB

    def test_rounds_grow_until_the_structure_changes_and_say_what_they_did_not_reach(self):
        # Some hundred keys: far more than a round has. Seed 5 is a round that grows.
        one = ["--crashes", "--rounds", "1", "--shrink", "0"]
        output, _, _ = self.verify("grows", *one, "--seed", "5")
        reached = output.splitlines()[1]
        self.assertIn("functions that access memory; never reached: ", reached)
        self.assertNotIn("grow (", reached)
        self.assertIn("never_reached (", reached)
        self.assertIn("odd.cpp:", reached)
        output, _, _ = self.verify("grows", *one, "--seed", "1", "--keys", "8", "--operations", "8")
        self.assertIn("grow (", output.splitlines()[1])

    def test_a_defect_that_only_growing_shows_is_found(self):
        output, _, _ = self.verify("forgets", "--crashes", "--seed", "5", "--rounds", "1", "--shrink", "0", status=1)
        self.assertIn("(grow)", output)

    def test_no_verdict_without_debug_information(self):
        bare = os.path.join(self.folder, "libbare.so")
        for strip in ("--strip-debug", "--strip-all"):
            shutil.copy(ODD, bare)
            subprocess.run(["strip", strip, bare], check=True)
            self.expect_no_verdict("", ["libbare.so has no debug information"], library=bare)

    def test_no_verdict_on_a_library_that_forks(self):
        self.expect_no_verdict("forks", ["makes a process (fork)", "odd.cpp:"])

    def test_no_verdict_on_computing_that_the_machine_does_not_see(self):
        self.expect_no_verdict("computes", ["without any access to memory", "odd.cpp:", "(insert)"], "--budget", "9")

    def test_no_verdict_on_waiting_that_the_machine_does_not_see(self):
        self.expect_no_verdict("waits", ["it waits outside of the machine"], "--budget", "9")
        # All of a short budget, too: one state was begun, and "no violation" would be of none.
        self.expect_no_verdict("waits", ["it waits outside of the machine"], "--budget", "4")

    def test_no_verdict_if_nothing_was_explored(self):
        self.expect_no_verdict("computes", ["libown_odd.so was not explored", "--budget"], "--budget", "1")


if __name__ == "__main__":
    main()
