// The simulated machine under one pass of a run, in the program that has it: pmlab-simulated.
#include "bench/engine/simulated_run.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/time/device_timing.hpp"
#include "bench/devices/profile_file.hpp"

#include <algorithm>

namespace pmlab::bench {

// And the caller's own core.
static_assert(simulated_run::most_threads + 1 == simulator::core_set::most_cores);

struct simulated_run::running {
  running(const medium_spec& medium, unsigned cores)
      : device(device_of(medium)), costs(device, media::load_profile(dram_profile), cores) {}

  static media::device_profile device_of(const medium_spec& medium) {
    media::device_profile profile = media::load_profile(medium.profile);
    profile.persistence = medium.persistence.value_or(profile.persistence);
    return profile;
  }

  media::device_profile device;
  simulator::device_timing costs;
};

simulated_run::simulated_run(const medium_spec& medium, unsigned threads, unsigned background) {
  if (!medium.simulated) return;
  // Background threads that get none of their own share the first cores.
  running_ = std::make_unique<running>(medium, std::min(threads + 1 + background, simulator::core_set::most_cores));
  simulator::machine_options options;
  options.cost = &running_->costs;
  options.watch_freed = false;
  simulator::the_machine().lose_power_as(running_->device.persistence);
  simulator::the_machine().begin(options);
  simulator::the_machine().watch(true);
}

simulated_run::~simulated_run() {
  if (!running_) return;
  simulator::the_machine().end();
  simulator::the_machine().lose_power_as(media::persistence_domain::adr);
}

}  // namespace pmlab::bench
