// Duration and repetitions: the part of the method that a case does not define.
#pragma once

#include "microbench/memory/case.hpp"

#include <cstdint>

namespace pmlab::microbench {

struct method {
  double seconds = 0;  // seconds of a repetition, after the warm-up
  double warm_up_seconds = 0;
  std::uint64_t samples = 0;  // samples of each thread in a repetition, at most
  unsigned min_repetitions = 1;
  unsigned max_repetitions = 1;
  std::uint64_t most_entries = 0;  // entries of a thread's table of places
  std::uint64_t batch_bytes = 0;   // accesses between two reads of the clock, in bytes; at least one access
};

// By the medium's clock: real seconds, or virtual ones, of which a small part of a real machine's are enough, since
// nothing disturbs them.
[[nodiscard]] method method_for(const bench_case& c, bool simulated);

}  // namespace pmlab::microbench
