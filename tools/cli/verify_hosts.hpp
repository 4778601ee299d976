// `pmlab verify --hosts`: the options of rounds on several hosts.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace CLI {
class App;
}

namespace pmlab::simulator {
struct host_options;
}

namespace pmlab::cli {

// So many loads may miss a store of another host: all.
inline constexpr std::uint64_t all_stale_loads = ~std::uint64_t{0};

struct host_request {
  unsigned hosts = 0;  // 0: the rounds have one
  std::string coherence = "full";
  std::string coherent_size = "64KiB";
  std::uint64_t coherent_bytes = 0;  // as `coherent_size` says
  std::string stale = "any";
  std::string invalidation = "mfence";
  bool as_is = false;   // also an index that hosts are not made to share
  unsigned deaths = 0;  // at most so many of them die in a round
  bool every_death = false;
  std::string death{};  // the death of a replay; empty: none
  std::uint64_t stale_loads = all_stale_loads;

  // Host, access and choice. Throws pmlab::error: `death` is another text.
  [[nodiscard]] std::array<std::uint64_t, 3> death_numbers() const;
};

inline constexpr unsigned most_hosts = 8;
// All hosts together. Operations of more threads on one key have more orders than can be looked through.
inline constexpr unsigned most_threads_of_hosts = 8;
inline constexpr std::uint64_t most_death_choices = 64;  // numbers of a death's choices

// Throws pmlab::error for the first of `others` that was given. `why` has {} in place of its name.
void refuse_beside(const CLI::App& app, std::initializer_list<const char*> others, const char* why);

void add_host_options(CLI::App& app, host_request& r);
// Reads `coherent_size`. Throws pmlab::error for bad input. `threads`: of each host; 0: one.
void check_host_options(const CLI::App& app, unsigned threads, host_request& r);

// In pmlab-simulated alone.
[[nodiscard]] simulator::host_options host_options_of(const host_request& r);
// The options that a replay has in its command, each behind a space.
[[nodiscard]] std::string replay_of(const simulator::host_options& hosts, bool as_is);

}  // namespace pmlab::cli
