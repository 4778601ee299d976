// Lines of a host that dies at a chosen event of them: where the steps of a protocol meet, which a clock seldom hits.
#pragma once

#include <pmlab/pod/line_memory.hpp>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include <unistd.h>

namespace pmlab::pods {

// Moments until the kernel kills this process: there are two at each event of its lines, before and behind it. 0: it
// lives.
inline std::uint64_t moments_to_live = 0;

// The lines, but that each event may be the last one. Thread safety: none: a host has one thread.
template <pod::line_memory Lines>
class dying_lines : public Lines {
 public:
  using Lines::Lines;

  void flush(const void* address, std::size_t bytes) noexcept {
    const moments here;
    Lines::flush(address, bytes);
  }
  void fence() noexcept {
    const moments here;
    Lines::fence();
  }
  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    const moments here;
    Lines::copy(target, source, bytes);
  }
  void refresh(const void* address, std::size_t bytes) noexcept {
    const moments here;
    Lines::refresh(address, bytes);
  }
  [[nodiscard]] bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                                             std::uint64_t desired) noexcept {
    const moments here;
    return Lines::device_compare_exchange(word, expected, desired);
  }
  void device_store(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    const moments here;
    Lines::device_store(word, value);
  }

 private:
  struct moments {
    moments() noexcept { pass(); }
    moments(const moments&) = delete;
    moments& operator=(const moments&) = delete;
    ~moments() { pass(); }
    static void pass() noexcept {
      if (moments_to_live != 0 && --moments_to_live == 0) ::kill(::getpid(), SIGKILL);
    }
  };
};

}  // namespace pmlab::pods
