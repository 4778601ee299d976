// Rounds of processes on one memory, some of which are killed.
#pragma once

#include "tools/pod/options.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pmlab::pods {

struct run_result {
  std::uint64_t rounds = 0;
  std::uint64_t killed = 0;
  std::uint64_t in_operation = 0;  // killed in the middle of one
  std::uint64_t followed = 0;      // by another host
  std::uint64_t operations = 0;    // that have returned
  std::uint64_t happened = 0;      // lines that left or entered copies by chance, of hosts that were not killed
  // The longest operation of the others that returned behind the first death, in each round with one, ms.
  std::vector<double> pauses;
  std::string violation;  // "": none
  std::string kept;       // file of the round that has it
};

// REQUIRES: this process has one thread. Throws pmlab::error: no file or no process can be made.
[[nodiscard]] run_result run(const run_options& o, const std::function<void(const run_result&)>& has_ended_round);

}  // namespace pmlab::pods
