"""scripts/check_layers finds every kind of violation, and nothing in a tree that has none."""

import subprocess
import sys
import tomllib
import unittest

from planted_tree import REPOSITORY, SCRIPTS, PlantedTree


class CheckLayers(PlantedTree):
    def setUp(self):
        super().setUp()
        for room, uses in (("base", ""), ("media", " USES base"), ("indexes", " USES media"),
                           ("cache", " USES indexes")):
            self.plant(f"{room}/CMakeLists.txt", f"pmlab_room({room}{uses})\n")
        self.plant("base/include/pmlab/base/error.hpp", "#pragma once\n#include <string>\n")
        self.plant("media/include/pmlab/media/medium.hpp", "#pragma once\n#include <pmlab/base/error.hpp>\n")
        self.plant("indexes/include/pmlab/indexes/index.hpp", "#pragma once\n")
        self.plant("indexes/include/pmlab/indexes/detail/hash.hpp", "#pragma once\n")
        self.plant("indexes/include/pmlab/indexes/cceh/segment.hpp",
                   "#pragma once\n#include <pmlab/indexes/detail/hash.hpp>\n")
        self.plant("indexes/include/pmlab/indexes/cceh.hpp", "#pragma once\n#include <pmlab/indexes/index.hpp>\n"
                   "#include <pmlab/indexes/cceh/segment.hpp>\n#include <pmlab/media/medium.hpp>\n")
        self.plant("indexes/include/pmlab/indexes/fast_fair.hpp",
                   "#pragma once\n#include <pmlab/indexes/detail/hash.hpp>\n")
        self.plant("bench/workload/mix.hpp", "#pragma once\n#include <pmlab/base/error.hpp>\n")
        self.plant("indexes/tests/a_test.cpp", '#include "support/a.hpp"\n#include <pmlab/indexes/cceh.hpp>\n')

    def test_sound_tree(self):
        self.assert_clean(self.run_script("check_layers"))

    def test_upward_include(self):
        self.plant("media/include/pmlab/media/bad.hpp", "#pragma once\n\n#include <pmlab/indexes/index.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "media/include/pmlab/media/bad.hpp:3",
                          "media/include/pmlab/media/ may not include indexes/include/pmlab/indexes/")

    def test_an_upward_include_out_of_a_room_is_found_by_the_compiler(self):
        self.plant("cache/include/pmlab/cache/async_cache.hpp", "#pragma once\n#include <pmlab/indexes/index.hpp>\n")
        self.assert_clean(self.run_script("check_layers", "--compile", "library"))
        self.plant("indexes/include/pmlab/indexes/fast_fair.hpp",
                   "#pragma once\n#include <pmlab/cache/async_cache.hpp>\n")
        self.assert_clean(self.run_script("check_layers"))
        self.assert_found(self.run_script("check_layers", "--compile", "library"),
                          "indexes/include/pmlab/indexes/fast_fair.hpp: does not compile alone",
                          "pmlab/cache/async_cache.hpp")

    def test_folders_of_one_room(self):
        self.plant("base/include/pmlab/sync/lock.hpp", "#pragma once\n#include <pmlab/base/error.hpp>\n")
        self.assert_clean(self.run_script("check_layers"))
        self.plant("base/include/pmlab/base/bad.hpp", "#pragma once\n#include <pmlab/sync/lock.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "base/include/pmlab/base/bad.hpp:2",
                          "base/include/pmlab/base/ may not include base/include/pmlab/sync/")

    def test_workload_stands_on_base_alone(self):
        self.plant("bench/workload/bad.hpp", "#include <pmlab/media/medium.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "bench/workload/ may not include media/include/pmlab/media/")

    def test_the_program_is_on_top(self):
        self.plant("tools/cli/command.hpp", "")
        self.plant("bench/engine/bad.cpp", '#include "tools/cli/command.hpp"\n')
        self.assert_found(self.run_script("check_layers"), "bench/engine/ may not include tools/cli/")

    def test_index_includes_index(self):
        self.plant("indexes/include/pmlab/indexes/fast_fair.hpp", "#include <pmlab/indexes/cceh.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "fast_fair may not include a header of index cceh")

    def test_index_includes_private_header_of_another(self):
        self.plant("indexes/include/pmlab/indexes/fast_fair.hpp", "#include <pmlab/indexes/cceh/segment.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "fast_fair may not include a header of index cceh")

    def test_shared_header_includes_index(self):
        self.plant("indexes/include/pmlab/indexes/detail/hash.hpp", "#include <pmlab/indexes/cceh.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "a shared header may not include a header of index cceh")

    def test_quoted_own_header(self):
        self.plant("media/include/pmlab/media/bad.hpp", '#include "medium.hpp"\n')
        self.assert_found(self.run_script("check_layers"), "media/include/pmlab/media/bad.hpp:1",
                          "<pmlab/FOLDER/NAME.hpp>")

    def test_library_knows_neither_checker_nor_tools(self):
        self.plant("checker/simulator/calls.hpp", "#pragma once\n")
        self.plant("media/include/pmlab/media/bad.hpp", '#include "checker/simulator/calls.hpp"\n')
        self.assert_found(self.run_script("check_layers"), "media/include/pmlab/media/ may not include "
                          "checker/simulator/")

    def test_library_does_not_name_the_simulated_machine(self):
        self.plant("media/include/pmlab/media/bad.hpp", "#pragma once\n#if defined(PMLAB_SIMULATED)\n#endif\n")
        self.assert_found(self.run_script("check_layers"), "media/include/pmlab/media/bad.hpp:2",
                          "does not know PMLAB_SIMULATED")

    def test_tools_are_quoted(self):
        self.plant("bench/engine/bad.cpp", "#include <bench/workload/mix.hpp>\n")
        self.assert_found(self.run_script("check_layers"), 'bench/workload/mix.hpp is included as '
                          '"bench/workload/mix.hpp"')

    def test_json_is_for_sources(self):
        self.plant("bench/engine/good.cpp", "#include <nlohmann/json.hpp>\n")
        self.plant("bench/engine/good.hpp", "#pragma once\n#include <nlohmann/json_fwd.hpp>\n")
        self.assert_clean(self.run_script("check_layers"))
        self.plant("bench/engine/bad.hpp", "#pragma once\n#include <nlohmann/json.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "bench/engine/bad.hpp:2: a header may not include "
                          "nlohmann/json.hpp")

    def test_missing_header(self):
        self.plant("media/include/pmlab/media/bad.hpp", "#include <pmlab/base/no_such.hpp>\n")
        self.assert_found(self.run_script("check_layers"), "does not exist")

    def test_header_that_does_not_compile_alone(self):
        self.plant("base/include/pmlab/base/bad.hpp", "#pragma once\ninline std::string text;\n")
        self.plant("base/include/pmlab/base/detail/bad.hpp", "#pragma once\ninline std::string text;\n")
        self.assert_clean(self.run_script("check_layers"))
        public = self.run_script("check_layers", "--compile", "public")
        self.assert_found(public, "base/include/pmlab/base/bad.hpp: does not compile alone")
        self.assertNotIn("detail/bad.hpp", public.stdout)
        self.assert_found(self.run_script("check_layers", "--compile", "library"),
                          "base/include/pmlab/base/bad.hpp: does not compile alone",
                          "base/include/pmlab/base/detail/bad.hpp: does not compile alone")

    def test_headers_compile_alone(self):
        self.assert_clean(self.run_script("check_layers", "--compile", "library"))


class LayoutPage(unittest.TestCase):
    def test_has_the_table_of_the_statement(self):
        table = subprocess.run([sys.executable, SCRIPTS / "check_layers", "--table"], capture_output=True, text=True)
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn(table.stdout.strip(), (REPOSITORY / "docs/layout.md").read_text(),
                      "docs/layout.md: insert the output of scripts/check_layers --table")

    def test_names_every_folder(self):
        """Each folder of a room is stated, and so is each other one at the top."""
        stated = tomllib.loads((REPOSITORY / "docs/layers.toml").read_text())
        tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True).stdout.split()
        parts = [tuple(f.split("/")[:-1]) for f in tracked]
        there = {"/".join(p[:4]) for p in parts if p[1:3] == ("include", "pmlab") and len(p) > 3}
        rooms = {p[0] for p in parts if p[1:2] in (("include",), ("tests",))}
        there |= {f"{p[0]}/{p[1]}" for p in parts if p[:1] and p[0] in rooms
                  and p[1:2] not in ((), ("include",), ("tests",))}
        there |= {p[0] for p in parts if p and not p[0].startswith(".") and p[0] not in rooms}
        self.assertEqual(there, set(stated["folder"]) | set(stated["other"]))


if __name__ == "__main__":
    unittest.main()
