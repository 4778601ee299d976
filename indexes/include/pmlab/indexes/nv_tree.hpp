// NV-Tree: unsorted leaves in persistent memory, in which entries are appended, and inner nodes in DRAM, after Yang et
// al., FAST'15 [NV-Tree].
//
// Use it for ordered data if inserts matter most on a device with large lines: an insert flushes one cache line and
// fences once. With splits, random keys: 1.8 lines, 1.2 device lines and 1.05 fences (FP-tree 2.3, 2.0, 2.0; FAST-FAIR
// 3.0, 2.7, 2.7); a search reads 1.05 lines, and 0.17 for an absent key (indexes/tests/counted_nv_tree_test.cpp).
// Scans, and searches in DRAM, are faster in an FP-tree. Opening reads all leaves, as an FP-tree's does.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers write nothing that others read except their epoch; they wait only while a writer changes a leaf
// that they read, or a block of the inner nodes, and never for a new inner array. Writers lock one leaf at a time; the
// replacement of a leaf locks its left neighbour, too, and a join the right one besides.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the leaf's version lock, and a reader returns only if that lock was free and unchanged
// while it read: it cannot have read anything that a crash undoes.
//
// Layout:
//
//   DRAM     inner array: lines of eight keys, without pointers                          (nv_tree/inner_array.hpp)
//                |                 |
//              block  --------->  block  ---> ...   least key of a leaf -> its descriptor  (nv_tree/inner_nodes.hpp)
//                |                 |
//            descriptor  ----> descriptor ----> ...   lock, range, fingerprints of a leaf  (nv_tree/descriptor.hpp)
//   ---------    | --------------- | ----------------------------------------------------------------------------------
//   medium       v                 v
//   head ---->  leaf   ------->   leaf   -------> ...   1024 bytes: link, low, 62 slots    (nv_tree/leaf.hpp)
//
//            named root -> leaf group -> leaf group -> ... -> the oldest one, which begins with the head
//
// Differences from the paper:
//  * An entry and the mark that makes it valid are one word and its value in one line: a leaf's keys have equal upper
//    bits, in whose place the word keeps the slot's state. So an insert flushes one line and fences once; the paper's
//    flushes the entry and then the leaf's counter. The tree begins with four leaves, and none ever spans two quarters
//    of the keys.
//  * Erasing marks the entry in place, with one flush. The paper appends a negative entry, which takes a slot, so that
//    an erase may need a new leaf; here it never needs space. Values are eight bytes: an update replaces one in place.
//    Slots of erased entries are reclaimed when the leaf is replaced, not before.
//  * Searches do not read the leaf from its end: fingerprints in DRAM locate the entry. They can be computed from the
//    keys, so recovery computes them again.
//  * A full leaf is replaced as in the paper: by one or two new leaves that hold its live entries, linked by one store.
//    The paper stops all threads to rebuild the inner nodes if a parent of leaves is full. Here such a block splits, is
//    found through its left neighbour, and the array above is built beside the old one and published by one store.
//  * Empty leaves are unlinked, sparse neighbours are replaced by one leaf, and groups of leaves are returned to the
//    medium: if more than a fifth of the leaves are free, leaves of others replace the leaves of the emptiest group.
//    The paper does not reclaim leaves.
//  * No logs: a leaf is part of the tree if the list leads to it, and every change of the list is one store. The set of
//    free leaves is not stored.
//
// Invariants (L1 to L4: nv_tree/leaf.hpp; G1, G2: detail/leaf_group.hpp; N1 to N3: nv_tree/inner_nodes.hpp):
//   D1  The linked descriptors describe the leaves in the medium's list, in the same order.
//   D2  A linked leaf is in charge of the keys from its low to its `last`; the next one's low is last + 1. The first
//       leaf's low is 0, the last one's `last` 2^64 - 1.
//   D3  A descriptor has the fingerprints of its leaf's live entries, 0 for every other slot, and `appended` counts
//       the slots that are not free.
//   D4  The inner nodes lead to linked leaves only, by their low. One that they do not know (there was no memory, or
//       the split is under way) is found through its left neighbour.
//   D5  The thread that empties a leaf unlinks it, except the first one of a region. A crash may leave an empty leaf
//       until it is filled and replaced.
//   D6  Descriptors, and leaves that were replaced, are reused when no reader is left that began before (epochs). For a
//       reader that moves from one descriptor to the next see detail/leaf_versions.hpp.
//   D7  A leaf is in the tree, free, or has left it and waits for readers (or for the next opening).
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/after_reclaiming.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/leaf_versions.hpp>
#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/check.hpp>
#include <pmlab/indexes/nv_tree/descriptor.hpp>
#include <pmlab/indexes/nv_tree/gathered.hpp>
#include <pmlab/indexes/nv_tree/inner_nodes.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/indexes/nv_tree/leaf_store.hpp>
#include <pmlab/indexes/nv_tree/recovery.hpp>
#include <pmlab/indexes/nv_tree/replacer.hpp>
#include <pmlab/indexes/nv_tree/salvage.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/relax.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::indexes {

// Tree with append-only leaves [NV-Tree]. See the file's prologue for its use, thread safety, durability and layout.
template <media::medium Medium>
class nv_tree {
  using leaf = detail::nv_tree::leaf;
  using slot = detail::nv_tree::slot;
  using slot_set = detail::nv_tree::slot_set;
  using slot_word = detail::nv_tree::slot_word;
  using states = detail::nv_tree::states;
  using descriptor = detail::nv_tree::descriptor;
  using gathered_entries = detail::nv_tree::gathered_entries;
  using aftermath = detail::nv_tree::aftermath;
  using row = detail::nv_tree::row;

 public:
  static constexpr std::string_view layout_name = "nv_tree";
  static constexpr std::uint64_t layout_version = 1;
  // Entries that a leaf has room for.
  static constexpr std::size_t capacity = detail::nv_tree::slots_of_leaf<Medium>;

  // Opens the tree `name` in `medium`, or creates an empty one. Reads every leaf, with up to `threads` threads. Throws
  // pmlab::error: the name belongs to another layout, the tree is corrupt (a link, or a slot that no operation leaves
  // so), no space for an empty tree, no memory. `medium` must outlive the index.
  static nv_tree open(Medium& medium, std::string_view name = layout_name,
                      unsigned threads = sync::recovery_threads()) {
    try {
      return detail::with_the_name("NV-Tree", name, [&] { return nv_tree(medium, name, threads); });
    } catch (const std::bad_alloc&) {
      throw error("no memory for the inner nodes of an NV-Tree", "free some memory");
    }
  }

  // Calls function(key, value) for the readable entries of a tree that does not open: first for its list, then for the
  // leaves that no intact link leads to. Changes nothing. Throws pmlab::error afterwards, if there was any
  // damage: with the unreadable parts, and with entries that may have been erased before.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    detail::with_the_name("NV-Tree", name, [&] { detail::nv_tree::salvage(medium, root, function); });
  }

  nv_tree(const nv_tree&) = delete;
  nv_tree& operator=(const nv_tree&) = delete;
  ~nv_tree() {
    epochs_.drain();
    for (descriptor* d = next_of(head_); d != nullptr;) delete std::exchange(d, next_of(*d));
    for (descriptor* d = kept_.load(std::memory_order_relaxed); d != nullptr;) delete std::exchange(d, next_of(*d));
  }

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and one fence; a full leaf is replaced before, by two new ones or by one, which writes
  // these and a line of the leaf before them, and sometimes publishes a group of leaves.
  outcome insert(key_type key, value_type value) {
    return put(key, value, [](slot&) { return outcome::exists; });
  }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) {
    return put(key, value, [&](slot& stored) { return detail::replace_value(medium_, stored.value, value); });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    const auto guard = epochs_.pin();
    const locked_leaf at(*this, key);
    const std::optional<std::size_t> found = slot_of(*at, key);
    return found ? detail::replace_value(medium_, at->entries()[*found].value, value) : outcome::absent;
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. If its leaf is empty then it is
  // unlinked: one more of each; now and then two sparse neighbours are replaced by one leaf. A leaf that has gone may
  // be followed by two others that move, so that a group of leaves can go.
  outcome erase(key_type key) {
    const auto guard = epochs_.pin();
    key_type low = 0;
    std::size_t left = 0;
    {
      const locked_leaf at(*this, key);
      const std::optional<std::size_t> found = slot_of(*at, key);
      if (!found) return outcome::absent;
      slot& erased = at->entries()[*found];
      erased.word.store(slot_word::of(key, states::dead), std::memory_order_release);  // (E1) commit
      media::persist(medium_, erased);                                                 // (E2)
      // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
      at->set_mark(*found, 0);
      low = at->low;
      left = detail::nv_tree::count_of(at->live());
    }
    if (left <= join_from && left % join_step == 0) tidy(low);
    return outcome::erased;
  }

  // Many entries at once, see loadable_index: leaves that are filled beforehand, sixteen of them linked by one store.
  std::size_t load(std::span<const entry> ascending) {
    return detail::load_rows(*this, ascending, [this](std::span<const entry> rest) { return load_row(rest); });
  }

  // The value of `key`. Reads one line of the medium if it is present, and none if it is absent; one more for each
  // other entry that has its fingerprint, one of 255.
  std::optional<value_type> find(key_type key) {
    const auto guard = epochs_.pin();
    for (;;) {
      const place at = place_of(key);
      const std::optional<value_type> found = value_in(*at.d, key, at.d->candidates(key));
      if (at.is_current()) [[likely]]
        return found;
    }
  }

  // Descends the inner nodes, and prefetches the lines in which `key` may be.
  void prefetch_find(key_type key) {
    const auto guard = epochs_.pin();
    prefetch_candidates(*leaf_at(key), key);
  }

  // values[i] := find(keys[i]). The cache misses of the searches overlap, first on the descriptors, then on the
  // entries.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    const auto guard = epochs_.pin();
    detail::in_batches<batch_width>(keys, values,
                                    [this](const auto some, const auto found) { find_together(some, found); });
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. Each leaf is read atomically;
  // entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    if (out.empty()) return 0;
    const auto guard = epochs_.pin();
    for (std::size_t count = 0;;) {
      place at = place_of(from);
      prefetch_entries(*at.d);
      for (;;) {
        if (!at.d->is_linked()) break;
        descriptor* const next = next_of(*at.d);
        if (next != nullptr) __builtin_prefetch(next);
        gathered_entries here;
        here.add(visited(*at.d), from);
        const key_type last = at.d->last.load(std::memory_order_acquire);
        if (next != nullptr && count + here.size() < out.size()) prefetch_entries(*next);
        const auto wanted = here.in_order().first(std::min(here.size(), out.size() - count));
        std::copy(wanted.begin(), wanted.end(), out.begin() + static_cast<std::ptrdiff_t>(count));
        const bool ends = count + wanted.size() == out.size() || next == nullptr;
        const place to = ends ? at : place(*next);
        if (!at.is_current()) break;
        count += wanted.size();
        if (ends) return count;
        from = last + 1;
        at = to;
      }
    }
  }

  // Calls function(key, value) for every entry of [first, last], ascending. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) {
    detail::for_each_in_by_scan(*this, first, last, function);
  }

  // Calls function(key, value) for every entry, ascending.
  template <class Function>
  void for_each(Function&& function) const {
    for_each_leaf([&](const descriptor& d) {
      gathered_entries here;
      here.add(d, 0);
      for (const entry& e : here.in_order()) function(e.key, e.value);
    });
  }

  // Entries in the tree; walks its leaves, but not in the medium.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    for_each_leaf([&](const descriptor& d) { entries += detail::nv_tree::count_of(d.live()); });
    return entries;
  }

  // depth = levels of the inner array, one of blocks, and one of leaves; nodes = leaves in use; medium bytes = all
  // leaves.
  [[nodiscard]] index_stats stats() const {
    index_stats result;
    result.entries = size();
    for_each_leaf([&](const descriptor&) { ++result.nodes; });
    result.depth = inner_.levels() + 1;
    result.load_factor = static_cast<double>(result.entries) / static_cast<double>(result.nodes * capacity);
    result.medium_bytes = store_.medium_bytes();
    result.dram_bytes = store_.dram_bytes() + inner_.bytes() + result.nodes * sizeof(descriptor);
    return result;
  }

  // Checks every invariant above. A leaf that the inner nodes do not know, or that is empty, is no violation.
  [[nodiscard]] check_report check() const { return detail::nv_tree::check(medium_, store_, head_, inner_); }

 private:
  static constexpr key_type greatest_key = std::numeric_limits<key_type>::max();
  static constexpr std::size_t batch_width = 16;

  // A full leaf with so many live entries at most is replaced by one, else by two.
  static constexpr std::size_t most_compacted = capacity * 3 / 4;
  // Two neighbours become one if they have so many live entries together at most.
  static constexpr std::size_t most_joined = capacity * 7 / 8;
  // A leaf searches for a neighbour to join with when an erase leaves so many entries, and a multiple of join_step.
  static constexpr std::size_t join_from = most_joined - 1;
  static constexpr std::size_t join_step = capacity < 16 ? 1 : 4;
  static constexpr std::size_t loaded_entries = detail::nv_tree::loaded_entries<Medium>;

  nv_tree(Medium& medium, std::string_view name, unsigned threads)
      : medium_(medium),
        store_(medium, *medium.named_root(name, layout_name, layout_version).word),
        head_(0, &store_.head()) {
    auto found = detail::nv_tree::recovery<Medium>(medium, store_, threads).run();
    std::vector<detail::search_entry> entries;
    entries.reserve(found.size());
    for (const auto& d : found) entries.push_back({d->low, detail::nv_tree::word_of(*d)});
    inner_.build(entries);
    head_.last.store(greatest_key, std::memory_order_relaxed);
    head_.next.store(found.front().get(), std::memory_order_release);
    for (auto& d : found) static_cast<void>(d.release());
  }

  [[nodiscard]] static descriptor* next_of(const descriptor& d) noexcept { return detail::nv_tree::next_of(d); }

  // ---- reading ----

  using place = detail::versioned_leaf<descriptor>;

  // The leaf that the inner nodes know for `key`, with a low <= key; or one that was unlinked since. It stays a
  // descriptor while the caller's guard lasts.
  [[nodiscard]] descriptor* leaf_at(key_type key) const { return reinterpret_cast<descriptor*>(inner_.floor(key)); }

  // The leaf that is in charge of `key`, if the place is still current after the caller's reads.
  [[nodiscard]] place place_of(key_type key) const {
    for (sync::backoff wait;; wait.pause()) {
      place at(*leaf_at(key));
      if (at.go_right(key)) [[likely]]
        return at;
    }
  }

  [[nodiscard]] std::optional<std::size_t> slot_among(const descriptor& d, key_type key,
                                                      slot_set among) const noexcept {
    const leaf& l = d.entries();
    return detail::first_slot(among, [&](std::size_t i) {
      media::annotate_read(medium_, l[i]);
      return l[i].word.load(std::memory_order_acquire).word == slot_word::of(key, states::live).word;
    });
  }
  [[nodiscard]] std::optional<std::size_t> slot_of(const descriptor& d, key_type key) const noexcept {
    return slot_among(d, key, d.candidates(key));
  }
  [[nodiscard]] std::optional<value_type> value_in(const descriptor& d, key_type key, slot_set among) const noexcept {
    const std::optional<std::size_t> found = slot_among(d, key, among);
    if (!found) return std::nullopt;
    return d.entries()[*found].value.load(std::memory_order_acquire);
  }

  void prefetch_candidates(const descriptor& d, key_type key) const noexcept {
    const leaf& l = d.entries();
    detail::for_each_slot(d.candidates(key), [&](std::size_t i) { media::prefetch(medium_, l[i]); });
  }

  void prefetch_entries(const descriptor& d) const noexcept {
    media::prefetch(medium_, &d.entries(), detail::nv_tree::leaf_bytes<Medium>);
  }

  const descriptor& visited(const descriptor& d) const noexcept {
    medium_.annotate_read(&d.entries(), detail::nv_tree::leaf_bytes<Medium>);
    return d;
  }

  // At most batch_width keys: to their descriptors, then to the entries.
  void find_together(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    std::array<place, batch_width> at;
    std::array<slot_set, batch_width> among{};
    for (std::size_t i = 0; i < keys.size(); ++i) at[i].d = leaf_at(keys[i]);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      at[i] = place(*at[i].d);
      if (!at[i].go_right(keys[i])) {
        at[i].d = nullptr;
        continue;
      }
      among[i] = at[i].d->candidates(keys[i]);
      prefetch_candidates(*at[i].d, keys[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (at[i].d != nullptr) values[i] = value_in(*at[i].d, keys[i], among[i]);
      if (at[i].d == nullptr || !at[i].is_current()) values[i] = find(keys[i]);
    }
  }

  // Calls function(descriptor) for every leaf of the tree, from left to right.
  template <class Function>
  void for_each_leaf(Function&& function) const {
    for (const descriptor* d = next_of(head_); d != nullptr; d = next_of(*d)) function(*d);
  }

  // ---- writing ----

  // The leaf that is in charge of a key, locked.
  struct locked_leaf : detail::held_leaf<descriptor> {
    locked_leaf(const nv_tree& tree, key_type key) : detail::held_leaf<descriptor>(lock_in_charge(tree, key)) {}
  };

  // A leaf and its left neighbour, locked.
  class locked_pair {
   public:
    // `low`: of the leaf. If there is none that begins so, nothing is locked.
    locked_pair(nv_tree& tree, key_type low) {
      descriptor& before = low == 0 ? tree.head_ : lock_in_charge(tree, low - 1);
      if (low == 0) before.lock.lock();
      if (before.last.load(std::memory_order_relaxed) != low - 1) {
        before.lock.unlock();
        return;
      }
      left = &before;
      // Locks are taken from left to right. A leaf is unlinked only with the lock of its left neighbour.
      d = next_of(before);
      d->lock.lock();
    }
    locked_pair(const locked_pair&) = delete;
    locked_pair& operator=(const locked_pair&) = delete;
    ~locked_pair() {
      if (left == nullptr) return;
      d->lock.unlock();
      left->lock.unlock();
    }

    descriptor* left = nullptr;  // null: nothing is locked
    descriptor* d = nullptr;
  };

  [[nodiscard]] static descriptor& lock_in_charge(const nv_tree& tree, key_type key) {
    return detail::lock_in_charge(key, [&]() -> descriptor& { return *tree.place_of(key).d; });
  }

  // insert and upsert: `on_existing(slot)` handles a key that is present.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    // Leaves may wait for readers that have gone.
    return detail::after_reclaiming(epochs_, [&] { return put_if_space(key, value, on_existing); });
  }

  template <class OnExisting>
  outcome put_if_space(key_type key, value_type value, OnExisting& on_existing) {
    const auto guard = epochs_.pin();
    for (;;) {
      key_type low = 0;
      {
        const locked_leaf at(*this, key);
        if (const auto found = slot_of(*at, key)) return on_existing(at->entries()[*found]);
        if (at->appended.load(std::memory_order_relaxed) < capacity) {
          append(*at, key, value);
          return outcome::inserted;
        }
        low = at->low;
      }
      if (!make_room(low, key)) return outcome::full;
    }
  }

  // Adds an entry to a locked leaf that has a free slot and does not have the key.
  void append(descriptor& d, key_type key, value_type value) {
    const std::uint64_t i = d.appended.load(std::memory_order_relaxed);
    slot& at = d.entries()[i];
    at.value.store(value, std::memory_order_release);                            // (I1)
    at.word.store(slot_word::of(key, states::live), std::memory_order_release);  // (I2) commit
    media::persist(medium_, at);                                                 // (I3)
    // (I1) < (I2): one line, so that no crash shows an entry that is not whole.
    // (I2) < (I3) < unlock: the value that a reader returns is durable, and slots become durable in their order (L1).
    d.set_mark(i, detail::fingerprint_of(key));
    d.appended.store(i + 1, std::memory_order_release);
  }

  // Makes an added leaf known, and reclaims those that were replaced when no reader is left. REQUIRES: this thread
  // holds no lock but the added leaf's, and has a guard. False: there was no space.
  bool finish(const aftermath& done) {
    if (done.added != nullptr) announce(*done.added);
    inner_.rebuild_if_due();
    if (done.freed[0] == nullptr) return done.has_space;
    for (const leaf* const l : done.freed)
      if (l != nullptr) store_.has_left(*l);
    const auto reclaim = [this, freed = done.freed, gone = done.gone] {
      for (leaf* const l : freed)
        if (l != nullptr) store_.give_back(*l);
      delete gone;
    };
    // Without memory the leaves are not used again before the tree is opened again.
    if (!epochs_.retire(reclaim) && done.gone != nullptr) keep(*done.gone);
    return true;
  }

  // Adds a new leaf to the inner nodes; no thread unlinks it before, because it is still locked. Without memory they do
  // not know it, and the left neighbour leads to it (D4).
  void announce(descriptor& made) {
    inner_.put(made.low, detail::nv_tree::word_of(made));
    made.lock.unlock();
  }

  // Frees an unlinked descriptor with the tree.
  void keep(descriptor& gone) noexcept {
    descriptor* before = kept_.load(std::memory_order_relaxed);
    do gone.next.store(before, std::memory_order_release);
    while (!kept_.compare_exchange_weak(before, &gone, std::memory_order_acq_rel));
  }

  // Replaces the leaf that begins at `low` if it is full. False: no space.
  bool make_room(key_type low, key_type made_for) {
    aftermath done;
    {
      const locked_pair at(*this, low);
      if (at.left == nullptr || at.d->appended.load(std::memory_order_relaxed) < capacity) return true;
      const std::size_t entries = detail::nv_tree::count_of(at.d->live());
      if (entries == capacity && is_appending(*at.d, made_for)) {
        const row added = replacer_.link_row(*at.d, made_for, {});
        done.has_space = added.count == 1;
        if (done.has_space) done.added = added.leaves[0];
      } else {
        if (entries > most_compacted) done = replacer_.rewrite(*at.left, *at.d, nullptr, 2);
        if ((entries <= most_compacted || !done.has_space) && entries < capacity)
          done = replacer_.rewrite(*at.left, *at.d, nullptr, 1);
      }
    }
    return finish(done);
  }

  // True if ascending keys fill a leaf, all of whose slots are live, that is the last one of a region: it then stays
  // full. Another thread may have added `made_for` itself since the caller looked.
  [[nodiscard]] bool is_appending(const descriptor& d, key_type made_for) const noexcept {
    return detail::nv_tree::ends_region(d.last.load(std::memory_order_relaxed)) &&
           detail::nv_tree::has_only_keys_below(visited(d).entries(), capacity, d.low, made_for);
  }

  // Adds the first of these entries, as many as fit into a row of new leaves between two existing ones; returns their
  // number. 0: they must go into an existing leaf, or there is no space.
  std::size_t load_row(std::span<const entry> ascending) {
    const auto guard = epochs_.pin();
    row made;
    {
      const key_type first = ascending.front().key;
      const locked_leaf at(*this, first);
      if (detail::nv_tree::count_of(at->live()) < loaded_entries) return 0;
      gathered_entries behind;
      behind.add(visited(*at), first);
      if (behind.size() != 0) return 0;
      made = replacer_.link_row(*at, first,
                                detail::fit_into_row(ascending, detail::nv_tree::most_in_row * loaded_entries,
                                                     at->last.load(std::memory_order_relaxed)));
    }
    for (std::size_t i = 0; i < made.count; ++i) announce(*made.leaves[i]);
    inner_.rebuild_if_due();
    return made.entries;
  }

  // After an erase in the leaf that begins at `low`: unlinks it if it is empty, or joins it with a neighbour if both
  // are sparse.
  void tidy(key_type low) {
    aftermath done;
    std::optional<key_type> previous;
    {
      const locked_pair at(*this, low);
      if (at.left == nullptr) return;
      const std::size_t entries = detail::nv_tree::count_of(at.d->live());
      if (entries == 0 && !detail::nv_tree::begins_region(low))
        done = replacer_.rewrite(*at.left, *at.d, nullptr, 0);
      else if (!join_with_next(at, done) && !detail::nv_tree::begins_region(low) && should_join(*at.left, *at.d))
        previous = at.left->low;
    }
    if (previous) {
      const locked_pair at(*this, *previous);
      if (at.left != nullptr) join_with_next(at, done);
    }
    finish(done);
    if (done.freed[0] != nullptr) shrink();
  }

  [[nodiscard]] static bool should_join(const descriptor& left, const descriptor& right) noexcept {
    return !detail::nv_tree::begins_region(right.low) &&
           detail::nv_tree::count_of(left.live()) + detail::nv_tree::count_of(right.live()) <= most_joined;
  }

  // Makes a locked leaf and the next one a single leaf if they are sparse. False: they are not.
  bool join_with_next(const locked_pair& at, aftermath& done) {
    descriptor* const next = next_of(*at.d);
    if (next == nullptr || !should_join(*at.d, *next)) return false;
    const std::scoped_lock guard(next->lock);
    if (!should_join(*at.d, *next)) return false;
    done = replacer_.rewrite(*at.left, *at.d, next, 1);
    return true;
  }

  // Moves leaves out of groups, so that they can be released, in steps of bounded length for each leaf that was freed:
  // with a fifth of the leaves free, at most four of five leaves of a group move.
  void shrink() {
    const int steps = store_.steps_to_shrink();
    for (int i = 0; i < steps; ++i) {
      const auto candidate = store_.to_move();
      if (!candidate) return;
      aftermath done;
      {
        const locked_pair at(*this, candidate->low);
        if (at.left == nullptr || &at.d->entries() != candidate->at) continue;
        leaf* const to = store_.take_outside_group_of(*candidate->at);
        if (to == nullptr) return;
        done = replacer_.rewrite(*at.left, *at.d, nullptr, 1, to);
      }
      finish(done);
    }
  }

  Medium& medium_;
  detail::nv_tree::leaf_store<Medium> store_;
  descriptor head_;  // has no entries; the leaf that begins at 0 is behind it, always
  std::atomic<descriptor*> kept_{nullptr};
  // A leaf is replaced once in some forty inserts: each time it is looked whether readers have gone.
  sync::epochs epochs_{1};
  detail::nv_tree::inner_nodes inner_{epochs_};
  detail::nv_tree::replacer<Medium> replacer_{medium_, store_, inner_};
};

}  // namespace pmlab::indexes
