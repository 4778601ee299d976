// Removes chunks: one whose blocks are all discarded, or those of a volume that is removed.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/limbo.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/stores/chunk_store/writers.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Takes the locks of stripes, but for remove_chunk, whose caller has it.
template <class Core>
class removals {
  using container = typename Core::container;

 public:
  // Removes a chunk that no operation writes to: its newest record has `key`, which the durable one may not have yet.
  // Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] std::errc remove_chunk(stripe& s, std::unique_lock<std::mutex>& lock, std::uint64_t key, record& r) {
    const std::size_t most_owned = 2 * std::size_t{store().shape.blocks};
    std::vector<std::uint64_t> owned;
    owned.reserve(most_owned);
    s.gone.promise(most_owned);
    const promise_to_end ends{s.gone, most_owned};
    if constexpr (container::settles_at_once) {
      store().for_each_owned(r, [&](std::uint64_t block) { owned.push_back(block); });
      store().records.erase(r);
      s.writers.erase(key);  // a merge by copy may have the state: it ends later
    } else {
      index_change change;
      writer_state* state = nullptr;
      const std::errc e = unless_exhausted([&] {
        const auto guard = store().records.guard(r);
        state = store().state_of_writers(s, key, r);
        store().for_each_owned(store().records.newest(r), [&](std::uint64_t block) { owned.push_back(block); });
        store().records.clear_newest(r);
        store().records.add(r, change, 0);
        return std::errc{};
      });
      if (e == std::errc{}) {
        // Operations on the chunk wait for this one, and a merge by copy is given up.
        state->removing = state->merge_is_void = true;
        lock.unlock();
        store().records.settle(change);
        lock.lock();
      }
      if (e != std::errc{} || !change.succeeded()) {
        if (state == nullptr) return e;
        state->removing = false;
        store().leave_state(s, key);
        return e != std::errc{} ? e : change.error();
      }
      s.writers.erase(key);
    }
    store().records.leave(key, r);
    store().records.give(r);
    for (const std::uint64_t block : owned) s.gone.put({static_cast<std::uint32_t>(block), 1});
    s.gone.collect(store().free);
    return {};
  }

  // Operations in flight write to chunks of this volume; a merge alone does not count.
  [[nodiscard]] bool is_used(std::uint32_t volume_id) {
    for (stripe& s : store().stripes) {
      const std::scoped_lock lock(s.mutex);
      for (const auto& [key, state] : s.writers)
        if (volume_of(key) == volume_id && state.has_users()) return true;
    }
    return false;
  }

  // Removes the chunks of a volume whose handles are void, except those that operations in flight use.
  void remove_chunks_of(std::uint32_t volume_id) {
    for (const std::uint64_t key : keys_of(volume_id)) {
      stripe& s = store().stripe_of(key);
      std::unique_lock lock(s.mutex);
      if (const auto at = s.writers.find(key); at != s.writers.end() && at->second.has_users()) continue;
      std::errc failure{};
      record* const r = store().look_up(key, failure);
      if (r == nullptr && failure == std::errc{}) continue;  // a change that had failed is undone: the chunk is gone
      if (r != nullptr) failure = remove_chunk(s, lock, key, *r);
      if (failure == no_memory) throw std::bad_alloc();
      if (failure != std::errc{}) throw error_of_removal();
    }
  }
  // The chunks of a volume that have records, or had one whose removal failed: some twice. Throws std::bad_alloc;
  // pmlab::error: the records cannot be read.
  [[nodiscard]] std::vector<std::uint64_t> keys_of(std::uint32_t volume_id) {
    std::vector<std::uint64_t> all;
    const auto add = [&](std::uint64_t key) {
      if (volume_of(key) == volume_id) all.push_back(key);
    };
    store().records.for_each([&](record& r) {
      const auto guard = store().records.guard(r);
      add(r.key.load(std::memory_order_acquire));
    });
    // A removal of a record that failed is undone at its next use: that is here, and not in a later volume.
    if constexpr (Core::has_pairs)
      for (std::size_t i = 0; i < store().stripes.size(); ++i) {
        const std::scoped_lock lock(store().stripes[i].mutex);
        store().records.for_each_unsure(i, add);
      }
    return all;
  }
  [[nodiscard]] error error_of_removal() const {
    return error(store().records.name() + " failed: a volume cannot be removed",
                 "check the drive, and open the store again");
  }

 private:
  struct promise_to_end {
    limbo& gone;
    std::size_t extents;
    ~promise_to_end() { gone.release(extents); }
  };

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }
  [[nodiscard]] const all_parts<Core>& store() const noexcept { return static_cast<const all_parts<Core>&>(*this); }
};

}  // namespace pmlab::stores::detail::chunk_store
