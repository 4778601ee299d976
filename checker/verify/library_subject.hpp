// A library with PiBench's interface as a subject of verification.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/verify/target.hpp"

#include <cstddef>
#include <string>

namespace pmlab::verify {

class reached_code;

// What a library gets as pool_size, if its user names no other.
inline constexpr std::size_t usual_pool_bytes = std::size_t{32} << 20;

// Loads the library, three times: one copy runs on the machine, another one runs on what a crash has left, and the
// last, untouched, recovers after crashes. Throws pmlab::error: it cannot be loaded, is not instrumented, or has no
// debug information. One library per process. The subject's name lists the missing operations.
[[nodiscard]] const subject& load_library(const std::string& path, bool scans,
                                          std::size_t pool_bytes = usual_pool_bytes,
                                          const missing_operations& missing = {});

// Lets `hosts` hosts open the loaded library, each with a copy and thus with globals of its own. The first one makes
// the pool; create_tree of the others finds it.
void open_library_on_hosts(unsigned hosts);

// Runs of the library that begin from now on find the content of `memory` in their pool. Null: they make a new one.
void go_on_from(simulator::persistent_memory* memory);

// The functions that runs and recoveries of the loaded library reach; null: `kind` is another subject.
[[nodiscard]] const reached_code* code_of(const subject& kind);
// The size of the memory that its runs get.
[[nodiscard]] std::size_t memory_bytes_of(const subject& kind);

}  // namespace pmlab::verify
