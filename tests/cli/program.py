"""What the tests of the program pmlab share: running it, and a folder for pools."""
import fcntl
import functools
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

PMLAB = sys.argv[1] if len(sys.argv) > 1 else "pmlab"
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "indexes", "indexes.json"),
          encoding="utf-8") as f:
    OFFERED = json.load(f)
# The names of pmlab's indexes that keep their entries.
INDEXES = [index["name"] for index in OFFERED if index.get("verified", True)]
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")


def pmlab(*arguments, **more):
    """Runs the program; returns what subprocess.run does, output as text."""
    return subprocess.run([PMLAB, *arguments], capture_output=True, text=True, timeout=600, check=False, **more)


@functools.cache
def left_out():
    """{name: package} of the indexes and stores that this build is without."""
    packages = json.loads(pmlab("list", "--json").stdout)["left_out"]
    return {name: p["title"] for p in packages for name in [*p["indexes"], *p["stores"]]}


def there(*names):
    """Those of the names that this build has."""
    return [name for name in names if name not in left_out()]


def fields_of(value):
    """Every field of a JSON document, as docs/ names it; a field of several objects comes several times."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from fields_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from fields_of(inner)


TERMINAL_WIDTH = 80


def on_terminal(*arguments, **more):
    """Status, standard output, and what a terminal of 80 columns got from stderr."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, TERMINAL_WIDTH, 0, 0))
    with subprocess.Popen([PMLAB, *arguments], stdout=subprocess.PIPE, stderr=end, text=True, **more) as program:
        os.close(end)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        output = program.stdout.read()
        status = program.wait(240)
    os.close(terminal)
    return status, output, shown.decode()


class ProgramTest(unittest.TestCase):
    """Has a folder of its own on tmpfs (where there is tmpfs), removed afterwards."""

    def setUp(self):
        shared_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="pmlab-test-", dir=shared_memory)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def need(self, name):
        """Skips the test where this build is without an index or a store."""
        if name in left_out():
            self.skipTest(f"built without {left_out()[name]}")

    def file(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.file(name), "wb") as f:
            f.write(content)
        return self.file(name)

    def with_modules(self, program=None):
        """The environment of a machine with two Optane modules, of which each call of ipmctl finds 4,000 reads and
        2,000 writes of the media, and 1,000 and 500 requests, more: a stand-in that prints as the real one does. Pools
        in it are believed to lie in persistent memory. `program`: another stand-in."""
        folder = self.file("programs")
        os.makedirs(folder, exist_ok=True)
        calls = os.path.join(folder, "calls")
        counts = (("MediaReads", 4000), ("MediaWrites", 2000), ("ReadRequests", 1000), ("WriteRequests", 500))
        lines = [f"printf '   %s=0x%032x\\n' {start}{name} $((n * {step}))" for start in ("", "Total")
                 for name, step in counts]
        printed = "\n".join(["printf -- '---DimmID=%s---\\n' $module", *lines])
        text = program or (f'[ "$*" = "show -performance" ] || exit 1\nn=1; [ ! -e {calls} ] || read n < {calls}\n'
                           f"echo $((n + 1)) > {calls}\nfor module in 0x0001 0x1001; do\n{printed}\ndone\n")
        path = os.path.join(folder, "ipmctl")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "PMEM_IS_PMEM_FORCE": "1"}

    def assert_works(self, *arguments):
        done = pmlab(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def assert_fails(self, status, parts, *arguments):
        """One line `pmlab: error: problem; remedy` that holds all of `parts`."""
        done = pmlab(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        errors = [line for line in done.stderr.splitlines() if line.startswith("pmlab: error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertIn("; ", errors[0], "no remedy")
        for part in parts:
            self.assertIn(part, errors[0])
        if status == 2:
            self.assertEqual(done.stdout, "")
        return done


def main():
    unittest.main(argv=sys.argv[:1])
