// The chunks that have writes under way: the state that the writes to a chunk share, from the first one to the last.
//
// A chunk without a record gets one here, and its base extent. The record has no key before a write has succeeded. If
// none does, both are free again, unless the drive may have the chunk's name in the record.
#pragma once

#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// REQUIRES: the lock of the chunk's stripe, but for lock_for_writing and give_kept, which take it, and keeps_unnamed.
template <class Core>
class chunk_writers {
  using container = typename Core::container;

 public:
  // The lock of a stripe, with the chunk not being removed.
  [[nodiscard]] static std::unique_lock<std::mutex> lock_for_writing(stripe& s, std::uint64_t key) {
    std::unique_lock lock(s.mutex);
    if constexpr (!container::settles_at_once) {
      for (sync::backoff wait;;) {
        const auto at = s.writers.find(key);
        if (at == s.writers.end() || !at->second.removing) break;
        lock.unlock();
        wait.pause();
        lock.lock();
      }
    }
    return lock;
  }

  // The state of a chunk to write to, which exists until leave_state. nullptr: no space, as `failure` says. Throws
  // std::bad_alloc; nothing changed then.
  [[nodiscard]] writer_state* state_for_writing(stripe& s, std::uint64_t key, std::errc& failure) {
    if (const auto at = s.writers.find(key); at != s.writers.end()) {
      ++at->second.writers;
      return &at->second;
    }
    failure = {};
    record* const r = store().look_up(key, failure);
    if (r != nullptr) {
      const auto guard = store().records.guard(*r);
      if (has_key(store().records.newest(*r), key)) return state_of_writers(s, key, *r);
    }
    if (failure != std::errc{}) return nullptr;
    const auto at = s.writers.try_emplace(key).first;
    failure = unless_exhausted([&] { return make_unnamed(at->second, key, container::may_be_unsure ? r : nullptr); });
    if (failure != std::errc{}) {
      s.writers.erase(at);
      return nullptr;
    }
    at->second.writers = 1;
    return &at->second;
  }
  // The same of a chunk with a record. REQUIRES: the guard of the record.
  [[nodiscard]] writer_state* state_of_writers(stripe& s, std::uint64_t key, record& r) {
    const auto [at, is_new] = s.writers.try_emplace(key);
    writer_state& state = at->second;
    if (is_new) {
      try {
        pin(r);
      } catch (const std::bad_alloc&) {
        s.writers.erase(at);
        throw;
      }
      state.where = &r;
      state.base = store().chunk_of(store().records.newest(r)).base();
    }
    ++state.writers;
    return &state;
  }

  void leave_state(stripe& s, std::uint64_t key) {
    const auto at = s.writers.find(key);
    writer_state& state = at->second;
    if (--state.writers > 0) return;
    if (has_name(*state.where, key))
      unpin(*state.where);
    else
      give_unnamed(state, key);
    s.writers.erase(at);
  }

  // REQUIRES: no guard.
  [[nodiscard]] bool has_name(record& r, std::uint64_t key) {
    const auto guard = store().records.guard(r);
    return has_key(store().records.newest(r), key);
  }
  // False: the drive may have other words of the record, or of another one beside it, and refuses these. REQUIRES: no
  // guard.
  [[nodiscard]] bool make_sure([[maybe_unused]] const record& r) {
    if constexpr (container::may_be_unsure)
      return store().records.make_sure(r);
    else
      return true;
  }

  // Blocks that no durable record names, and no reader knows. REQUIRES: the guard of the record that was to name them.
  // `era`: of the last change that was to name them.
  void give_back(const record& r, extent e, [[maybe_unused]] std::uint64_t era) {
    if constexpr (container::settles_at_once)
      store().free.give(e);
    else
      store().records.hold(r, e, era);
  }

  // Records without a name stay for chunks whose first writes had failed.
  [[nodiscard]] bool keeps_unnamed() const noexcept { return keeps_unnamed_.load(std::memory_order_acquire); }

  // As chunk_store::give_kept.
  bool give_kept() noexcept try {
    if constexpr (container::may_be_unsure) {
      // Before the walk: a record that is kept from now on may be missed there.
      if (!keeps_unnamed_.exchange(false, std::memory_order_acq_rel)) return false;
      std::vector<std::pair<std::uint64_t, record*>> unnamed;
      store().records.for_each_entry([&](std::uint64_t key, record& r) { unnamed.emplace_back(key, &r); });
      std::erase_if(unnamed, [&](const auto& entry) { return has_name(*entry.second, entry.first); });
      bool any = false;
      std::vector<std::uint32_t> refused;  // numbers of index blocks
      for (const auto& [key, r] : unnamed) {
        const std::uint32_t block = store().records.index_block_of(*r);
        if (std::ranges::find(refused, block) != refused.end()) continue;
        stripe& s = store().stripe_of(key);
        const std::unique_lock lock = lock_for_writing(s, key);
        std::errc failure{};
        if (s.writers.contains(key) || store().look_up(key, failure) != r || has_name(*r, key)) continue;
        // Here, not for all before: a write may have failed since. Later ones name no chunk in this record.
        if (!make_sure(*r)) {
          keeps_unnamed_.store(true, std::memory_order_release);
          refused.push_back(block);
          continue;
        }
        store().records.leave(key, *r);
        store().records.give(*r);
        any = true;
      }
      return any;
    }
    return false;
  } catch (const std::exception&) {
    keeps_unnamed_.store(true, std::memory_order_release);
    return false;
  }

 private:
  // A record stays where it is while a chunk's writers have it: one of a cache could be evicted.
  void pin([[maybe_unused]] record& r) {
    if constexpr (Core::has_pairs) store().records.pin(r);
  }
  void unpin([[maybe_unused]] record& r) {
    if constexpr (Core::has_pairs) store().records.unpin(r);
  }

  // A record for a new chunk, which gets its key with its first write.
  [[nodiscard]] std::errc make_unnamed(writer_state& state, std::uint64_t key, record* kept) {
    const std::optional<extent> base = store().free.take(store().shape.blocks);
    // Without maps, all data of a chunk must have a place to be merged to.
    if (!base && !Core::has_maps) return std::errc::no_space_on_device;
    const std::errc e = unless_exhausted([&] {
      state.where = kept;
      if (kept != nullptr) return std::errc{};
      state.where = store().records.take();
      return state.where != nullptr && store().records.enter(key, *state.where) ? std::errc{}
                                                                                : std::errc::not_enough_memory;
    });
    if (e != std::errc{}) {
      if (state.where != nullptr) store().records.give(*state.where);
      if (base) store().free.give(*base);
      return e;
    }
    if (base) state.base = base->first;
    state.may_be_named = kept != nullptr;
    return {};
  }

  // Releases what a new chunk had, of which no write succeeded.
  void give_unnamed(const writer_state& state, std::uint64_t key) {
    // The drive may have the chunk's name in this record. So both stay for the chunk until the drive has none of it.
    const bool stays = state.may_be_named && !make_sure(*state.where);
    if (stays) keeps_unnamed_.store(true, std::memory_order_release);
    const auto guard = store().records.guard(*state.where);
    const extent base{state.base, store().shape.blocks};
    if (!stays) store().records.leave(key, *state.where);
    if (state.base != no_block && state.may_be_named)
      give_back(*state.where, base, state.failed_era);
    else if (state.base != no_block)
      store().free.give(base);
    if (!stays) store().records.give(*state.where);
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }

  std::atomic<bool> keeps_unnamed_{false};  // records that no write succeeded for, see give_unnamed
};

}  // namespace pmlab::stores::detail::chunk_store
