// Gives slabs that are nearly empty back to the medium: their nodes are moved to others, a few at a time.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/sync/epoch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace pmlab::indexes::detail::skip_list {

// A slab to be released is closed: its free nodes are not allocated. A pass visits each of its nodes that is in use,
// and moves those that are in a list. Then the slab waits until all its nodes are free: moved or erased ones when no
// guard may reach them, nodes of an insert under way when it gives up. Nodes that such an insert has linked since are
// moved by another pass.
//
// Thread safety: `step` from any number of threads; one of them works. It waits for no other operation, and holds
// nothing that one waits for but the locks of single nodes.
template <class Slabs>
class compaction {
  using record = typename Slabs::record;

 public:
  // Does a part of the work, if there is any. REQUIRES: this thread has no guard. `recover` as for Slabs::allocate;
  // move(node) moves a node that is in a list: false if there is no node to move it to; shrink() does other work of
  // that kind. If the list is damaged, work ends.
  template <class Recover, class Move, class Shrink>
  void step(Slabs& nodes, sync::epochs& epochs, Recover&& recover, Move&& move, Shrink&& shrink) noexcept {
    const std::unique_lock alone(mutex_, std::try_to_lock);
    if (!alone.owns_lock() || has_failed_) return;
    try {
      if (++steps_ % steps_for_a_slab == 0) nodes.learn_of_one(recover);
      if (waiting_ > 0) finish(nodes, epochs);
      work(nodes, recover, move);
      shrink();
    } catch (const std::bad_alloc&) {
      // Another time.
    } catch (const error&) {
      has_failed_ = true;
    }
  }

 private:
  static constexpr std::size_t most_waiting = 8;  // slabs that wait for their last nodes
  static constexpr std::size_t most_passes = 4;   // over one slab
  static constexpr std::size_t patience = 2;      // steps before readers are waited for
  static constexpr std::size_t steps_for_a_slab =
      4;  // steps for a slab of an earlier run, whose free nodes are not known
  static constexpr std::size_t words_of_a_step = 3 + Slabs::batch;  // 64 nodes each, free ones included
  static constexpr std::size_t moves_of_a_step = 4 * Slabs::batch;

  struct emptied {
    record* slab = nullptr;
    std::size_t passes = 0;
    std::size_t steps = 0;  // since the last pass
  };

  // Releases slabs all of whose nodes are free.
  void finish(Slabs& nodes, sync::epochs& epochs) {
    nodes.release_all_snipped();
    release(nodes);
    const bool late =
        std::any_of(slabs_.begin(), slabs_.begin() + waiting_, [](const emptied& e) { return e.steps >= patience; });
    if (!late) return;
    // Nodes may wait in the epochs for a thread that is idle.
    epochs.reclaim();
    nodes.release_all_snipped();
    release(nodes);
  }

  void release(Slabs& nodes) {
    for (std::size_t i = 0; i < waiting_;) {
      emptied& e = slabs_[i];
      if (nodes.release_if_empty(*e.slab) || !nodes.is_closed(*e.slab)) {
        e = slabs_[--waiting_];
      } else {
        ++e.steps;
        ++i;
      }
    }
  }

  template <class Recover, class Move>
  void work(Slabs& nodes, Recover& recover, Move& move) {
    std::size_t moves = moves_of_a_step;
    for (std::size_t words = words_of_a_step; words > 0; --words) {
      if (current_.slab == nullptr && !choose(nodes, recover)) return;
      const std::size_t first = next_ - next_ % record::word_bits;
      std::uint64_t used = nodes.used_among(*current_.slab, first) >> next_ % record::word_bits
                                                                          << next_ % record::word_bits;
      for (; used != 0; used &= used - 1) {
        next_ = first + static_cast<std::size_t>(std::countr_zero(used));
        if (moves-- == 0) return;
        if (move(current_.slab->slab->nodes[next_])) continue;
        nodes.open_again(*current_.slab, false);
        current_ = {};
        return;
      }
      next_ = first + record::word_bits;
      if (next_ >= Slabs::slab_type::capacity) end_pass(nodes);
    }
  }

  // Sets `current_`. False: no slab needs to be emptied now.
  template <class Recover>
  bool choose(Slabs& nodes, Recover& recover) {
    next_ = 0;
    for (std::size_t i = 0; i < waiting_; ++i) {
      if (slabs_[i].steps < 2 * patience) continue;
      const emptied late = slabs_[i];
      slabs_[i--] = slabs_[--waiting_];
      if (late.passes == most_passes) {
        nodes.open_again(*late.slab, true);
        continue;
      }
      current_ = {late.slab, late.passes, 0};
      nodes.collect(*late.slab);
      return true;
    }
    if (waiting_ == most_waiting) return false;
    record* const found = nodes.close_emptiest(recover);
    // One that had been opened while it waited, perhaps.
    for (std::size_t i = 0; i < waiting_; ++i)
      if (slabs_[i].slab == found) slabs_[i--] = slabs_[--waiting_];
    current_ = {found, 0, 0};
    return found != nullptr;
  }

  void end_pass(Slabs& nodes) {
    emptied e = current_;
    current_ = {};
    if (nodes.release_if_empty(*e.slab) || !nodes.is_closed(*e.slab)) return;
    ++e.passes;
    slabs_[waiting_++] = e;
  }

  std::mutex mutex_;
  emptied current_;       // the slab of this pass
  std::size_t next_ = 0;  // its next node
  std::array<emptied, most_waiting + 1> slabs_;
  std::size_t waiting_ = 0;
  std::size_t steps_ = 0;
  bool has_failed_ = false;
};

}  // namespace pmlab::indexes::detail::skip_list
