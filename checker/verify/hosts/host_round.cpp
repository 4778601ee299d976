// One run of an index whose threads are on several hosts of one memory.
#include "checker/verify/hosts/host_round.hpp"
#include "checker/simulator/machine/machine.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::verify {
namespace {

template <class Work>
void watched(Work&& work) {
  simulator::machine& machine = simulator::the_machine();
  machine.allow(simulator::machine::patience);
  machine.watch(true);
  work();
  machine.watch(false);
}

}  // namespace

void host_runner::set_machine(simulator::machine_options& how) {
  simulator::host_options options = *options_->hosts;
  if (options.coherence == simulator::coherence::partial) memory_.divide_blocks_at(options.coherent_bytes);
  ++options.hosts;
  options.seed = options_->seed ^ options_->schedule_seed << 20;
  hosts_ = std::make_unique<simulator::hosts>(memory_, options);
  how.hosts = hosts_.get();
}

// On a thread that is on the host from then on.
void host_runner::join(unsigned host) {
  simulator::machine& machine = simulator::the_machine();
  machine.move_to_host(host);
  machine.quietly([&] { hosts_->start_host(host); });
  std::unique_ptr<target> opened = kind_.open_on_host[host - 1]();
  machine.quietly([&] { others_.push_back(std::move(opened)); });
}

void host_runner::begin_phase() {
  simulator::machine& machine = simulator::the_machine();
  for (unsigned host = 1; host < count(); ++host) join(host);
  machine.move_to_host(0);
  index_runner::begin_phase();
}

void host_runner::begin_thread(unsigned thread) { simulator::the_machine().move_to_host(thread % count()); }

void host_runner::check_on(unsigned host) {
  simulator::machine& machine = simulator::the_machine();
  const std::string where = host == count() ? "a host that has just started" : "host " + std::to_string(host);
  std::string wrong;
  std::vector<indexes::entry> entries;
  std::optional<std::uint64_t> held;
  watched([&] {
    machine.move_to_host(host);
    const std::string found = target_on(host).check();
    std::vector<indexes::entry> listed;
    target_on(host).entries(listed);
    held = target_on(host).held_bytes();
    machine.quietly([&] {
      wrong = found;
      entries = listed;
    });
  });
  if (wrong.empty()) wrong = history_->judge(entries, false);
  if (!wrong.empty()) at_end(wrong + hosts_->story(), "on " + where + ": ");
  check_held(held, "the index on " + where, " bytes");
}

void host_runner::check_live() {
  for (unsigned host = 0; host < count(); ++host) check_on(host);
  watched([&] { join(count()); });
  check_on(count());
  watched([&] {
    for (; !others_.empty(); others_.pop_back())
      simulator::the_machine().move_to_host(static_cast<unsigned>(others_.size()));
    simulator::the_machine().move_to_host(0);
  });
  counts_.hosts += hosts_->counts();
}

round_options host_round_of(round_options round) {
  round.crashes = false;
  // Hosts collide if there are few keys.
  if (round.seed / 2 % 2 == 0) round.keys = std::min<std::size_t>(round.keys, 5);
  round.pauses = round.pauses || round.seed % 4 == 1;
  return round;
}

}  // namespace pmlab::verify
