// Numbers for layers: each names one layer at a time.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/slice.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace pmlab::strings::detail {

// Free numbers are stored in DRAM only, as intervals, of which there are at most one more than layers. When the pool is
// closed they are lost: they are searched for when half of all numbers have been used.
//
// Thread safety: any.
template <media::medium Medium>
class layer_numbers {
 public:
  // `end`, in the medium: all numbers below it may have been given.
  layer_numbers(Medium& medium, std::atomic<std::uint64_t>& end)
      : medium_(medium), end_(end), next_(end.load(std::memory_order_acquire)) {}
  layer_numbers(const layer_numbers&) = delete;
  layer_numbers& operator=(const layer_numbers&) = delete;

  // The least free number; 0: none is left.
  [[nodiscard]] std::uint64_t take() {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      const std::uint64_t number = free_.begin()->first;
      narrow(free_.begin());
      return number;
    }
    if (next_ > most_layers) return 0;
    if (next_ == end_.load(std::memory_order_relaxed)) {
      end_.store(next_ + at_once, std::memory_order_release);  // (N1)
      media::persist(medium_, end_);                           // (N2)
      // (N1) < (N2) < use: a crash loses a few numbers, and none is used twice.
    }
    return next_++;
  }

  // `number` names no layer any more, neither in the medium nor to any reader. A number that there is no memory for is
  // forgotten, as all are when the pool is closed.
  void give_back(std::uint64_t number) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto next = free_.upper_bound(number);
    const bool joins_next = next != free_.end() && next->first == number + 1;
    const auto before = next == free_.begin() ? free_.end() : std::prev(next);
    if (before != free_.end() && before->second + 1 == number) {
      before->second = joins_next ? next->second : number;
      if (joins_next) free_.erase(next);
    } else if (joins_next) {
      auto wider = free_.extract(next);
      wider.key() = number;
      free_.insert(std::move(wider));
    } else {
      add(number, number);
    }
    if (!free_.empty() && free_.rbegin()->second + 1 == next_) {
      const auto last = std::prev(free_.end());
      next_ = last->first;
      free_.erase(last);
    }
  }

  // Whether lost numbers should be searched for.
  [[nodiscard]] bool are_short() const noexcept { return next_ > most_layers / 2; }
  // While there is one thread: those that are not in `used` are free.
  void find_free(std::vector<std::uint64_t> used) {
    const std::scoped_lock lock(mutex_);
    std::sort(used.begin(), used.end());
    free_.clear();
    std::uint64_t first = 1;
    for (const std::uint64_t number : used) {
      if (first < number) add(first, number - 1);
      first = number + 1;
    }
    next_ = std::min(next_, first);
  }

  // The bytes of DRAM, about.
  [[nodiscard]] std::uint64_t bytes() const {
    constexpr std::uint64_t of_a_node = 64;
    const std::scoped_lock lock(mutex_);
    return free_.size() * of_a_node;
  }

 private:
  static constexpr std::uint64_t at_once = 256;
  static constexpr std::size_t most_intervals = 1 << 16;
  using intervals = std::map<std::uint64_t, std::uint64_t>;  // first -> last

  void narrow(intervals::iterator at) noexcept {
    if (at->first == at->second) {
      free_.erase(at);
      return;
    }
    auto rest = free_.extract(at);
    ++rest.key();
    free_.insert(std::move(rest));
  }
  void add(std::uint64_t first, std::uint64_t last) noexcept {
    if (free_.size() >= most_intervals) return;
    try {
      free_.emplace(first, last);
    } catch (const std::bad_alloc&) {
    }
  }

  Medium& medium_;
  std::atomic<std::uint64_t>& end_;
  std::uint64_t next_;
  intervals free_;
  mutable std::mutex mutex_;
};

}  // namespace pmlab::strings::detail
