// The libraries of stores on the simulated machine: each is compiled so that the machine observes it.
#pragma once

#include <string>

namespace pmlab::store_bench {

// The function `pmlab_simulated_STORE` of the library of a store, which is loaded at the first call. Throws pmlab::error if it is
// not there.
[[nodiscard]] void* simulated_library_function(const std::string& store);

}  // namespace pmlab::store_bench
