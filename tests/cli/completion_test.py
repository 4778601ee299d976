"""Shell completion and the manual page, both made from the command line itself."""
import os
import shutil
import subprocess
import unittest

from program import ProgramTest, main

BASH = """
set -u
source "$1"; shift
COMP_LINE="$1" COMP_POINT=${#1}
# As bash cuts the line: at blanks, "=" and ":".
spaced=$(sed 's/[=:]/ & /g' <<< "$1")
read -ra COMP_WORDS <<< "$spaced"
case "$1" in *" "|*:) COMP_WORDS+=("") ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_pmlab
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(ProgramTest):
    def completed(self, line):
        script = self.write("script", self.assert_works("completion", "bash").stdout.encode())
        done = subprocess.run(["bash", "-c", BASH, "bash", script, line], capture_output=True, text=True, check=False,
                              timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_commands(self):
        self.assertEqual(self.completed("pmlab be"), ["bench"])
        self.assertEqual(self.completed("pmlab pool ch"), ["check"])
        commands = self.completed("pmlab ")
        for command in ("doctor", "run", "claims", "report", "verify", "pool"):
            self.assertIn(command, commands)
        self.assertNotIn("facts", commands)

    def test_options(self):
        self.assertEqual(self.completed("pmlab bench --emul"), ["--emulation-scale"])
        self.assertEqual(self.completed("pmlab pool info --js"), ["--json"])

    def test_commands_that_are_python(self):
        self.assertEqual(self.completed("pmlab run --sc"), ["--scale"])
        self.assertEqual(self.completed("pmlab run --scale sm"), ["smoke"])
        self.assertEqual(self.completed("pmlab claims --fr"), ["--from"])
        self.assertEqual(self.completed("pmlab report --head"), ["--headline"])

    def test_values(self):
        self.assertEqual(self.completed("pmlab bench --index cc"), ["cceh"])
        self.assertEqual(self.completed("pmlab bench --index cceh,fast"), ["cceh,fast_fair"])
        # Bash puts what is before the colon there itself.
        self.assertEqual(self.completed("pmlab bench --medium simulated:ae")[0], "aep")
        self.assertEqual(self.completed("pmlab microbench --device simulated:p4"), ["p4610"])
        self.assertEqual(self.completed("pmlab bench --huge-pages o"), ["on", "off"])
        self.assertEqual(self.completed("pmlab bench --json " + self.folder + "/scr"), [self.file("script")])

    def test_other_shells(self):
        self.assertIn("#compdef pmlab\n", self.assert_works("completion", "zsh").stdout)
        fish = self.assert_works("completion", "fish").stdout
        self.assertIn("complete -c pmlab -n '__fish_seen_subcommand_from bench' -l index", fish)
        self.assert_fails(2, ["csh", "bash, zsh or fish"], "completion", "csh")
        for shell in ("zsh", "fish"):
            if shutil.which(shell):
                script = self.write("s", self.assert_works("completion", shell).stdout.encode())
                self.assertEqual(subprocess.run([shell, "-n", script], check=False, timeout=60).returncode, 0)

    def test_the_manual_page_has_all_commands_and_options(self):
        page = self.assert_works("man").stdout.replace("\\-", "-")
        for name in ("pmlab bench", "pmlab pool repair", "pmlab run", "--emulation-scale", "--budget", "--dry-run",
                     "--headline", "NO_COLOR"):
            self.assertIn(name, page)
        path = self.write("pmlab.1", self.assert_works("man").stdout.encode())
        for tool in (["man", "--warnings", "-l", path], ["groff", "-man", "-ww", "-z", path]):
            if shutil.which(tool[0]):
                done = subprocess.run(tool, capture_output=True, text=True, check=False, timeout=60,
                                      env=os.environ | {"MANWIDTH": "100"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
