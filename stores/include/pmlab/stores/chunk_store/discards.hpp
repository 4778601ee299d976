// Discards of blocks of one chunk: they read as zeros, and a chunk that has no others is removed.
#pragma once

#include <pmlab/stores/chunk_store/commits.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/recovery.hpp>
#include <pmlab/stores/chunk_store/removals.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/stores/chunk_store/writers.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Steps of operations; chunk_store states their contracts. Thread safety: all operations from any thread.
template <class Core>
class discards {
 public:
  [[nodiscard]] std::vector<std::uint64_t> chunks_to_discard(volume_number v, std::uint64_t first, std::uint64_t end) {
    // A single one looks itself; where the free blocks cannot be found, one tells the error.
    if (end - first == 1 || store().ensure_recovered() != std::errc{}) return {first};
    std::vector<std::uint64_t> numbers;
    constexpr std::uint64_t few = 256;  // fewer searches than a walk over all records takes
    if (end - first <= few) {
      for (std::uint64_t n = first; n < end; ++n)
        if (may_have_blocks(name_chunk(v.id, n))) numbers.push_back(n);
      return numbers;
    }
    for (const std::uint64_t key : store().keys_of(v.id))
      if (const std::uint64_t n = key - name_chunk(v.id, 0); n >= first && n < end) numbers.push_back(n);
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  [[nodiscard]] std::errc discard_in_chunk(volume_number v, std::uint64_t number, range blocks, plan& p,
                                           bool may_remap) {
    if (p.is_committed_) return end_discard(p);
    p = plan(v, number);
    p.blocks_ = blocks;
    return unless_exhausted([&] { return begin_discard(v, p, may_remap); });
  }

 private:
  [[nodiscard]] bool may_have_blocks(std::uint64_t key) {
    const std::scoped_lock lock(store().stripe_of(key).mutex);
    std::errc failure{};
    return store().look_up(key, failure) != nullptr || failure != std::errc{};
  }
  // Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] std::errc begin_discard(volume_number v, plan& p, bool may_remap) {
    const std::uint64_t key = p.key_;
    const range blocks = p.blocks_;
    if (const std::errc e = store().ensure_recovered(); e != std::errc{}) return e;
    store().reserve(p, blocks.count);
    stripe& s = store().stripe_of(key);
    auto lock = store().lock_for_writing(s, key);
    if (!store().is_current(v)) return volume_removed;
    std::errc failure{};
    record* const r = store().look_up(key, failure);
    const auto writing = s.writers.find(key);
    if (r == nullptr) return failure;
    // Without a write there must be nothing on the drive that a crash could bring.
    if (!store().make_sure(*r)) return std::errc::io_error;
    bool all = writing == s.writers.end() || !writing->second.has_users();
    {
      const auto guard = store().records.guard(*r);
      record& now = store().records.newest(*r);
      if (!has_key(now, key)) return {};  // a first write may be under way: it is later
      // A chunk without data keeps no blocks.
      const range after{blocks.end(), store().shape.blocks - blocks.end()};
      all = all && reads_as_zeros(now, key, {0, blocks.first}) && reads_as_zeros(now, key, after);
      // Durably: another discard of the same blocks may be under way.
      if (!all && reads_as_zeros(now, key, blocks) && (&now == r || reads_as_zeros(*r, key, blocks))) return {};
    }
    if (all) return store().remove_chunk(s, lock, key, *r);
    writer_state* const state = store().state_for_writing(s, key, failure);
    if (state == nullptr) return failure;
    const placed nothing{blocks, hole};
    const std::errc result = unless_exhausted([&] {
      p.promise(s, blocks.count);
      return store().commit(s, *state, p, {&nothing, 1}, false, may_remap);
    });
    if (result == not_durable_yet) return result;
    p.wants_merge_ = state->wants_merge();
    p.release(s);
    store().leave_state(s, key);
    s.gone.collect(store().free);
    return result;
  }

  [[nodiscard]] std::errc end_discard(plan& p) {
    const std::errc result = store().result_of(p.change_);
    if (result == not_durable_yet) return result;
    stripe& s = store().stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    for (const extent& e : p.replaced_)
      if (result == std::errc{}) s.gone.put(e);
    writer_state& state = s.writers.at(p.key_);
    if (result != std::errc{}) state.failed_in(p.change_.era());
    p.wants_merge_ = state.wants_merge();
    p.release(s);
    store().leave_state(s, p.key_);
    s.gone.collect(store().free);
    return result;
  }

  [[nodiscard]] bool reads_as_zeros(record& r, std::uint64_t key, range blocks) const {
    if (!has_key(r, key)) return true;
    places at{};
    store().chunk_of(r).find(blocks, at);
    return std::all_of(at.begin() + blocks.first, at.begin() + blocks.end(),
                       [](std::uint32_t b) { return b == 0 || b == hole; });
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }
  [[nodiscard]] const all_parts<Core>& store() const noexcept { return static_cast<const all_parts<Core>&>(*this); }
};

}  // namespace pmlab::stores::detail::chunk_store
