// Reads of blocks of one chunk, between their plan and their end.
#pragma once

#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>

#include <cstdint>
#include <mutex>
#include <system_error>

namespace pmlab::stores::detail::chunk_store {

// Steps of operations; chunk_store states their contracts. Thread safety: all operations from any thread.
template <class Core>
class reads {
 public:
  [[nodiscard]] plan begin_read(volume_number v, std::uint64_t number, range blocks) {
    plan p(v, number);
    p.blocks_ = blocks;
    p.failure_ = unless_exhausted([&] { return plan_read(v, blocks, p); });
    return p;
  }
  void end_read(const plan& p) noexcept {
    stripe& s = store().stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    s.gone.leave(p.generation_, store().free);
    s.readers.leave(p.epoch_);
    if (is_wide(p)) --s.wide_reads_of(p.key_);
    if (s.merges > 0) store().changes.count_one();
  }

 private:
  [[nodiscard]] std::errc plan_read(volume_number v, range blocks, plan& p) {
    stripe& s = store().stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    if (!store().is_current(v)) return volume_removed;
    places at{};
    std::errc failure{};
    if (record* const r = store().look_up(p.key_, failure)) {
      const auto guard = store().records.guard(*r);
      if (!store().has_possible_map(*r)) return damaged_record;
      if (has_key(*r, p.key_)) store().chunk_of(*r).find(blocks, at);
    }
    if (failure != std::errc{}) return failure;
    p.parts_ = joined(blocks, at);
    p.generation_ = s.gone.enter();
    p.epoch_ = s.readers.enter();
    if (is_wide(p)) ++s.wide_reads_of(p.key_);
    return {};
  }

  // A read of several blocks, of a store that writes in place: the drive keeps one block whole (B8), and the read is to
  // see no write without those that ended before it. Nothing is written in place while such a read of the chunk runs:
  // the writes in place that it meets were under way when it began, so that they may take effect in any order.
  [[nodiscard]] bool is_wide(const plan& p) const noexcept { return store().in_place && p.blocks_.count > 1; }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }
  [[nodiscard]] const all_parts<Core>& store() const noexcept { return static_cast<const all_parts<Core>&>(*this); }
};

}  // namespace pmlab::stores::detail::chunk_store
