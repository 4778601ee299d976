// The time that the benchmark itself takes for an operation.
#pragma once

#include "bench/engine/contender.hpp"
#include "bench/engine/options.hpp"
#include "bench/engine/phase.hpp"
#include "bench/engine/phase_runner.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/thread_team.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace pmlab::bench {

// Measures the phases of a run on an index that keeps nothing, with as many threads: the rest is the loop over the
// operations, the call and the clock. One thread uses it.
class driver_cost {
 public:
  // REQUIRES: time is real. `team` outlives it.
  driver_cost(const bench_options& options, thread_team& team);

  // Nanoseconds of a thread for one operation of phase `p`, the median of three runs, measured at the first call.
  // std::nullopt: operations begin at fixed times, the phase has none of its own (trace, reopen), or
  // this program has no null_index.
  [[nodiscard]] std::optional<double> of(const phase& p, std::uint64_t position);

 private:
  [[nodiscard]] double measured(const phase& p, std::uint64_t position);

  bench_options options_;
  unsigned threads_;
  progress hidden_{progress::style::quiet};
  phase_runner runner_;
  contender nothing_;  // without an index: operations begin at fixed times, or this program has no null_index
  std::map<std::string, double> known_;
};

}  // namespace pmlab::bench
