// Runs threads on one index and records their results and times.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/linearizability.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {

// Runs `work(thread number)` in `threads` threads that start together, and waits for them.
template <class Work>
void run_threads(unsigned threads, Work&& work) {
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (ready.fetch_add(1); ready.load() < threads;) std::this_thread::yield();
      work(t);
    });
  for (std::thread& t : running) t.join();
}

struct history_options {
  std::uint64_t seed = 1;
  unsigned threads = 4;
  std::size_t operations_per_thread = 2000;
  std::vector<std::uint64_t> contended;  // all threads work on these keys, whose histories are kept
  std::vector<std::uint64_t> filler;     // inserted and erased in between, so that nodes shift and split
  step_mix mix = {};
};

// A clock that all threads share; it orders events on different cores, and (unlike a counter in memory) makes no
// thread wait for another's stores.
[[nodiscard]] inline std::uint64_t shared_clock() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Runs threads on `index`, in which no contended key is, and checks each contended key's history. Returns "" or the
// violation.
template <indexes::point_index Index>
std::string check_concurrent_history(Index& index, const history_options& options) {
  std::vector<std::vector<event>> by_thread(options.threads);
  run_threads(options.threads, [&](unsigned thread) {
    random source(options.seed * 1000 + thread);
    std::vector<event>& seen = by_thread[thread];
    seen.reserve(options.operations_per_thread);
    std::uint64_t unique = (options.seed << 40) + (std::uint64_t{thread} << 32);
    for (std::size_t i = 0; i < options.operations_per_thread; ++i) {
      if (!options.filler.empty() && source.one_in(2)) {
        const std::uint64_t key = options.filler[source.below(options.filler.size())];
        source.one_in(3) ? index.erase(key) : index.insert(key, key);
      }
      event e;
      e.what = {random_action(source, options.mix), options.contended[source.below(options.contended.size())],
                ++unique};
      e.thread = thread;
      e.called = shared_clock();
      e.got = perform(e.what, index);
      e.returned = shared_clock();
      seen.push_back(e);
    }
  });

  std::map<std::uint64_t, std::vector<event>> by_key;
  for (const std::vector<event>& events : by_thread)
    for (const event& e : events) by_key[e.what.key].push_back(e);
  for (auto& [key, events] : by_key) {
    // Entries present at the end were present after all operations.
    event last;
    last.what = {action::find, key, 0};
    last.called = shared_clock();
    last.got = perform(last.what, index);
    last.returned = shared_clock();
    last.thread = options.threads;
    events.push_back(last);
    if (std::string wrong = why_not_linearizable(events, {}); !wrong.empty())
      return "seed " + std::to_string(options.seed) + ", key " + std::to_string(key) + ": " + wrong;
  }
  return "";
}

}  // namespace pmlab::tests
