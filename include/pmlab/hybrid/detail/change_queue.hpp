// A bounded queue of changes: many writers, one reader at a time.
//
// A writer takes its place before it changes the primary, and fills it in afterwards. So whoever has seen a change in
// the primary, by whatever way, finds its place already taken: `reserved` then says how far the replica has to come.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace pmlab::hybrid::detail {

// What the replica is to do. Not how the primary came to it: an insert, an update and an upsert are all a put.
struct change {
  enum class kind : std::uint8_t { nothing, put, remove };
  kind what = kind::nothing;
  indexes::key_type key = 0;
  indexes::value_type value = 0;
};

// Progress: `reserve` and `publish` are wait-free. A place that is not filled in holds up those behind it.
class change_queue {
 public:
  // `places`: the next power of two counts.
  explicit change_queue(std::size_t places) : mask_(std::bit_ceil(places) - 1), cells_(new cell[mask_ + 1]) {}

  // The next place; it is to be filled in, once `has_room` says so.
  [[nodiscard]] std::uint64_t reserve() noexcept { return reserved_.fetch_add(1, std::memory_order_acq_rel); }
  [[nodiscard]] bool has_room(std::uint64_t place) const noexcept {
    return place - taken_.load(std::memory_order_acquire) <= mask_;
  }
  void publish(std::uint64_t place, const change& c) noexcept {
    cell& at = cells_[place & mask_];
    at.what = c;
    at.filled.store(place + 1, std::memory_order_release);
  }

  // Takes the oldest changes, in their order, up to the first place that is not filled in. One caller at a time.
  std::size_t take(std::span<change> out) noexcept {
    const std::uint64_t first = taken_.load(std::memory_order_relaxed);
    std::size_t count = 0;
    for (; count < out.size(); ++count) {
      const cell& at = cells_[(first + count) & mask_];
      if (at.filled.load(std::memory_order_acquire) != first + count + 1) break;
      out[count] = at.what;
    }
    if (count != 0) taken_.store(first + count, std::memory_order_release);
    return count;
  }

  // Places ever taken by writers.
  [[nodiscard]] std::uint64_t reserved() const noexcept { return reserved_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t places() const noexcept { return mask_ + 1; }
  [[nodiscard]] std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(cell); }

 private:
  struct cell {
    std::atomic<std::uint64_t> filled{0};  // its place + 1
    change what;
  };

  std::uint64_t mask_;
  std::unique_ptr<cell[]> cells_;
  alignas(64) std::atomic<std::uint64_t> reserved_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
};

}  // namespace pmlab::hybrid::detail
