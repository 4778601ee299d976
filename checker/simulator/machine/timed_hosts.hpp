// Several hosts on one memory, of which time alone is modelled: which thread runs on which, and which lines are the
// same for all. Every load sees the newest store. What a host may see in place of it: hosts.hpp, without time.
#pragma once

#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

struct timed_hosts {
  static constexpr unsigned most = 8;

  unsigned count = 1;    // at most `most`
  unsigned threads = 1;  // threads of each host: the first one of a run is on host 0, the others follow in groups
  simulator::coherence coherence = simulator::coherence::full;
  std::size_t coherent_bytes = std::size_t{64} << 10;  // for `partial`
  std::uintptr_t start = 0;                            // start of the memory that they share

  [[nodiscard]] unsigned host_of(unsigned thread) const noexcept {
    return thread == 0 ? 0 : std::min((thread - 1) / threads, count - 1);
  }
  // DRAM is not.
  [[nodiscard]] bool is_coherent(std::uintptr_t address) const noexcept {
    switch (coherence) {
      case coherence::full: return persistent_memory::in_area(address);
      case coherence::partial: return address - start < coherent_bytes;
      case coherence::none: break;
    }
    return false;
  }
};

}  // namespace pmlab::simulator
