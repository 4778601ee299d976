// `pmlab verify --hosts` in the program that has the simulated machine.
#include "checker/simulator/machine/hosts.hpp"
#include "tools/cli/verify_hosts.hpp"

#include <fmt/format.h>

namespace pmlab::cli {

using simulator::coherence;
using simulator::stale_lines;

// A host more comes at the end of a round.
static_assert(most_hosts + 1 == simulator::most_hosts);
static_assert(most_death_choices == simulator::one_death::most_choices);
static_assert(all_stale_loads == simulator::host_options{}.most_misses);

simulator::host_options host_options_of(const host_request& r) {
  simulator::host_options options{.hosts = r.hosts,
                                  .coherence = simulator::coherence_of(r.coherence).value(),
                                  .coherent_bytes = r.coherent_bytes,
                                  .stale = r.stale == "loaded" ? stale_lines::loaded : stale_lines::any,
                                  .sfence_invalidates = r.invalidation == "sfence",
                                  .deaths = r.deaths,
                                  .most_misses = r.stale_loads};
  if (r.death.empty()) return options;
  const auto [host, access, choice] = r.death_numbers();
  options.death = simulator::one_death{static_cast<unsigned>(host), access, choice};
  return options;
}

std::string replay_of(const simulator::host_options& hosts, bool as_is) {
  const bool is_partial = hosts.coherence == coherence::partial;
  std::string text = fmt::format(" --hosts {} --coherence {}", hosts.hosts, to_string(hosts.coherence));
  if (is_partial) text += fmt::format(" --coherent-bytes {}", hosts.coherent_bytes);
  if (hosts.stale == stale_lines::loaded) text += " --stale loaded";
  if (hosts.sfence_invalidates) text += " --invalidation sfence";
  if (hosts.deaths != 0) text += fmt::format(" --deaths {}", hosts.deaths);
  if (const auto& d = hosts.death; d && d->access != 0)
    text += fmt::format(" --death {}.{}.{}", d->host, d->access, d->choice);
  if (as_is) text += " --as-is";
  if (hosts.most_misses != all_stale_loads) text += fmt::format(" --stale-loads {}", hosts.most_misses);
  return text;
}

}  // namespace pmlab::cli
