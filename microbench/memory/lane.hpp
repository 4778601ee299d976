// One thread of a case: its places, its kernels, and its measurements.
#pragma once

#include "microbench/memory/case.hpp"
#include "microbench/memory/kernels.hpp"
#include "microbench/memory/method.hpp"
#include "microbench/memory/target.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace pmlab::microbench {

// The measurements of one thread in one repetition. Times in picoseconds.
struct lane_result {
  std::uint64_t accesses = 0;  // that were measured
  std::uint64_t time = 0;      // that they took
  std::uint64_t issued = 0;    // accesses including those before and after the measurement
  std::vector<std::uint64_t> samples;
  std::uint64_t timing_cost = 0;
};

// Used by its own thread alone, except for construction.
class alignas(128) lane {
 public:
  // `number` of `of`: those that share the region. `loads`: its role in a mixed case. `seed` draws the places.
  lane(const bench_case& c, const method& m, target& memory, unsigned number, bool loads, std::uint64_t seed);

  // Not measured: the order of the places, links of a chase, first touches. `repetition` counts from 0.
  void prepare(std::uint64_t repetition);

  // One repetition: from `start` (on the medium's clock) on, warm-up, measurement, and then continued accesses until
  // all `lanes` have measured, so that no lane measures alone.
  void measure(std::uint64_t start, std::atomic<unsigned>& finished, unsigned lanes);

  [[nodiscard]] bool loads() const noexcept { return loads_; }
  [[nodiscard]] lane_result& result() noexcept { return result_; }
  // When it last did anything, on the medium's clock.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }

 private:
  [[nodiscard]] bool timed_one_by_one() const noexcept;
  [[nodiscard]] bool ordered_by_table() const noexcept;
  void touch_pages();
  void access(std::uint64_t count);
  void run_for(std::uint64_t picoseconds);
  void measure_in_a_row(std::uint64_t picoseconds);
  void measure_cold_chase(std::uint64_t picoseconds);
  void measure_one_by_one(std::uint64_t picoseconds);
  [[nodiscard]] std::uint64_t time_one(std::byte* place);
  void find_timing_cost();
  void drop_places();

  const bench_case& case_;
  const method& method_;
  target& memory_;
  unsigned number_;
  bool loads_;
  std::uint64_t seed_;
  bool fenced_ = false;
  std::byte* region_ = nullptr;  // this thread's part of the memory
  std::uint64_t region_bytes_ = 0;
  std::uint64_t places_ = 0;
  std::uint64_t batch_ = 1;
  std::uint64_t chased_ = 0;  // places since the last drop
  std::uint64_t ended_ = 0;
  walk way_;
  std::vector<std::uint32_t> table_;
  std::unique_ptr<kernels> kernels_;
  lane_result result_;
};

}  // namespace pmlab::microbench
