// `pmlab facts`: the facts that the Python commands need from the program.
#pragma once

#include "tools/cli/command.hpp"

namespace pmlab::cli {

// A hidden command; prints one JSON object:
//   machine   machine and build, as every result has them
//   options   {"bench": [...], "microbench": [...], "stores_volumes": [...], "stores_pairs": [...]}: the names of their
//             options, without dashes
//   left_out  the packages that a build may be without and that are not there (bench/support/optional_packages.hpp)
//   problems  for each --index NAME that is none: {"ceh": "no index 'ceh'; did you mean cceh?"}
[[nodiscard]] command add_facts(CLI::App& program);

}  // namespace pmlab::cli
