"""The commands of docs/own-index.md work, one after the other, and end as the document says."""
import os
import re
import shlex
import subprocess
import sys

from own_index import INCLUDE, PMLAB, ROOT, TABLE, OwnIndexTest, line_of, main

sys.path.append(os.path.join(ROOT, "tests", "documents"))
from document import commands_of, text_of

# Long runs are shortened.
BUDGET = re.compile(r"--budget \d+")


class Document(OwnIndexTest):
    def test_it_names_the_line_of_the_bug(self):
        text = text_of("own-index.md")
        line = line_of(TABLE, "key.store(removed)")
        self.assertIn(f"examples/own_index/table.cpp:{line} (remove)", text)
        self.assertIn(f"Line {line} is in `remove`", text)

    def test_its_commands(self):
        # From the source tree, as the document says, with this build in the place of build/release.
        for name in ("examples", "scripts", "checker", "indexes"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))
        run = 0
        for command in commands_of("own-index.md"):
            if "cmake" in command or command.startswith("scripts/setup.sh"):
                continue
            found = "verify" in command and ("libtable.so" in command or "faulty" in command)
            # A search that finds something ends with that, on a busy machine a minute later.
            words = BUDGET.sub(f"--budget {60 if found else 5}", command)
            words = words.replace("build/release/bin/pmlab", shlex.quote(PMLAB))
            done = subprocess.run(words, shell=True, cwd=self.folder, capture_output=True, text=True, check=False,
                                  timeout=200)
            self.assertEqual(done.returncode, 1 if found else 0, f"{words}\n{done.stdout}\n{done.stderr}")
            run += 1
        self.assertGreaterEqual(run, 18)


if __name__ == "__main__":
    main()
