// Version locks: writers exclude each other, readers write nothing and validate afterwards.
//
// A reader reads the version, reads the data, and checks that the version is unchanged. A writer holds the lock until
// all its changes are durable. So whatever a validated reader read was durable before the reader returned: this is how
// the lock-free reads of pmlab's indexes keep their guarantee across a crash (strict durable linearizability).
//
// Locks live in DRAM, in a table of stripes that is indexed by the position of the protected object: none is ever
// stored in PM (defects A3, C5, F14, P5), and none needs to grow with the index (L12). Two objects may share a stripe:
// a thread holds one stripe at a time, or takes several, each once, in the order of their addresses: sharing costs time
// but cannot deadlock.
#pragma once

#include <pmlab/sync/relax.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pmlab::sync {

// Progress: `lock` waits for the holder; `read_begin` waits while a writer holds the lock; validation never waits.
//
// The words that it protects must be atomics, read with acquire and written with release order. Then a reader that read
// any word of a writer also sees that writer's lock (or a later version), and fails its validation: no separate memory
// fence is needed, on x86 both are plain loads and stores.
class version_lock {
 public:
  // The version to validate against. Waits until no writer is inside.
  [[nodiscard]] std::uint64_t read_begin() const noexcept {
    std::uint64_t version = word_.load(std::memory_order_acquire);
    for (backoff wait; (version & held) != 0; version = word_.load(std::memory_order_acquire)) wait.pause();
    return version;
  }

  // True if no writer held the lock since `read_begin` returned `version`: all data read in between is consistent and
  // durable.
  [[nodiscard]] bool read_validate(std::uint64_t version) const noexcept {
    return word_.load(std::memory_order_acquire) == version;
  }

  // True while a writer is inside.
  [[nodiscard]] bool is_held() const noexcept { return (word_.load(std::memory_order_acquire) & held) != 0; }

  // Waits until no other writer holds the lock, and acquires it. Not recursive, not fair.
  void lock() noexcept {
    for (backoff wait;; wait.pause()) {
      std::uint64_t version = word_.load(std::memory_order_relaxed);
      if ((version & held) == 0 && word_.compare_exchange_weak(version, version + held, std::memory_order_acq_rel))
        return;
    }
  }

  // Releases the lock and increments the version.
  void unlock() noexcept { word_.store(word_.load(std::memory_order_relaxed) + held, std::memory_order_release); }

 private:
  static constexpr std::uint64_t held = 1;
  std::atomic<std::uint64_t> word_{0};
};

// A fixed number of version locks that all objects of an index share.
class version_lock_table {
 public:
  // `stripes`: a power of two.
  explicit version_lock_table(std::size_t stripes) : mask_(stripes - 1), locks_(new version_lock[stripes]) {}

  // The lock of the object at `position`: consecutive positions get different locks.
  [[nodiscard]] version_lock& operator[](std::uint64_t position) const noexcept { return locks_[position & mask_]; }

  // The bytes of DRAM.
  [[nodiscard]] std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(version_lock); }

 private:
  std::size_t mask_;
  std::unique_ptr<version_lock[]> locks_;
};

}  // namespace pmlab::sync
