// Finds the free blocks of a store that was opened.
//
// Nothing of it is needed for reads, for writes in place, and for first writes that one word commits: of the words of a
// chunk, readers take the valid ones, and an entry of the index whose record has another key is none. All other
// operations wait for it. It corrects what a crash left: records without a key that are not zeros, entries of groups
// that were cut off, names in the index, and volumes that were being removed. A crash in it loses nothing: the next
// opening does all of it again.
//
// A container that has read all of its records when it is open gains nothing from waiting: it is done at once.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/options.hpp>
#include <pmlab/stores/chunk_store/used_blocks.hpp>
#include <pmlab/stores/chunk_store/volumes.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: all operations from any thread, but for `begin` and `join`.
template <class Core>
class recovery {
  using container = typename Core::container;
  using chunk = typename Core::chunk;

 public:
  // Begins it when the store is open. Throws as ensure_recovered_or_throw.
  void begin_recovery(const chunk_store_options& options) {
    if constexpr (!container::answers_at_once) {
      ensure_recovered_or_throw();
    } else if constexpr (container::recovers_in_parallel) {
      threads_ = options.recovery_threads != 0 ? options.recovery_threads : sync::recovery_threads();
      if (!options.recovers_in_background) return;
      try {
        background_ = std::thread([this] { static_cast<void>(ensure_recovered()); });
      } catch (const std::system_error&) {
        // The first operation that needs it does it.
      } catch (const std::bad_alloc&) {
      }
    }
  }
  // Waits for what runs in the background.
  void join_recovery() {
    if (background_.joinable()) background_.join();
  }

  // They are known.
  [[nodiscard]] bool is_complete() const noexcept { return recovered_.load(std::memory_order_acquire); }
  // Waits until the free blocks are known, or finds them. An error: of all later calls, too, but for no_memory.
  [[nodiscard]] std::errc ensure_recovered() {
    if (is_complete()) return {};
    const std::scoped_lock lock(mutex_);
    if (is_complete()) return {};
    if (error_ != std::errc{}) return error_;
    try {
      error_ = recover();
    } catch (const std::bad_alloc&) {
      return no_memory;  // a later call may have some
    }
    if (error_ == std::errc{}) recovered_.store(true, std::memory_order_release);
    return error_;
  }
  void ensure_recovered_or_throw() {
    const std::errc e = ensure_recovered();
    if (e == std::errc{}) return;
    if (e == no_memory) throw std::bad_alloc();
    constexpr bool can_be_read = container::answers_at_once;
    throw error("the chunk store in " + store().records.name() + " cannot be " + (can_be_read ? "written" : "opened") +
                    ": " + problem_,
                error_ == std::errc::not_enough_memory
                    ? "make the pool larger"
                    : (can_be_read ? "restore the pool from a copy; it can be read" : "restore the drive from a copy"));
  }

  // Why they cannot be found.
  [[nodiscard]] const std::string& recovery_problem() const noexcept { return problem_; }

 private:
  // Throws pmlab::error if the drive fails: of a container whose records lie there; std::bad_alloc: a later call does
  // the rest, or all of it.
  [[nodiscard]] std::errc recover() {
    if (!has_free_blocks_)
      if (const std::errc e = find_free_blocks(); e != std::errc{}) return e;
    has_free_blocks_ = true;
    store().finish_interrupted_removals();
    return {};
  }
  [[nodiscard]] std::errc find_free_blocks() {
    used_blocks used(store().geometry.blocks);
    bool right = used.mark(0, store().records.first_data_block());
    std::atomic<std::uint64_t> chunks{0};
    right &= walk_records(used, chunks);
    if (!right) {
      problem_ = "a block has no or two owners";
      return std::errc::state_not_recoverable;
    }
    if (!correct_index(chunks.load())) {
      problem_ = "the pool has no space for its index";
      return std::errc::not_enough_memory;
    }
    store().free.fill(used.free_extents(), store().geometry.blocks);
    return {};
  }

  // Marks the blocks of all chunks, and counts these. False: a block has two owners, or there is no such block.
  [[nodiscard]] bool walk_records(used_blocks& used, std::atomic<std::uint64_t>& chunks) {
    std::atomic<bool> right{true};
    std::atomic<bool> has_memory{true};
    if constexpr (!container::changes_as_a_whole) store().records.forget_all();
    store().records.for_each_part(threads_, [&](auto&& for_each_of_part) {
      std::vector<record*> unused;
      std::uint64_t found = 0;
      bool fits = true;
      try {
        for_each_of_part([&](record& r) {
          if (r.key.load(std::memory_order_acquire) != 0) {
            ++found;
            fits &= mark_blocks_of(r, used);
            return;
          }
          if constexpr (!container::changes_as_a_whole) {
            store().records.clear(r);
            unused.push_back(&r);
          }
        });
        if constexpr (!container::changes_as_a_whole) store().records.give_all(unused, found);
      } catch (const std::bad_alloc&) {
        has_memory.store(false, std::memory_order_relaxed);
      }
      chunks.fetch_add(found, std::memory_order_relaxed);
      if (!fits) right.store(false, std::memory_order_relaxed);
    });
    if (!has_memory.load()) throw std::bad_alloc();
    return right.load();
  }

  // Blocks that the drive does not have cost the chunk whose damaged record names them, and no other.
  [[nodiscard]] bool mark_blocks_of(record& r, used_blocks& used) {
    if (chunk::is_plain(store().shape, r)) {
      const std::uint64_t base = chunk::base_of(r);
      const std::uint64_t there = store().geometry.blocks - std::min(store().geometry.blocks, base);
      return used.mark(base, std::min<std::uint64_t>(there, store().shape.blocks));
    }
    if (!store().has_possible_map(r)) return false;
    if constexpr (!container::changes_as_a_whole) static_cast<void>(store().chunk_of(r).clear_cut_off_entries());
    bool right = true;
    store().for_each_owned(r, [&](std::uint64_t block) {
      if (block < store().geometry.blocks) right &= used.mark(block, 1);
    });
    return right;
  }

  // Removes names of the index whose record is not theirs, and adds those that it lacks. Before any operation changes
  // it.
  [[nodiscard]] bool correct_index([[maybe_unused]] std::uint64_t chunks) {
    if constexpr (Core::has_pairs)
      return true;
    else
      return correct_names(chunks);
  }
  [[nodiscard]] bool correct_names(std::uint64_t chunks) {
    std::vector<std::pair<std::uint64_t, const record*>> stale;
    std::uint64_t right = 0;
    store().records.for_each_entry([&](std::uint64_t key, const record& r) {
      if (has_key(r, key))
        ++right;
      else
        stale.emplace_back(key, &r);
    });
    for (const auto& [key, r] : stale) store().records.leave(key, *r);
    if (right == chunks) return true;
    bool fits = true;
    store().records.for_each([&](record& r) {
      const std::uint64_t key = r.key.load(std::memory_order_acquire);
      if (key != 0 && store().find_record(key) != &r) fits &= store().records.enter(key, r);
    });
    return fits;
  }

  [[nodiscard]] all_parts<Core>& store() noexcept { return static_cast<all_parts<Core>&>(*this); }

  std::atomic<bool> recovered_{false};
  std::mutex mutex_;
  std::errc error_{};  // behind it
  bool has_free_blocks_ = false;
  std::string problem_;
  unsigned threads_ = 1;
  std::thread background_;
};

}  // namespace pmlab::stores::detail::chunk_store
