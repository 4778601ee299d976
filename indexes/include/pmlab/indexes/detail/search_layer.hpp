// The search layer: an ordered map in DRAM from keys to words, which refer to a separate data layer.
//
// Levels of sorted blocks (search_block.hpp), each level a list: as a tree it is a B-link tree [B-link], as a list it
// is a deterministic skip list whose towers are arrays in blocks [Deterministic skip list]. FP-tree has its inner nodes
// here, the skip list its towers. It is volatile: its user builds it again after a restart, and must tolerate a missing
// entry.
//
// Thread safety: any operation from any number of threads (`build`: no concurrent call). Progress: readers write
// nothing; they wait while a writer changes a block that they read. Writers lock one block at a time, or two neighbours
// from left to right.
//
// Invariants:
//   S1  The live blocks of a level follow each other without gap: next->low == last + 1. The first one's low is 0, the
//       last one's `last` 2^64 - 1. The first block of a level is never removed.
//   S2  Every entry is in the block that is in charge of its key; entries of level n + 1 are (low, block) of level n.
//   S3  A block that its parent does not know yet is found through its left neighbour. It is removed only when the
//       parent knows it, and freed only when the parent has dropped it: empty, or with entries that its left neighbour
//       takes, too.
//   S4  Blocks are never freed while the layer lives (object_pool.hpp). A reader that moves from one block to the next
//       reads the next one's version, and then checks that the first one has not changed: so the next one was part of
//       the layer at that moment, and its version shows whether it still is.
//   S5  A block may be reused on another level, where its words name something else. A reader validates its version
//       before it follows a word, or passes it to `look`.
#pragma once

#include <pmlab/base/simd.hpp>
#include <pmlab/indexes/detail/object_pool.hpp>
#include <pmlab/indexes/detail/search_block.hpp>
#include <pmlab/indexes/detail/word_counts.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/run_in_parallel.hpp>
#include <pmlab/sync/transactions.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <string>

namespace pmlab::indexes::detail {

struct search_entry {
  std::uint64_t key;
  std::uint64_t word;
};

// `Transactions`: how `floor` first tries to find its way; without success it validates versions.
template <sync::transactions Transactions = sync::no_transactions>
class search_layer {
  using block = search_block;
  using states = search_block::states;

 public:
  // `first` is the result of `floor` below the least key. Throws std::bad_alloc.
  explicit search_layer(std::uint64_t first) : first_(first) { make_first_block(); }
  search_layer(const search_layer&) = delete;
  search_layer& operator=(const search_layer&) = delete;
  ~search_layer() = default;

  // Adds (key, word), or gives `key` another word. False: no memory, nothing changed.
  bool put(key_type key, std::uint64_t word) { return put_at(0, key, word); }

  // Removes the entry of `key` if its word is `word`. False: there is no such entry.
  bool remove(key_type key, std::uint64_t word) {
    block& b = lock_in_charge(0, key);
    const std::size_t count = b.count_up_to(key);
    if (count == 0 || b.key_at(count - 1) != key || b.word_at(count - 1) != word) {
      b.lock.unlock();
      return false;
    }
    erase_and_unlock(b, count - 1);
    return true;
  }

  // A search that is under way.
  class descent {
    friend search_layer;
    key_type key_;
    key_type route_;  // on the way down: `key_`, or less where a block has no entry at or below it
    block* at_;
    std::uint64_t version_;
  };

  [[nodiscard]] descent begin(key_type key) const {
    descent d;
    d.key_ = key;
    d.route_ = key;
    restart(d);
    return d;
  }

  // Reads one block. True: the search is over, and `look(word)` was called with the word of the greatest entry whose
  // key is <= the key, after which that entry was found to be current: `look` read the object that the word names while
  // the layer led to it. Only the last call of `look` counts.
  template <class Look>
  bool step(descent& d, Look&& look) const {
    block& b = *d.at_;
    const block::shape shape = b.read_shape();
    if (shape.state == states::dead) return restart(d);
    const bool at_the_bottom = shape.level == 0;
    const key_type sought = at_the_bottom ? d.key_ : d.route_;
    if (sought > b.last.load(std::memory_order_acquire)) return move(d, b.next.load(std::memory_order_acquire));
    const std::size_t count = b.count_up_to(sought, shape.count);
    if (count > 0) [[likely]] {
      const std::uint64_t word = b.word_at(count - 1);
      // A word is followed only if the block was of this level when it was read (S5).
      if (!b.lock.read_validate(d.version_)) [[unlikely]]
        return start_again(d);
      if (!at_the_bottom) return move(d, reinterpret_cast<block*>(word));
      look(word);
    } else if (const key_type low = b.low.load(std::memory_order_acquire); low != 0) {
      // Keys below `low` belong to blocks further left. At the bottom that is also where the entry is; above it,
      // the block there is in charge of `key_`, too (S3).
      if (!b.lock.read_validate(d.version_)) return restart(d);
      d.route_ = low - 1;
      if (at_the_bottom) d.key_ = d.route_;
      return restart(d);
    } else {
      look(first_);
    }
    if (b.lock.read_validate(d.version_)) [[likely]]
      return true;
    return start_again(d);
  }

  // Prefetches the lines that the next step reads.
  static void prefetch(const descent& d) noexcept { d.at_->prefetch(); }

  // Calls `look` as `step` does, until the search is over.
  template <class Look>
  void find(key_type key, Look&& look) const {
    if (Transactions::attempt([&] { find_undisturbed(key, look); })) return;
    if (find_straight_down(key, look)) [[likely]]
      return;
    for (descent d = begin(key); !step(d, look);) {
    }
  }

  // The word of the greatest entry whose key is <= key.
  [[nodiscard]] std::uint64_t floor(key_type key) const {
    std::uint64_t found = 0;
    find(key, [&](std::uint64_t word) { found = word; });
    return found;
  }

  // Fills `out` with the words of the entries whose keys are > key, ascending; returns how many there were. Each
  // block's entries were there at one moment. For looking ahead.
  std::size_t words_after(key_type key, std::span<std::uint64_t> out) const {
    descent d = begin(key);
    while (!step(d, [](std::uint64_t) {})) {
    }
    for (std::size_t found = 0;;) {
      block& b = *d.at_;
      const std::size_t entries = b.size();
      std::size_t filled = found;
      for (std::size_t i = b.count_up_to(key); i < entries && filled < out.size(); ++i) out[filled++] = b.word_at(i);
      block* const next = b.next.load(std::memory_order_acquire);
      const std::uint64_t version = next == nullptr ? 0 : next->lock.read_begin();
      if (!b.lock.read_validate(d.version_)) return found;
      found = filled;
      if (next == nullptr || found == out.size()) return found;
      d.at_ = next;
      d.version_ = version;
    }
  }

  // Fills a layer that nothing was put into with `entries`, which ascend strictly, by the work of `threads` threads.
  // False: no memory; the layer is then empty, and works.
  bool build(std::span<const search_entry> entries, unsigned threads);

  // Memory of the blocks.
  [[nodiscard]] std::uint64_t bytes() const { return pool_.bytes(); }
  [[nodiscard]] std::uint64_t levels() const { return root()->level() + 1; }

  // Every invariant above; no other thread may use the layer meanwhile. For each entry calls visit(key, word).
  template <class Visit>
  void check(check_report& report, Visit&& visit) const;

 private:
  // The entries of a block that `build` makes: room is left for later ones.
  static constexpr std::size_t built_entries = block::capacity - block::capacity / 7;

  // Two neighbours become one if they have so many entries together at most, and one of them, which an entry was just
  // erased from, has a multiple of join_step.
  static constexpr std::size_t most_joined = block::capacity - 4;
  static constexpr std::size_t join_from = most_joined - 1;
  static constexpr std::size_t join_step = 4;

  [[nodiscard]] block* root() const noexcept { return root_.load(std::memory_order_acquire); }

  void make_first_block() {
    block* const made = pool_.take();
    if (made == nullptr) throw std::bad_alloc();
    made->begin(0, 0, block::free_key, nullptr);
    made->set_state(states::announced);
    root_.store(made, std::memory_order_release);
  }

  // ---- reading ----

  bool restart(descent& d) const noexcept {
    d.at_ = root();
    d.version_ = d.at_->lock.read_begin();
    return false;
  }

  // After the data read was found to be out of date.
  bool start_again(descent& d) const noexcept {
    d.route_ = d.key_;
    return restart(d);
  }

  bool move(descent& d, block* to) const noexcept {
    // The root is never removed, nor is the last block's `last` below any key: data read from a block that is changing
    // may be anything.
    if (to == nullptr) return restart(d);
    const std::uint64_t version = to->lock.read_begin();
    if (!d.at_->lock.read_validate(d.version_)) [[unlikely]]
      return start_again(d);
    d.at_ = to;
    d.version_ = version;
    return false;
  }

  // The way that a search nearly always takes: from the root down, without a detour, from few instructions, so that the
  // processor can begin the next search while this one waits for memory. False: it is not so easy; nothing was found.
  template <class Look>
  bool find_straight_down(key_type key, Look& look) const {
#if defined(__x86_64__)
    switch (simd_of_this_cpu()) {
      case simd::avx512: return find_straight_down_by_avx512(key, look);
      case simd::avx2: return find_straight_down_by_avx2(key, look);
      default: break;
    }
#endif
    return find_straight_down<words_one_by_one>(key, look);
  }

#if defined(__x86_64__)
  // Not inlined into code for every CPU, but all of it is inlined into them.
  template <class Look>
  [[gnu::target("avx512vl,avx512dq,popcnt")]] bool find_straight_down_by_avx512(key_type key, Look& look) const {
    return find_straight_down<words_by_avx512>(key, look);
  }
  template <class Look>
  [[gnu::target("avx2,popcnt")]] bool find_straight_down_by_avx2(key_type key, Look& look) const {
    return find_straight_down<words_by_avx2>(key, look);
  }
#endif

  template <class Words, class Look>
  [[gnu::always_inline]] bool find_straight_down(key_type key, Look& look) const {
    const block* b = root();
    std::uint64_t version = b->lock.read_begin();
    for (;;) {
      const block::shape shape = b->read_shape();
      if (shape.state == states::dead || key > b->last.load(std::memory_order_acquire)) [[unlikely]]
        return false;
      const std::size_t count = b->template count_up_to<Words>(key, shape.count);
      if (count == 0 && (shape.level != 0 || b->low.load(std::memory_order_acquire) != 0)) [[unlikely]]
        return false;
      const std::uint64_t word = count == 0 ? first_ : b->word_at(count - 1);
      if (!b->lock.read_validate(version)) [[unlikely]]
        return false;
      if (shape.level == 0) {
        look(word);
        return b->lock.read_validate(version);
      }
      const auto* const child = reinterpret_cast<const block*>(word);
      // The bottom does not stay in the caches: its entries are prefetched together with its header.
      if (shape.level == 1) child->prefetch_entries();
      const std::uint64_t childs_version = child->lock.read_begin();
      if (!b->lock.read_validate(version)) [[unlikely]]
        return false;
      b = child;
      version = childs_version;
    }
  }

  // In a transaction: no other thread changes the words read, as long as no block is locked already.
  template <class Look>
  void find_undisturbed(key_type key, Look& look) const {
    key_type route = key;
    for (block* b = root();;) {
      if (b->lock.is_held() || b->is_dead()) Transactions::give_up();
      const bool at_the_bottom = b->level() == 0;
      const key_type sought = at_the_bottom ? key : route;
      if (sought > b->last.load(std::memory_order_relaxed)) {
        b = b->next.load(std::memory_order_relaxed);
        continue;
      }
      const std::size_t count = b->count_up_to(sought);
      const key_type low = b->low.load(std::memory_order_relaxed);
      if (count > 0 && !at_the_bottom) {
        b = reinterpret_cast<block*>(b->word_at(count - 1));
      } else if (count > 0 || low == 0) {
        look(count > 0 ? b->word_at(count - 1) : first_);
        return;
      } else {
        route = low - 1;
        if (at_the_bottom) key = route;
        b = root();
      }
    }
  }

  // ---- writing ----

  // The locked block of `level` that is in charge of `key`.
  [[nodiscard]] block& lock_in_charge(std::uint64_t level, key_type key) const {
    for (;;) {
      block* b = block_of(level, key);
      for (;;) {
        b->lock.lock();
        if (b->is_in_charge_of(key) && b->level() == level) return *b;
        // Split since it was found: the key is further right.
        block* const next = b->is_dead() || key < b->low.load(std::memory_order_relaxed)
                                ? nullptr
                                : b->next.load(std::memory_order_relaxed);
        b->lock.unlock();
        if (next == nullptr) break;
        b = next;
      }
    }
  }

  // The block of `level` that was in charge of `key` a moment ago.
  [[nodiscard]] block* block_of(std::uint64_t level, key_type key) const {
    descent d = begin(key);
    for (;;) {
      block& b = *d.at_;
      const std::size_t at_level = b.level();
      const key_type sought = at_level == level ? key : d.route_;
      const bool arrived = at_level == level && b.is_in_charge_of(key);
      const std::size_t count = b.count_up_to(sought);
      if (arrived || b.is_dead() || at_level < level) {
        if (arrived && b.lock.read_validate(d.version_)) return &b;
        d.route_ = key;
        restart(d);
      } else if (sought > b.last.load(std::memory_order_acquire)) {
        move(d, b.next.load(std::memory_order_acquire));
      } else if (count > 0 && at_level > level) {
        const std::uint64_t word = b.word_at(count - 1);
        // (S5)
        if (b.lock.read_validate(d.version_))
          move(d, reinterpret_cast<block*>(word));
        else
          start_again(d);
      } else {
        const key_type low = b.low.load(std::memory_order_acquire);
        d.route_ = low != 0 && b.lock.read_validate(d.version_) ? low - 1 : key;
        restart(d);
      }
    }
  }

  bool put_at(std::uint64_t level, key_type key, std::uint64_t word) {
    for (;;) {
      block& b = lock_in_charge(level, key);
      const std::size_t count = b.count_up_to(key);
      if (count > 0 && b.key_at(count - 1) == key) {
        b.word(count - 1).store(word, std::memory_order_release);
        b.lock.unlock();
        return true;
      }
      if (b.size() < block::capacity) {
        b.insert_at(count, key, word);
        b.lock.unlock();
        return true;
      }
      block* const right = split(b, count);
      b.lock.unlock();
      if (right == nullptr) return false;
      announce(*right);
    }
  }

  // Moves the upper entries of a full, locked block to a new one on its right, which is returned. `wanted_at`: the slot
  // for the entry that has no room.
  block* split(block& b, std::size_t wanted_at) {
    block* const right = pool_.take();
    if (right == nullptr) return nullptr;
    // Ascending keys fill the last block: the left block then stays full.
    const bool appending = wanted_at == block::capacity && b.next.load(std::memory_order_relaxed) == nullptr;
    const std::size_t middle = appending ? block::capacity - 1 : block::capacity / 2;
    // Late readers may still read a block that was in use before.
    right->lock.lock();
    right->begin(b.level(), b.key_at(middle), b.last.load(std::memory_order_relaxed),
                 b.next.load(std::memory_order_relaxed));
    for (std::size_t i = middle; i < block::capacity; ++i) right->set(i - middle, b.key_at(i), b.word_at(i));
    right->set_count(block::capacity - middle);
    right->lock.unlock();
    b.next.store(right, std::memory_order_release);
    b.last.store(b.key_at(middle) - 1, std::memory_order_release);
    b.clear_from(middle);
    return right;
  }

  // Adds a block that was split off to the level above. Without memory it is not added: its left neighbour leads to it.
  void announce(block& made) {
    const key_type low = made.low.load(std::memory_order_acquire);
    const std::uint64_t above = made.level() + 1;
    if (above >= levels() && !grow(above)) return;
    if (!put_at(above, low, reinterpret_cast<std::uint64_t>(&made))) return;
    made.lock.lock();
    made.set_state(states::announced);
    made.lock.unlock();
  }

  // Puts a new root above the old one if there is no level `level` yet. False: no memory.
  bool grow(std::uint64_t level) {
    const std::scoped_lock guard(root_mutex_);
    if (level < levels()) return true;
    block* const made = pool_.take();
    if (made == nullptr) return false;
    made->lock.lock();
    made->begin(level, 0, block::free_key, nullptr);
    made->insert_at(0, 0, reinterpret_cast<std::uint64_t>(root()));
    made->set_state(states::announced);
    made->lock.unlock();
    root_.store(made, std::memory_order_release);
    return true;
  }

  // Erases an entry of a locked block. Now and then, when few are left, looks whether it and a neighbour should be one.
  void erase_and_unlock(block& b, std::size_t slot) {
    b.erase_at(slot);
    const key_type low = b.low.load(std::memory_order_relaxed);
    const key_type last = b.last.load(std::memory_order_relaxed);
    const std::uint64_t level = b.level();
    const std::size_t left = b.size();
    b.lock.unlock();
    if (left > join_from || left % join_step != 0) return;
    if ((low == 0 || !join(level, low)) && last != block::free_key) join(level, last + 1);
  }

  [[nodiscard]] static bool can_go(const block& b) noexcept {
    return b.state() == states::announced && b.low.load(std::memory_order_acquire) != 0;
  }

  // Gives the range and the entries of the block that begins at `low` to its left neighbour, if both have few. If
  // others are at work on the two, it may stay. False: there is no such block any more, or it stays.
  bool join(std::uint64_t level, key_type low) {
    block& left = lock_in_charge(level, low - 1);
    block* const right = left.next.load(std::memory_order_relaxed);
    if (right == nullptr || left.last.load(std::memory_order_relaxed) != low - 1) {
      left.lock.unlock();
      return false;
    }
    block& b = *right;
    b.lock.lock();
    const std::size_t entries = b.size();
    const std::size_t before = left.size();
    const bool together = can_go(b) && (entries == 0 || before + entries <= most_joined);
    if (together) {
      for (std::size_t i = 0; i < entries; ++i) left.set(before + i, b.key_at(i), b.word_at(i));
      left.set_count(before + entries);
      b.set_state(states::dead);
      left.next.store(b.next.load(std::memory_order_relaxed), std::memory_order_release);
      left.last.store(b.last.load(std::memory_order_relaxed), std::memory_order_release);
    }
    b.lock.unlock();
    left.lock.unlock();
    if (!together) return false;

    block& parent = lock_in_charge(level + 1, low);
    const std::size_t count = parent.count_up_to(low);
    const bool known = count > 0 && parent.key_at(count - 1) == low &&
                       parent.word_at(count - 1) == reinterpret_cast<std::uint64_t>(&b);
    // Not known: the left neighbour was split at this very key meanwhile, and its new block took the entry's place.
    if (known)
      erase_and_unlock(parent, count - 1);
    else
      parent.lock.unlock();
    pool_.give_back(&b);
    return true;
  }

  // Links a row of blocks that `build` filled into a level.
  static void link_row(block* row, std::size_t blocks, std::uint64_t level) noexcept {
    for (std::size_t i = 0; i < blocks; ++i) {
      block& b = row[i];
      b.low.store(i == 0 ? 0 : b.key_at(0), std::memory_order_relaxed);
      b.last.store(i + 1 == blocks ? block::free_key : row[i + 1].key_at(0) - 1, std::memory_order_relaxed);
      b.next.store(i + 1 == blocks ? nullptr : row + i + 1, std::memory_order_relaxed);
      const block::shape shape{static_cast<std::uint16_t>(b.size()), static_cast<std::uint16_t>(level),
                               states::announced};
      b.shape_word.store(shape.word(), std::memory_order_release);
    }
  }

  std::uint64_t first_;
  object_pool<block> pool_;
  std::atomic<block*> root_{nullptr};
  std::mutex root_mutex_;  // only one thread puts a new root in place
};

template <sync::transactions Transactions>
bool search_layer<Transactions>::build(std::span<const search_entry> entries, unsigned threads) {
  if (entries.empty()) return true;
  std::size_t blocks = (entries.size() + built_entries - 1) / built_entries;
  block* row = pool_.take_row(blocks);
  if (row == nullptr) return false;
  constexpr std::size_t grain = 256;
  sync::run_in_parallel(threads, blocks, grain, [&](std::size_t i) {
    const auto part = entries.subspan(i * built_entries, std::min(built_entries, entries.size() - i * built_entries));
    for (std::size_t slot = 0; slot < part.size(); ++slot) row[i].set(slot, part[slot].key, part[slot].word);
    row[i].set_count(part.size());
  });
  link_row(row, blocks, 0);
  for (std::uint64_t level = 1; blocks > 1; ++level) {
    const std::size_t below = blocks;
    block* const children = row;
    blocks = (below + built_entries - 1) / built_entries;
    row = pool_.take_row(blocks);
    if (row == nullptr) return false;
    for (std::size_t i = 0; i < below; ++i) {
      block& parent = row[i / built_entries];
      parent.set(i % built_entries, children[i].low.load(std::memory_order_relaxed),
                 reinterpret_cast<std::uint64_t>(children + i));
      parent.set_count(i % built_entries + 1);
    }
    link_row(row, blocks, level);
  }
  root_.store(row, std::memory_order_release);
  return true;
}

template <sync::transactions Transactions>
template <class Visit>
void search_layer<Transactions>::check(check_report& report, Visit&& visit) const {
  block* leftmost = root();
  for (std::uint64_t level = levels(); level-- > 0;) {
    block* const first = leftmost;
    key_type low = 0;
    for (block* b = first; b != nullptr; b = b->next.load(std::memory_order_acquire)) {
      const key_type last = b->last.load(std::memory_order_acquire);
      const bool ends = b->next.load(std::memory_order_acquire) == nullptr;
      if (b->is_dead() || b->level() != level) report.add("search layer, S1: a dead block");
      if (b->low.load(std::memory_order_acquire) != low || last < low || ends != (last == block::free_key))
        report.add("search layer, S1: gap before key " + std::to_string(b->low.load(std::memory_order_acquire)));
      for (std::size_t i = 0; i < b->size(); ++i) {
        const key_type k = b->key_at(i);
        if (k < low || k > last || (i > 0 && k <= b->key_at(i - 1)))
          report.add("search layer, S2: key " + std::to_string(k) + " is out of place");
        if (level == 0)
          visit(k, b->word_at(i));
        else if (reinterpret_cast<block*>(b->word_at(i))->low.load(std::memory_order_acquire) != k)
          report.add("search layer, S2: key " + std::to_string(k) + " leads to another block");
      }
      if (!report.ok()) return;
      low = last + 1;
    }
    if (level > 0) leftmost = reinterpret_cast<block*>(first->word_at(0));
  }
}

}  // namespace pmlab::indexes::detail
