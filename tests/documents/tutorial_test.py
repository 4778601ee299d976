"""The commands of docs/tutorial.md work, one after the other, on fewer records. Argument: the program."""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from document import ROOT, commands_of

PMLAB = os.path.abspath(sys.argv[1])

# Long runs are shortened.
SHORTER = [(re.compile(r"--records \S+"), "--records 2k"), (re.compile(r"--operations \S+"), "--operations 2k"),
           (re.compile(r"--budget \d+"), "--budget 2"), (re.compile(r"--scale quick"), "--scale smoke"),
           (re.compile(r"--suite quick"), "--suite quick --filter 'read-latency'")]


class Tutorial(unittest.TestCase):
    def test_its_commands(self):
        with tempfile.TemporaryDirectory(prefix="pmlab-test-") as folder:
            # From the source tree, as the document says, with this build in the place of build/release.
            for name in ("scripts", "experiments", "profiles"):
                os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
            run = []
            for command in commands_of("tutorial.md"):
                # A medium that only the reader has.
                if "cmake" in command or command.startswith("scripts/setup.sh") or "/mnt/pmem" in command:
                    continue
                words = command.replace("build/release/bin/pmlab", shlex.quote(PMLAB))
                for long, short in SHORTER:
                    words = long.sub(short, words)
                done = subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, check=False,
                                      timeout=200)
                self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
                run.append(command)
            self.assertGreaterEqual(len(run), 8, run)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
