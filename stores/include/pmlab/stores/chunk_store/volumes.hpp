// The volumes of a store: their names, sizes and states, and their removal, which goes on until no operation uses a
// chunk of them.
//
// A change of a volume that failed may be durable. So each operation makes sure of it before it answers.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/options.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/removals.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::stores::detail::chunk_store {

[[nodiscard]] inline error error_of_removed(std::string_view name) {
  return error("volume '" + std::string(name) + "' was removed", "open or make a volume of this name");
}

// Thread safety: all operations from any thread. Lock order: the lock of recovery, the lock of volumes, a lock of a
// stripe. Its holder waits for the drive and for stripes, and for no operation: so an operation that has no lock may
// wait for it.
template <class Core>
class volumes {
  using container = typename Core::container;

  // The lock of volumes. An operation that ended meanwhile found it taken: removals that waited for that operation go
  // on behind it.
  class volumes_lock {
   public:
    explicit volumes_lock(volumes& of) : of_(of), lock_(of.mutex_) {}
    volumes_lock(const volumes_lock&) = delete;
    volumes_lock& operator=(const volumes_lock&) = delete;
    ~volumes_lock() {
      lock_.unlock();
      static_cast<void>(of_.finish_removals());
    }

   private:
    volumes& of_;
    std::unique_lock<std::mutex> lock_;
  };

 public:
  // The number and the size that a handle has.
  struct opened {
    volume_number of;
    std::uint64_t bytes;
  };
  // As chunk_store::volume.
  [[nodiscard]] opened open_volume(std::string_view name, const volume_options& options) {
    const volumes_lock lock(*this);
    static_cast<void>(go_on_with_removals());  // a number may be free then
    if (const std::optional<std::uint32_t> id = find_volume(name)) {
      // A removal that failed may be durable: nothing is acknowledged for a volume that may be gone.
      if (!store().records.make_volume_sure(*id - 1))
        throw error(store().records.name() + " failed when volume '" + std::string(name) +
                        "' was to be removed, and fails still: it may be gone",
                    "check the drive, and open the volume again");
      return of(*id, store().records.volume(*id - 1).bytes.load(std::memory_order_acquire));
    }
    return make_volume(name, options);
  }

  // As chunk_store::remove_volume. REQUIRES: the free blocks are known.
  bool remove_volume(std::string_view name) {
    const volumes_lock lock(*this);
    const std::optional<std::uint32_t> id = find_volume(name);
    if (!id) {
      settle_failed_makings();
      return false;
    }
    try {
      change_state(*id, volume_state::going);
    } catch (...) {
      if (!store().records.make_volume_sure(*id - 1))
        store().generations[*id - 1].fetch_add(1, std::memory_order_acq_rel);
      throw;
    }
    // An operation begins under the lock of its stripe: before the removal looks at the stripe, or it fails.
    store().generations[*id - 1].fetch_add(1, std::memory_order_acq_rel);
    is_going_[*id - 1] = true;
    going_.fetch_add(1, std::memory_order_acq_rel);
    try {
      go_on_removing(*id);
    } catch (const std::exception&) {
      // It is removed: the next operation that ends goes on with it.
    }
    return true;
  }
  // As in chunk_store.
  bool finish_removals() noexcept {
    if (!any_going()) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && go_on_with_removals();
  }
  void wait_for_removals() noexcept {
    if (!any_going()) return;
    const std::scoped_lock lock(mutex_);
    static_cast<void>(go_on_with_removals());
  }
  [[nodiscard]] std::uint64_t ended_removals() const noexcept { return ended_.load(std::memory_order_acquire); }
  // Removals are under way.
  [[nodiscard]] bool any_going() const noexcept { return going_.load(std::memory_order_acquire) != 0; }

  // Ends removals that a crash interrupted. Throws as removals::remove_chunks_of.
  void finish_interrupted_removals() {
    for (std::uint32_t i = 0; i < store().records.volumes(); ++i) {
      if (store().records.state_of_volume(i) != volume_state::going) continue;
      const std::scoped_lock lock(mutex_);
      store().remove_chunks_of(i + 1);  // no handle of it exists
      change_state(i + 1, volume_state::free);
    }
  }

 private:
  // Ends the removals that no operation keeps any more. With the lock of volumes. True: one has ended.
  bool go_on_with_removals() noexcept {
    if (!any_going()) return false;
    bool any = false;
    for (std::uint32_t id = 1; id <= store().records.volumes(); ++id) {
      if (!is_going_[id - 1] || store().is_used(id)) continue;
      try {
        go_on_removing(id);
        any |= !is_going_[id - 1];
      } catch (const std::exception&) {
        // The next opening goes on with it, if no later operation can.
      }
    }
    return any;
  }
  // Removes the chunks of a volume that no handle has any more, and then frees its number; unless operations in flight
  // use some. With the lock of volumes. Throws pmlab::error if the drive fails.
  void go_on_removing(std::uint32_t volume_id) {
    // Before the walk: what is in use may get its record after the walk has passed, and nothing is used again.
    const bool used = store().is_used(volume_id);
    store().remove_chunks_of(volume_id);
    if (used) return;
    if constexpr (container::may_be_unsure) {
      // No later volume of this number gets chunks of this one by a crash.
      if (!store().records.make_all_sure()) throw store().error_of_removal();
    }
    change_state(volume_id, volume_state::free);
    is_going_[volume_id - 1] = false;
    ended_.fetch_add(1, std::memory_order_acq_rel);
    going_.fetch_sub(1, std::memory_order_acq_rel);
  }

  [[nodiscard]] static std::array<std::uint64_t, name_bytes / 8> words_of(std::string_view name) {
    check_name(name, name_bytes, "a volume");
    std::array<std::uint64_t, name_bytes / 8> words{};
    std::memcpy(words.data(), name.data(), name.size());
    return words;
  }

  [[nodiscard]] std::optional<std::uint32_t> find_volume(std::string_view name) {
    const auto wanted = words_of(name);
    for (std::uint32_t id = 1; id <= store().records.volumes(); ++id) {
      if (store().records.state_of_volume(id - 1) == volume_state::there &&
          std::ranges::equal(wanted, store().records.volume(id - 1).name, {}, {},
                             [](const auto& w) { return w.load(std::memory_order_acquire); }))
        return id;
    }
    return std::nullopt;
  }

  // (V1) size and name < (V2) state, in one line: a volume that is there has both.
  [[nodiscard]] opened make_volume(std::string_view name, const volume_options& options) {
    const auto words = words_of(name);
    if (options.bytes == 0 || options.bytes % store().geometry.block_bytes != 0 ||
        options.bytes / store().geometry.block_bytes > std::uint64_t{1} << 40)
      throw error("there is no volume '" + std::string(name) + "', and a new one of " + std::to_string(options.bytes) +
                      " bytes cannot be made",
                  "give its size as a multiple of " + std::to_string(store().geometry.block_bytes) + " bytes");
    settle_failed_makings();
    for (std::uint32_t id = 1; id <= store().records.volumes(); ++id) {
      if (store().records.state_of_volume(id - 1) != volume_state::free) continue;
      store().records.change_volume(id - 1, [&](volume_slot& v) {
        for (std::size_t i = 0; i < words.size(); ++i) v.name[i].store(words[i], std::memory_order_relaxed);
        v.bytes.store(options.bytes, std::memory_order_relaxed);                                    // (V1)
        v.state.store(static_cast<std::uint64_t>(volume_state::there), std::memory_order_release);  // (V2)
      });
      return of(id, options.bytes);
    }
    throw error("this chunk store has room for " + std::to_string(store().records.volumes()) + " volumes",
                "remove one, or use another store");
  }

  // A making that failed may be durable: its name is free only when it is not. Throws pmlab::error: the drive fails
  // still.
  void settle_failed_makings() {
    for (std::uint32_t id = 1; id <= store().records.volumes(); ++id)
      if (store().records.state_of_volume(id - 1) == volume_state::free && !store().records.make_volume_sure(id - 1))
        throw error(store().records.name() + " failed when a volume was to be made, and fails still",
                    "check the drive");
  }
  [[nodiscard]] opened of(std::uint32_t id, std::uint64_t bytes) const noexcept {
    return {{id, store().generations[id - 1].load(std::memory_order_acquire)}, bytes};
  }

  void change_state(std::uint32_t id, volume_state to) {
    store().records.change_volume(
        id - 1, [&](volume_slot& v) { v.state.store(static_cast<std::uint64_t>(to), std::memory_order_release); });
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }
  [[nodiscard]] const all_parts<Core>& store() const noexcept { return static_cast<const all_parts<Core>&>(*this); }

  std::mutex mutex_;                           // guards the volumes' slots, and these
  std::array<bool, most_volumes> is_going_{};  // removed since the store was opened, and not free
  std::atomic<unsigned> going_{0};             // how many are
  std::atomic<std::uint64_t> ended_{0};        // how many were
};

}  // namespace pmlab::stores::detail::chunk_store
