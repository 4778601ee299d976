// What the rounds of a process have done so far.
#pragma once

#include "checker/simulator/machine/hosts.hpp"
#include "checker/verify/complete_counts.hpp"
#include "checker/verify/crash_explorer.hpp"

#include <cstdint>
#include <optional>

namespace pmlab::verify {

// The death that the last round of a search of every death had. The processes of a search share it, one after the
// other.
struct last_death {
  std::optional<simulator::one_death> which{};
  std::uint64_t choices = 0;        // those that it had; more than one only if the host died
  std::uint64_t first_choices = 0;  // those in the round of its first choice; 0: not known
};

struct round_counts {
  crash_counts crash;
  std::uint64_t rounds = 0;
  std::uint64_t accesses = 0;
  std::uint64_t schedules = 0;  // rounds of more than one thread
  complete_counts complete{};
  simulator::host_counts hosts{};  // rounds with several hosts have them
  last_death death{};

  // Adds what another process has done. No search of every state is divided.
  round_counts& operator+=(const round_counts& other) noexcept {
    add_counters(crash, other.crash);
    rounds += other.rounds;
    accesses += other.accesses;
    schedules += other.schedules;
    hosts += other.hosts;
    return *this;
  }
};

}  // namespace pmlab::verify
