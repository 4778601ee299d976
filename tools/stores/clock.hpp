// The clock of a measurement: the real one, or the virtual one of a simulated machine.
//
// The engine takes all times from it. In the program that has the simulated machine, the same class returns the virtual
// time of the calling thread.
#pragma once

#include <pmlab/media/clock.hpp>

#include <cstdint>

namespace pmlab::store_bench {

class run_clock {
 public:
  run_clock() = default;
  run_clock(const run_clock&) = delete;
  run_clock& operator=(const run_clock&) = delete;
  virtual ~run_clock() = default;

  // Picoseconds, of the calling thread.
  [[nodiscard]] virtual std::uint64_t now() const noexcept = 0;
  // "real" or "virtual", as results have it.
  [[nodiscard]] virtual const char* kind() const noexcept = 0;
  // CPU time of this process, all threads; 0: this clock has none.
  [[nodiscard]] virtual std::uint64_t cpu_ns() const noexcept = 0;
};

class real_run_clock final : public run_clock {
 public:
  [[nodiscard]] std::uint64_t now() const noexcept override { return clock_.now(); }
  [[nodiscard]] const char* kind() const noexcept override { return "real"; }
  [[nodiscard]] std::uint64_t cpu_ns() const noexcept override;

 private:
  const media::fast_clock& clock_ = media::fast_clock::instance();
};

}  // namespace pmlab::store_bench
