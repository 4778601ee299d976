// Rounds in child processes, which may fault, hang or end where they like.
#pragma once

#include "checker/verify/round_counts.hpp"
#include "checker/verify/round_plan.hpp"
#include "checker/verify/target.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pmlab::verify {

inline constexpr unsigned most_jobs = 64;

struct child_outcome {
  bool violated = false;
  std::string what;
  // Not empty: bad input, so that nothing can be said of the subject. Its remedy.
  std::string problem;
  std::string remedy;
  std::vector<std::string> history;  // operations of that round
  round_options round;               // the last one that it began
  std::uint64_t rounds_before = 0;   // those that its process had run before that one
};

// The number of the child that this process is, or that it comes from; 0 in every other process.
[[nodiscard]] unsigned job_of_process() noexcept;

// Runs rounds in `jobs` children for up to `seconds`; a round that is on then is left. Only the machine's count of
// steps, never a clock, shows that something hangs. next(number, options) sets the options of round `number`, from 0
// on; false ends them. Each child has every `jobs`-th round; the first violation, or problem, ends all. Adds the work
// done to `counts`. `tick` (may be empty) is called regularly.
[[nodiscard]] child_outcome run_rounds_in_child(const subject& kind,
                                                const std::function<bool(std::uint64_t, round_options&)>& next,
                                                double seconds, round_counts& counts,
                                                const std::function<void(const round_counts&)>& tick,
                                                unsigned jobs = 1);

}  // namespace pmlab::verify
