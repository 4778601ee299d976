"""scripts/setup.sh on an invented machine: dpkg-query, apt-get and apt-cache are stand-ins that keep a log."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from planted_tree import SCRIPTS

STAND_INS = {
    "id": "#!/bin/sh\necho 0\n",
    # -W -f FORMAT PACKAGE
    "dpkg-query": '#!/bin/sh\nfor p in "$@"; do :; done\n[ -e "$STATE/installed/$p" ] && printf installed\n',
    # policy PACKAGE
    "apt-cache": '#!/bin/sh\nif [ -e "$STATE/absent/$2" ]; then c="(none)"; else c=1.0; fi\necho "  Candidate: $c"\n',
    "apt-get": """#!/bin/bash
echo "apt-get $*" >>"$STATE/log"
private=no; sources=
for word in "$@"; do
  case $word in
    Dir::Etc::SourceList=*) private=yes; sources=${word#*=}; cat "$sources" >>"$STATE/sources" ;;
  esac
done
case " $* " in
  *" indextargets "*) printf '%s\\n' "Debian main stable-security sec:/archive/" "Debian main stable main:/archive/" ;;
  *" download "*) [ -e "$STATE/older-fails" ] && exit 100; touch "${@: -1}_1.0_amd64.deb" ;;
  *" install "*)
    for word in "$@"; do
      name=$(basename "$word"); name=${name%%_*}
      if grep -q " $name " "$STATE/known" && [ ! -e "$STATE/broken/$name" ]; then
        case $word in
          *.deb) touch "$STATE/installed/$name" ;;
          *) [ -e "$STATE/absent/$name" ] || touch "$STATE/installed/$name" ;;
        esac
      fi
    done
    for word in "$@"; do [ -e "$STATE/broken/$word" ] && exit 100; done ;;
esac
exit 0
""",
}


class Setup(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.state = pathlib.Path(temporary.name)
        for folder in ("bin", "installed", "absent", "broken"):
            (self.state / folder).mkdir()
        for name, text in STAND_INS.items():
            (self.state / "bin" / name).write_text(text)
            (self.state / "bin" / name).chmod(0o755)
        lines = [line.split() for line in (SCRIPTS / "packages.txt").read_text().splitlines()
                 if line and not line.startswith("#")]
        self.required = [line[1] for line in lines if line[0] == "required"]
        self.optional = [line[1] for line in lines if line[0] == "optional"]
        self.dev = [line[1] for line in lines if line[0] == "dev"]
        (self.state / "known").write_text(" ".join(["", *self.required, *self.optional, *self.dev, ""]))

    def mark(self, kind, *packages):
        for package in packages:
            (self.state / kind / package).touch()

    def setup_sh(self, *arguments):
        path = f"{self.state / 'bin'}:{os.environ['PATH']}"
        return subprocess.run([SCRIPTS / "setup.sh", *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": path, "STATE": str(self.state)})

    def log(self):
        log = self.state / "log"
        return log.read_text() if log.exists() else ""

    def test_nothing_to_do(self):
        self.mark("installed", *self.required, *self.optional)
        run = self.setup_sh()
        self.assertEqual(run.returncode, 0)
        self.assertIn("nothing to do", run.stderr)
        self.assertEqual(self.log(), "")

    def test_minimal_is_without_the_optional_ones(self):
        self.mark("installed", *[p for p in self.required if p != "libfmt-dev"])
        self.mark("absent", "libpmemobj-cpp-dev")
        run = self.setup_sh("--minimal")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("libfmt-dev", self.log())
        for package in self.optional:
            self.assertNotIn(package, self.log() + run.stderr)
        self.assertIn("nothing to do", self.setup_sh("--minimal").stderr)

    def test_ordinary_packages(self):
        self.mark("installed", *self.required, *[p for p in self.optional if p != "libtbb-dev"])
        self.assertEqual(self.setup_sh().returncode, 0)
        self.assertIn("libtbb-dev", self.log())
        self.assertNotIn("g++", self.log())
        self.assertNotIn("SourceList", self.log())

    def test_package_of_the_older_release(self):
        self.mark("installed", *self.required, *[p for p in self.optional if p != "libpmemobj-cpp-dev"])
        self.mark("absent", "libpmemobj-cpp-dev")
        run = self.setup_sh()
        self.assertEqual(run.returncode, 0, run.stderr)
        source = (self.state / "sources").read_text().splitlines()[0]
        self.assertRegex(source, r"^deb \[signed-by=\S+\] main:/archive/ bullseye main$")
        for line in self.log().splitlines():
            if "bullseye" in line or "download" in line:
                self.assertIn("Dir::State::Lists=", line)

    def test_older_release_out_of_reach(self):
        self.mark("installed", *self.required, *[p for p in self.optional if p != "libpmemobj-cpp-dev"])
        self.mark("absent", "libpmemobj-cpp-dev")
        (self.state / "older-fails").touch()
        run = self.setup_sh()
        self.assertEqual(run.returncode, 0)
        self.assertIn("missing libpmemobj-cpp-dev (optional), needed for: baselines pmdk_hash", run.stderr)

    def test_one_bad_package_does_not_keep_the_others_out(self):
        self.mark("broken", "libfmt-dev")
        run = self.setup_sh()
        self.assertEqual(run.returncode, 1)
        self.assertIn("MISSING libfmt-dev (required)", run.stderr)
        self.assertEqual(run.stderr.lower().count("missing lib"), 1)

    def test_optional_packages(self):
        self.mark("installed", *self.required, *self.optional)
        self.mark("absent", "ccache")
        run = self.setup_sh("--with-dev-tools")
        self.assertEqual(run.returncode, 0)
        self.assertIn("missing ccache (optional)", run.stderr)
        self.assertIn("clang-tidy-14", self.log())

    def test_check_installs_nothing(self):
        run = self.setup_sh("--check")
        self.assertEqual(run.returncode, 1)
        self.assertEqual(self.log(), "")

    def test_unknown_option(self):
        run = self.setup_sh("--frobnicate")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--frobnicate", run.stderr)


if __name__ == "__main__":
    unittest.main()
