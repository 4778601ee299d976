"""Builds and runs a consumer against the package that was created: the one that tests/packages builds in every way."""

import pathlib

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout

CONSUMER = pathlib.Path(__file__).resolve().parents[3] / "tests" / "packages" / "consumer"


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["WAY"] = "find_package"
        toolchain.cache_variables["POOLS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=CONSUMER)
        cmake.build()

    def test(self):
        if can_run(self):
            program = pathlib.Path(self.build_folder) / self.cpp.build.bindir / "in_dram"
            self.run(f'"{program}"', env="conanrun")
