// The history of a store whose crashes may take the newest changes.
#include "checker/verify/prefix_model.hpp"

#include <algorithm>
#include <utility>

namespace pmlab::verify {
namespace {

std::string in_words(const prefix_state& s) {
  std::string text;
  for (std::size_t k = 0; k < s.size(); ++k)
    if (s[k] != 0)
      text.append(text.empty() ? "" : ", ").append(std::to_string(k)).append("=").append(std::to_string(s[k]));
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string to_string(const prefix_step& s) {
  using kind = prefix_step::action;
  std::string text;
  switch (s.what) {
    case kind::apply:
    case kind::apply_synced:
      text = s.what == kind::apply ? "write(" : "write_synced(";
      for (std::size_t i = 0; i < s.changes.size(); ++i)
        text.append(i == 0 ? "" : ", ")
            .append(std::to_string(s.changes[i].key))
            .append("=")
            .append(std::to_string(s.changes[i].number));
      return text + ")";
    case kind::sync: return "sync()";
    case kind::pass: return "pass(" + std::to_string(s.amount) + " ms)";
    case kind::compact: return "compact()";
    case kind::get: return "get(" + std::to_string(s.amount) + ")";
    case kind::walk: return s.amount == 0 ? "walk(forward)" : "walk(backward)";
    case kind::hold: return "hold a snapshot";
    case kind::look:
      return s.amount == 2   ? "get all keys of the snapshot"
             : s.amount == 1 ? "look at the snapshot, backward"
                             : "look at the snapshot";
  }
  return "?";
}

void prefix_model::there_before(prefix_state state, std::uint64_t sequence) {
  for (std::uint32_t k = 0; k < state.size(); ++k) written_.insert({k, state[k]});
  first_ = state;
  first_sequence_ = sequence;
  base_ = std::move(state);
  base_sequence_ = returned_ = promised_ = sequence;
  ++clock_;
}

void prefix_model::called(unsigned thread, const prefix_step& s) {
  ++clock_;
  if (running_.size() <= thread) running_.resize(thread + 1);
  operation& o = running_[thread];
  o.changes = s.changes;
  o.after = returned_;
  o.floor_of_sync = returned_;
  o.text = to_string(s);
  o.is_running = true;
  o.called = clock_;
  for (const prefix_change& c : s.changes) written_.insert({c.key, c.number});
  // A change that the store accepts meanwhile is as young as the end of the time that passes.
  if (s.what == prefix_step::action::pass) time_ += s.amount;
}

// Everything up to there is in the base, if it is known.
void prefix_model::promise(std::uint64_t sequence) {
  promised_ = std::max(promised_, sequence);
  for (auto first = done_.begin(); first != done_.end() && first->first == base_sequence_ + 1;) {
    const std::uint64_t last = first->first + first->second.changes.size() - 1;
    if (last > promised_) break;
    make(first->second.changes, base_);
    base_sequence_ = last;
    first = done_.erase(first);
  }
}

std::string prefix_model::changed(unsigned thread, const prefix_step& s, std::uint64_t sequence) {
  ++clock_;
  operation o = std::exchange(running_[thread], {});
  if (sequence == 0) return {};
  const std::string answer = to_string(s) + " returns sequence " + std::to_string(sequence);
  if (sequence < s.changes.size()) return answer + ", and has more changes than that";
  const std::uint64_t first = sequence - s.changes.size() + 1;
  if (first <= o.after) return answer + ", and " + std::to_string(o.after) + " had returned before it was called";
  const auto next = done_.lower_bound(first);
  if (next != done_.end() && next->first <= sequence) return answer + ", which another change has";
  if (next != done_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.changes.size() > first) return answer + ", which another change has";
  }
  o.time = time_;
  made_.emplace(sequence, made_change{o.changes, o.called});
  done_.emplace(first, std::move(o));
  returned_ = std::max(returned_, sequence);
  if (bound_ == 0) promise(returned_);
  if (s.what == prefix_step::action::apply_synced) promise(sequence);
  return {};
}

void prefix_model::returned(unsigned thread, const prefix_step& s) {
  ++clock_;
  const operation o = std::exchange(running_[thread], {});
  if (s.what == prefix_step::action::sync) promise(o.floor_of_sync);
  if (s.what != prefix_step::action::pass) return;
  std::uint64_t old = 0;
  for (const auto& [first, one] : done_)
    if (one.time + bound_ <= time_) old = first + one.changes.size() - 1;
  promise(old);
}

void prefix_model::make(const std::vector<prefix_change>& changes, prefix_state& state) {
  for (const prefix_change& c : changes) state[c.key] = c.number;
}

// Adds the states of all orders that go on behind sequence `at`.
void prefix_model::walk(std::uint64_t at, prefix_state& state, std::set<unsigned>& used) {
  if (at >= promised_) reachable_.insert(state);
  const auto go_on = [&](const std::vector<prefix_change>& changes) {
    prefix_state next = state;
    make(changes, next);
    walk(at + changes.size(), next, used);
  };
  if (const auto known = done_.find(at + 1); known != done_.end()) return go_on(known->second.changes);
  for (unsigned t = 0; t < running_.size(); ++t) {
    const operation& o = running_[t];
    if (!o.is_running || o.changes.empty() || used.count(t) > 0 || at < o.after) continue;
    used.insert(t);
    go_on(o.changes);
    used.erase(t);
  }
}

std::string prefix_model::judge(const prefix_state& found) {
  if (known_at_ != clock_) {
    reachable_.clear();
    prefix_state state = base_;
    std::set<unsigned> used;
    walk(base_sequence_, state, used);
    known_at_ = clock_;
  }
  if (reachable_.count(found) > 0) return {};
  std::string text = "it holds " + in_words(found) + ", which is no state behind sequence " +
                     std::to_string(promised_) + " or later\n  sequence " + std::to_string(base_sequence_) + ": " +
                     in_words(base_);
  prefix_state state = base_;
  for (const auto& [first, o] : done_) {
    make(o.changes, state);
    text += "\n  sequence " + std::to_string(first + o.changes.size() - 1) + ": " + o.text + ", at " +
            std::to_string(o.time) + " ms, leaves " + in_words(state);
  }
  return text + "\n  now it is " + std::to_string(time_) + " ms, and the bound is " + std::to_string(bound_) + " ms";
}

// ---- reads

void prefix_model::add_read(unsigned thread, std::vector<prefix_change> seen) {
  const operation& o = running_[thread];
  reads_.push_back({o.text + " of thread " + std::to_string(thread), o.after, o.called, clock_, std::move(seen)});
}

void prefix_model::saw(unsigned thread, std::vector<prefix_change> seen) { add_read(thread, std::move(seen)); }

void prefix_model::held(unsigned thread) {
  add_read(thread, {});
  if (snapshots_.size() <= thread) snapshots_.resize(thread + 1);
  snapshots_[thread] = reads_.size();
}

void prefix_model::saw_in_snapshot(unsigned thread, std::span<const prefix_change> seen) {
  if (snapshots_.size() <= thread || snapshots_[thread] == 0) return;
  read& r = reads_[snapshots_[thread] - 1];
  r.seen.insert(r.seen.end(), seen.begin(), seen.end());
}

// Each read gets the oldest moment that explains it: a younger one would only leave fewer to the reads behind it.
std::string prefix_model::judge_reads() const {
  std::vector<std::uint64_t> moments;
  for (const read& r : reads_) {
    std::uint64_t least = r.after;
    for (std::size_t i = 0; i < moments.size(); ++i)
      if (reads_[i].returned < r.called) least = std::max(least, moments[i]);
    const auto explains = [&](const prefix_state& state) {
      return std::all_of(r.seen.begin(), r.seen.end(),
                         [&](const prefix_change& c) { return state[c.key] == c.number; });
    };
    prefix_state state = first_;
    std::uint64_t at = first_sequence_;
    auto next = made_.begin();
    std::string possible;
    bool found = false;
    for (;;) {
      found = at >= least && explains(state);
      if (found) break;
      if (at >= least) possible += "\n  sequence " + std::to_string(at) + ": " + in_words(state);
      if (next == made_.end() || next->second.called > r.returned) break;
      at = next->first;
      make(next->second.changes, state);
      ++next;
    }
    if (!found) {
      std::string seen;
      for (const prefix_change& c : r.seen)
        seen.append(seen.empty() ? "" : ", ")
            .append(std::to_string(c.key))
            .append("=")
            .append(std::to_string(c.number));
      return r.text + " sees " + seen +
             " (0: absent), which is the state at no moment between its call and its return" + possible;
    }
    moments.push_back(at);
  }
  return {};
}

prefix_state prefix_model::now() const {
  prefix_state state = base_;
  for (const auto& [first, o] : done_) make(o.changes, state);
  return state;
}

bool prefix_model::was_written(std::uint32_t key, std::uint32_t number) const {
  return number == 0 || written_.count({key, number}) > 0;
}

std::string prefix_model::under_way() const {
  std::string text;
  for (const operation& o : running_)
    if (o.is_running) text += (text.empty() ? "" : ", ") + o.text;
  return text;
}

}  // namespace pmlab::verify
