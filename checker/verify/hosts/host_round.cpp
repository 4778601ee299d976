// One run of an index whose threads are on several hosts of one memory.
#include "checker/verify/hosts/host_round.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/hosts/host_objects.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
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
  hosts_->on_death = [this](unsigned host) {
    for (unsigned thread = host; thread < options_->threads; thread += count()) history_->died(thread);
    work_where_it_died(host);
  };
  how.hosts = hosts_.get();
  how.loaded_by_hosts = host_objects::of(kind_).memory();
  plan_deaths();
}

simulator::persistence_observer& host_runner::begin_explorer(const crash_options& how) {
  explorer().use(*hosts_);
  return index_runner::begin_explorer(how);
}

// In half of the rounds that may have deaths. The operation is chosen by what it is, so it stays the same when others
// are left out.
void host_runner::plan_deaths() {
  using simulator::death_moment;
  constexpr std::uint64_t orders = 9;  // the powers of two that a number of accesses is drawn below
  deaths_.clear();
  splitmix64 random(mix_bits(options_->seed) ^ options_->schedule_seed);
  if (options_->hosts->death || options_->hosts->deaths == 0 || random.one_in(2)) return;
  std::vector<unsigned> living(count());
  for (unsigned host = 0; host < count(); ++host) living[host] = host;
  for (std::uint64_t left = 1 + random.below(options_->hosts->deaths); left > 0; --left) {
    const auto dies = living.begin() + static_cast<std::ptrdiff_t>(random.below(living.size()));
    const auto& steps = phases_[phase_][*dies + count() * random.below(options_->threads / count())];
    living.erase(dies);
    const std::uint64_t salt = random.next();
    const auto rank = [&](const planned_step& s) { return mix_bits(mix_bits(s.what.key ^ salt) ^ s.what.value); };
    const auto in =
        std::min_element(steps.begin(), steps.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    planned_death d;
    switch (random.below(6)) {
      case 0: d = {nullptr, death_moment::behind_lock_word, 1 + random.below(2)}; break;
      case 1: d = {nullptr, death_moment::before_publication, 1 + random.below(4)}; break;
      default: d = {nullptr, death_moment::before_event, 1 + random.below(std::uint64_t{1} << random.below(orders))};
    }
    // A long operation has its atomic change far behind its first events, and goes on behind it. Which one that will
    // be, is not known.
    if (splitmix64 own(salt ^ 1); own.one_in(options_->grown ? 2 : 8)) {
      const bool grows = !own.one_in(options_->grown ? 4 : 2);
      d = {nullptr, grows ? death_moment::behind_growth : death_moment::behind_publication,
           1 + own.below(std::uint64_t{1} << own.below(orders))};
      if (grows && in != steps.end()) d.in = &steps.front();
    }
    // It repairs what the first one left.
    if (!deaths_.empty() && random.one_in(2)) d.when = death_moment::behind_news;
    if (in == steps.end()) continue;
    if (d.in == nullptr) d.in = &*in;
    deaths_.push_back(d);
  }
}

// Half of what the survivors have not begun moves to what the dead one did last: it has left locks and half of a change
// there. About a split they work already.
void host_runner::work_where_it_died(unsigned host) {
  if (options_->grown) return;
  std::vector<std::uint64_t> hot;
  for (unsigned thread = host; thread < options_->threads; thread += count())
    if (begun_[thread] != nullptr) hot.push_back(begun_[thread]->what.key);
  if (hot.empty()) return;
  constexpr std::size_t reach = 1;
  for (unsigned thread = 0; thread < options_->threads; ++thread) {
    if (hosts_->is_dead(thread % count())) continue;
    std::vector<planned_step>& steps = phases_[phase_][thread];
    const auto begun = begun_[thread] == nullptr ? 0 : static_cast<std::size_t>(begun_[thread] - steps.data()) + 1;
    work_at(hot, reach, std::span(steps).subspan(begun));
  }
  tell_history();
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
  index_runner::begin_phase();
  for (unsigned host = 1; host < count(); ++host) join(host);
  simulator::the_machine().move_to_host(0);
  simulator::the_machine().quietly([&] {
    working_.assign(count(), options_->threads / count());
    begun_.assign(options_->threads, nullptr);
  });
  hosts_->begin_deaths();
}

// Each choice of a death follows the one before, from 0 on.
bool host_runner::is_one(const round_options& options) {
  const std::optional<simulator::one_death>& next = options.hosts->death;
  const std::optional<simulator::one_death>& last = counts_.death.which;
  const bool follows = next && last && next->host == last->host && next->access == last->access && next->choice > 0;
  return !follows || next->choice < counts_.death.choices;
}

// The thread is on the host from its beginning on: it may die before it runs.
void host_runner::before_thread(unsigned thread) { simulator::the_machine().move_to_host(thread % count()); }

void host_runner::thread_ends(unsigned thread) {
  if (--working_[thread % count()] == 0) simulator::the_machine().host_ends();
}

std::string host_runner::perform(unsigned thread, const planned_step& s, buffer& scanned) {
  begun_[thread] = &s;
  for (const planned_death& d : deaths_)
    if (d.in == &s) hosts_->doom(thread % count(), d.when, d.number);
  return index_runner::perform(thread, s, scanned);
}

void host_runner::check_on(unsigned host) {
  simulator::machine& machine = simulator::the_machine();
  const std::string where = host == count() ? "a host that has just started" : "host " + std::to_string(host);
  std::string wrong;
  std::vector<indexes::entry> entries;
  std::optional<std::uint64_t> held;
  watched([&] {
    machine.move_to_host(host);
    const std::string found = target_on(host).check();
    machine.quietly([&] { target_on(host).know_keys(history_->keys()); });
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
  // What the dead left is decided now.
  if (hosts_->counts().deaths != 0) history_->settled(entries);
  check_held(held, "the index on " + where, " bytes");
}

void host_runner::check_live() {
  hosts_->spare_all();
  const std::optional<simulator::one_death>& death = options_->hosts->death;
  counts_.death.which = death;
  counts_.death.choices = hosts_->choices();
  if (death && death->access == 0)
    for (unsigned host = 0; host < count(); ++host) counts_.hosts.events[host] = hosts_->events_of(host);
  for (unsigned host = 0; host < count(); ++host)
    if (!hosts_->is_dead(host)) check_on(host);
  watched([&] { join(count()); });
  check_on(count());
  watched([&] {
    for (; !others_.empty(); others_.pop_back()) {
      const auto host = static_cast<unsigned>(others_.size());
      simulator::the_machine().move_to_host(host);
      if (hosts_->is_dead(host)) static_cast<void>(others_.back().release());
    }
    simulator::the_machine().move_to_host(0);
  });
  counts_.hosts += hosts_->counts();
  if (death && death->access != 0) note_death(*death);
}

// All rounds are the same up to the death, so each has it, with the same choices: a subject that keeps something, or
// asks for the time, may differ.
void host_runner::note_death(const simulator::one_death& death) {
  constexpr std::uint64_t most = simulator::one_death::most_choices;
  const bool died = hosts_->counts().deaths != 0;
  const std::uint64_t choices = died ? hosts_->choices() : 0;
  if (death.choice == 0) counts_.death.first_choices = choices;
  counts_.hosts.choices = std::max(counts_.hosts.choices, choices);
  if (!died || (counts_.death.first_choices != 0 && choices != counts_.death.first_choices)) {
    ++counts_.hosts.differing;
    return;
  }
  if (death.choice + 1 != std::min(choices, most)) return;
  ++counts_.hosts.tried;
  counts_.hosts.divided += choices > most ? 1 : 0;
}

bool has_power_failures(std::uint64_t seed) noexcept {
  constexpr std::uint64_t one_in = 4, salt = 0x9e37;
  return mix_bits(seed ^ salt << 32) % one_in == 0;
}

bool has_two_threads(std::uint64_t seed, unsigned hosts) noexcept {
  constexpr std::uint64_t one_in = 4, salt = 0x7477;
  constexpr unsigned most_threads = 8;
  return 2 * hosts <= most_threads && mix_bits(seed ^ salt << 32) % one_in == 0;
}

round_options host_round_of(round_options round) {
  // Hosts collide if there are few keys.
  if (round.seed / 2 % 2 == 0) round.keys = std::min<std::size_t>(round.keys, 5);
  // A search of every death has one schedule: the plain one, if none is asked for.
  // Others look, while a host sleeps before what a split is about to change, and it works on what it has seen.
  round.pauses = round.pauses || (round.seed % (round.grown ? 2 : 4) == 1 && !round.hosts->death);
  round.filled = mix_bits(round.seed) % 3 == 0 && !round.grown;
  // Crashes of many schedules, rather than many crashes of one.
  round.crash.points_one_in = 15;
  round.crash.states_per_promise = 2;
  round.crash.states_per_point = 5;
  round.crash.crash_recovery_one_in = 500;
  return round;
}

}  // namespace pmlab::verify
