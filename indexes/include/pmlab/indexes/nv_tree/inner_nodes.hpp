// The inner nodes of an NV-Tree, all in DRAM: an array that searches descend, and blocks of the leaves' keys below it.
//
// The blocks are a list in the order of their keys. They change in place, under their version locks, and split: a block
// that the array does not know yet is found through its left neighbour. When a writer passes too many of these, or when
// too many blocks are empty, it builds a new array beside the old one when it has released its locks, from the list as
// it is, and publishes it by one store. No operation waits for that: no reader, and no other writer.
//
// Thread safety: any operation from any number of threads, each with a guard of the epochs (`build`, `check`: no
// concurrent call). Progress: readers write nothing; they wait while a writer changes a block that they read.
//
// Invariants:
//   N1  The blocks of the list follow each other without gap: next->low == last + 1. The first one's low is 0, and it
//       is never removed; the last one's `last` is 2^64 - 1. A block's low never changes.
//   N2  Every entry is in the block that is in charge of its key. If a key is below all entries of its block, the
//       greatest entry at or below it is further left.
//   N3  The array's blocks are of the list, or dead: empty ones that were removed from it. A search that meets a dead
//       block begins again further left. Dead blocks are freed when no array knows them and no reader is left (epochs).
#pragma once

#include <pmlab/indexes/detail/search_block.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/inner_array.hpp>
#include <pmlab/sync/epoch.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::nv_tree {

class inner_nodes {
  using block = search_block;

 public:
  explicit inner_nodes(sync::epochs& epochs) : epochs_(epochs) {}
  inner_nodes(const inner_nodes&) = delete;
  inner_nodes& operator=(const inner_nodes&) = delete;
  // REQUIRES: the epochs have been drained.
  ~inner_nodes() {
    delete array_.load(std::memory_order_relaxed);
    free_list(first_);
    free_list(dead_);
  }

  // Makes the blocks of these entries, which ascend strictly and begin with key 0. Throws std::bad_alloc.
  void build(std::span<const search_entry> entries) {
    block* left = nullptr;
    for (std::size_t done = 0; done < entries.size(); done += built_entries) {
      block* const made = new block;
      blocks_.fetch_add(1, std::memory_order_relaxed);
      made->begin(0, entries[done].key, block::free_key, nullptr);
      for (const search_entry& e : entries.subspan(done, std::min(built_entries, entries.size() - done)))
        made->insert_at(made->size(), e.key, e.word);
      if (left == nullptr) {
        first_ = made;
      } else {
        left->last.store(entries[done].key - 1, std::memory_order_relaxed);
        left->next.store(made, std::memory_order_relaxed);
      }
      left = made;
    }
    entries_.store(entries.size(), std::memory_order_relaxed);
    if (!publish_array()) throw std::bad_alloc();
  }

  // The word of the greatest entry whose key is <= `key`.
  [[nodiscard]] std::uint64_t floor(key_type key) const {
    // `route`: where the array is entered; further left than `key` if the way there is blocked.
    for (key_type route = key;;) {
      const block* b = array_.load(std::memory_order_acquire)->find(route);
      b->prefetch_entries();
      for (std::uint64_t version = b->lock.read_begin();;) {
        const block::shape shape = b->read_shape();
        if (shape.state == block::states::dead) [[unlikely]] {
          route = b->low.load(std::memory_order_acquire) - 1;
          break;
        }
        if (key > b->last.load(std::memory_order_acquire)) [[unlikely]] {
          const block* const next = b->next.load(std::memory_order_acquire);
          const std::uint64_t its_version = next == nullptr ? 0 : next->lock.read_begin();
          if (!b->lock.read_validate(version) || next == nullptr) break;
          b = next;
          version = its_version;
          continue;
        }
        const std::size_t count = b->count_up_to(key, shape.count);
        const std::uint64_t word = count == 0 ? 0 : b->word_at(count - 1);
        if (!b->lock.read_validate(version)) [[unlikely]]
          break;
        if (count > 0) [[likely]]
          return word;
        key = b->low.load(std::memory_order_acquire) - 1;
        route = key;
        break;
      }
    }
  }

  // Adds (key, word). False: no memory, nothing changed.
  bool put(key_type key, std::uint64_t word) {
    std::size_t passed = 0;
    block& b = lock_in_charge(key, passed);
    if (b.size() < block::capacity) {
      b.insert_at(b.count_up_to(key), key, word);
    } else {
      block* const right = split(b, key);
      if (right == nullptr) {
        b.lock.unlock();
        return false;
      }
      block& to = b.is_in_charge_of(key) ? b : *right;
      to.insert_at(to.count_up_to(key), key, word);
      right->lock.unlock();
    }
    b.lock.unlock();
    entries_.fetch_add(1, std::memory_order_relaxed);
    if (passed > most_passed) is_due_.store(true, std::memory_order_relaxed);
    return true;
  }

  // Removes the entry of `key` if its word is `word`.
  void remove(key_type key, std::uint64_t word) {
    std::size_t passed = 0;
    block& b = lock_in_charge(key, passed);
    const std::size_t count = b.count_up_to(key);
    const bool is_there = count != 0 && b.key_at(count - 1) == key && b.word_at(count - 1) == word;
    if (is_there) b.erase_at(count - 1);
    b.lock.unlock();
    if (!is_there) return;
    const std::uint64_t left = entries_.fetch_sub(1, std::memory_order_relaxed) - 1;
    const std::uint64_t blocks = blocks_.load(std::memory_order_relaxed);
    if (blocks > 1 && left < blocks * sparse_entries) is_due_.store(true, std::memory_order_relaxed);
  }

  // Builds the array again if `put` or `remove` found that it should be, unless another thread is at it, or there is no
  // memory. For callers that hold no lock: it takes a time that grows with the blocks, and runs retired functions.
  void rebuild_if_due() {
    if (!is_due_.load(std::memory_order_relaxed)) return;
    const std::unique_lock guard(rebuilding_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    is_due_.store(false, std::memory_order_relaxed);
    publish_array();
  }

  // The bytes of the blocks and the array.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return blocks_.load(std::memory_order_relaxed) * sizeof(block) + array_.load(std::memory_order_acquire)->bytes();
  }
  // The levels of the array, and one of blocks.
  [[nodiscard]] std::uint64_t levels() const noexcept { return array_.load(std::memory_order_acquire)->levels() + 1; }

  // Every invariant above. For each entry calls visit(key, word).
  template <class Visit>
  void check(check_report& report, Visit&& visit) const {
    key_type low = 0;
    for (const block* b = first_; b != nullptr; b = b->next.load(std::memory_order_acquire)) {
      const key_type last = b->last.load(std::memory_order_acquire);
      if (b->low.load(std::memory_order_acquire) != low || last < low || b->is_dead())
        report.add("N1: a block does not begin where the one before it ends");
      for (std::size_t i = 0; i < b->size(); ++i) {
        if (!b->is_in_charge_of(b->key_at(i)) || (i > 0 && b->key_at(i) <= b->key_at(i - 1)))
          report.add("N2: key " + std::to_string(b->key_at(i)) + " is in a wrong place of the inner nodes");
        visit(b->key_at(i), b->word_at(i));
      }
      const bool ends = b->next.load(std::memory_order_acquire) == nullptr;
      if (ends != (last == block::free_key)) report.add("N1: a block contradicts its range about being the last one");
      low = last + 1;
    }
    const inner_array& array = *array_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < array.size(); ++i)
      if (!array[i]->is_dead() && array.find(array[i]->low.load(std::memory_order_acquire)) != array[i])
        report.add("N3: the array does not lead to one of its blocks");
  }

 private:
  // The entries of a block that `build` makes: room is left for later ones.
  static constexpr std::size_t built_entries = block::capacity - block::capacity / 7;
  // Two neighbours are joined by a rebuild if they have so many entries together at most.
  static constexpr std::size_t most_joined = block::capacity - 8;
  // With fewer entries per block a rebuild is due; joined ones have more than that.
  static constexpr std::size_t sparse_entries = block::capacity / 4;
  // Blocks on the way of a writer that the array does not know.
  static constexpr std::size_t most_passed = 4;

  static void free_list(block* first) noexcept {
    while (first != nullptr) delete std::exchange(first, first->next.load(std::memory_order_relaxed));
  }

  // The locked block that is in charge of `key`. `passed`: the blocks that had to be passed from the array's.
  [[nodiscard]] block& lock_in_charge(key_type key, std::size_t& passed) const {
    for (key_type route = key;;) {
      block* b = array_.load(std::memory_order_acquire)->find(route);
      for (passed = 0;; ++passed) {
        b->lock.lock();
        if (b->is_in_charge_of(key)) return *b;
        const bool is_dead = b->is_dead();
        block* const next = b->next.load(std::memory_order_relaxed);
        b->lock.unlock();
        if (is_dead) break;
        b = next;
      }
      route = b->low.load(std::memory_order_relaxed) - 1;
    }
  }

  // Moves the upper entries of a full, locked block to a new one on its right, which is returned locked. `made_for`:
  // the key that has no room. nullptr: no memory.
  block* split(block& b, key_type made_for) {
    block* const right = new (std::nothrow) block;
    if (right == nullptr) return nullptr;
    blocks_.fetch_add(1, std::memory_order_relaxed);
    // Ascending keys fill the last block: the left block then stays full.
    const bool appending =
        b.next.load(std::memory_order_relaxed) == nullptr && made_for > b.key_at(block::capacity - 1);
    const std::size_t middle = appending ? block::capacity - 1 : block::capacity / 2;
    right->lock.lock();
    right->begin(0, b.key_at(middle), b.last.load(std::memory_order_relaxed), b.next.load(std::memory_order_relaxed));
    move_entries(b, middle, *right);
    b.next.store(right, std::memory_order_release);
    b.last.store(b.key_at(middle) - 1, std::memory_order_release);
    b.clear_from(middle);
    return right;
  }

  // Appends the entries of `from` from slot `first` on.
  static void move_entries(const block& from, std::size_t first, block& to) noexcept {
    const std::size_t before = to.size();
    const std::size_t count = from.size() - first;
    for (std::size_t i = 0; i < count; ++i) to.set(before + i, from.key_at(first + i), from.word_at(first + i));
    to.set_count(before + count);
  }

  // ---- the array ----

  // One thread at a time. Joins sparse neighbours on the way.
  bool publish_array() {
    inner_array* made = nullptr;
    try {
      std::vector<block*> known;
      known.reserve(blocks_.load(std::memory_order_relaxed));
      for (block* b = first_; b != nullptr; b = b->next.load(std::memory_order_acquire)) {
        while (join_with_next(*b)) {
        }
        known.push_back(b);
      }
      made = inner_array::make(known);
    } catch (const std::bad_alloc&) {
    }
    if (made == nullptr) return false;
    inner_array* const old = array_.exchange(made, std::memory_order_acq_rel);
    if (old == nullptr) return true;
    // The new array knows none of the dead blocks.
    if (epochs_.retire([old, dead = dead_] {
          delete old;
          free_list(dead);
        }))
      dead_ = nullptr;
    else
      made->keep(old);
    return true;
  }

  // False: there is no next block, or they have too many entries for one.
  bool join_with_next(block& b) {
    const auto fit = [&b](const block* next) { return next != nullptr && b.size() + next->size() <= most_joined; };
    if (!fit(b.next.load(std::memory_order_acquire))) return false;
    // Locks are taken from left to right. Only this thread removes blocks.
    const std::scoped_lock guard(b.lock);
    block* const next = b.next.load(std::memory_order_relaxed);
    const std::scoped_lock its_guard(next->lock);
    if (!fit(next)) return false;
    move_entries(*next, 0, b);
    next->set_state(block::states::dead);
    b.next.store(next->next.load(std::memory_order_relaxed), std::memory_order_release);
    b.last.store(next->last.load(std::memory_order_relaxed), std::memory_order_release);
    next->next.store(dead_, std::memory_order_release);
    dead_ = next;
    blocks_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  sync::epochs& epochs_;
  std::atomic<inner_array*> array_{nullptr};
  block* first_ = nullptr;
  std::atomic<std::uint64_t> entries_{0};
  std::atomic<std::uint64_t> blocks_{0};  // blocks of the list
  std::atomic<bool> is_due_{false};
  std::mutex rebuilding_;  // guards the next one
  block* dead_ = nullptr;  // blocks that an array may know, linked by `next`
};

}  // namespace pmlab::indexes::detail::nv_tree
