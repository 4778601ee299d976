"""scripts/check_layers finds every kind of violation, and nothing in a tree that has none."""

import unittest

from planted_tree import PlantedTree


class CheckLayers(PlantedTree):
    def setUp(self):
        super().setUp()
        self.plant("base/error.hpp", "#pragma once\n#include <string>\n")
        self.plant("media/medium.hpp", "#pragma once\n#include <pmlab/base/error.hpp>\n")
        self.plant("indexes/index.hpp", "#pragma once\n")
        self.plant("indexes/detail/hash.hpp", "#pragma once\n")
        self.plant("indexes/detail/cceh_segment.hpp", "#pragma once\n#include <pmlab/indexes/detail/hash.hpp>\n")
        self.plant("indexes/cceh.hpp", "#pragma once\n#include <pmlab/indexes/index.hpp>\n"
                   "#include <pmlab/indexes/detail/cceh_segment.hpp>\n#include <pmlab/media/medium.hpp>\n")
        self.plant("indexes/fast_fair.hpp", "#pragma once\n#include <pmlab/indexes/detail/hash.hpp>\n")
        self.plant("workload/mix.hpp", "#pragma once\n#include <pmlab/base/error.hpp>\n")
        self.plant("tests/indexes/a_test.cpp", '#include "support/a.hpp"\n#include <pmlab/indexes/cceh.hpp>\n')

    def test_sound_tree(self):
        self.assert_clean(self.run_script("check_layers"))

    def test_upward_include(self):
        self.plant("media/bad.hpp", "#pragma once\n\n#include <pmlab/indexes/index.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "media/bad.hpp:3", "media/ may not include indexes/")

    def test_workload_stands_on_base_alone(self):
        self.plant("workload/bad.hpp", "#include <pmlab/media/medium.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "workload/ may not include media/")

    def test_nobody_includes_the_program(self):
        self.plant("cli/command.hpp", "")
        self.plant("bench/bad.cpp", "#include <pmlab/cli/command.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "bench/ may not include cli/")

    def test_index_includes_index(self):
        self.plant("indexes/fast_fair.hpp", "#include <pmlab/indexes/cceh.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "fast_fair may not include a header of index cceh")

    def test_index_includes_private_header_of_another(self):
        self.plant("indexes/fast_fair.hpp", "#include <pmlab/indexes/detail/cceh_segment.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "fast_fair may not include a header of index cceh")

    def test_shared_header_includes_index(self):
        self.plant("indexes/detail/hash.hpp", "#include <pmlab/indexes/cceh.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "a shared header may not include a header of index cceh")

    def test_quoted_own_header(self):
        self.plant("media/bad.hpp", '#include "medium.hpp"\n')
        self.assert_found(self.run_script("check_layers"), "media/bad.hpp:1", "<pmlab/FOLDER/NAME.hpp>")

    def test_missing_header(self):
        self.plant("media/bad.hpp", "#include <pmlab/base/no_such.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "does not exist")

    def test_header_that_does_not_compile_alone(self):
        self.plant("base/bad.hpp", "#pragma once\ninline std::string text;\n")
        self.assert_clean(self.run_script("check_layers"))
        self.assert_found(self.run_script("check_layers", "--compile", "library"), "base/bad.hpp: does not compile alone")

    def test_headers_compile_alone(self):
        self.assert_clean(self.run_script("check_layers", "--compile", "library"))


if __name__ == "__main__":
    unittest.main()
