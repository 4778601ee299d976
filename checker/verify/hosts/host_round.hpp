// One run of an index whose threads are on several hosts of one memory.
//
//   host 0     makes the index; the others join it, each with its own copy of the code and its own instance
//   threads    host after host in turn; the history of all is one, and is to be linearizable
//   deaths     a host dies in the middle of an operation, and the others go on
//   crashes    of all hosts at once, at some of their stores, fences and answers: a single host opens the memory
//   the end    each host that lives checks the index and lists its entries, and so does a host that has just started
#pragma once

#include "checker/simulator/machine/hosts.hpp"
#include "checker/verify/round.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace pmlab::verify {

class host_runner final : public index_runner {
 public:
  // REQUIRES: `kind` can be opened on as many hosts as the rounds have, and on one more (open_on_hosts).
  using index_runner::index_runner;

  [[nodiscard]] bool is_one(const round_options& options) override;

 private:
  void set_machine(simulator::machine_options& how) override;
  simulator::persistence_observer& begin_explorer(const crash_options& how) override;
  void begin_phase() override;
  void before_thread(unsigned thread) override;
  void thread_ends(unsigned thread) override;
  std::string perform(unsigned thread, const planned_step& s, buffer& scanned) override;
  void check_live() override;
  [[nodiscard]] bool is_closed() const override { return !hosts_->is_dead(0); }
  void check_closed() override {}
  [[nodiscard]] target& target_of(unsigned thread) noexcept override { return target_on(thread % count()); }

  [[nodiscard]] unsigned count() const noexcept { return options_->hosts->hosts; }
  [[nodiscard]] target& target_on(unsigned host) noexcept { return host == 0 ? *target_ : *others_[host - 1]; }
  // In this operation its host is to die.
  struct planned_death {
    const planned_step* in = nullptr;
    simulator::death_moment when{};
    std::uint64_t number = 1;
  };

  void plan_deaths();
  void work_where_it_died(unsigned host);
  void join(unsigned host);
  void check_on(unsigned host);
  void note_death(const simulator::one_death& death);

  std::unique_ptr<simulator::hosts> hosts_;  // those of the round, and the one that starts at its end
  std::vector<planned_death> deaths_;
  std::vector<const planned_step*> begun_;       // by thread: the last step that it has begun
  std::vector<unsigned> working_;                // threads of each host that have operations left
  std::vector<std::unique_ptr<target>> others_;  // the index as it is open on them, from host 1 on
};

// Where not all rounds have crashes, those of this seed have them: they take as long as many others.
[[nodiscard]] bool has_power_failures(std::uint64_t seed) noexcept;
// Where it is not said how many threads a host has, each of so many has two in those of this seed: what one of them has
// done for its host is half done for the other.
[[nodiscard]] bool has_two_threads(std::uint64_t seed, unsigned hosts) noexcept;
// The form of a round on several hosts, by its seed.
[[nodiscard]] round_options host_round_of(round_options round);

}  // namespace pmlab::verify
