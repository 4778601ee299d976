// The share of one thread of things with numbers: places of a volume, records.
#pragma once

#include "bench/workload/permutation.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace pmlab::store_bench {

class thread_share {
 public:
  // `in_order`: each thread has a part of its own; otherwise they are scattered.
  thread_share(std::uint64_t count, unsigned thread, unsigned threads, bool in_order)
      : thread_(thread),
        threads_(threads),
        in_order_(in_order),
        begin_(count * thread / threads),
        end_(count * (thread + 1) / threads),
        next_(begin_),
        scattered_(std::max<std::uint64_t>(count, 1)) {}

  [[nodiscard]] bool in_order() const noexcept { return in_order_; }

  // Each of them once; nothing: there are no more.
  [[nodiscard]] std::optional<std::uint64_t> next_once() {
    if (next_ == end_) return std::nullopt;
    const std::uint64_t i = next_++;
    return in_order_ ? i : scattered_(i);
  }
  // One after the other, again and again.
  [[nodiscard]] std::uint64_t next_in_turn() {
    const std::uint64_t i = next_;
    next_ = next_ + 1 == end_ ? begin_ : next_ + 1;
    return i;
  }
  // The nearest one of `count` that belongs to this thread where all draw from all.
  [[nodiscard]] std::uint64_t own(std::uint64_t number, std::uint64_t count) const {
    const std::uint64_t mine = number / threads_ * threads_ + thread_;
    return mine < count ? mine : mine - threads_;
  }

 private:
  unsigned thread_;
  unsigned threads_;
  bool in_order_;
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t next_;
  workload::permutation scattered_;
};

}  // namespace pmlab::store_bench
