// A loop whose turns several threads share.
#pragma once

#include <pmlab/base/platform.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace pmlab::sync {

// Threads that an index may use to recover, by default.
[[nodiscard]] inline unsigned recovery_threads() noexcept {
  constexpr unsigned most = 16;
  if constexpr (platform::recovery_threads != 0) return platform::recovery_threads;
  return std::clamp(std::thread::hardware_concurrency(), 1U, most);
}

namespace detail {

// Calls work(context) on up to `threads` threads, this one among them. Apart from the loop itself, so that threads are
// compiled once and not for each.
inline void run_on_threads(std::size_t threads, void (*work)(void*), void* context) {
  std::vector<std::thread> helpers;
  try {
    helpers.reserve(threads);
    while (helpers.size() + 1 < threads) helpers.emplace_back(work, context);
  } catch (const std::system_error&) {
    // The threads started so far do the work.
  } catch (const std::bad_alloc&) {
  }
  work(context);
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace detail

// Calls body(i) for every i < count, from up to `threads` threads including the caller; fewer if the system provides no
// more. `body` must not throw. Threads take `grain` iterations at a time, in ascending order.
template <class Body>
void run_in_parallel(unsigned threads, std::size_t count, std::size_t grain, Body&& body) {
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (;;) {
      const std::size_t first = next.fetch_add(grain, std::memory_order_relaxed);
      if (first >= count) return;
      const std::size_t end = std::min(count, first + grain);
      for (std::size_t i = first; i < end; ++i) body(i);
    }
  };
  const std::size_t useful = std::min<std::size_t>(threads, (count + grain - 1) / grain);
  detail::run_on_threads(
      useful, [](void* loop) { (*static_cast<decltype(work)*>(loop))(); }, &work);
}

}  // namespace pmlab::sync
