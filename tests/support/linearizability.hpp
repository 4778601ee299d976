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

// "" if the events of one key, on which `start` was when the first was called, are linearizable; otherwise the events
// around the one that no order can place. At most history_model::most_threads of them overlap; their `thread` is for
// the message alone.
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
    model.called(thread, e.what, &e.got);
  }
  return "";
}

}  // namespace pmlab::tests
