// Commits a change of a chunk: its words name the places whose data is durable (C4), and the blocks that it replaces
// become free when the change is durable (C5).
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

namespace pmlab::stores::detail::chunk_store {

// REQUIRES: the lock of the chunk's stripe, but for `reserve` and `wait_for_records`.
template <class Core>
class commits {
  using container = typename Core::container;
  using chunk = typename Core::chunk;

 public:
  // What a write of so many blocks needs is there before it changes anything: here without a lock, and then with it by
  // plan::promise. Both throw std::bad_alloc.
  void reserve(plan& p, std::uint32_t blocks) {
    p.parts_.reserve(1);
    if constexpr (!container::settles_at_once) p.replaced_.reserve(blocks);
  }

  // Commits `parts` of `p`, whose data is durable (K1). They are in the order of the chunk's blocks.
  [[nodiscard]] std::errc commit(stripe& s, writer_state& state, plan& p, std::span<const placed> parts, bool first,
                                 bool may_remap) {
    const auto guard = store().records.guard(*state.where);
    const auto most_held = static_cast<std::uint32_t>(parts.size() + 1);  // and the base extent
    record& r = store().records.edit(*state.where, most_held);
    const std::errc result = change(s, state, r, p, parts, first, may_remap);
    if (container::settles_at_once || result != std::errc{}) return result;
    store().records.add(*state.where, p.change_, most_held);
    state.may_be_named = true;
    p.is_committed_ = true;
    return not_durable_yet;
  }

  // The result of a change that was added: not_durable_yet; not_enough_memory: no space for it; io_error: it failed.
  [[nodiscard]] static std::errc result_of(const index_change& c) noexcept {
    return c.is_settled() ? c.error() : not_durable_yet;
  }

  // Waits until the change of a plan or of a merge plan may have a result.
  template <class Plan>
  void wait_for_records(const Plan& p) {
    store().records.wait_for(p.change_);
  }

 private:
  // Changes the words of a record.
  [[nodiscard]] std::errc change(stripe& s, writer_state& state, record& r, plan& p, std::span<const placed> parts,
                                 bool first, bool may_remap) {
    const bool at_once = first && (container::changes_as_a_whole || chunk::in_one_word(parts.front().blocks));
    places before{};
    if (!has_key(r, p.key_)) {
      if (at_once) {
        publish(state, r, p.key_, parts.front().blocks);
        return {};
      }
      // A chunk without blocks; then the write. A crash between the two leaves a chunk that reads as zeros.
      publish(state, r, p.key_, {});
    }
    chunk c = store().chunk_of(r);
    for (const placed& part : parts) c.find(part.blocks, before);
    if (at_once && std::all_of(before.begin() + parts.front().blocks.first, before.begin() + parts.front().blocks.end(),
                               [](std::uint32_t b) { return b == 0; })) {
      c.mark_written(parts.front().blocks);
      return {};
    }
    if (const std::errc e = name_places(state, c, parts, first, may_remap); e != std::errc{}) return e;
    for (const placed& part : parts)
      for_each_replaced(state, part, before, [&](extent e) {
        if constexpr (container::settles_at_once)
          s.gone.put(e);
        else
          p.replaced_.push_back(e);
      });
    return {};
  }

  void publish(writer_state& state, record& r, std::uint64_t key, range written) {
    head_word head;
    head.base = state.base;
    chunk::name(r, key, head, written);
    media::persist(store().records.medium(), r);
  }

  // Commits the places of `parts` in the ring, or in a new map where they are too many for it. not_enough_memory: the
  // medium is full; `no_room`: the ring is, and it may not go into a map.
  [[nodiscard]] std::errc name_places(writer_state& state, chunk& c, std::span<const placed> parts, bool first,
                                      bool may_remap) {
    if (parts.size() <= store().shape.ring) {
      if (!c.has_room(parts.size())) {
        if (c.merges_by_copy() && !may_remap) {
          state.lacks_room = true;
          return no_room;
        }
        if constexpr (Core::has_maps) {
          if (!c.merge()) return std::errc::not_enough_memory;
          ring_is_empty(state);
        } else {
          state.lacks_room = true;
          return first ? write_again : std::errc::timed_out;
        }
        store().counts.merges.fetch_add(1, std::memory_order_relaxed);
        store().counts.remaps.fetch_add(1, std::memory_order_relaxed);
      }
      c.push(parts);
      state.is_full_enough = c.is_full_enough();
      return {};
    }
    if constexpr (Core::has_maps) {
      typename Core::medium_type::publication change(store().records.medium());
      if (!c.replace_map(change, parts)) return std::errc::not_enough_memory;
      change.commit();
      ring_is_empty(state);
      store().counts.replaced_maps.fetch_add(1, std::memory_order_relaxed);
      return {};
    } else {
      return std::errc::no_space_on_device;  // REQUIRED of callers: take_free has taken no more parts than a ring names
    }
  }

  // Its entries went into a map.
  void ring_is_empty(writer_state& state) {
    state.merge_is_void = true;
    state.is_full_enough = false;
    if (std::exchange(state.lacks_room, false)) store().changes.count_one();
  }

  // Calls visit(extent) for blocks that a committed write replaced: when it is durable, nothing names them any more,
  // and nothing will.
  template <class Visit>
  void for_each_replaced(const writer_state& state, const placed& now, const places& before, Visit&& visit) const {
    for (std::uint32_t b = now.blocks.first; b < now.blocks.end(); ++b) {
      std::uint32_t old = before[b];
      if (old == hole) continue;
      if (old == 0) {
        if (state.base == no_block || state.is_marked(b)) continue;
        old = block_behind(state.base, b);
      }
      if (old == now.target_of(b) || keeps(state, old)) continue;
      visit(extent{old, 1});
    }
  }

  // A block of a base extent that stays its chunk's.
  [[nodiscard]] bool keeps(const writer_state& state, std::uint32_t block) const noexcept {
    return store().shape.merge == merge_policy::copy && state.base != no_block && block >= state.base &&
           block - state.base < store().shape.blocks;
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }
  [[nodiscard]] const all_parts<Core>& store() const noexcept { return static_cast<const all_parts<Core>&>(*this); }
};

}  // namespace pmlab::stores::detail::chunk_store
