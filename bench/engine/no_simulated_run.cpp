// The program pmlab has no simulated machine: it hands such runs over to pmlab-simulated.
#include <pmlab/base/error.hpp>
#include "bench/engine/simulated_run.hpp"

namespace pmlab::bench {

struct simulated_run::running {};

simulated_run::simulated_run(const medium_spec& medium, const options& /*given*/) {
  if (medium.simulated)
    throw error("this program has no simulated machine for medium " + medium.text(), "run pmlab-simulated");
}

simulated_run::~simulated_run() = default;

std::uint64_t simulated_run::cpu_cache_bytes() const noexcept { return 0; }

host_sums simulated_run::between_hosts() noexcept { return {}; }

}  // namespace pmlab::bench
