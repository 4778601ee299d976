// The simulated machine under one pass of a run: from its beginning to its end, threads that are made are fibers.
#pragma once

#include "checker/simulator/coherence.hpp"
#include <pmlab/base/counters.hpp>
#include "bench/catalogue/medium_spec.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace pmlab::bench {

// What hosts that share a memory do for each other. Publications of a medium are not among it.
struct host_sums {
  std::uint64_t refreshed = 0;  // lines, so that later loads see what others have published
  std::uint64_t published = 0;  // lines written back, so that others see them
  std::uint64_t exchanges = 0;  // compare-exchanges by the device
  std::uint64_t fetched = 0;    // lines that came from the device, those of exchanges among them

  static constexpr std::array counters{
      counter{&host_sums::refreshed, "refreshed"}, counter{&host_sums::published, "published"},
      counter{&host_sums::exchanges, "exchanges"}, counter{&host_sums::fetched, "fetched"}};

  host_sums& operator+=(const host_sums& more) noexcept { return add_counters(*this, more); }
};

// Does nothing unless the medium is simulated. At most one at a time; threads that are made during its life end in it.
class simulated_run {
 public:
  static constexpr unsigned most_threads = 127;  // all hosts together
  static constexpr unsigned most_hosts = 8;
  static constexpr std::string_view dram_profile = "dram";  // beside the device

  struct options {
    unsigned threads = 1;     // threads of each host, besides the caller, each on a core of its own
    unsigned background = 0;  // more of them, as far as there are cores
    std::uint64_t layout = 0;
    bool program_is_simulated = false;  // not libraries that it loads: the machine's heap is for all of it
    std::uint64_t cpu_cache_bytes =
        0;  // caches of a core: its second level, and its share of the last one; 0: as the profile says
    unsigned hosts = 1;
    simulator::coherence coherence = simulator::coherence::full;  // the one between several
  };

  // Every machine begins with empty caches, at time 0. `layout` draws where things lie: the beginning of the heap, and
  // which frames of memory the first pages have; 0: at the beginning of both. Throws pmlab::error for a profile that
  // cannot be read, and in a program that was built without the machine.
  simulated_run(const medium_spec& medium, const options& given);
  simulated_run(const simulated_run&) = delete;
  simulated_run& operator=(const simulated_run&) = delete;
  ~simulated_run();

  // The second level of all cores and the last one; 0: nothing is simulated.
  [[nodiscard]] std::uint64_t cpu_cache_bytes() const noexcept;

  // What timed code has done since the process began. All 0 in a program that was built without the machine.
  [[nodiscard]] static host_sums between_hosts() noexcept;

 private:
  struct running;
  std::unique_ptr<running> running_;
};

}  // namespace pmlab::bench
