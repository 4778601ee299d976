// One run of a store whose crashes may take the newest changes.
#include "checker/verify/prefix_round.hpp"

#include <pmlab/base/random.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace pmlab::verify {
namespace {

using act = prefix_step::action;

std::string compare(const prefix_state& found, const prefix_state& right) {
  for (std::uint32_t k = 0; k < found.size(); ++k)
    if (found[k] != right[k])
      return "key " + std::to_string(k) + " has " + std::to_string(found[k]) + ", and must have " +
             std::to_string(right[k]);
  return {};
}

}  // namespace

prefix_runner::prefix_runner(const subject& kind, round_counts& counts,
                             std::function<void(const std::string&)> violated)
    : round_runner(kind, counts, std::move(violated)) {}

// ---- the plan

std::string prefix_runner::plan() {
  const round_options& options = *options_;
  splitmix64 source(options.seed * 983 + 7);
  std::uint32_t number = options.nearly_full ? first_large_number : 0;
  const std::uint64_t bound = std::max<std::uint64_t>(kind_.prefix->at_most_milliseconds, 1);
  const bool syncs = source.one_in(2);
  std::uint64_t looks = 0;
  const bool alone = options.threads == 1;
  // Threads collide if most operations are about two keys. The first thread takes snapshots and looks at them at once,
  // the others rearrange what it and they read.
  const bool few_keys = options.pauses && options.keys < prefix_keys;
  bool has_just_held = false;
  const auto a_key = [&] {
    const auto key = static_cast<std::uint32_t>(source.below(prefix_keys));
    return few_keys && key < 6 ? key % 2 : key;
  };
  const auto a_step = [&](std::size_t thread) {
    const bool is_first = thread == 0;
    prefix_step s;
    std::uint64_t kind = source.below(20);
    if (few_keys && is_first) {
      if (has_just_held ? !source.one_in(4) : kind == 13 || kind == 17)
        kind = 16;
      else if (kind < 4 || kind == 14)
        kind = 15;
      has_just_held = kind == 15;
    }
    const bool rearranges = few_keys && !is_first && (kind == 14 || kind == 15);
    if (kind < 9) {
      const std::uint64_t count = source.one_in(3) ? 2 + source.below(3) : 1;
      for (std::uint64_t i = 0; i < count; ++i) s.changes.push_back({a_key(), source.one_in(4) ? 0 : ++number});
      // A segment has room for one large value.
      if (options.nearly_full)
        for (std::size_t i = 1; i < s.changes.size(); ++i) s.changes[i].number = 0;
      s.what = syncs && source.one_in(8) ? act::apply_synced : act::apply;
    } else if (kind < 11 && syncs) {
      s.what = act::sync;
    } else if (kind < 14 && is_first) {
      s = {act::pass, {}, 1 + source.below(bound)};
    } else if (rearranges || (kind == 14 && source.one_in(2))) {
      s.what = act::compact;
    } else if (kind == 15 && is_first) {
      // An old snapshot holds what is erased.
      if (options.nearly_full) return prefix_step{act::get, {}, source.below(prefix_keys)};
      s.what = act::hold;
      if (!alone) source.below(prefix_keys);  // as a get: later steps stay as they are
    } else if (kind == 16 && is_first) {
      s = {act::look, {}, looks++ % 3};
      if (!alone) source.below(prefix_keys);
    } else if (kind == 17) {
      s = {act::walk, {}, source.below(2)};
    } else {
      s = {act::get, {}, a_key()};
    }
    return s;
  };
  phases_ = make_phases(options, a_step);
  return to_string(phases_);
}

// ---- operations

// "" or the violation in its result.
std::string prefix_runner::perform(unsigned thread, const prefix_step& s, buffer& /*none*/) {
  simulator::machine& machine = simulator::the_machine();
  const bool alone = options_->threads == 1;  // no other thread changes anything, so every answer is known
  std::string wrong;
  machine.quietly([&] { history_->called(thread, s); });
  prefix_state found;
  std::uint64_t sequence = 0;
  switch (s.what) {
    case act::apply:
    case act::apply_synced:
      sequence = unless_refused([&] { return target_->apply(s.changes); }, std::uint64_t{0});
      if (s.what == act::apply_synced && sequence != 0) with_dram([&] { target_->sync(); });
      break;
    case act::sync: with_dram([&] { target_->sync(); }); break;
    case act::pass: with_dram([&] { target_->pass(s.amount); }); break;
    case act::compact: with_dram([&] { target_->compact(); }); break;
    case act::hold: with_dram([&] { target_->hold(); }); break;
    case act::get: sequence = with_dram([&] { return target_->get(static_cast<std::uint32_t>(s.amount)); }); break;
    case act::walk: found = with_dram([&] { return target_->contents(s.amount == 1); }); break;
    case act::look: found = with_dram([&] { return target_->look(static_cast<prefix_look>(s.amount)); }); break;
  }
  machine.quietly([&] {
    if (!s.changes.empty()) {
      wrong = history_->changed(thread, s, sequence);
      return;
    }
    // In the order of the keys; a get has one.
    std::vector<prefix_change> seen;
    if (s.what == act::get)
      seen.push_back({static_cast<std::uint32_t>(s.amount), static_cast<std::uint32_t>(sequence)});
    for (std::uint32_t k = 0; k < found.size(); ++k) seen.push_back({k, found[k]});
    if (s.what == act::get || s.what == act::walk) history_->saw(thread, std::move(seen));
    if (s.what == act::hold) history_->held(thread);
    if (s.what == act::look) history_->saw_in_snapshot(thread, seen);
    history_->returned(thread, s);
    const auto key = static_cast<std::uint32_t>(s.amount);
    const auto number = static_cast<std::uint32_t>(sequence);
    if (s.what == act::hold && alone) held_ = history_->now();
    if (s.what == act::look && alone && !held_.empty()) wrong = compare(found, held_);
    if (s.what == act::walk && alone) wrong = compare(found, history_->now());
    if (s.what == act::get && (alone ? history_->now()[key] != number : !history_->was_written(key, number)))
      wrong = "it returns " + std::to_string(number);
    for (std::uint32_t k = 0; k < found.size(); ++k)
      if (!history_->was_written(k, found[k])) wrong = "key " + std::to_string(k) + " has a value that was not written";
    if (!wrong.empty()) wrong = to_string(s) + ": " + wrong;
  });
  return wrong;
}

// ---- the round

std::unique_ptr<prefix_model> prefix_runner::make_history() const {
  auto history = std::make_unique<prefix_model>(kind_.prefix->at_most_milliseconds);
  if (!known_.state.empty()) history->there_before(known_.state, known_.sequence);
  return history;
}

void prefix_runner::begin_phase() {
  held_.clear();
  if (phase_ == 0 && options_->short_dram)
    simulator::the_machine().limit_of_heap() =
        simulator::space_limit(drawn_limit_of_heap(*options_, kind_.has_threads));
}

void prefix_runner::check_live() {
  if (std::string wrong = history_->judge_reads(); !wrong.empty()) violated_(wrong);
  at_end(target_->check(), "check(): ");
  at_end(compare(target_->contents(false), history_->now()));
}

}  // namespace pmlab::verify
