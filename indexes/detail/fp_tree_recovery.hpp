// Opening an FP-tree: its list of leaves, as a crash may have left it, becomes descriptors.
#pragma once

#include <pmlab/indexes/detail/fp_tree_descriptor.hpp>
#include <pmlab/indexes/detail/fp_tree_group_table.hpp>
#include <pmlab/indexes/detail/fp_tree_leaf.hpp>
#include <pmlab/indexes/detail/fp_tree_leaf_store.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace pmlab::indexes::detail::fp_tree {

// First the list is followed, which is a chain of cache misses; then threads read the leaves, all of them at a time;
// then each leaf is linked to the next one. What a crash left undone is completed in the last step, leaf by leaf, each
// with one store: a crash in the middle leaves the rest for the next time (A2).
template <media::medium Medium>
class recovery {
 public:
  // `store`: nothing in it is linked. Of its leaves, those of the tree are linked afterwards, and the others free.
  recovery(Medium& medium, leaf_store<Medium>& store, unsigned threads)
      : medium_(medium), store_(store), threads_(threads) {}

  // What the search layer must know: every leaf but the leftmost, by its least key. Throws pmlab::error, std::bad_alloc.
  [[nodiscard]] std::vector<search_entry> run() {
    follow_the_list();
    read_leaves();
    std::vector<search_entry> entries = link_leaves();
    store_.free_what_is_not_linked();
    return entries;
  }

 private:
  struct range {
    key_type least = std::numeric_limits<key_type>::max();
    key_type greatest = 0;
    bool empty = true;
    bool sound = true;  // the bitmap has no bit beyond the last slot
  };

  static constexpr std::size_t ahead = 4;  // leaves that are on their way while one is read

  void follow_the_list() {
    list_.reserve(store_.leaves());
    media::pointer<leaf> p = medium_.locate(store_.leftmost().home);
    while (p) {
      descriptor* const d = store_.descriptor_of(p);
      if (d == nullptr) throw corrupt("its list of leaves leads nowhere");
      if (d->is_linked()) throw corrupt("its list of leaves has no end");
      d->set_linked(true);
      list_.push_back(d);
      p = d->home->next.load(std::memory_order_acquire);
    }
  }

  void read_leaves() {
    ranges_.resize(list_.size());
    constexpr std::size_t grain = 256;
    sync::run_in_parallel(threads_, list_.size(), grain, [&](std::size_t i) {
      if (i + ahead < list_.size()) prefetch(*list_[i + ahead]->home);
      ranges_[i] = read(*list_[i]);
    });
  }

  static void prefetch(const leaf& l) noexcept {
    const auto* const bytes = reinterpret_cast<const char*>(&l);
    for (std::size_t i = 0; i < sizeof(leaf); i += media::cache_line_bytes) __builtin_prefetch(bytes + i);
  }

  // Computes the fingerprints.
  range read(descriptor& d) noexcept {
    const leaf& l = *d.home;
    media::visit(medium_, l);
    range result;
    const std::uint64_t bitmap = l.bitmap.load(std::memory_order_acquire);
    result.sound = (bitmap & ~std::uint64_t{all_slots}) == 0;
    std::array<std::uint64_t, mark_words> bytes{};
    for_each_slot(static_cast<slot_set>(bitmap) & all_slots, [&](std::size_t i) {
      const key_type key = l.slots[i].key.load(std::memory_order_acquire);
      bytes[i / bytes_per_word] |= mark(i, fingerprint_of(key));
      result.least = std::min(result.least, key);
      result.greatest = std::max(result.greatest, key);
      result.empty = false;
    });
    bytes[mark_words - 1] |= mark(capacity, 1);
    for (std::size_t i = 0; i < mark_words; ++i) d.bytes[i].store(bytes[i], std::memory_order_release);
    return result;
  }

  std::vector<search_entry> link_leaves() {
    std::vector<search_entry> entries;
    entries.reserve(list_.size());
    std::size_t left = 0;  // the last leaf that is part of the tree: the leftmost, or one with entries
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (!ranges_[i].sound) throw corrupt("the bitmap of leaf " + where(i));
      if (i == 0 || ranges_[i].empty) continue;
      const key_type low = ranges_[i].least;
      if (!ranges_[left].empty && ranges_[left].greatest >= low) complete_split(left, i);
      if (low == 0) throw corrupt("key 0 is in leaf " + where(i));
      if (i > left + 1) unlink_between(left, i);
      low_of(*list_[i]).store(low, std::memory_order_release);
      join(*list_[left], list_[i], low - 1);
      entries.push_back({low, leaf_name(*list_[i]).word()});
      left = i;
    }
    if (list_.size() > left + 1) unlink_between(left, list_.size());
    join(*list_[left], nullptr, std::numeric_limits<key_type>::max());
    return entries;
  }

  static void join(descriptor& left, descriptor* right, key_type last) noexcept {
    left.last.store(last, std::memory_order_release);
    left.next.store(right, std::memory_order_release);
  }

  // Leaf `l` was split into itself and leaf `r`, and the crash came before its bitmap said so (L3): it still has all
  // that is in `r`. Or the pool is corrupt.
  void complete_split(std::size_t l, std::size_t r) {
    descriptor& left = *list_[l];
    const leaf& right_home = *list_[r]->home;
    const key_type low = ranges_[r].least;
    slot_set stay = 0;
    slot_set moved = 0;
    key_type greatest = 0;
    for_each_slot(left.read_marks().used(), [&](std::size_t i) {
      const key_type key = left.home->slots[i].key.load(std::memory_order_acquire);
      (key < low ? stay : moved) |= slot_set{1} << i;
      if (key < low) greatest = std::max(greatest, key);
    });
    const slot_set there = list_[r]->read_marks().used();
    bool all_there = stay != 0 && std::popcount(moved) == std::popcount(there);
    for_each_slot(moved, [&](std::size_t i) {
      bool found = false;
      for_each_slot(there, [&](std::size_t k) {
        const slot& a = left.home->slots[i];
        const slot& b = right_home.slots[k];
        found |= a.key.load(std::memory_order_acquire) == b.key.load(std::memory_order_acquire) &&
                 a.value.load(std::memory_order_acquire) == b.value.load(std::memory_order_acquire);
      });
      all_there &= found;
    });
    if (!all_there) throw corrupt("the keys of leaf " + where(r) + " do not follow those before it");
    left.home->bitmap.store(stay, std::memory_order_release);  // (C1)
    media::persist(medium_, left.home->bitmap);                // (C2)
    // (C1) < (C2) < open returns: the two leaves are never again what they were.
    for_each_slot(moved, [&](std::size_t i) { left.set_byte(i, 0); });
    ranges_[l].greatest = greatest;
  }

  // Takes the empty leaves between `left` and `right` (which may be the end) out of the list.
  void unlink_between(std::size_t left, std::size_t right) {
    leaf& home = *list_[left]->home;
    const media::pointer<leaf> next =
        right < list_.size() ? medium_.locate(list_[right]->home) : media::pointer<leaf>();
    home.next.store(next, std::memory_order_release);  // (U1)
    media::persist(medium_, home.next);                // (U2)
    // (U1) < (U2) < the leaves are free: nothing is written to a leaf that the medium still leads to.
    for (std::size_t i = left + 1; i < right; ++i) list_[i]->set_linked(false);
  }

  [[nodiscard]] std::string where(std::size_t i) const { return std::to_string(medium_.locate(list_[i]->home).word()); }

  Medium& medium_;
  leaf_store<Medium>& store_;
  unsigned threads_;
  std::vector<descriptor*> list_;  // as the medium has it, from left to right
  std::vector<range> ranges_;      // of the same leaves
};

}  // namespace pmlab::indexes::detail::fp_tree
