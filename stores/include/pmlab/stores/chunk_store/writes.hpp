// Writes of blocks of one chunk, and groups of them, between their plan and their end: the places that their data goes
// to, and the blocks that are free again if it is not in use.
#pragma once

#include <pmlab/stores/chunk_store/commits.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/recovery.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/stores/chunk_store/writers.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Steps of operations; chunk_store states their contracts. Thread safety: all operations from any thread.
template <class Core>
class writes {
  using container = typename Core::container;
  using chunk = typename Core::chunk;

 public:
  [[nodiscard]] std::errc begin_write(volume_number v, std::uint64_t number, range blocks, plan& p) {
    p = plan(v, number);
    p.blocks_ = blocks;
    return unless_exhausted([&]() -> std::errc {
      store().reserve(p, blocks.count);
      if (!store().is_complete()) {
        if (begin_write_early(p)) return {};
        if (const std::errc e = store().ensure_recovered(); e != std::errc{}) return e;
      }
      stripe& s = store().stripe_of(p.key_);
      const auto lock = store().lock_for_writing(s, p.key_);
      if (!store().is_current(v)) return volume_removed;
      std::errc failure{};
      writer_state* const state = store().state_for_writing(s, p.key_, failure);
      if (state == nullptr) return failure;
      return plan_write(s, *state, p) ? std::errc{} : std::errc::no_space_on_device;
    });
  }

  [[nodiscard]] std::errc end_write(plan& p, bool written, bool may_remap) {
    stripe& s = store().stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    writer_state& state = s.writers.at(p.key_);
    const bool first = p.way_ == plan::way::first;
    std::errc result{};
    if (p.is_committed_) {
      result = store().result_of(p.change_);
    } else {
      if (first) state.unmark(p.blocks_);
      if (!written)
        result = std::errc::io_error;
      else if (!store().is_current(p.of_))
        result = volume_removed;
      else if (p.way_ != plan::way::in_place)
        // A merge waits for first writes, so these do not wait for it.
        result = unless_exhausted([&] { return store().commit(s, state, p, p.parts_, first, may_remap || first); });
    }
    if (result == no_room || result == not_durable_yet) return result;
    for (const extent& e : p.replaced_)
      if (result == std::errc{}) s.gone.put(e);
    if (p.is_direct()) --state.direct;
    p.wants_merge_ = state.wants_merge();
    if (result != std::errc{} && p.is_committed_) state.failed_in(p.change_.era());
    if (result != std::errc{} && p.way_ != plan::way::in_place) take_back(s, state, p);
    if (result == std::errc{})
      (p.way_ == plan::way::first      ? store().counts.first
       : p.way_ == plan::way::in_place ? store().counts.in_place
                                       : store().counts.redirected)
          .fetch_add(1, std::memory_order_relaxed);
    s.gone.leave(p.generation_, store().free);
    p.release(s);
    store().leave_state(s, p.key_);
    return result;
  }

  [[nodiscard]] std::errc begin_group(volume_number v, std::uint64_t number, std::span<const range> ranges, plan& p) {
    p = plan(v, number);
    p.way_ = plan::way::redirected;
    if (!Core::has_maps && ranges.size() > store().shape.ring) return std::errc::argument_list_too_long;
    return unless_exhausted([&]() -> std::errc {
      if (const std::errc e = store().ensure_recovered(); e != std::errc{}) return e;
      std::uint32_t count = 0;
      for (const range& r : ranges) count += r.count;
      store().reserve(p, count);
      stripe& s = store().stripe_of(p.key_);
      const auto lock = store().lock_for_writing(s, p.key_);
      if (!store().is_current(v)) return volume_removed;
      std::errc failure{};
      if (store().state_for_writing(s, p.key_, failure) == nullptr) return failure;
      const std::errc result = unless_exhausted([&]() -> std::errc {
        p.promise(s, count);
        for (const range& r : ranges)
          if (!take_free(r, p.parts_)) return std::errc::no_space_on_device;
        return {};
      });
      if (result == std::errc{}) {
        p.generation_ = s.gone.enter();
        return {};
      }
      give_up(p.parts_);
      p.release(s);
      store().leave_state(s, p.key_);
      return result;
    });
  }

 private:
  // A write that needs no free blocks, while they are not known. False: it needs some.
  [[nodiscard]] bool begin_write_early(plan& p) {
    stripe& s = store().stripe_of(p.key_);
    const auto lock = store().lock_for_writing(s, p.key_);
    record* const r = store().find_record(p.key_);
    if (r == nullptr || !store().is_current(p.of_)) return false;
    const chunk c = store().chunk_of(*r);
    if (!store().has_possible_map(*r)) return false;
    places at{};
    c.find(p.blocks_, at);
    const bool in_place = store().in_place && p.blocks_.count == 1;
    const bool first = c.base() != no_block && chunk::in_one_word(p.blocks_);
    for (std::uint32_t b = p.blocks_.first; b < p.blocks_.end(); ++b)
      if (at[b] == hole || (at[b] == 0 ? !first : !in_place)) return false;
    std::errc failure{};
    return plan_write(s, *store().state_for_writing(s, p.key_, failure), p);
  }

  // False: there is no space. Throws std::bad_alloc. The state was left then.
  [[nodiscard]] bool plan_write(stripe& s, writer_state& state, plan& p) {
    places at{};
    bool fits = false;
    const std::errc e = unless_exhausted([&]() -> std::errc {
      p.promise(s, p.blocks_.count);
      fits = choose_places(s, state, places_now(state, p, at), at, p);
      return {};
    });
    if (!fits) {
      p.release(s);
      store().leave_state(s, p.key_);
      if (e != std::errc{}) throw std::bad_alloc();
      return false;
    }
    p.generation_ = s.gone.enter();
    return true;
  }

  // Sets `at` to where the blocks of a write are now. False: its data may not go to places that a chunk has.
  [[nodiscard]] bool places_now(writer_state& state, const plan& p, places& at) {
    record& durable = *state.where;
    const auto guard = store().records.guard(durable);
    record& now = store().records.newest(durable);
    if (!has_key(now, p.key_)) return container::settles_at_once || is_sure(durable);
    const chunk c = store().chunk_of(now);
    c.find(p.blocks_, at);
    state.is_full_enough = c.is_full_enough();
    if (!state.may_write_directly()) return false;
    if (&now == &durable) return is_sure(durable);
    // An overwrite in place of a block that is about to have another place could be lost, or be undone by a crash.
    places before{};
    if (has_key(durable, p.key_)) store().chunk_of(durable).find(p.blocks_, before);
    return is_sure(durable) && before[p.blocks_.first] == at[p.blocks_.first];
  }
  [[nodiscard]] bool is_sure(const record& r) const noexcept {
    if constexpr (container::settles_at_once)
      return true;
    else
      return store().records.is_sure(r);
  }

  // Decides where a write goes; `at`: where its blocks are now. `directly`: as places_now. False: the drive is full.
  [[nodiscard]] bool choose_places(stripe& s, writer_state& state, bool directly, const places& at, plan& p) {
    const range blocks = p.blocks_;
    const auto is_there = [&](std::uint32_t b) { return at[b] != 0 && at[b] != hole; };
    const bool is_read = s.wide_reads_of(p.key_) > 0;
    if (directly && !is_read && store().in_place && blocks.count == 1 && is_there(blocks.first)) {
      ++state.direct;
      p.way_ = plan::way::in_place;
      p.parts_ = {{blocks, at[blocks.first]}};
      return true;
    }
    bool first = directly && state.base != no_block;
    for (std::uint32_t b = blocks.first; b < blocks.end() && first; ++b) first = at[b] == 0 && !state.is_marked(b);
    if (first) {
      ++state.direct;
      p.way_ = plan::way::first;
      p.parts_ = {{blocks, block_behind(state.base, blocks.first)}};
      state.mark(blocks);
      return true;
    }
    p.way_ = plan::way::redirected;
    return take_free(blocks, p.parts_);
  }

  // Free blocks for a range, in one piece if there is one that is long enough. False: there are not enough, or in more
  // pieces than can be named; then the blocks in `parts` are free again. Throws std::bad_alloc: `parts` are unchanged.
  [[nodiscard]] bool take_free(range blocks, std::vector<placed>& parts) {
    make_room(parts, 1);
    const auto can_be_named = [&] { return Core::has_maps || parts.size() <= store().shape.ring; };
    if (const std::optional<extent> whole = store().free.take(blocks.count)) {
      parts.push_back({blocks, whole->first});
      if (!can_be_named()) give_up(parts);  // ranges before this one are in pieces
      return !parts.empty();
    }
    const std::vector<extent> pieces = store().free.take_pieces(blocks.count);
    try {
      make_room(parts, pieces.size());
    } catch (const std::bad_alloc&) {
      for (const extent& piece : pieces) store().free.give(piece);
      throw;
    }
    std::uint32_t next = blocks.first;
    for (const extent& piece : pieces) {
      parts.push_back({{next, piece.count}, piece.first});
      next += piece.count;
    }
    if (!pieces.empty() && can_be_named()) return true;
    give_up(parts);
    return false;
  }
  // A group calls this for each of its ranges, so the list grows by more than that.
  static void make_room(std::vector<placed>& parts, std::size_t more) {
    if (const std::size_t needed = parts.size() + more; needed > parts.capacity())
      parts.reserve(std::max(needed, 2 * parts.capacity()));
  }
  void give_up(std::vector<placed>& parts) noexcept {
    for (const placed& p : parts) store().free.give({p.target, p.blocks.count});
    parts.clear();
  }

  // The blocks of a write that was not committed. Its transfers have ended.
  void take_back(stripe& s, const writer_state& state, const plan& p) {
    if (p.way_ == plan::way::redirected) {
      const auto guard = store().records.guard(*state.where);
      for (const placed& part : p.parts_) {
        if (p.is_committed_)
          store().give_back(*state.where, {part.target, part.blocks.count}, p.change_.era());
        else
          s.gone.put({part.target, part.blocks.count});
      }
      return;
    }
    // Another write replaced these blocks of the base extent meanwhile.
    if (store().shape.merge == merge_policy::copy || !has_key(*state.where, p.key_)) return;
    places now{};
    store().chunk_of(*state.where).find(p.blocks_, now);
    for (std::uint32_t b = p.blocks_.first; b < p.blocks_.end(); ++b)
      if (const std::uint32_t own = block_behind(state.base, b); now[b] != 0 && now[b] != own) s.gone.put({own, 1});
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }
  [[nodiscard]] const all_parts<Core>& store() const noexcept { return static_cast<const all_parts<Core>&>(*this); }
};

}  // namespace pmlab::stores::detail::chunk_store
