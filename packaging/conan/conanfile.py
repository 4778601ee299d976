"""pmlab's headers as a Conan package: `conan create packaging/conan` in the source tree, or in an unpacked release."""

import pathlib

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy
from conan.tools.layout import basic_layout


class Pmlab(ConanFile):
    name = "pmlab"
    description = "Indexes on persistent memory: C++20 headers"
    license = "Apache-2.0"
    topics = ("persistent-memory", "index-structures", "header-only")
    package_type = "header-library"
    # What CMake installs is looked up for the compiler at hand; the package itself is the same for all.
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def _root(self):
        """The root of the source tree: where this recipe lies, or where Conan has copied the sources to."""
        return pathlib.Path(self.recipe_folder).parents[1]

    def set_version(self):
        self.version = (self._root() / "VERSION").read_text().strip()

    def export_sources(self):
        rooms = ("base", "media", "indexes", "cache", "hybrid", "strings", "stores", "checker")
        for pattern in ("CMakeLists.txt", "VERSION", "LICENSE", "cmake/*", "indexes/indexes.json",
                        *(f"{room}/{files}" for room in rooms for files in ("CMakeLists.txt", "include/*"))):
            copy(self, pattern, self._root(), self.export_sources_folder)

    def layout(self):
        basic_layout(self, src_folder=".")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["PMLAB_BUILD_TOOLS"] = False
        toolchain.cache_variables["PMLAB_BUILD_TESTS"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install(component="headers")
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder) / "licenses")

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # The package's own files for find_package, which know the components pmem, jemalloc and uring: these need
        # libraries of the system. Conan writes none beside them.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/pmlab"]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
