"""program_test.py PMLAB PROGRAM AFTER DEFECTS [creation]: `pmlab verify --program` finds each defect of a program, and
nothing in it without. AFTER: the mark from which on it is crashed; creation: without a defect, before it too."""
import os
import subprocess
import sys
import tempfile
import time
import unittest

PMLAB, PROGRAM, AFTER, DEFECTS, *CREATION = sys.argv[1:]
NAME = os.path.basename(PROGRAM).removeprefix("program_")
# The place of each defect, in the order of their numbers: the function that has it, or the kind of the crash.
PLACES = {
    "sorted_nodes": ["stored by split ", "crash before .* insert ", "crash before .* insert "],
    "hash_in_transactions": ["crash before .* insert ", "crash before .* grow "],
    "hash_without_transactions": ["stored by insert ", "crash before .* set ", "stored by make_entry ",
                                  "crash in the recovery, "],
    "named_array": ["crash before .* allocate ", "crash before .* make_smaller "],
    "slots": ["stored by insert ", "stored by insert "],
    "queue": ["crash before .* push ", "crash before .* operator"],
    "pmem_medium": ["stored by push ", "crash before .* push "],
    "transactions_of_size": [],
}
# A defect must be found in so many seconds.
LONGEST_SEARCH = 60
# A sound program is crashed for so many seconds.
CLEAN_SECONDS = 10


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def verify(self, defect, *options, after=AFTER):
        environment = dict(os.environ, PMLAB_DEFECT=str(defect))
        return subprocess.run(
            [PMLAB, "verify", "--program", f"{PROGRAM} run {{}}", "--check", f"{PROGRAM} check", "--quiet",
             *(["--after", after] if after else []), *options],
            capture_output=True, text=True, check=False, timeout=3 * LONGEST_SEARCH, env=environment,
            cwd=self.folder.name)

    def test_its_defects_are_found(self):
        for defect in range(1, int(DEFECTS) + 1):
            with self.subTest(defect=defect):
                start = time.monotonic()
                done = self.verify(defect, "--budget", str(LONGEST_SEARCH))
                print(f"defect {defect}: {time.monotonic() - start:.2f} s\n{done.stdout}")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"crash (before the|after the mark)")
                self.assertIn("lost: ", done.stdout)
                # The function that has the defect is among those named, with its line.
                self.assertRegex(done.stdout, PLACES[NAME][defect - 1] + (r".*" + NAME + r"\.(c|cpp):\d+"))
                again = done.stdout.split("to check it again:\n", 1)[1].strip()
                replayed = subprocess.run(again, shell=True, capture_output=True, text=True, check=False,
                                          cwd=self.folder.name, env=dict(os.environ, PMLAB_DEFECT=str(defect)))
                self.assertEqual(replayed.returncode, 1, replayed.stdout + replayed.stderr)

    def expect_clean(self, **options):
        done = self.verify(0, "--states", "4", "--budget", str(CLEAN_SECONDS), **options)
        print(done.stdout)
        # 3: the first states of all points take longer.
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assertIn("no violation", done.stdout)
        self.assertNotIn(" 0 different states", done.stdout)

    def test_without_a_defect_it_is_clean(self):
        self.expect_clean()

    @unittest.skipUnless(CREATION, "the creation of a pool is libpmemobj's")
    def test_the_creation_of_its_pool_is_clean(self):
        self.expect_clean(after="")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
