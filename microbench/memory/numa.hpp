// NUMA nodes, as far as cases name them.
#pragma once

#include "microbench/memory/case.hpp"

#include <string>

namespace pmlab::microbench {

// Which node of `c` this machine lacks, or gives this process no CPU of; empty: none.
[[nodiscard]] std::string lack_of_nodes(const bench_case& c);

// Pins the calling thread to the `number`th CPU of `node` (in the order of bench::usable_cpus); -1: leaves it where it
// is.
void run_on_node(int node, unsigned number);

}  // namespace pmlab::microbench
