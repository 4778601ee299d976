"""complete_test.py PROGRAM INDEX MUTATED.so DATA.toml: `--exhaustive` has the verdicts of brute force, and its
outcomes.

Brute force is `--every-state`: every state that the machine's model allows, at every crash point, each opened by
itself. An outcome is all that recovery and check have read, with the values: the search must open one state for each of
them. The figures of one history are pinned: `complete_search` in DATA.toml.
"""
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations"))
import plant  # noqa: E402
from verifier import Verifier  # noqa: E402

PROGRAM, INDEX, MUTATED, DATA = sys.argv[1:]
SEEDS = range(1, 5)
MUTATIONS = 6
FIGURES = re.compile(r"(\d+) operations, (\d+) crash points, (\S+) states; (\d+) openings, (\d+) outcomes "
                     r"\(fingerprint (\w+)\), (\S+) states merged, in [\d.]+ s: (.*)")


def children_of(process):
    """Their numbers; none if it has ended."""
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


class Complete(unittest.TestCase):
    def verify(self, *arguments, subject=None, mutation=0):
        """(exit status, figures, output)"""
        verifier = Verifier(self, PROGRAM, subject)
        verifier.choose(mutation)
        made_with = ("--index", INDEX) if subject is None else ("--subject", subject)
        status, output, _ = verifier.run(*made_with, "--exhaustive", "--shrink", "0", *arguments)
        figures = FIGURES.search(output)
        self.assertIsNotNone(figures, output)
        return status, figures.groups(), output

    def test_it_has_the_outcomes_of_brute_force(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                history = ("--operations", "10", "--keys", "6", "--seed", str(seed))
                self.check_against_brute_force(*history)
                self.check_against_brute_force(*history, "--window", "2")

    def check_against_brute_force(self, *history):
        status, lazy, output = self.verify(*history)
        self.assertEqual(status, 0, output)
        status, brute, again = self.verify(*history, "--every-state")
        self.assertEqual(status, 0, again)
        points, states, openings, outcomes, fingerprint = 1, 2, 3, 4, 5
        for figure in (points, states, outcomes, fingerprint):
            self.assertEqual(lazy[figure], brute[figure], output + again)
        self.assertLessEqual(int(lazy[openings]), int(brute[openings]))

    def test_it_has_the_verdicts_of_brute_force_on_mutations(self):
        found = 0
        crashes = [(n, m) for n, m in plant.mutations_in(DATA)
                   if "--schedules" not in m["verify"] and "waits_for" not in m]
        for number, mutation in crashes[:MUTATIONS]:
            history = ("--operations", "10", "--keys", "6", "--seed", "1")
            with self.subTest(mutation=mutation["name"], history=history):
                status, _, output = self.verify(*history, subject=MUTATED, mutation=number)
                brute, _, again = self.verify(*history, "--every-state", subject=MUTATED, mutation=number)
                self.assertEqual(status, brute, output + again)
                self.assertIn(status, (0, 1))
                if status == 1 and found == 0:
                    self.check_the_replay(mutation=number)
                found += status
        self.assertGreater(found, 0)

    def check_the_replay(self, mutation):
        """The history is made shorter, and the command that is printed shows the violation again."""
        verifier = Verifier(self, PROGRAM, MUTATED)
        verifier.choose(mutation)
        status, output, _ = verifier.run("--subject", MUTATED, "--exhaustive", "--operations", "60", "--shrink", "5")
        self.assertEqual(status, 1, output)
        replay = shlex.split(output.split("to reproduce it:\n", 1)[1].splitlines()[0])
        self.assertIn("--steps", replay)
        status, again, _ = verifier.run(*replay[2:])
        self.assertEqual(status, 1, f"the replay command does not show it again\n{output}\n{again}")

    def test_a_budget_that_ends_is_no_verdict(self):
        verifier = Verifier(self, PROGRAM, None)
        status, output, _ = verifier.run("--index", INDEX, "--exhaustive", "--operations", "5000", "--budget", "0.3")
        self.assertEqual(status, 3, output)
        # The message counts all crash points: they are counted first.
        self.assertRegex(output, r"not complete: \d+ of [1-9]\d* crash points")

    def test_a_process_that_is_killed_is_no_verdict(self):
        """As by a kernel that has no more memory."""
        command = [PROGRAM, "verify", "--index", INDEX, "--exhaustive", "--operations", "5000", "--shrink", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
            # A process for each part of the search, and the one in which that runs its history.
            while not (leaves := [leaf for part in children_of(search.pid) for leaf in children_of(part)]):
                self.assertIsNone(search.poll())
                time.sleep(0.01)
            os.kill(leaves[0], signal.SIGKILL)
            # The others need not go on.
            time.sleep(0.2)
            for leaf in [leaf for part in children_of(search.pid) for leaf in children_of(part)]:
                os.kill(leaf, signal.SIGKILL)
            output, errors = search.communicate(timeout=60)
        self.assertEqual(search.returncode, 2, output + errors)
        self.assertIn("a process of the search was killed", errors)

    def test_its_figures_depend_on_the_history_alone(self):
        status, figures, output = self.verify("--operations", "40", "--keys", "12", "--seed", "1")
        self.assertEqual(status, 0, output)
        self.assertEqual(tuple(map(int, figures[1:5])), plant.complete_search(DATA), output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
