// The simulated machine under one pass of a run, in the program that has it: pmlab-simulated.
#include "tools/bench/simulated_run.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/time/device_timing.hpp"
#include "tools/devices/profile_file.hpp"

#include <algorithm>

namespace pmlab::bench {

// And the caller's own core.
static_assert(simulated_run::most_threads + 1 == simulator::core_set::most_cores);

struct simulated_run::running {
  running(const medium_spec& medium, unsigned cores)
      : costs(media::load_profile(medium.profile), media::load_profile(dram_profile), cores) {}
  simulator::device_timing costs;
};

simulated_run::simulated_run(const medium_spec& medium, unsigned threads, unsigned background) {
  if (!medium.simulated) return;
  // Background threads that get none of their own share the first cores.
  running_ = std::make_unique<running>(medium, std::min(threads + 1 + background, simulator::core_set::most_cores));
  simulator::machine_options options;
  options.cost = &running_->costs;
  options.watch_freed = false;
  simulator::the_machine().begin(options);
  simulator::the_machine().watch(true);
}

simulated_run::~simulated_run() {
  if (running_) simulator::the_machine().end();
}

}  // namespace pmlab::bench
