// The schedule of a round.
#pragma once

#include "checker/verify/round_plan.hpp"
#include "checker/verify/schedules.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pmlab::verify {

// The sleeps of threads. Some operations of a store on drives are far longer than others, and threads of a subject's
// own wait most of the time: half of their rounds with pauses are about that.
[[nodiscard]] inline sleeps sleeps_of(const round_options& options, bool has_threads, bool has_drives) noexcept {
  if (!options.pauses) return sleeps::anywhere;
  if ((mix_bits(options.schedule_seed) & 4) == 0) return sleeps::before_changes;
  if (has_drives) return sleeps::over_operations;
  return has_threads ? sleeps::at_any_access_over_operations : sleeps::before_changes;
}

// Null: it needs none. `has_threads`: the subject makes some of its own. `length`: the accesses of the round of this
// seed without a pre-emption, for a bounded search.
[[nodiscard]] inline std::unique_ptr<operation_schedule> schedule_of(const round_options& options, bool has_threads,
                                                                     bool has_drives, std::uint64_t length) {
  if (options.threads == 1 && !has_threads) return nullptr;
  if (options.how == search::random || options.threads == 1)
    return std::make_unique<random_schedule>(options.schedule_seed, sleeps_of(options, has_threads, has_drives));
  // Seed 0 pre-empts nowhere and so measures the run; then one pre-emption at every place; then two, at random places.
  length = std::max<std::uint64_t>(length, 1);
  const unsigned others = options.threads - 1;
  if (options.schedule_seed == 0) return std::make_unique<bounded_schedule>(0, std::vector<preemption>{});
  const std::uint64_t number = options.schedule_seed - 1;
  if (number < length * others)
    return std::make_unique<bounded_schedule>(
        0, std::vector<preemption>{{number / others + 1, static_cast<unsigned>(number % others) + 1}});
  splitmix64 source(options.schedule_seed);
  std::vector<preemption> two(2);
  for (preemption& p : two) p = {source.below(length) + 1, static_cast<unsigned>(source.below(others)) + 1};
  std::sort(two.begin(), two.end(), [](const auto& a, const auto& b) { return a.access < b.access; });
  return std::make_unique<bounded_schedule>(static_cast<unsigned>(source.below(options.threads)), std::move(two));
}

// For machine_options::store_buffers. A bounded search pre-empts at places, which the order of stores would move.
[[nodiscard]] inline std::uint64_t store_buffers_of(const round_options& options) noexcept {
  if (!options.store_buffers || options.threads == 1 || options.how != search::random) return 0;
  return options.schedule_seed * golden_ratio | 1;
}

}  // namespace pmlab::verify
