// The clock of a simulated thread, for blocks::timed: a modelled drive in virtual time.
//
//   blocks::timed<simulator::simulated_drive, simulator::drive_clock> drive(profile, {}, geometry);
#pragma once

#include <pmlab/blocks/clock.hpp>

#include <cstdint>
#include <string_view>

extern "C" {
// calls.hpp has it, too. NOLINTNEXTLINE(readability-redundant-declaration)
std::uint64_t pmlab_machine_now() noexcept;
// The calling fiber sleeps until its clock, in picoseconds, is at least this; others run.
void pmlab_machine_wait_until(std::uint64_t clock) noexcept;
}

namespace pmlab::simulator {

class drive_clock {
 public:
  static constexpr std::string_view kind = "simulated";

  [[nodiscard]] blocks::picoseconds now() const noexcept { return pmlab_machine_now(); }
  void wait_until(blocks::picoseconds time) const noexcept { pmlab_machine_wait_until(time); }
};

static_assert(blocks::drive_clock<drive_clock>);

}  // namespace pmlab::simulator
