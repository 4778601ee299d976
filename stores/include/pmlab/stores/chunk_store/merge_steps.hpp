// The steps of a merge by copy, which copy_merges.hpp takes one after another: the blocks that are to be copied, and
// the change of the chunk when its base extent has the data.
#pragma once

#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/recovery.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/stores/chunk_store/writers.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>

namespace pmlab::stores::detail::chunk_store {

// Steps of operations; chunk_store states their contracts. Thread safety: all operations from any thread.
template <class Core>
class merge_steps {
  using container = typename Core::container;
  using chunk = typename Core::chunk;

 public:
  [[nodiscard]] bool begin_merge(std::uint64_t key, merge_plan& m) {
    m = merge_plan();
    m.key_ = key;
    if (!store().is_complete()) return false;
    bool begins = false;
    m.failure_ = unless_exhausted([&] {
      begins = plan_merge(key, m);
      return std::errc{};
    });
    return begins;
  }

  [[nodiscard]] bool may_overwrite(const merge_plan& m) {
    stripe& s = store().stripe_of(m.key_);
    const std::scoped_lock lock(s.mutex);
    return s.readers.have_left(m.epoch_);
  }

  [[nodiscard]] bool end_merge(merge_plan& m, bool copied) {
    stripe& s = store().stripe_of(m.key_);
    {
      const std::scoped_lock lock(s.mutex);
      if (m.is_committed_ && !m.change_.is_settled()) return false;
      const auto at = s.writers.find(m.key_);
      // Its volume may have been removed meanwhile.
      if (at != s.writers.end() && at->second.merge == m.id_) {
        writer_state& state = at->second;
        if (!m.is_committed_ && copied && !state.merge_is_void) {
          // Without DRAM it is given up.
          m.failure_ = unless_exhausted([&] {
            commit_merge(s, state, m);
            return std::errc{};
          });
          if (m.is_committed_) return false;
        }
        state.merge = 0;
        store().leave_state(s, m.key_);
      }
      if (m.is_committed_) m.failure_ = m.change_.error();
      if (m.is_committed_ && m.failure_ == std::errc{}) finish_merge(s, m);
      s.leaving.erase(m.id_);
      s.gone.leave(m.generation_, store().free);
      m.release(s);
      --s.merges;
    }
    store().changes.count_one();
    return true;
  }

 private:
  // As begin_merge. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] bool plan_merge(std::uint64_t key, merge_plan& m) {
    stripe& s = store().stripe_of(key);
    const std::scoped_lock lock(s.mutex);
    std::errc failure{};
    record* const durable = store().look_up(key, failure);
    if (durable == nullptr) return false;
    const auto writing = s.writers.find(key);
    if (writing != s.writers.end() &&
        (writing->second.merge != 0 || writing->second.direct > 0 || writing->second.removing))
      return false;
    // The durable entries: the data of others must not overwrite blocks that the durable record names.
    const auto guard = store().records.guard(*durable);
    if (!has_key(*durable, key) || !has_key(store().records.newest(*durable), key)) return false;
    const chunk c = store().chunk_of(*durable);
    if (!c.merges_by_copy() || c.is_merged()) return false;
    m.base_ = c.base();
    m.entries_ = c.ring_entries();
    c.find({0, store().shape.blocks}, m.before_);
    for (const placed& p : joined({0, store().shape.blocks}, m.before_))
      if (p.target != hole && !c.in_base(p.target)) m.sources_.push_back(p);
    m.id_ = merge_ids_.fetch_add(1, std::memory_order_relaxed) + 1;
    writer_state* const state = join_merge(s, *durable, m);
    state->merge = m.id_;
    state->merge_is_void = false;
    m.generation_ = s.gone.enter();
    m.epoch_ = s.readers.now();
    ++s.merges;
    return true;
  }
  // The state of its chunk, with memory for the blocks that it replaces. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] writer_state* join_merge(stripe& s, record& r, merge_plan& m) {
    std::uint32_t count = 0;
    for (const placed& p : m.sources_) count += p.blocks.count;
    s.gone.promise(count);
    try {
      s.leaving[m.id_].reserve(count);
      writer_state* const state = store().state_of_writers(s, m.key_, r);
      m.promised_ = count;
      return state;
    } catch (const std::bad_alloc&) {
      s.leaving.erase(m.id_);
      s.gone.release(count);
      throw;
    }
  }

  // The base extent has the data of the merge's blocks. Blocks that newer entries replaced meanwhile are free already.
  void commit_merge(stripe& s, writer_state& state, merge_plan& m) {
    const auto guard = store().records.guard(*state.where);
    record& r = store().records.edit(*state.where, 0);
    chunk c = store().chunk_of(r);
    places now{};
    c.find({0, store().shape.blocks}, now);
    block_bits written{};
    for (std::uint32_t b = 0; b < store().shape.blocks; ++b)
      if (m.before_[b] != 0 && m.before_[b] != hole) written[b / 64] |= std::uint64_t{1} << (b % 64);
    c.take_base(m.entries_, written);
    for (const placed& p : m.sources_)
      for (std::uint32_t b = p.blocks.first; b < p.blocks.end(); ++b)
        if (now[b] == m.before_[b]) s.leaving[m.id_].push_back({now[b], 1});
    state.is_full_enough = store().chunk_of(r).is_full_enough();
    state.lacks_room = false;
    if constexpr (container::settles_at_once) {
      finish_merge(s, m);
    } else {
      store().records.add(*state.where, m.change_, 0);
      m.is_committed_ = true;
    }
  }
  void finish_merge(stripe& s, const merge_plan& m) {
    std::uint64_t copied = 0;
    for (const placed& p : m.sources_) copied += p.blocks.count;
    for (const extent& e : s.leaving[m.id_]) s.gone.put(e);  // (W3) < here: C5
    store().counts.merges.fetch_add(1, std::memory_order_relaxed);
    store().counts.copied_bytes.fetch_add(copied * store().geometry.block_bytes, std::memory_order_relaxed);
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }

  std::atomic<std::uint64_t> merge_ids_{0};
};

}  // namespace pmlab::stores::detail::chunk_store
