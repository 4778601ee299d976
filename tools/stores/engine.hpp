// Runs the cases of `pmlab stores bench` on its stores, which take turns, and checks each answer.
#pragma once

#include "tools/stores/case.hpp"
#include "tools/stores/clock.hpp"
#include "tools/stores/contestant.hpp"
#include "tools/stores/measured.hpp"
#include "tools/support/progress.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::store_bench {

struct run_options {
  std::vector<bench_case> cases;
  unsigned threads = 1;
  std::uint64_t operations = 0;  // of a case, over all threads; 0: `seconds` decide
  double seconds = 1;            // of a case
  unsigned repetitions = 1;
  std::uint64_t seed = 1;
};

// One store in one case, once.
struct case_result {
  store_labels of;
  bench_case what;
  unsigned threads = 1;
  unsigned repetition = 1;
  std::uint64_t operations = 0;
  std::uint64_t reads = 0;       // of these
  std::uint64_t bytes = 0;       // of all operations
  std::uint64_t user_bytes = 0;  // written
  double time_ns = 0;
  std::optional<latency_figures> latency;
  std::optional<latency_figures> read_latency;   // of a mix
  std::optional<latency_figures> write_latency;  // of a mix
  std::optional<double> cpu_ns;                  // of an operation
  device_counts device;
  std::optional<double> device_amplification;
  std::optional<medium_counts> medium;  // of all operations
  volume_space space;
  std::vector<store_statistic> statistics;  // grown in this case
  std::optional<opening_times> opening;
  std::uint64_t verified = 0;  // reads that were checked
  std::uint64_t wrong = 0;     // of these

  [[nodiscard]] double operations_per_s() const {
    return time_ns > 0 ? static_cast<double>(operations) / time_ns * 1e9 : 0;
  }
  // Bytes that the store wrote to the device for each byte that its user wrote; nothing: the user wrote nothing.
  [[nodiscard]] std::optional<double> host_amplification() const;
};

using run_report = report_of<case_result>;

// For each case each store in turn, `repetitions` times. A store is filled before its first case that is no `fill`, and
// overwritten until it is steady before its first overwrites of a size; neither is measured. An error in the middle ends
// the run, and the report has the results so far. Throws pmlab::error where a store cannot be made at all.
[[nodiscard]] run_report run_cases(const run_options& options, std::vector<contestant>& stores, const run_clock& clock,
                                   bench::progress& shown);

}  // namespace pmlab::store_bench
