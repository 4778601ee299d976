// A third-party shared library with PiBench's interface, as an index of the benchmark.
#pragma once

#include "bench/catalogue/medium_spec.hpp"
#include "bench/catalogue/registry.hpp"

#include <string>

namespace pmlab::bench {

struct library_options {
  bool scans = false;  // its scans order keys as unsigned integers of this machine
};

// Adds the library at `path` to the indexes of this program, under the name of its file: libtable.so is `table`. It is
// loaded by `load_libraries`, since a library for the simulated machine cannot be loaded where that is not. Throws
// pmlab::error: no such file, a name that is taken, a library or a medium that do not fit each other.
const index_description& register_library(const std::string& path, const medium_spec& medium,
                                          const library_options& options);

// Loads all of them, before the first is opened. Throws pmlab::error.
void load_libraries();

}  // namespace pmlab::bench
