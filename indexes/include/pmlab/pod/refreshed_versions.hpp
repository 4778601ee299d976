// What this host has in its caches already: the version of an object's lock behind which it last refreshed the object.
#pragma once

#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace pmlab::pod {

// A table in the DRAM of one host, of one index: bounded, so it forgets an object for another one. It remembers by
// object: where several share a lock, a refresh of one refreshes none of the others.
//
// (V1) An object is noted behind the mfence of its refresh, with a version that was read before the refresh; or by the
// holder of its lock, who has refreshed it under the lock, with the version of the unlock. So a version that is
// remembered and current means that a load sees all that other hosts have published.
// REQUIRES: an object's block is never another object's.
//
// Thread safety: any number of threads of the host. Progress: waits for another thread in the same slot.
class refreshed_versions {
 public:
  // `slots`: a power of two; 32 bytes of DRAM each.
  explicit refreshed_versions(std::size_t slots) : mask_(slots - 1), slots_(new slot[slots]) {}

  // True: this host has refreshed the object at `position` behind `version` of its lock.
  [[nodiscard]] bool has(std::uint64_t position, std::uint64_t version) const noexcept {
    const slot& s = slots_[position & mask_];
    const std::uint64_t before = s.lock.read_begin();
    const bool same =
        s.position.load(std::memory_order_acquire) == position && s.version.load(std::memory_order_acquire) == version;
    return s.lock.read_validate(before) && same;
  }

  // See (V1).
  void note(std::uint64_t position, std::uint64_t version) noexcept {
    slot& s = slots_[position & mask_];
    s.lock.lock();
    s.position.store(position, std::memory_order_release);
    s.version.store(version, std::memory_order_release);
    s.lock.unlock();
  }

  // The bytes of DRAM.
  [[nodiscard]] std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(slot); }

 private:
  struct slot {
    sync::version_lock lock{};
    std::atomic<std::uint64_t> position{std::numeric_limits<std::uint64_t>::max()};  // none
    std::atomic<std::uint64_t> version{0};
  };

  std::size_t mask_;
  std::unique_ptr<slot[]> slots_;
};

}  // namespace pmlab::pod
