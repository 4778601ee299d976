// The clock of a measurement: the real one, or the virtual one of a simulated machine.
//
// The engine takes all times from it. In the program that has the simulated machine, the same class returns the virtual
// time of the calling thread.
#pragma once

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

// The clock of this program: virtual in the one that has the simulated machine. Defined in clock.cpp alone, which
// each of the two programs compiles for itself.
class real_run_clock final : public run_clock {
 public:
  [[nodiscard]] std::uint64_t now() const noexcept override;
  [[nodiscard]] const char* kind() const noexcept override;
  [[nodiscard]] std::uint64_t cpu_ns() const noexcept override;
};

}  // namespace pmlab::store_bench
