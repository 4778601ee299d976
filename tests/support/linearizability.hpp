// Were the answers that threads got possible at all? Histories of one key, held against the checker's history model.
//
// The operations on one key are those of a register that may be empty. A history is linearizable if each operation can
// be given an instant between its call and its return so that, in the order of these instants, every answer is right.
// Linearizability is local: an index is linearizable in its point operations if every key's history is.
#pragma once

#include "checker/verify/history_model.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "support/operations.hpp"

namespace pmlab::tests {

// One operation as its thread saw it. Times are of one clock for all threads.
struct event {
  step what;
  answer got;
  std::uint64_t called = 0;
  std::uint64_t returned = 0;
  unsigned thread = 0;
};

<<<<<<< HEAD
[[nodiscard]] inline std::string to_string(const event& e) {
  return "thread " + std::to_string(e.thread) + " [" + std::to_string(e.called) + ", " + std::to_string(e.returned) +
         "] " + to_string(e.what) + " -> " + to_string(e.got);
}

namespace detail {

class linearization_search {
 public:
  explicit linearization_search(std::vector<event> history) : history_(std::move(history)), done_(history_.size()) {
    std::sort(history_.begin(), history_.end(), [](const event& a, const event& b) { return a.called < b.called; });
  }

  // True if there is an order in which all answers are right, from a key in state `start`.
  bool possible(const key_state& start) {
    state_ = start;
    std::vector<taken> path;
    std::size_t candidate = first_;
    for (;;) {
      if (first_ == history_.size()) return true;
      if (const std::size_t next = next_possible(candidate); next != history_.size()) {
        path.push_back({next, state_});
        follow(history_[next], state_);
        take(next);
        if (seen_.insert(situation()).second) {
          furthest_ = std::max(furthest_, first_);
          candidate = first_;
          continue;
        }
      }
      // Nothing fits, or this situation is known to lead nowhere: take the last choice back.
      if (path.empty()) return false;
      candidate = path.back().which + 1;
      state_ = path.back().before;
      give_back(path.back().which);
      path.pop_back();
    }
  }

  // Around here it went wrong: the events that no order could place.
  [[nodiscard]] std::string explain() const {
    std::string text;
    const std::size_t from = furthest_ > 4 ? furthest_ - 4 : 0;
    for (std::size_t i = from; i < std::min(furthest_ + 8, history_.size()); ++i)
      text += (i == furthest_ ? "\n > " : "\n   ") + to_string(history_[i]);
    return text;
  }

 private:
  struct taken {
    std::size_t which;
    key_state before;
  };

  // The first event from `from` on that may be next: no unplaced event returned before it was called, and its answer
  // fits the state.
  [[nodiscard]] std::size_t next_possible(std::size_t from) const {
    std::uint64_t earliest_return = ~std::uint64_t{0};
    for (std::size_t i = first_; i < history_.size() && history_[i].called <= earliest_return; ++i)
      if (!done_[i]) earliest_return = std::min(earliest_return, history_[i].returned);
    for (std::size_t i = from; i < history_.size() && history_[i].called <= earliest_return; ++i) {
      if (done_[i]) continue;
      key_state after = state_;
      if (follow(history_[i], after)) return i;
    }
    return history_.size();
  }

  // Brings `state` to what `e` makes of it; false: its answer does not fit. A change that found no space is right in
  // any state and changes nothing.
  static bool follow(const event& e, key_state& state) {
    return e.got.changed == indexes::outcome::full || expect(e.what, state) == e.got;
  }

  void take(std::size_t which) {
    done_[which] = true;
    while (first_ < history_.size() && done_[first_]) ++first_;
  }

  void give_back(std::size_t which) {
    done_[which] = false;
    first_ = std::min(first_, which);
  }

  // What has been placed, and the state that it left. Everything before first_ is placed; beyond, a few events are.
  [[nodiscard]] std::tuple<std::size_t, std::vector<std::size_t>, key_state> situation() const {
    std::vector<std::size_t> beyond;
    std::uint64_t earliest_return = ~std::uint64_t{0};
    for (std::size_t i = first_; i < history_.size() && history_[i].called <= earliest_return; ++i)
      if (done_[i])
        beyond.push_back(i);
      else
        earliest_return = std::min(earliest_return, history_[i].returned);
    return {first_, std::move(beyond), state_};
  }

  std::vector<event> history_;
  std::vector<bool> done_;
  std::size_t first_ = 0;  // events before are done
  std::size_t furthest_ = 0;
  key_state state_;
  std::set<std::tuple<std::size_t, std::vector<std::size_t>, key_state>> seen_;
};

}  // namespace detail

=======
>>>>>>> main
// "" if the events of one key, on which `start` was when the first was called, are linearizable; otherwise the events
// around the one that no order can place. At most history_model::most_threads of them overlap; their `thread` is for the
// message alone.
[[nodiscard]] inline std::string why_not_linearizable(const std::vector<event>& history, const key_state& start) {
  struct instant {
    std::uint64_t time;
    bool is_return;  // at equal times the calls go first: these operations overlap
    std::size_t which;
  };
  if (history.empty()) return "";
  std::vector<instant> instants;
  for (std::size_t i = 0; i < history.size(); ++i) {
    instants.push_back({history[i].called, false, i});
    instants.push_back({history[i].returned, true, i});
  }
  std::sort(instants.begin(), instants.end(), [](const instant& a, const instant& b) {
    return std::tuple(a.time, a.is_return, a.which) < std::tuple(b.time, b.is_return, b.which);
  });
  verify::history_model model({history.front().what.key});
  if (start) model.there_before({history.front().what.key, *start});
  std::array<bool, verify::history_model::most_threads> is_busy{};
  std::vector<unsigned> threads(history.size());
  for (const instant& now : instants) {
    const event& e = history[now.which];
    unsigned& thread = threads[now.which];
    if (now.is_return) {
      is_busy[thread] = false;
      if (std::string wrong = model.returned(thread, e.what, e.got); !wrong.empty()) return wrong;
      continue;
    }
    thread = e.thread;
    if (thread >= is_busy.size() || is_busy[thread])
      thread = static_cast<unsigned>(std::find(is_busy.begin(), is_busy.end(), false) - is_busy.begin());
    if (thread == is_busy.size()) return "too many operations overlap to be judged";
    is_busy[thread] = true;
    model.called(thread, e.what);
  }
  return "";
}

}  // namespace pmlab::tests
