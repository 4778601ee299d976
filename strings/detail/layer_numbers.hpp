// Numbers for layers, each given once.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/slice.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace pmlab::strings::detail {

// Thread safety: any.
template <media::medium Medium>
class layer_numbers {
 public:
  // `end`, in the medium: all numbers below it may have been given.
  layer_numbers(Medium& medium, std::atomic<std::uint64_t>& end)
      : medium_(medium), end_(end), next_(end.load(std::memory_order_acquire)) {}
  layer_numbers(const layer_numbers&) = delete;
  layer_numbers& operator=(const layer_numbers&) = delete;

  // 0: there are none left.
  [[nodiscard]] std::uint64_t take() {
    const std::scoped_lock lock(mutex_);
    if (next_ > most_layers) return 0;
    if (next_ == end_.load(std::memory_order_relaxed)) {
      end_.store(next_ + at_once, std::memory_order_release);  // (N1)
      media::persist(medium_, end_);                           // (N2)
      // (N1) < (N2) < use: what a crash cuts off is a few numbers, and none is given twice.
    }
    return next_++;
  }

 private:
  static constexpr std::uint64_t at_once = 256;

  Medium& medium_;
  std::atomic<std::uint64_t>& end_;
  std::uint64_t next_;
  std::mutex mutex_;
};

}  // namespace pmlab::strings::detail
