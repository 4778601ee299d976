// Huge pages under memory that is in use already, without waiting for them.
#pragma once

#include <pmlab/media/huge_pages.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

namespace pmlab::media {

// Collapses a range to huge pages on a thread of its own, in steps, so that the thread that opens a pool does not wait
// for the kernel to copy all of it. The range may be accessed at any time; accesses are as fast as huge pages make them
// once the thread has passed.
//
// Thread safety: construction and destruction by one thread. Destruction waits for one step at most (some milliseconds)
// and must end before the range is unmapped.
class background_collapse {
 public:
  // Begins at once. Where no thread can be made the range stays on small pages.
  background_collapse(void* start, std::size_t bytes) noexcept {
    try {
      thread_ = std::thread([this, start = static_cast<char*>(start), bytes] { run(start, bytes); });
    } catch (const std::exception&) {
      // Small pages are slower, not wrong.
    }
  }
  background_collapse(const background_collapse&) = delete;
  background_collapse& operator=(const background_collapse&) = delete;
  // In a child process that was forked since: it has no such thread, and a join would damage its list of stacks.
  void leave_to_parent() noexcept { std::construct_at(&thread_); }
  ~background_collapse() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }

 private:
  static constexpr std::size_t step_bytes = 8 * huge_page_bytes;

  void run(char* start, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes && !stop_.load(std::memory_order_relaxed);) {
      // A step ends where a huge page begins, or the page across its end would stay small.
      const auto from = reinterpret_cast<std::uintptr_t>(start) + at;
      const std::uintptr_t to = (from + step_bytes) & ~(huge_page_bytes - 1);
      const std::size_t part = std::min(bytes - at, static_cast<std::size_t>(to - from));
      collapse_to_huge_pages(start + at, part);
      at += part;
    }
  }

  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace pmlab::media
