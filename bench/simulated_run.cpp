// The simulated machine under one pass of a run, in the program that has it: pmlab-simulated.
#include <pmlab/bench/simulated_run.hpp>
#include <pmlab/media/device_profile.hpp>
#include <pmlab/simulator/machine/machine.hpp>
#include <pmlab/simulator/time/device_timing.hpp>

namespace pmlab::bench {

// And the caller's own core.
static_assert(simulated_run::most_threads + 1 == simulator::core_set::most_cores);

struct simulated_run::running {
  running(const medium_spec& medium, unsigned threads)
      : costs(media::load_profile(medium.profile), media::load_profile(dram_profile), threads + 1) {}
  simulator::device_timing costs;
};

simulated_run::simulated_run(const medium_spec& medium, unsigned threads) {
  if (!medium.simulated) return;
  running_ = std::make_unique<running>(medium, threads);
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
