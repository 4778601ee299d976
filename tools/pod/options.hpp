// What a run of processes on one memory is asked for.
#pragma once

#include "checker/simulator/coherence.hpp"
#include <pmlab/pod/stale_lines.hpp>

#include <cstdint>
#include <string>

namespace pmlab::pods {

struct run_options {
  std::string index = "shared_tree";
  unsigned hosts = 4;
  unsigned kills = 1;  // in a round
  simulator::coherence lines = simulator::coherence::full;
  bool has_stale_copies = false;
  pod::stale_faults faults{};
  std::uint64_t rounds = 20;
  std::uint64_t operations = 4000;  // for each host
  std::uint64_t stays = 2;          // a host leaves and joins again between them
  std::uint64_t keys = 2000;
  std::uint64_t seed = 1;
  std::string folder;  // for the files of its memories

  [[nodiscard]] std::uint64_t operations_of_a_stay() const noexcept { return (operations + stays - 1) / stays; }
};

inline constexpr unsigned most_hosts = 8;
// A killed host is followed by another one in half of the cases.
inline constexpr unsigned most_processes = 2 * most_hosts;
inline constexpr std::uint64_t most_operations = std::uint64_t{1} << 20;

}  // namespace pmlab::pods
