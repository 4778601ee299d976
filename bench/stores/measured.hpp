// What a run of `pmlab stores` measures, of stores of any kind: times of operations, sums of threads, results.
#pragma once

#include <pmlab/base/counters.hpp>
#include "bench/stores/store_device.hpp"
#include "bench/stores/store_subject.hpp"
#include "bench/workload/latency_histogram.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

// Nanoseconds.
struct latency_figures {
  double mean = 0;
  std::uint64_t p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, max = 0;
};

// The figures of a histogram, or std::nullopt if no operation was timed.
[[nodiscard]] inline std::optional<latency_figures> figures_of(const workload::latency_histogram& h) {
  if (h.count() == 0) return std::nullopt;
  return latency_figures{h.mean(), h.percentile(50), h.percentile(90), h.percentile(99), h.percentile(99.9), h.max()};
}

// Times of phase `open`, in nanoseconds from the beginning of opening.
struct opening_times {
  double first_read_ns = 0;  // the first read was answered
  double complete_ns = 0;    // and all that opening left for later was done
};

// How long a run is.
struct run_lengths {
  unsigned threads = 1;
  std::uint64_t operations = 0;  // operations of a case, over all threads; 0: `seconds` decide
  double seconds = 1;            // seconds of a case
  unsigned repetitions = 1;
  std::uint64_t seed = 1;
  std::uint64_t layout = 1;  // in virtual time: of the first repetition; each has the next one
};

// Wrong answers that a report has in words.
inline constexpr std::size_t most_words = 8;

// What one thread does in a case.
template <class Case>
struct worker_task_of {
  Case what;
  unsigned thread = 0;
  unsigned threads = 1;
  std::uint64_t operations = 0;  // operations of this thread; 0: `time` decides
  std::uint64_t time = 0;        // picoseconds
  std::uint64_t seed = 1;
};

// Operations that the progress line hears of at once.
inline constexpr std::uint64_t reported_together = 64;
// The benchmark's own work between two reaps takes less: a longer time is one in which the thread had no core.
inline constexpr std::uint64_t longest_own_ps = 200'000'000;
// Places or keys are drawn so often in search of one without a change under way.
inline constexpr unsigned most_draws = 64;

// What a case has done.
struct amounts {
  std::uint64_t operations = 0;
  std::uint64_t reads = 0;       // reads among these, those of read-modify-writes included
  std::uint64_t bytes = 0;       // bytes of all operations
  std::uint64_t user_bytes = 0;  // written by the user
  std::uint64_t verified = 0;    // answers that were checked
  std::uint64_t wrong = 0;       // wrong answers among these

  static constexpr std::array counters{counter{&amounts::operations}, counter{&amounts::reads},
                                       counter{&amounts::bytes},      counter{&amounts::user_bytes},
                                       counter{&amounts::verified},   counter{&amounts::wrong}};
};

// Sums of one thread in one case, or of all threads.
struct worker_sums : amounts {
  std::uint64_t began = 0;  // picoseconds
  std::uint64_t ended = 0;
  std::uint64_t own_ns = 0;  // time of the benchmark itself: making data, checking answers
  std::vector<std::string> first_wrong;
  workload::latency_histogram read_latency;
  workload::latency_histogram write_latency;
  workload::latency_histogram scan_latency;

  void add_wrong(std::string words) {
    ++wrong;
    if (first_wrong.size() < most_words) first_wrong.push_back(std::move(words));
  }

  // Another thread's of the same case.
  void add(worker_sums&& other) {
    if (other.operations == 0) return;
    began = operations == 0 ? other.began : std::min(began, other.began);
    ended = std::max(ended, other.ended);
    add_counters<amounts>(*this, other);
    own_ns += other.own_ns;
    read_latency.merge(other.read_latency);
    write_latency.merge(other.write_latency);
    scan_latency.merge(other.scan_latency);
    for (std::string& words : other.first_wrong)
      if (first_wrong.size() < most_words) first_wrong.push_back(std::move(words));
  }
};

// The result of one store in one case, once.
struct measured : amounts {
  std::size_t case_number = 0;  // number of its case in the options
  unsigned threads = 1;
  unsigned repetition = 1;
  double time_ns = 0;
  std::optional<latency_figures> latency;  // latency of all operations
  std::optional<latency_figures> read_latency;
  std::optional<latency_figures> write_latency;
  std::optional<latency_figures> scan_latency;
  std::optional<double> cpu_ns;             // CPU time of an operation, on the host
  std::optional<std::uint64_t> host_bytes;  // that left the host, where the drives' counts are not the host's
  bool writes_to_drives = true;             // false: their counts are not those of the store
  device_counts main{};                     // sums over the main drives
  std::optional<device_counts> staging;     // nothing: there is none
  std::optional<double> flash_per_written;  // bytes that flash of modelled drives programmed for each byte written
  std::optional<media::counts> medium;      // accesses of all operations
  std::vector<store_statistic> statistics;  // grown in this case
  std::optional<opening_times> opening;     // times of phase `open` alone

  [[nodiscard]] double operations_per_s() const {
    return time_ns > 0 ? static_cast<double>(operations) / time_ns * 1e9 : 0;
  }

  // Bytes that left the host for each byte that its user wrote; nothing: the user wrote nothing, or they are not known.
  [[nodiscard]] std::optional<double> host_amplification() const {
    if (user_bytes == 0 || (!host_bytes && !writes_to_drives)) return std::nullopt;
    const std::uint64_t written = host_bytes.value_or(written_bytes(main) + (staging ? written_bytes(*staging) : 0));
    return static_cast<double>(written) / static_cast<double>(user_bytes);
  }
  // Bytes that flash programmed for each byte that left the host; nothing: there is no such figure.
  [[nodiscard]] std::optional<double> device_amplification() const {
    if (!writes_to_drives) return std::nullopt;
    if (!host_bytes) return flash_per_written;
    if (*host_bytes == 0) return std::nullopt;
    return static_cast<double>(written_bytes(main)) * flash_per_written.value_or(1) / static_cast<double>(*host_bytes);
  }

  void take_times(const worker_sums& sum) {
    time_ns = static_cast<double>(sum.ended - sum.began) / 1000;
    workload::latency_histogram all = sum.read_latency;
    all.merge(sum.write_latency);
    all.merge(sum.scan_latency);
    latency = figures_of(all);
    read_latency = figures_of(sum.read_latency);
    write_latency = figures_of(sum.write_latency);
    scan_latency = figures_of(sum.scan_latency);
  }
};

// The last check of one store, at the end of the run: all of it was read once more.
struct final_check {
  std::string store;
  std::uint64_t verified = 0;
  std::uint64_t wrong = 0;
};

// `Result`: a `measured`.
template <class Result>
struct report_of {
  std::vector<Result> results;  // in the order in which they were measured
  std::vector<final_check> at_end;
  std::vector<std::string> first_wrong;  // the first few wrong answers, in words
  std::vector<std::string> remarks;
  std::optional<std::string> failure;  // why the run ended early
  double seconds = 0;

  [[nodiscard]] std::uint64_t wrong_answers() const {
    std::uint64_t sum = 0;
    for (const Result& r : results) sum += r.wrong;
    for (const final_check& f : at_end) sum += f.wrong;
    return sum;
  }

  // Sums of a store are one.
  void add_check(const final_check& one) {
    auto at = std::ranges::find(at_end, one.store, &final_check::store);
    if (at == at_end.end()) at = at_end.insert(at, {one.store, 0, 0});
    at->verified += one.verified;
    at->wrong += one.wrong;
  }
  void add_words(const std::vector<std::string>& of_wrong) {
    for (const std::string& words : of_wrong)
      if (first_wrong.size() < most_words) first_wrong.push_back(words);
  }
  void remark_once(const std::vector<std::string>& more) {
    for (const std::string& remark : more)
      if (std::ranges::find(remarks, remark) == remarks.end()) remarks.push_back(remark);
  }
  // A report of other repetitions, or of other stores.
  void add(report_of&& one) {
    std::ranges::move(one.results, std::back_inserter(results));
    for (const final_check& f : one.at_end) add_check(f);
    add_words(one.first_wrong);
    remark_once(one.remarks);
    if (one.failure) failure = std::move(one.failure);
    seconds += one.seconds;
  }
};

}  // namespace pmlab::store_bench
