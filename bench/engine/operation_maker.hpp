// Makes the operations of a round, outside the timing.
#pragma once

#include "bench/engine/key_space.hpp"
#include "bench/engine/options.hpp"
#include "bench/engine/phase.hpp"
#include "bench/workload/operation.hpp"

#include <cstdint>
#include <vector>

namespace pmlab::bench {

// Which round of a run: the same place gives the same operations for every index.
struct round_place {
  std::uint64_t phase = 0;  // its position in the run
  std::uint64_t repeat = 0;
  std::uint64_t round = 0;
  std::uint64_t done = 0;   // operations of this phase and repeat that earlier rounds gave out
  std::uint64_t count = 0;  // operations of this round, over all threads
};

class operation_maker {
 public:
  operation_maker(const bench_options& options, unsigned threads) : options_(options), threads_(threads) {}

  // How many operations the phase has; for a phase that runs by time: at most.
  [[nodiscard]] std::uint64_t operations_of(const phase& p, const key_space& keys) const;

  // The share of `thread`. Threads may call it at the same time.
  [[nodiscard]] std::vector<workload::operation> make(const phase& p, const key_space& keys, const round_place& place,
                                                      unsigned thread) const;

  // Records the effect of a round on the keys, before it is executed.
  void advance(const phase& p, key_space& keys, const std::vector<std::vector<workload::operation>>& made) const;

 private:
  [[nodiscard]] std::vector<workload::operation> generated(const phase& p, const key_space& keys,
                                                           const round_place& place, unsigned thread) const;
  void continue_sequence(std::vector<workload::operation>& made, const key_space& keys, const round_place& place) const;

  const bench_options& options_;
  unsigned threads_;
};

}  // namespace pmlab::bench
