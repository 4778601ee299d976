// Stripes: the state of the keys that share a hash, in one word each.
//
// A writer holds its key's stripe while it changes the primary and while it changes the replica, or queues that change.
// A reader of the replica reads the word before, and validates it afterwards:
//
//   63             21 20               1  0
//   | version        | queued changes    | held |
//
//   S1  Not held, nothing queued: of these keys, the replica holds the same as the primary, and that is durable.
//   S2  A writer makes all its changes after the word is "held" and before the version is incremented. So a reader
//       whose word is still valid read nothing of any writer that locked after its first read.
//   S3  A change counts as queued from the moment that its writer releases the stripe to the moment that it is applied.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/relax.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pmlab::hybrid::detail {

// Progress: `lock` waits for the holder, nothing else waits. The words that are read between `word` and `stands` must
// be atomics read with acquire order, as for version locks (sync/version_lock.hpp).
class stripe {
 public:
  // The most changes that may be queued for one stripe.
  static constexpr std::uint64_t most_queued = (std::uint64_t{1} << 20) - 1;

  [[nodiscard]] std::uint64_t word() const noexcept { return word_.load(std::memory_order_acquire); }
  [[nodiscard]] static constexpr bool is_held(std::uint64_t word) noexcept { return (word & held) != 0; }
  // S1.
  [[nodiscard]] static constexpr bool is_settled(std::uint64_t word) noexcept { return (word & (held | queued)) == 0; }
  // True if no writer has held it since (S2).
  [[nodiscard]] bool stands(std::uint64_t word) const noexcept { return ((this->word() ^ word) & ~queued) == 0; }

  void lock() noexcept {
    for (sync::backoff wait;; wait.pause()) {
      std::uint64_t now = word_.load(std::memory_order_relaxed);
      if ((now & held) == 0 && word_.compare_exchange_weak(now, now | held, std::memory_order_acq_rel)) return;
    }
  }
  // The holder of the lock calls these.
  [[nodiscard]] bool has_queued() const noexcept { return (word() & queued) != 0; }
  void unlock() noexcept { word_.fetch_add(version - held, std::memory_order_release); }
  // Unlocks, and leaves one change more in the queue (S3).
  void unlock_queued() noexcept { word_.fetch_add(version - held + one_queued, std::memory_order_release); }
  // One of the queued changes has been made (S3).
  void applied() noexcept { word_.fetch_sub(one_queued, std::memory_order_release); }

 private:
  static constexpr std::uint64_t held = 1;
  static constexpr std::uint64_t one_queued = 2;
  static constexpr std::uint64_t queued = most_queued * one_queued;
  static constexpr std::uint64_t version = queued + one_queued;

  std::atomic<std::uint64_t> word_{0};
};

class stripe_table {
 public:
  // `count`: a power of two, 2 at least.
  explicit stripe_table(std::size_t count)
      : shift_(64U - static_cast<unsigned>(std::countr_zero(count))), stripes_(new stripe[count]), count_(count) {}

  [[nodiscard]] std::size_t number_of(indexes::key_type key) const noexcept {
    return (key ^ key >> 32) * golden_ratio >> shift_;
  }
  [[nodiscard]] stripe& operator[](std::size_t number) const noexcept { return stripes_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(stripe); }

 private:
  unsigned shift_;
  std::unique_ptr<stripe[]> stripes_;
  std::size_t count_;
};

// A stripe that is held to the end of the scope, unless it is released earlier.
class held_stripe {
 public:
  explicit held_stripe(stripe& s) noexcept : stripe_(&s) { s.lock(); }
  held_stripe(const held_stripe&) = delete;
  held_stripe& operator=(const held_stripe&) = delete;
  ~held_stripe() {
    if (stripe_ != nullptr) stripe_->unlock();
  }
  void unlock_queued() noexcept {
    stripe_->unlock_queued();
    stripe_ = nullptr;
  }

 private:
  stripe* stripe_;
};

}  // namespace pmlab::hybrid::detail
