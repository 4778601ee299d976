// One run of a subject on the simulated machine, from creation to the last check: the steps that all kinds of subjects
// share. A kind adds how its operations are planned and performed, and how its content is checked.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/crash_explorer.hpp"
#include "checker/verify/drive_set.hpp"
#include "checker/verify/flush_profile.hpp"
#include "checker/verify/round_counts.hpp"
#include "checker/verify/round_plan.hpp"
#include "checker/verify/round_schedule.hpp"
#include "checker/verify/runner.hpp"
#include "checker/verify/target.hpp"
#include "checker/verify/thrown.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::verify {

// `Kind` names the parts of its rounds:
//
//   step, target            an operation; the object that it is performed on
//   model, judge, content   the history; the judge of images; the content of an image
//   buffer                  memory of a thread that its operations read or write
//   opener(subject)         the subject's opening functions, as its judge takes them: open_simulated is one
//   memory_bytes(subject)   the size of the memory
//   accesses_of_opening, accesses_of_a_step   more accesses than any round needs that does not wait for ever
template <class Kind>
class round_runner : public runner {
 public:
  // `violated` is called at the first violation; it must not return.
  round_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated)
      : kind_(kind),
        counts_(counts),
        violated_(std::move(violated)),
        memory_(Kind::memory_bytes(kind)),
        judge_(Kind::opener(kind)),
        drives_{drive_set(kind.drives), drive_set(kind.small_drives)} {}

  void run(const round_options& options) final;

 protected:
  using buffer = typename Kind::buffer;

  // ---- what a kind adds, in the order of a round ----

  // Sets `phases_`. Returns the operations as text.
  virtual std::string plan() = 0;
  // A crash has ended a phase, and `memory_` and the drives have what it left: sets `known_`. False: it cannot be
  // known.
  virtual bool know_content() {
    known_ = judge_.contents_of(explorer().image_of_kept());
    return true;
  }
  // The round has crashes: makes its explorer, unless an earlier round has made it.
  virtual void make_explorer();
  // The history of a phase that begins with the content `known_`.
  [[nodiscard]] virtual std::unique_ptr<typename Kind::model> make_history() const = 0;
  // A phase is about to begin on the machine: further options of it.
  virtual void set_machine(simulator::machine_options& /*how*/) {}
  // Returns the explorer, which is to observe the phase.
  virtual simulator::persistence_observer& begin_explorer(const crash_options& how);
  // `target_` is open; the threads have not begun.
  virtual void begin_phase() {}
  // A thread is about to be made.
  virtual void before_thread(unsigned /*thread*/) {}
  [[nodiscard]] virtual buffer make_buffer() const { return {}; }
  // "" or the violation in its result.
  virtual std::string perform(unsigned thread, const typename Kind::step& s, buffer& data) = 0;
  // A thread has had its last operation.
  virtual void thread_ends(unsigned /*thread*/) {}
  // An operation has returned.
  virtual void promised() { explorer().promised(); }
  virtual void end_exploring() { observe(nullptr); }
  // All threads have ended.
  virtual void check_live() = 0;
  // False: the host of `target_` died, so nothing closes it.
  [[nodiscard]] virtual bool is_closed() const { return true; }
  // The target was closed, in order; the machine is not watched.
  virtual void check_closed() {}

  // ---- what all have ----

  void observe(simulator::persistence_observer* observer) {
    memory_.observe(observer);
    drives().observe(observer);
  }
  [[nodiscard]] crash_explorer& explorer() const noexcept { return *explorers_[used_]; }
  // `wrong` is "" or a violation.
  void at_end(const std::string& wrong, const std::string& found_by = {}) const {
    if (!wrong.empty()) violated_("at the end of the run, " + found_by + wrong);
  }
  // `held`: the bytes of the memory that `holder` says it holds.
  void check_held(const std::optional<std::uint64_t>& held, const std::string& holder, const std::string& bytes) const {
    const std::uint64_t live = memory_.blocks().live_bytes();
    if (held && *held != live)
      at_end(holder + " holds " + std::to_string(*held) + bytes + ", and " + std::to_string(live) + " are allocated");
  }
  void end_run();

  // An exception is reported where it is thrown from: destructors, which may run on another host, see nothing of it.
  template <class Work>
  void nothing_throws(Work&& work) const {
    try {
      work();
    } catch (...) {
      simulator::the_machine().watch(false);
      violated_("an operation throws: " + text_of_thrown() + simulator::the_machine().positions());
    }
  }

  // Work that only reads may fail where DRAM is short: it is repeated with DRAM, and all that follows has some.
  template <class Work>
  auto with_dram(Work&& work) const {
    if (!options_->short_dram) return work();
    try {
      return work();
    } catch (const std::bad_alloc&) {
      simulator::the_machine().limit_of_heap().lift();
      return work();
    }
  }
  // A change that DRAM was refused for has not happened: it returns `refused`.
  template <class Work, class Answer>
  static auto unless_refused(Work&& work, const Answer& refused) {
    const std::uint64_t before = simulator::the_machine().limit_of_heap().refusals();
    try {
      return work();
    } catch (const std::bad_alloc&) {
      if (simulator::the_machine().limit_of_heap().refusals() == before) throw;
      return refused;
    }
  }

  const subject& kind_;
  round_counts& counts_;
  std::function<void(const std::string&)> violated_;
  simulator::persistent_memory memory_;
  typename Kind::judge judge_;
  const round_options* options_ = nullptr;               // the round that is on has these
  phases_of<typename Kind::step> phases_;                // the operations of the round
  std::size_t phase_ = 0;                                // the number of the phase that is on
  simulator::persistence_observer* observer_ = nullptr;  // the explorer of the phase's crashes; null: it has none
  std::unique_ptr<typename Kind::model> history_;        // the history of the phase
  typename Kind::target* target_ = nullptr;              // the object under test, in the phase
  typename Kind::content known_{};                       // the content of the target when it is opened

 private:
  void run_until_crash();
  void begin_exploring();
  void drive_all();
  void drive(unsigned thread);
  bool crash();
  [[nodiscard]] bool is_last_phase() const noexcept { return phase_ + 1 == phases_.size(); }
  [[nodiscard]] std::uint64_t seed() const noexcept { return options_->seed ^ options_->schedule_seed << 32; }
  [[nodiscard]] const drive_set& drives() const noexcept { return drives_[used_]; }

  std::array<drive_set, 2> drives_;                           // the usual ones, and the small ones
  std::size_t used_ = 0;                                      // which of them
  std::array<std::unique_ptr<crash_explorer>, 2> explorers_;  // as drives_
  operation_schedule* schedule_ = nullptr;                    // schedule of the phase; null: it has none
  std::uint64_t accesses_before_ = 0;  // those that the last round of this seed without a pre-emption had
};

template <class Kind>
void round_runner<Kind>::make_explorer() {
  if (explorers_[used_] == nullptr)
    explorers_[used_] = std::make_unique<crash_explorer>(memory_, drives().all(), judge_, counts_.crash, violated_);
}

template <class Kind>
simulator::persistence_observer& round_runner<Kind>::begin_explorer(const crash_options& how) {
  explorer().begin(seed(), how);
  return explorer();
}

// Before the last crash, states are kept, not judged: other rounds do that.
template <class Kind>
void round_runner<Kind>::begin_exploring() {
  crash_options how = options_->crash;
  if (!is_last_phase()) {
    how.points_one_in = 3;
    how.states_per_point = how.states_per_promise = 3;
    how.only_keep_one = true;
    how.keep_caches = options_->kills;
    how.prefer_repaired = !options_->kills && kind_.volume == nullptr && kind_.prefix == nullptr;
  }
  observer_ = &begin_explorer(how);
  observe(observer_);
}

template <class Kind>
void round_runner<Kind>::drive(unsigned thread) {
  simulator::machine& machine = simulator::the_machine();
  // Made and filled unwatched: it is the driver's, not the subject's.
  buffer data;
  machine.quietly([&] { data = make_buffer(); });
  for (const typename Kind::step& s : phases_[phase_][thread]) {
    if (options_->profile != nullptr) options_->profile->operation_begins();
    if (schedule_ != nullptr) schedule_->operation_begins();
    std::string wrong = perform(thread, s, data);
    if (schedule_ != nullptr) schedule_->operation_ends();
    machine.quietly([&] {
      if (!wrong.empty()) violated_(wrong + machine.positions());
      std::string().swap(wrong);
      if (observer_ != nullptr) promised();
    });
  }
  machine.quietly([&] { data = buffer(); });
  thread_ends(thread);
}

template <class Kind>
void round_runner<Kind>::drive_all() {
  if (options_->threads == 1) return drive(0);
  simulator::the_machine().quietly([&] {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < options_->threads; ++t) {
      before_thread(t);
      threads.emplace_back([this, t] { drive(t); });
    }
    for (std::thread& t : threads) t.join();
  });
}

template <class Kind>
void round_runner<Kind>::run_until_crash() {
  simulator::machine& machine = simulator::the_machine();
  const round_options& options = *options_;
  history_ = make_history();
  judge_.begin(history_.get());
  const std::unique_ptr<operation_schedule> schedule =
      schedule_of(options, kind_.has_threads, !kind_.drives.empty(), accesses_before_);
  schedule_ = schedule.get();
  simulator::machine_options how;
  how.who = schedule.get();
  how.store_buffers = store_buffers_of(options);
  how.access_limit = Kind::accesses_of_opening + options.threads * options.operations * Kind::accesses_of_a_step;
  set_machine(how);
  machine.begin(how);
  machine.use(&memory_);
  if (options.profile != nullptr) options.profile->begin();
  machine.use_drives(drives().all());
  drives().begin(seed());
  observer_ = nullptr;
  if (options.crashes) begin_exploring();
  {
    machine.watch(true);
    std::unique_ptr<typename Kind::target> opened = Kind::opener(kind_).open_simulated();
    target_ = opened.get();
    nothing_throws([&] {
      begin_phase();
      drive_all();
      machine.watch(false);
      machine.limit_of_heap().lift();
      end_exploring();
      check_live();
    });
    if (options.nearly_full && is_last_phase()) at_end(judge_.fill_again(*target_, true));
    if (!is_closed()) static_cast<void>(opened.release());
    machine.watch(true);
  }
  machine.watch(false);
  if (is_last_phase()) check_closed();
  if (options.how == search::bounded && options.schedule_seed == 0) accesses_before_ = machine.accesses();
  counts_.accesses += machine.accesses();
  end_run();
}

template <class Kind>
void round_runner<Kind>::end_run() {
  simulator::machine& machine = simulator::the_machine();
  machine.end();
  if (kind_.after_run != nullptr) kind_.after_run();
  if (machine.dram()->live_blocks() == 0) machine.dram()->reset();
}

// Replaces memory and drives by the image of one of the crashes, and `known_` by its content. False: there was no
// crash.
template <class Kind>
bool round_runner<Kind>::crash() {
  const kept_crash& kept = explorer().kept();
  if (kept.blocks == nullptr) return false;
  memory_.reset();
  const std::vector<std::byte>& durable = options_->kills ? kept.durable : kept.bytes;
  memory_.restore(durable.data(), durable.size());
  memory_.restore_blocks(*kept.blocks, kept.top);
  memory_.store_again(kept.waiting);
  drives().restore(kept.drives);
  return know_content();
}

template <class Kind>
void round_runner<Kind>::run(const round_options& options) {
  options_ = &options;
  used_ = options.nearly_full && !kind_.small_drives.empty() ? 1 : 0;
  const std::string operations = plan();
  if (on_history) on_history(operations);
  if (options.crashes) make_explorer();
  memory_.reset();
  drives().restore({});
  known_ = {};
  for (phase_ = 0; phase_ < phases_.size(); ++phase_) {
    if (phase_ > 0 && !crash()) break;
    run_until_crash();
  }
  ++counts_.rounds;
  if (options.threads > 1) ++counts_.schedules;
}

}  // namespace pmlab::verify
