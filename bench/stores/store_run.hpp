// A run over stores of one kind: steps that the progress line shows, threads, the measuring of each case, and the
// report.
//
// A kind derives its run. Its hooks are the states that cases need, the lengths of cases, and the last check.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include "bench/stores/clock.hpp"
#include "bench/stores/measured.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/thread_team.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {

inline constexpr double picoseconds_per_second = 1e12;
// The part of a case's operations that runs before it is measured: one in so many.
inline constexpr std::uint64_t warm_up_share = 10;

// The end of a case: after `operations`, over all threads; if these are 0, after `time`; both 0: it ends by itself.
struct case_length {
  std::uint64_t operations = 0;
  std::uint64_t time = 0;  // picoseconds
};

// The kind of the steps that read all of a store once more.
inline constexpr std::string_view checking = "checking";

// `Options` have `cases`; a `Result` has the labels of its store and its case. run_worker(Contestant&, task, clock,
// progress) is one thread of a case.
template <class Options, class Contestant, class Result>
class store_run {
 public:
  using case_type = decltype(Result::what);
  using task = worker_task_of<case_type>;

  // All of these outlive it.
  store_run(const Options& options, std::vector<Contestant>& stores, const run_clock& clock, bench::progress& shown)
      : options_(options), stores_(stores), clock_(clock), shown_(shown), team_(options.threads) {}
  store_run(const store_run&) = delete;
  store_run& operator=(const store_run&) = delete;

  // An error in it is the end of the measurements.
  report_of<Result> all() {
    shown_.pass(
        fmt::format("{} cases of {} stores, {} times", options_.cases.size(), stores_.size(), options_.repetitions));
    announce();
    const bench::progress::moving moving(shown_);
    const std::uint64_t began = clock_.now();
    try {
      walk();
    } catch (const error& e) {
      report_.failure = e.what();
    }
    for (Contestant& s : stores_) {
      if (!s.is_made()) continue;
      s.drives().for_each([&](const store_device& d) { report_.remark_once(d.remarks()); });
      report_.remark_once(s.subject().remarks());
    }
    report_.seconds = static_cast<double>(clock_.now() - began) / picoseconds_per_second;
    return std::move(report_);
  }

 protected:
  ~store_run() = default;

  // The weight of a case among the steps, and the operations of which the progress line shows a share.
  [[nodiscard]] virtual std::pair<double, std::uint64_t> size_of(const case_type& c) const = 0;
  // The state that a case begins with, and what it leaves to the next one; of a run that is announced, its steps alone.
  virtual void prepare(Contestant& s, const case_type& c) = 0;
  virtual void restore(Contestant& s, const case_type& c) = 0;
  [[nodiscard]] virtual bool warms_up(const case_type& c) const = 0;
  // Operations before a case that warms up, not measured, at least: those that bring its drives to the speed they keep.
  [[nodiscard]] virtual std::uint64_t least_warm_up(const Contestant& /*s*/, const case_type& /*c*/) const { return 0; }
  [[nodiscard]] virtual case_length length_of(Contestant& s, const case_type& c) const = 0;
  // The figures that this kind has otherwise than all others.
  virtual void complete(Result& r, Contestant& s) = 0;
  // Reads all of it once more.
  virtual void check_at_end(Contestant& s) = 0;

  // ---- for the hooks

  // A part of the work, of a `kind` of steps with a common speed. `in_seconds`: the weight is the time that it takes.
  template <class Body>
  void step(const Contestant& s, std::string_view kind, double weight, const std::string& what, std::uint64_t total,
            Body&& body, bool in_seconds = false) {
    const std::string& store = s.labels().store;
    if (announces_) return shown_.expect(store, kind, weight, in_seconds);
    shown_.begin(store, kind, weight, fmt::format("{}: {}", store, what), total);
    try {
      body();
    } catch (...) {
      shown_.end();
      throw;
    }
    shown_.end();
  }
  [[nodiscard]] bool announces() const noexcept { return announces_; }
  // The weight of unmeasured work. Beside cases that end by time it is seconds, at a speed that is supposed until the
  // first such step is seen.
  [[nodiscard]] double weight_of_work(std::uint64_t amount, double supposed_per_s) const {
    return static_cast<double>(amount) / (by_time() ? supposed_per_s : 1);
  }
  [[nodiscard]] bool by_time() const noexcept { return options_.operations == 0; }
  // The operations of a case, at most `most` if this is not 0; or its time.
  [[nodiscard]] case_length usual_length(std::uint64_t most) const {
    if (by_time()) return {.time = static_cast<std::uint64_t>(options_.seconds * picoseconds_per_second)};
    return {.operations = most == 0 ? options_.operations : std::min(most, options_.operations)};
  }

  // Each use of the threads that draws has another seed. It follows from the use, and from how often the store had it:
  // the cases before it, and other stores, do not change it.
  [[nodiscard]] std::uint64_t next_seed(const Contestant& s, const std::string& use) {
    const std::uint64_t earlier = uses_[s.labels().store + ", " + use]++;
    return mix_bits(mix_bits(options_.seed) + hash_of_bytes(use.data(), use.size(), 0) + earlier);
  }
  // A case on all threads: each does its share of the operations.
  [[nodiscard]] worker_sums run_threads(Contestant& s, const case_type& c, case_length length, std::uint64_t seed) {
    const unsigned threads = options_.threads;
    std::vector<worker_sums> of(threads);
    team_.run([&](unsigned thread) {
      if (threads > 1 && is_virtual()) wait_for_start(seed, thread);
      const std::uint64_t share = length.operations * (thread + 1) / threads - length.operations * thread / threads;
      if (length.operations == 0 || share != 0)
        of[thread] = run_worker(s, task{c, thread, threads, share, length.time, seed}, clock_, shown_);
    });
    worker_sums sum;
    for (worker_sums& w : of) sum.add(std::move(w));
    report_.add_words(sum.first_wrong);
    return sum;
  }

  // The last check of a store, or a part of it.
  template <class Work>
  void check_with(const Contestant& s, double weight, std::uint64_t total, Work&& work) {
    step(s, checking, weight, "reading all of it once more", total, [&] {
      const worker_sums sum = work();
      report_.add_check({s.labels().store, sum.verified, sum.wrong});
    });
  }
  // The words are in the report then.
  void tell_wrong(const worker_sums& of) { report_.add_words(of.first_wrong); }

  const Options& options_;
  std::vector<Contestant>& stores_;
  const run_clock& clock_;
  bench::progress& shown_;

 private:
  // The progress line hears of all steps first: the same walk, without their work.
  void announce() {
    announces_ = true;
    walk();
    announces_ = false;
    for (Contestant& s : stores_) s.state = {};
  }
  void walk() {
    for (const case_type& c : options_.cases)
      for (unsigned repetition = 1; repetition <= options_.repetitions; ++repetition)
        for (Contestant& s : stores_) measure(s, c, repetition);
    for (Contestant& s : stores_) check_at_end(s);
  }

  void measure(Contestant& s, const case_type& c, unsigned repetition) {
    prepare(s, c);
    const std::string name = text_of(c);
    const auto [weight, operations] = size_of(c);
    step(
        s, name, weight, fmt::format("{}, {} of {}", name, repetition, options_.repetitions), operations,
        [&] { opens(c) ? measure_opening(s, c, repetition) : measure_operations(s, c, repetition); },
        length_of(s, c).time != 0 && !is_virtual());
    restore(s, c);
  }
  [[nodiscard]] bool is_virtual() const noexcept { return clock_.kind() == std::string_view("virtual"); }
  // Threads of a real machine do not begin at one instant, and which of them is the first is chance.
  static void wait_for_start(std::uint64_t seed, unsigned thread) {
    constexpr std::uint64_t longest_ns = 1000;
    std::this_thread::sleep_for(std::chrono::nanoseconds(1 + mix_bits(seed + thread) % longest_ns));
  }
  [[nodiscard]] static bool opens(const case_type& c) { return c.what.kind == decltype(c.what.kind)::open; }

  void measure_operations(Contestant& s, const case_type& c, unsigned repetition) {
    const case_length length = length_of(s, c);
    if (warms_up(c)) warm_up(s, c, length);
    Result r = begin_result(s, c, repetition);
    const std::vector<store_statistic> before = s.subject().statistics();
    const std::optional<std::uint64_t> sent = s.subject().host_bytes();
    reset_counts(s);
    const std::uint64_t others = cpu_of_others(s);
    const std::uint64_t cpu = clock_.cpu_ns();
    const worker_sums sum = run_threads(s, c, length, next_seed(s, text_of(c)));
    const std::uint64_t cpu_used = clock_.cpu_ns() - cpu;
    const std::uint64_t not_the_store = cpu_of_others(s) - others + sum.own_ns;
    // This clock may have no CPU time.
    if (cpu_used != 0 && sum.operations != 0)
      r.cpu_ns =
          static_cast<double>(cpu_used - std::min(cpu_used, not_the_store)) / static_cast<double>(sum.operations);
    static_cast<amounts&>(r) = sum;
    r.take_times(sum);
    if (sent) r.host_bytes = s.subject().host_bytes().value_or(*sent) - *sent;
    take_counts(r, s);
    r.statistics = grown(before, s.subject().statistics());
    complete(r, s);
    report_.results.push_back(std::move(r));
  }

  // Operations of the case that are not measured.
  void warm_up(Contestant& s, const case_type& c, case_length of_case) {
    const std::uint64_t least = least_warm_up(s, c);
    const std::string use = "before " + text_of(c);
    if (of_case.operations != 0) {
      const std::uint64_t usual = of_case.operations / warm_up_share + 1;
      static_cast<void>(run_threads(s, c, {.operations = std::max(least, usual)}, next_seed(s, use)));
      return;
    }
    if (least != 0) static_cast<void>(run_threads(s, c, {.operations = least}, next_seed(s, use)));
    const std::uint64_t usual = std::max<std::uint64_t>(of_case.time / warm_up_share, 1);
    static_cast<void>(run_threads(s, c, {.time = usual}, next_seed(s, use)));
  }

  void measure_opening(Contestant& s, const case_type& c, unsigned repetition) {
    if (!s.subject().can_reopen()) {
      report_.remark_once(
          {fmt::format("{} is not measured in phase open: there is nothing to open", s.labels().store)});
      return;
    }
    s.subject().close();
    Result r = begin_result(s, c, repetition);
    r.threads = 1;
    reset_counts(s);
    const std::uint64_t began = clock_.now();
    s.subject().open();
    const worker_sums read =
        run_worker(s, task{.what = c, .operations = 1, .seed = next_seed(s, text_of(c))}, clock_, shown_);
    const std::uint64_t rebuilt = s.subject().wait_until_complete() ? clock_.now() : read.ended;
    r.opening =
        opening_times{static_cast<double>(read.ended - began) / 1000, static_cast<double>(rebuilt - began) / 1000};
    static_cast<amounts&>(r) = read;
    r.time_ns = r.opening->complete_ns;
    take_counts(r, s);
    complete(r, s);
    tell_wrong(read);
    report_.results.push_back(std::move(r));
  }

  [[nodiscard]] Result begin_result(const Contestant& s, const case_type& c, unsigned repetition) const {
    Result r;
    r.of = s.labels();
    r.what = c;
    r.case_number = static_cast<std::size_t>(&c - options_.cases.data());
    r.threads = options_.threads;
    r.repetition = repetition;
    return r;
  }
  static void take_counts(Result& r, Contestant& s) {
    r.main = s.drives().main_counts();
    r.staging = s.drives().staging_counts();
    r.flash_per_written = s.drives().flash_per_written();
    r.medium = s.subject().counts();
    r.writes_to_drives = s.subject().writes_to_drives();
    r.space = s.subject().space();
  }
  static void reset_counts(Contestant& s) {
    s.drives().reset_counts();
    s.subject().reset_counts();
  }
  // CPU time of waiting for modelled drives, and of what stands for a device. A device's own waiting is in both.
  [[nodiscard]] static std::uint64_t cpu_of_others(Contestant& s) {
    return std::max(s.drives().waiting_cpu_ns(), s.subject().device_cpu_ns());
  }
  // What counters grew by.
  [[nodiscard]] static std::vector<store_statistic> grown(const std::vector<store_statistic>& before,
                                                          std::vector<store_statistic> now) {
    for (store_statistic& s : now)
      for (const store_statistic& b : before)
        if (b.first == s.first) s.second -= b.second;
    return now;
  }

  bench::thread_team team_;  // all threads of a run are made here
  bool announces_ = false;
  std::map<std::string, std::uint64_t> uses_;  // how often the threads used each
  report_of<Result> report_;
};

}  // namespace pmlab::store_bench
