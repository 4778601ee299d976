// Duration and repetitions: the part of the method that a case does not define.
#include "microbench/memory/method.hpp"

#include <algorithm>

namespace pmlab::microbench {

method method_for(const bench_case& c, bool simulated) {
  method m;
  if (simulated) {
    m = {.seconds = 300e-6,
         .warm_up_seconds = 200e-6,
         .samples = 100'000,
         .min_repetitions = 1,
         .max_repetitions = 3,
         .most_entries = std::uint64_t{1} << 15,
         .batch_bytes = 2048};
    // Accesses that are timed one by one need as many as a percentile does.
    if (c.measure == measure_kind::latency) m.seconds = 1e-3;
  } else {
    m = {.seconds = 0.2,
         .warm_up_seconds = 0.05,
         .samples = 250'000,
         .min_repetitions = 3,
         .max_repetitions = 12,
         .most_entries = std::uint64_t{1} << 22,
         .batch_bytes = std::uint64_t{32} << 10};
  }
  if (c.warm_up_seconds > 0) m.warm_up_seconds = c.warm_up_seconds;
  if (c.seconds > 0) m.seconds = c.seconds;
  if (c.samples > 0) m.samples = c.samples;
  if (c.min_repetitions > 0) m.min_repetitions = c.min_repetitions;
  if (c.max_repetitions > 0) m.max_repetitions = c.max_repetitions;
  m.max_repetitions = std::max(m.max_repetitions, m.min_repetitions);
  return m;
}

}  // namespace pmlab::microbench
