// What runs over stores of any kind share: threads, steps that the progress line shows, and the report.
#pragma once

#include <pmlab/base/error.hpp>
#include "bench/stores/clock.hpp"
#include "bench/stores/measured.hpp"
#include "bench/stores/volume_subject.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/thread_team.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

inline constexpr double picoseconds_per_second = 1e12;
// The part of a case's operations that runs before it is measured: one in so many.
inline constexpr std::uint64_t warm_up_share = 10;

// The share of one thread of all operations of a case.
[[nodiscard]] constexpr std::uint64_t operations_of(std::uint64_t all, unsigned thread, unsigned threads) noexcept {
  return all * (thread + 1) / threads - all * thread / threads;
}

// What counters grew by.
[[nodiscard]] inline std::vector<store_statistic> grown(const std::vector<store_statistic>& before,
                                                        std::vector<store_statistic> now) {
  for (store_statistic& s : now)
    for (const store_statistic& b : before)
      if (b.first == s.first) s.second -= b.second;
  return now;
}

template <class Result>
class run_frame {
 protected:
  // All of these outlive it.
  run_frame(const run_clock& clock, bench::progress& shown, const run_lengths& lengths)
      : clock_(clock), shown_(shown), lengths_(lengths), team_(lengths.threads) {}

  // The whole run: an error in it is the end of the measurements. `last`: in any case.
  template <class Body, class Last>
  report_of<Result> run_all(Body&& body, Last&& last) {
    const bench::progress::moving moving(shown_);
    const std::uint64_t began = clock_.now();
    try {
      body();
    } catch (const error& e) {
      report_.failure = e.what();
    }
    last();
    report_.seconds = static_cast<double>(clock_.now() - began) / picoseconds_per_second;
    return std::move(report_);
  }

  template <class Body>
  void step(const std::string& store, std::string_view kind, double weight, const std::string& what,
            std::uint64_t total, Body&& body) {
    shown_.begin(store, kind, weight, what, total);
    try {
      body();
    } catch (...) {
      shown_.end();
      throw;
    }
    shown_.end();
  }

  [[nodiscard]] bool by_time() const noexcept { return lengths_.operations == 0; }
  // Each use of the threads has another seed.
  [[nodiscard]] std::uint64_t next_seed() noexcept { return lengths_.seed + ++runs_; }

  // Without figures yet. A phase `open` has one thread.
  template <class Labels, class Case>
  [[nodiscard]] Result begin_result(const Labels& of, const Case& what, bool opens, unsigned repetition) const {
    Result r;
    r.of = of;
    r.what = what;
    r.threads = opens ? 1 : lengths_.threads;
    r.repetition = repetition;
    return r;
  }

  // A case on all threads: each does its share of `operations`; of 0, as many as `time` (picoseconds) has room for.
  // work(task): the sums of one thread.
  template <class Case, class Work>
  [[nodiscard]] worker_sums share_case(const Case& what, std::uint64_t operations, std::uint64_t time, Work&& work) {
    const std::uint64_t seed = next_seed();
    return on_all_threads([&](unsigned thread) {
      const worker_task_of<Case> task{.what = what,
                                      .thread = thread,
                                      .threads = lengths_.threads,
                                      .operations = operations_of(operations, thread, lengths_.threads),
                                      .time = time,
                                      .seed = seed};
      return operations == 0 || task.operations != 0 ? work(task) : worker_sums();
    });
  }

  // work(thread): the sums of one thread. Wrong answers are in the report then.
  template <class Work>
  [[nodiscard]] worker_sums on_all_threads(Work&& work) {
    std::vector<worker_sums> of(team_.size());
    team_.run([&](unsigned thread) { of[thread] = work(thread); });
    worker_sums sum;
    for (worker_sums& w : of) sum.add(std::move(w));
    tell_wrong(sum);
    return sum;
  }

  void tell_wrong(const worker_sums& of) {
    for (const std::string& words : of.first_wrong)
      if (report_.first_wrong.size() < most_words) report_.first_wrong.push_back(words);
  }

  void remark_once(std::string remark) {
    if (std::ranges::find(report_.remarks, remark) == report_.remarks.end())
      report_.remarks.push_back(std::move(remark));
  }
  void remark_once(std::vector<std::string> remarks) {
    for (std::string& remark : remarks) remark_once(std::move(remark));
  }

  // CPU time of an operation; nothing: this clock has none. `used`: of the process; `not_the_store`: of these, both ns.
  [[nodiscard]] static std::optional<double> cpu_per_operation(std::uint64_t used, std::uint64_t not_the_store,
                                                               std::uint64_t operations) {
    if (used == 0 || operations == 0) return std::nullopt;
    return static_cast<double>(used - std::min(used, not_the_store)) / static_cast<double>(operations);
  }

  const run_clock& clock_;
  bench::progress& shown_;
  const run_lengths& lengths_;
  bench::thread_team team_;  // all threads of a run are made here
  std::uint64_t runs_ = 0;
  report_of<Result> report_;
};

}  // namespace pmlab::store_bench
