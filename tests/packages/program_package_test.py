#!/usr/bin/env python3
"""The Debian packages of the program and of the headers, built from the archive of a release and tested as installed:
by autopkgtest, in a root folder of this release of Debian. Minutes; needs root, debootstrap, debhelper and autopkgtest.

    program_package_test.py [--keep DIR]     leaves the packages in DIR"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from release import SKIPPED, SOURCE, VERSION, Release, compiler_cache, is_repository, offline, run

# The same place at each run: a compiler cache finds the same paths.
FOLDER = SOURCE / "build/packages/program"
NEEDED = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "debootstrap": "debootstrap",
          "autopkgtest": "autopkgtest"}


def cannot():
    """Why this test cannot run here, or None."""
    if not is_repository(SOURCE):
        return "a release is made from a clone, and this source tree is none"
    if os.getuid() != 0:
        return "only root can make a root folder of Debian"
    missing = [package for program, package in NEEDED.items() if not shutil.which(program)]
    return f"missing here: apt-get install {' '.join(missing)}" if missing else None


def build(tree):
    """Both packages; returns their paths."""
    shutil.copytree(tree / "packaging/debian", tree / "debian")
    began = time.monotonic()
    offline("nice", "dpkg-buildpackage", "-us", "-uc", "-b", cwd=tree,
            env={**os.environ, **compiler_cache(SOURCE.parent)})
    print(f"built in {time.monotonic() - began:.0f} s")
    return sorted(tree.parent.glob("*.deb"))


def check(packages):
    names = [p.name for p in packages]
    assert f"libpmlab-dev_{VERSION}-1_all.deb" in names and f"pmlab_{VERSION}-1_amd64.deb" in names, names
    if shutil.which("lintian"):
        said = run("lintian", "--allow-root", "--fail-on", "error", *(p for p in packages if "dbgsym" not in p.name))
        print("".join(f"lintian: {line}\n" for line in said.splitlines() if line.startswith("W: ")), end="")
    program = next(p for p in packages if p.name.startswith("pmlab_"))
    depends = run("dpkg-deb", "-f", program, "Depends")
    print(f"depends: {depends.strip()}")
    assert "libpmemobj1" in depends, depends


def installed(tree, packages):
    """debian/tests, below a root folder that has nothing else of pmlab."""
    with tempfile.TemporaryDirectory(prefix="pmlab-debian-") as folder:
        root = pathlib.Path(folder) / "root"
        release = next(line.partition("=")[2].strip('"')
                       for line in pathlib.Path("/etc/os-release").read_text().splitlines()
                       if line.startswith("VERSION_CODENAME="))
        made = subprocess.run([SOURCE / "scripts/debian_root", release, root], capture_output=True, text=True,
                              check=False)
        if made.returncode == SKIPPED:
            print(f"not tested as installed: {made.stderr.strip().splitlines()[-1]}")
            return
        assert made.returncode == 0, made.stderr
        # pmlab reads /proc and keeps pools in /dev/shm. The mounts end with the command.
        mounts = 'mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/dev/shm"; exec autopkgtest "$@" -- chroot "$0"'
        said = run("unshare", "--mount", "sh", "-euc", mounts, root, *(p for p in packages if "dbgsym" not in p.name),
                   tree)
        print("\n".join(dict.fromkeys(re.findall(r"(?m)^(?:headers|program) +(?:PASS|FAIL|SKIP).*", said))))


def main():
    if reason := cannot():
        print(reason)
        return SKIPPED
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    try:
        tree = Release(FOLDER).unpack(FOLDER)
        packages = build(tree)
        check(packages)
        installed(tree, packages)
        if sys.argv[1:2] == ["--keep"]:
            for package in packages:
                shutil.copy(package, sys.argv[2])
    finally:
        shutil.rmtree(FOLDER)
    print("the packages are sound")
    return 0


if __name__ == "__main__":
    sys.exit(main())
