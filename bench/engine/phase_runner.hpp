// Measures one index in one phase.
#pragma once

#include "bench/catalogue/pacer.hpp"
#include "bench/engine/contender.hpp"
#include "bench/engine/operation_maker.hpp"
#include "bench/engine/options.hpp"
#include "bench/engine/phase.hpp"
#include "bench/engine/result.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/thread_team.hpp"

#include <cstdint>
#include <optional>

namespace pmlab::bench {

// A phase runs in rounds of at most round_operations per thread: the operations of a round are made first, then all
// threads execute theirs from a common start, then the state is checked. Only the execution is timed.
class phase_runner {
 public:
  static constexpr std::uint64_t round_operations = std::uint64_t{1} << 20;

  phase_runner(const bench_options& options, thread_team& team, progress& shown)
      : options_(options), team_(team), shown_(shown), maker_(options, team.size()) {}

  // `position`: of the phase in the run, which seeds its operations. Throws pmlab::error if the medium is full.
  [[nodiscard]] phase_result measure(contender& c, const phase& p, std::uint64_t position, unsigned repeat);

  // The weight of the phase as a step of the run's time (bench/time_left.hpp).
  [[nodiscard]] static double weight_of(const bench_options& options, const phase& p);

 private:
  struct totals;

  [[nodiscard]] phase_result measure_rounds(contender& c, const phase& p, std::uint64_t position, unsigned repeat);
  [[nodiscard]] std::string doubt_about_emulation(const contender& c,
                                                  const std::optional<media::emulation_counts>& before) const;
  [[nodiscard]] phase_result reopen(contender& c, const phase& p, unsigned repeat);
  [[nodiscard]] std::uint64_t operations_for(const totals& sums) const;
  void run_round(contender& c, const phase& p, const round_place& place, totals& sums);
  void wait_for_start(const round_place& place, unsigned thread) const;
  [[nodiscard]] std::size_t chunk_of(const contender& c, std::uint32_t longest_scan, bool by_time) const;
  [[nodiscard]] std::size_t chunk_at_rate() const;
  [[nodiscard]] pacer pace_of(unsigned thread, const totals& sums) const;
  [[nodiscard]] phase_result summarize(contender& c, const phase& p, unsigned repeat, const totals& sums);
  [[noreturn]] void report_full(const contender& c, const phase& p, std::uint64_t executed) const;

  const bench_options& options_;
  thread_team& team_;
  progress& shown_;
  operation_maker maker_;
};

}  // namespace pmlab::bench
