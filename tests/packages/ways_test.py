#!/usr/bin/env python3
"""Every way to install pmlab from the archive of a release: packaged, installed, and used by one consumer's project.

    ways_test.py [Ways.test_NAME]...

Without a network, except where a tool is installed from a package registry first. The table at the end shows how each
way was tried: with its own tool, or, where that is not available here, with a stand-in for the tool's functions."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from release import (CONSUMER, SKIPPED, SOURCE, VERSION, Release, build_consumer, is_repository, offline, run,
                     run_consumer, without_network)

HERE = pathlib.Path(__file__).resolve().parent
# Kept between runs: tools from package registries.
TOOLS = SOURCE / "build/packages/tools"
# What an install of the headers may take, in seconds of CPU: other programs do not change these.
MOST_SECONDS = 10
table = []


class Stopwatch:
    """Adds up the seconds of the blocks that it is used for: by the clock, and of the CPU of their processes."""

    def __init__(self):
        self.clock = self.cpu = 0.0

    def _add(self, sign):
        used = os.times()
        self.clock += sign * time.monotonic()
        self.cpu += sign * (used.children_user + used.children_system)

    def __enter__(self):
        self._add(-1)

    def __exit__(self, *_):
        self._add(1)


class Ways(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Below build/: a compiler cache finds the same paths at each run.
        (SOURCE / "build/packages").mkdir(parents=True, exist_ok=True)
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ways-", dir=SOURCE / "build/packages"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.release = Release(cls.folder)
        cls.source = cls.release.unpack(cls.folder)

    def tried(self, way, how, took=None):
        table.append((way, how, f"{took.clock:.1f} s, {took.cpu:.1f} s of CPU" if took else ""))
        if took:
            self.assertLess(took.cpu, MOST_SECONDS, f"{way}: the install of the headers alone")

    def not_tried(self, way, reason):
        table.append((way, f"NOT TRIED: {reason}", ""))
        self.skipTest(reason)

    def test_cmake_install(self):
        build, prefix, took = self.folder / "headers", self.folder / "cmake-prefix", Stopwatch()
        with took:
            offline("cmake", "-S", self.source, "-B", build, "-DPMLAB_BUILD_TOOLS=OFF", "-DPMLAB_BUILD_TESTS=OFF")
            offline("cmake", "--install", build, "--prefix", prefix)
        build_consumer(self.folder / "by-cmake", "find_package", f"-DCMAKE_PREFIX_PATH={prefix}", pools=True)
        self.tried("CMake install", "installed and used", took)

    def test_fetch_content(self):
        build_consumer(self.folder / "fetched", "FetchContent", f"-DPMLAB_ARCHIVE={self.release.archive}",
                       f"-DPMLAB_ARCHIVE_SHA256={self.release.sha256}")
        self.tried("FetchContent", "fetched from the archive and used")

    def test_debian_headers(self):
        """libpmlab-dev: built by dpkg-buildpackage, unpacked, and used from where a package lies."""
        if not shutil.which("dpkg-buildpackage") or not shutil.which("dh"):
            self.not_tried("Debian, libpmlab-dev", "no dpkg-buildpackage and debhelper here: apt-get install dpkg-dev "
                           "debhelper")
        tree = self.release.unpack(self.folder / "debian")
        shutil.copytree(tree / "packaging/debian", tree / "debian")
        package = tree.parent / f"libpmlab-dev_{VERSION}-1_all.deb"
        prefix, took = self.folder / "debian-root", Stopwatch()
        with took:
            offline("dpkg-buildpackage", "-us", "-uc", "-A", cwd=tree)
            run("dpkg-deb", "-x", package, prefix)
        build_consumer(self.folder / "by-debian", "find_package", f"-DCMAKE_PREFIX_PATH={prefix / 'usr'}")
        flags = run("pkg-config", "--cflags", "--libs", "pmlab",
                    env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "usr/share/pkgconfig")}).split()
        folder = self.folder / "by-debian-pkg-config"
        folder.mkdir()
        offline("c++", "-std=c++20", "-o", folder / "in_dram", CONSUMER / "in_dram.cpp", *flags)
        run_consumer(folder)
        self.tried("Debian, libpmlab-dev", "built by dpkg-buildpackage, unpacked and used", took)
        if shutil.which("lintian"):
            said = run("lintian", "--allow-root", "--fail-on", "error", package)
            self.assertNotRegex(said, r"(?m)^E: ")

    def conan(self):
        """The program conan: this machine's, or one of an environment of its own."""
        own = TOOLS / "conan/bin/conan"
        if not shutil.which("conan") and not own.exists():
            shutil.rmtree(TOOLS / "conan", ignore_errors=True)
            for words in ([sys.executable, "-m", "venv", TOOLS / "conan"],
                          [TOOLS / "conan/bin/python", "-m", "pip", "install", "--quiet", "conan"]):
                done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
                if done.returncode:
                    shutil.rmtree(TOOLS / "conan", ignore_errors=True)
                    self.not_tried("Conan", "no conan here, and pip cannot install it: "
                                   + done.stderr.strip().splitlines()[-1])
        return shutil.which("conan") or own

    def test_conan(self):
        conan = self.conan()
        environment = {**os.environ, "CONAN_HOME": str(self.folder / "conan-home")}
        tree = self.release.unpack(self.folder / "conan")
        offline(conan, "profile", "detect", env=environment)
        took = Stopwatch()
        with took:
            offline(conan, "create", tree / "packaging/conan", "--no-remote", "-s", "compiler.cppstd=20",
                    "--test-folder=", env=environment)
        said = offline(conan, "test", tree / "packaging/conan/test_package", f"pmlab/{VERSION}", "--no-remote",
                       "-s", "compiler.cppstd=20", env=environment)
        self.assertIn("1000 entries, 21 -> 42\n", said)
        self.tried("Conan", "created and used by its test_package", took)

    def test_vcpkg(self):
        port = self.release.folder / "vcpkg/pmlab"
        manifest = json.loads((port / "vcpkg.json").read_text())
        self.assertLessEqual({"name", "version", "description", "license", "dependencies"}, set(manifest))
        self.assertRegex(manifest["name"], r"^[a-z0-9]+(-[a-z0-9]+)*$")
        hosts = [d["name"] for d in manifest["dependencies"] if d.get("host")]
        self.assertEqual(hosts, ["vcpkg-cmake", "vcpkg-cmake-config"])
        vcpkg = shutil.which("vcpkg")
        prefix = self.folder / "vcpkg-prefix"
        if vcpkg:
            prefix = self.folder / "vcpkg-installed"
            run(vcpkg, "install", "pmlab", f"--overlay-ports={port.parent}", f"--x-install-root={prefix}")
            prefix, how = next(p for p in prefix.iterdir() if (p / "include/pmlab").exists()), "installed and used"
        else:
            offline("cmake", "-D", f"PORT_FOLDER={port}", "-D", f"WORK={self.folder / 'vcpkg-work'}", "-D",
                    f"PREFIX={prefix}", "-P", HERE / "vcpkg_stand_in.cmake")
            how = "no vcpkg here: the port was run with stand-ins of vcpkg's functions, and the result used"
        build_consumer(self.folder / "by-vcpkg", "find_package", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.tried("vcpkg", how)
        self.assert_refuses_another_archive(port)

    def assert_refuses_another_archive(self, port):
        other = self.folder / "other-release"
        shutil.copytree(port, other / "vcpkg/pmlab")
        for problem, content in (("is not beside the folder", None), ("its checksum differs", b"another")):
            if content:
                (other / self.release.archive.name).write_bytes(content)
            said = run("cmake", "-D", f"PORT_FOLDER={other / 'vcpkg/pmlab'}", "-D", f"WORK={other}", "-D",
                       f"PREFIX={other / 'prefix'}", "-P", HERE / "vcpkg_stand_in.cmake", status=1)
            self.assertIn(problem, re.sub(r"\s+", " ", said))

    def test_spack(self):
        repository = self.release.folder / "spack/pmlab"
        self.assertIn("namespace: pmlab\n", (repository / "repo.yaml").read_text())
        if spack := shutil.which("spack"):
            scope = self.folder / "spack-scope"
            scope.mkdir()
            (scope / "repos.yaml").write_text(f"repos:\n- {repository}\n")
            run(spack, "-C", scope, "install", "pmlab")
            prefix = pathlib.Path(run(spack, "-C", scope, "location", "--install-dir", "pmlab").strip())
            how = "installed and used"
        else:
            prefix = self.by_spack_stand_in(repository)
            how = "no Spack here: the recipe was read with stand-ins of Spack's directives, and the result used"
        build_consumer(self.folder / "by-spack", "find_package", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.tried("Spack", how)

    def by_spack_stand_in(self, repository):
        sys.path.insert(0, str(HERE / "spack_stand_in"))
        self.addCleanup(sys.path.remove, str(HERE / "spack_stand_in"))
        from spack import package as directives
        recipe = repository / "packages/pmlab/package.py"
        named = importlib.util.spec_from_file_location("pmlab_recipe", recipe)
        module = importlib.util.module_from_spec(named)
        sys.dont_write_bytecode = True
        named.loader.exec_module(module)
        made = module.Pmlab()
        self.assertIn(("version", (VERSION,), {"sha256": self.release.sha256}), directives.RECORD)
        self.assertEqual(pathlib.Path(made.url.removeprefix("file://")).resolve(), self.release.archive.resolve())
        variants = {words[0] for name, words, _ in directives.RECORD if name == "variant"}
        used = {o["when"] for name, _, o in directives.RECORD if name == "depends_on" and "when" in o}
        self.assertEqual(used, {"+" + v for v in variants})
        build, prefix = self.folder / "spack-build", self.folder / "spack-prefix"
        offline("cmake", "-S", self.source, "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}", *made.cmake_args())
        offline("cmake", "--build", build, "--target", "install")
        return prefix

    def test_pip(self):
        """The Python package, in an environment that has pandas from this machine."""
        if not importlib.util.find_spec("pandas"):
            self.not_tried("pip", "no pandas here: apt-get install python3-pandas")
        tree = self.release.unpack(self.folder / "pip")
        environment = self.folder / "python"
        run(sys.executable, "-m", "venv", "--system-site-packages", environment)
        python = environment / "bin/python"
        took = Stopwatch()
        with took:
            offline(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", tree)
        program = ("import importlib.metadata, sys, pmlab; figures = pmlab.figures(sys.argv[1]); "
                   "print(importlib.metadata.version('pmlab'), 'thesis-aep' in set(figures['chart']))")
        said = run(python, "-c", program, tree / "results/quick", cwd=self.folder)
        self.assertEqual(said, f"{VERSION} True\n")
        self.tried("pip", "installed and used", took)


def print_table():
    print(f"\nnetwork: {'off' if without_network() else 'on, since it cannot be cut off here'}")
    print("seconds: of packaging and installing the headers (of pip: the Python package)")
    widths = [max(len(row[i]) for row in table) for i in range(3)] if table else []
    for row in sorted(table):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


if __name__ == "__main__":
    if not is_repository(SOURCE):
        print("a release is made from a clone, and this source tree is none")
        sys.exit(SKIPPED)
    ran = unittest.main(exit=False, verbosity=2)
    print_table()
    sys.exit(not ran.result.wasSuccessful())
