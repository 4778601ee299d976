// The simulated machine under one pass of a run, in the program that has it: pmlab-simulated.
#include "bench/engine/simulated_run.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/time/device_timing.hpp"
#include <pmlab/base/hash.hpp>
#include "bench/devices/profile_file.hpp"

#include <algorithm>

namespace pmlab::bench {

// And the caller's own core.
static_assert(simulated_run::most_threads + 1 == simulator::core_set::most_cores);
static_assert(simulated_run::most_hosts == simulator::timed_hosts::most);

namespace {

constexpr std::uint64_t granules_of_heap = 4096;  // 16 bytes each: 64 KB
constexpr std::uint64_t frames = 512;             // 4 KB each: 2 MB

}  // namespace

struct simulated_run::running {
  running(const medium_spec& medium, const options& given, std::uint32_t first_frame)
      : device(device_of(medium, given.cpu_cache_bytes)),
        hosts{.count = given.hosts, .threads = given.threads, .coherence = given.coherence},
        // Background threads that get no core of their own share the first ones.
        costs(device, media::load_profile(dram_profile),
              std::min(given.threads * given.hosts + 1 + given.background, simulator::core_set::most_cores),
              first_frame, given.hosts == 1 ? nullptr : &hosts) {}

  static media::device_profile device_of(const medium_spec& medium, std::uint64_t cpu_cache_bytes) {
    media::device_profile profile = media::load_profile(medium.profile);
    profile.persistence = medium.persistence.value_or(profile.persistence);
    if (cpu_cache_bytes != 0) profile.cpu_cache_bytes = cpu_cache_bytes;
    return profile;
  }

  media::device_profile device;
  simulator::timed_hosts hosts;
  simulator::device_timing costs;
};

simulated_run::simulated_run(const medium_spec& medium, const options& given) {
  if (!medium.simulated) return;
  const std::uint64_t drawn = given.layout == 0 ? 0 : mix_bits(given.layout);
  running_ = std::make_unique<running>(medium, given, static_cast<std::uint32_t>(drawn / granules_of_heap % frames));
  simulator::machine_options how;
  how.cost = &running_->costs;
  how.timed_hosts = given.hosts == 1 ? nullptr : &running_->hosts;
  how.watch_freed = false;
  how.heap_of_libraries = !given.program_is_simulated;
  how.heap_offset = 16 * (drawn % granules_of_heap);
  simulator::the_machine().lose_power_as(running_->device.persistence);
  simulator::the_machine().begin(how);
  simulator::the_machine().watch(true);
}

simulated_run::~simulated_run() {
  if (!running_) return;
  simulator::the_machine().end();
  simulator::the_machine().lose_power_as(media::persistence_domain::adr);
}

host_sums simulated_run::between_hosts() noexcept {
  const simulator::machine& m = simulator::the_machine();
  const simulator::persist_counts& counts = m.persists();
  return {counts.invalidations, counts.flushes - counts.invalidations, counts.exchanges,
          m.running() && m.cost() != nullptr ? m.cost()->traffic().fetched : 0};
}

std::uint64_t simulated_run::cpu_cache_bytes() const noexcept { return running_ ? running_->costs.cache_bytes() : 0; }

}  // namespace pmlab::bench
