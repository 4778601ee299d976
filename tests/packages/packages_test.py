#!/usr/bin/env python3
"""Consumers of pmlab, one for each way to it: configured, built with their warnings as errors, and run.

PMLAB_SOURCE and PMLAB_BUILD are pmlab's source and build folder."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["PMLAB_SOURCE"])
BUILD = pathlib.Path(os.environ["PMLAB_BUILD"])
CONSUMER = SOURCE / "tests/packages/consumer"
EXAMPLE = SOURCE / "examples/embed.cpp"
DRIVE_EXAMPLE = SOURCE / "examples/block_log.cpp"


def run(*words, status=0, **how):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **how)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pmlab-packages-"))
        cls.prefix = cls.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "headers")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def assert_works(self, folder):
        self.assertEqual(run(folder / "in_dram"), "1000 entries, 21 -> 42\n")
        pool = self.folder / "embed.pool"
        for time in (1, 2):
            self.assertEqual(run(folder / "in_a_pool", pool), f"42 -> 4242, run {time}\n")
        pool.unlink()
        with tempfile.TemporaryDirectory(prefix="pmlab-packages-drive-") as drive:
            self.assertEqual(run(folder / "on_a_drive", f"{drive}/log", "append", "first"), "1\n")
            self.assertEqual(run(folder / "on_a_drive", f"{drive}/log", "show"), "1 first\n")

    def configure(self, way, *more, status=0, folder=None):
        build = self.folder / (folder or way)
        return build, run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DWAY={way}", f"-DEXAMPLE={EXAMPLE}",
                          f"-DDRIVE_EXAMPLE={DRIVE_EXAMPLE}", f"-DPMLAB_SOURCE={SOURCE}",
                          f"-DCMAKE_PREFIX_PATH={self.prefix}", *more, status=status)

    def by_cmake(self, way):
        build, _ = self.configure(way)
        run("cmake", "--build", build)
        self.assert_works(build)

    def test_find_package(self):
        self.by_cmake("find_package")

    def test_add_subdirectory(self):
        self.by_cmake("add_subdirectory")

    def test_fetch_content(self):
        self.by_cmake("FetchContent")

    def test_pkg_config(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": ":".join(str(p) for p in self.prefix.glob("lib*/**/pkgconfig"))}
        folder = self.folder / "pkg-config"
        folder.mkdir()
        for source, package, program in ((CONSUMER / "in_dram.cpp", "pmlab", "in_dram"),
                                         (EXAMPLE, "pmlab-pmem", "in_a_pool"),
                                         (DRIVE_EXAMPLE, "pmlab-uring", "on_a_drive")):
            flags = run("pkg-config", "--cflags", "--libs", package, env=environment).split()
            run("c++", "-std=c++20", "-o", folder / program, source, *flags)
        self.assert_works(folder)

    def test_the_commands_of_the_readme(self):
        """All of them but those that fetch: in a copy of the source, with a home of its own."""
        text = (SOURCE / "README.md").read_text()
        commands = re.search(r"```sh\n(git clone.*?)```", text, re.S)[1].splitlines()
        self.assertEqual(commands[1], "scripts/setup.sh")
        clone = self.folder / "clone"
        shutil.copytree(SOURCE, clone, ignore=shutil.ignore_patterns(".*", "build*", "results"))
        pool = self.folder / "readme.pool"
        script = "\n".join(commands[2:]).replace("./embed", f"./embed {pool}")
        said = run("bash", "-euc", script, cwd=clone, env={**os.environ, "HOME": str(self.folder / "home")})
        self.assertTrue(said.endswith("42 -> 4242, run 1\n42 -> 4242, run 2\n"), said)

    def test_a_missing_component_is_named(self):
        said = self.configure("find_package", "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", status=1,
                              folder="without")[1]
        self.assertIn("component pmem needs what pkg-config calls libpmemobj, libpmem, libxxhash\n", said)
        self.assertNotIn("jemalloc", said)  # which is optional there

    def test_a_newer_minor_version_is_no_substitute(self):
        version = (self.prefix / "lib/cmake/pmlab/pmlabConfigVersion.cmake")
        if not version.exists():
            version = next(self.prefix.glob("lib*/**/pmlabConfigVersion.cmake"))
        major, minor = (SOURCE / "VERSION").read_text().split(".")[:2]
        self.assertIn(f"{major}.{minor}", version.read_text())
        build = self.folder / "newer"
        project = self.folder / "newer-source"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.23)\nproject(newer LANGUAGES CXX)\n"
            f"find_package(pmlab {major}.{int(minor) + 1} REQUIRED)\n")
        said = run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", status=1)
        self.assertIn(f"{major}.{minor}", said)

    def test_no_header_lands_beside_pmlab(self):
        self.assertEqual([p.name for p in (self.prefix / "include").iterdir()], ["pmlab"])


if __name__ == "__main__":
    unittest.main()
