// Opening an FP-tree: its list of leaves, as a crash may have left it, becomes descriptors.
#pragma once

#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/group_table.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/indexes/fp_tree/row.hpp>
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
#include <memory>
#include <string>
#include <vector>

namespace pmlab::indexes::detail::fp_tree {

// First, threads read the leaves of all groups, in the order of memory, linked or not; so the list, which would be a
// chain of cache misses in the medium, is followed in a small table. Then each leaf is linked to the next one.
// Operations that a crash interrupted are completed leaf by leaf, each with one line: a crash in the middle leaves the
// rest for the next open (A2).
//
// No link is followed before its target is known to be a leaf, and no leaf is trusted whose seal (L4) neither holds nor
// is explained by a crash. Leaves with entries outside the list are left by crashes of splits and of rows that were not
// linked yet; if there are more of them than crashes can leave, leaves were lost, and the tree is refused.
template <media::medium Medium>
class recovery {
 public:
  // `store`: nothing in it is linked. Afterwards the leaves of the tree are linked, and the others free.
  recovery(Medium& medium, leaf_store<Medium>& store, unsigned threads)
      : medium_(medium), store_(store), threads_(threads) {}

  // The entries for the search layer: every leaf but the leftmost, by its least key. Throws corruption, std::bad_alloc.
  [[nodiscard]] std::vector<search_entry> run() {
    read_leaves();
    follow_the_list();
    const std::vector<position> left_out = leaves_outside_the_list();
    std::vector<search_entry> entries = link_leaves();
    if (store_.is_sealed()) empty(left_out);
    write_descriptors(entries);
    store_.free_what_is_not_linked();
    return entries;
  }

 private:
  using position = typename leaf_store<Medium>::leaf_position;
  static constexpr position no_leaf = leaf_store<Medium>::no_leaf;

  // A leaf as it was read; and, once it is linked, the values for its descriptor.
  struct facts {
    key_type least;     // its low
    key_type greatest;  // its last
    position next;      // no_leaf: it is the last one, or `leads_nowhere`
    bool leads_nowhere;
    bool is_empty;
    bool is_whole;  // its seal holds; in a tree without seals: no bit is set but those of slots
    bool is_listed;
  };

  static constexpr std::size_t ahead = 4;  // leaves, and facts, that are on their way while one is read

  void read_leaves() {
    facts_ = std::make_unique_for_overwrite<facts[]>(store_.leaf_positions());
    constexpr std::size_t grain = 4;
    sync::run_in_parallel(threads_, store_.groups(), grain, [&](std::size_t g) {
      store_.settle_group(g);
      const auto first = static_cast<position>(g * leaves_per_group);
      const std::size_t count = store_.leaves_of(g);
      const leaf* const leaves = store_.at(first).home;
      for (std::size_t i = 0; i < count; ++i) {
        if (i + ahead < count) prefetch(leaves[i + ahead]);
        facts_[first + i] = read(static_cast<position>(first + i));
      }
    });
  }

  static void prefetch(const leaf& l) noexcept {
    const auto* const bytes = reinterpret_cast<const char*>(&l);
    for (std::size_t i = 0; i < sizeof(leaf); i += media::cache_line_bytes) __builtin_prefetch(bytes + i);
  }

  // Computes the fingerprints.
  facts read(position p) noexcept {
    descriptor& d = store_.at(p);
    const leaf& l = *d.home;
    media::annotate_read(medium_, l.bitmap);
    const std::uint64_t bitmap = l.bitmap.load(std::memory_order_acquire);
    const media::pointer<leaf> next = l.next.load(std::memory_order_acquire);
    const slot_set used = slots_in(bitmap);
    facts result{.least = std::numeric_limits<key_type>::max(),
                 .greatest = 0,
                 .next = next ? store_.position_of(next) : no_leaf,
                 .leads_nowhere = false,
                 .is_empty = used == 0,
                 .is_whole = bitmap == (store_.is_sealed() ? sealed(store_.place_of(p), used, next) : used),
                 .is_listed = false};
    result.leads_nowhere = next && result.next == no_leaf;
    if (used == 0) return result;
    media::annotate_read(medium_, l);
    std::array<std::uint64_t, mark_words> bytes{};
    for_each_slot(used, [&](std::size_t i) {
      const key_type key = l.slots[i].key.load(std::memory_order_acquire);
      bytes[i / bytes_per_word] |= mark(i, fingerprint_of(key));
      result.least = std::min(result.least, key);
      result.greatest = std::max(result.greatest, key);
    });
    for (std::size_t i = 0; i < mark_words; ++i) d.bytes[i].store(bytes[i], std::memory_order_release);
    return result;
  }

  void follow_the_list() {
    list_.reserve(store_.leaf_positions());
    for (position p = store_.position_of_leftmost();;) {
      facts& f = facts_[p];
      if (f.is_listed) throw corruption{"its list of leaves has no end" + those_outside()};
      if (!f.is_whole && !(store_.is_sealed() && is_of_a_crash(p)))
        throw corruption{"the bitmap or the link of leaf " + where(p) + " is overwritten" + those_outside()};
      f.is_listed = true;
      list_.push_back(p);
      if (f.leads_nowhere) throw corruption{"its list of leaves leads nowhere" + those_outside()};
      if (f.next == no_leaf) return;
      p = f.next;
    }
  }

  // The seal of leaf `p` does not hold. True if a crash happened between the stores of its link and of its bitmap: then
  // the seal is of the previous link, and is repaired.
  bool is_of_a_crash(position p) {
    if (facts_[p].leads_nowhere) return false;
    leaf& home = *store_.at(p).home;
    const std::uint64_t bitmap = home.bitmap.load(std::memory_order_acquire);
    const slot_set used = slots_in(bitmap);
    if (!was_linked(p, bitmap) && !was_unlinked(p, bitmap) && !was_joined_or_moved(p, bitmap)) return false;
    home.bitmap.store(store_.bitmap_of(home, used), std::memory_order_release);  // (M1)
    media::persist(medium_, home.bitmap);                                        // (M2)
    // (M1) < (M2) < open returns: the old seal is not trusted again.
    return true;
  }

  // Leaf `p`, which has this bitmap, had a link to the leaf behind those that were put between: a new one, or a row.
  [[nodiscard]] bool was_linked(position p, std::uint64_t bitmap) const noexcept {
    const facts* f = &facts_[p];
    for (std::size_t i = 0; i < leaf_row::most_leaves && f->next != no_leaf; ++i) {
      f = &facts_[f->next];
      if (!f->is_whole || f->leads_nowhere) return false;
      if (bitmap == sealed(store_.place_of(p), slots_in(bitmap), place_of(f->next))) return true;
    }
    return false;
  }

  // It had a link to a leaf that is empty, and that was unlinked, with empty ones that follow it.
  [[nodiscard]] bool was_unlinked(position p, std::uint64_t bitmap) const noexcept {
    for (std::size_t g = 0; g < store_.groups(); ++g)
      for (std::size_t i = 0; i < store_.leaves_of(g); ++i) {
        auto unlinked = static_cast<position>(g * leaves_per_group + i);
        if (!is_unlinked(unlinked) || bitmap != sealed(store_.place_of(p), slots_in(bitmap), place_of(unlinked)))
          continue;
        // Where the link leads there may be an empty leaf, too, which its eraser had not unlinked yet.
        const position linked = facts_[p].next;
        for (std::size_t passed = 0;
             passed < store_.leaves() && unlinked != linked && unlinked != no_leaf && is_unlinked(unlinked); ++passed)
          unlinked = facts_[unlinked].next;
        return unlinked == linked;
      }
    return false;
  }

  // It had a link to a leaf that was joined with it, or that was moved: this leaf, or the one that its link points to
  // now, has all of that leaf's entries and its link.
  [[nodiscard]] bool was_joined_or_moved(position p, std::uint64_t bitmap) const noexcept {
    for (std::size_t g = 0; g < store_.groups(); ++g)
      for (std::size_t i = 0; i < store_.leaves_of(g); ++i) {
        const auto gone = static_cast<position>(g * leaves_per_group + i);
        if (!is_outside(gone) || facts_[gone].leads_nowhere ||
            bitmap != sealed(store_.place_of(p), slots_in(bitmap), place_of(gone)))
          continue;
        const position next = facts_[p].next;
        if (next == facts_[gone].next) return has_all_of(p, gone);
        return next != no_leaf && facts_[next].is_whole && !facts_[next].leads_nowhere &&
               facts_[next].next == facts_[gone].next && has_all_of(next, gone);
      }
    return false;
  }

  [[nodiscard]] bool has_all_of(position p, position gone) const noexcept {
    return found_in(p, gone, used_of(gone)) == used_of(gone);
  }
  [[nodiscard]] slot_set used_of(position p) const noexcept { return store_.at(p).read_marks().used(); }

  // The slots, among these of leaf `p`, whose entries are in leaf `other`, too, with the same values.
  [[nodiscard]] slot_set found_in(position other, position p, slot_set slots) const noexcept {
    const leaf& here = *store_.at(p).home;
    const leaf& there = *store_.at(other).home;
    slot_set found = 0;
    for_each_slot(slots, [&](std::size_t i) {
      const slot& a = here.slots[i];
      for_each_slot(used_of(other), [&](std::size_t k) {
        const slot& b = there.slots[k];
        if (a.key.load(std::memory_order_acquire) == b.key.load(std::memory_order_acquire) &&
            a.value.load(std::memory_order_acquire) == b.value.load(std::memory_order_acquire))
          found |= slot_set{1} << i;
      });
    });
    return found;
  }

  [[nodiscard]] bool is_unlinked(position p) const noexcept {
    const facts& f = facts_[p];
    return f.is_whole && f.is_empty && !f.is_listed && !f.leads_nowhere;
  }

  [[nodiscard]] bool is_outside(position p) const noexcept {
    const facts& f = facts_[p];
    return !f.is_listed && f.is_whole && !f.is_empty;
  }

  [[nodiscard]] std::vector<position> all_outside() const {
    std::vector<position> found;
    for (std::size_t g = 0; g < store_.groups(); ++g)
      for (std::size_t i = 0; i < store_.leaves_of(g); ++i)
        if (const auto p = static_cast<position>(g * leaves_per_group + i); is_outside(p)) found.push_back(p);
    return found;
  }

  [[nodiscard]] std::string those_outside() const {
    const std::size_t count = all_outside().size();
    return count == 0 ? "" : ", and " + std::to_string(count) + " leaves with entries are outside it";
  }

  // The leaves with entries that the list does not lead to: those that a crash left. A crash leaves no more than a row
  // of them in a chain whose keys ascend. (In trees without seals they stay, and those of several crashes may meet.)
  [[nodiscard]] std::vector<position> leaves_outside_the_list() const {
    std::vector<position> found = all_outside();
    constexpr std::size_t rows_that_may_meet = 4;
    const std::size_t longest = leaf_row::most_leaves * (store_.is_sealed() ? 1 : rows_that_may_meet);
    for (position p : found) {
      std::size_t length = 1;
      for (position next = facts_[p].next; next != no_leaf && is_outside(next); next = facts_[p].next) {
        if (facts_[next].least <= facts_[p].greatest) break;
        if (++length > longest)
          throw corruption{std::to_string(found.size()) + " leaves with entries are outside its list of leaves"};
        p = next;
      }
    }
    return found;
  }

  // Gives up the entries of leaves that are outside the list, so that they are never taken for lost ones.
  void empty(const std::vector<position>& left_out) {
    for (const position p : left_out) {
      leaf& home = *store_.at(p).home;
      home.bitmap.store(store_.bitmap_of(home, 0), std::memory_order_release);  // (O1)
      media::flush(medium_, home.bitmap);                                       // (O2)
    }
    if (!left_out.empty()) medium_.fence();  // (O3)
    // (O1) < (O2) < (O3) < open returns: a leaf outside the list that looks alive later was lost after this.
  }

  std::vector<search_entry> link_leaves() {
    std::vector<search_entry> entries;
    entries.reserve(list_.size());
    std::size_t left = 0;  // the last leaf that is part of the tree: the leftmost, or one with entries
    for (std::size_t i = 1; i < list_.size(); ++i) {
      if (i + 2 * ahead < list_.size()) __builtin_prefetch(&facts_[list_[i + 2 * ahead]]);
      const facts& here = facts_[list_[i]];
      if (here.is_empty) continue;
      facts& before = facts_[list_[left]];
      const key_type low = here.least;
      if (!before.is_empty && before.greatest >= low) complete_split(list_[left], list_[i]);
      if (low == 0) throw corruption{"key 0 is in leaf " + where(list_[i])};
      if (i > left + 1) unlink_between(left, i);
      join(before, list_[i], low - 1);
      entries.push_back({low, list_[i]});
      left = i;
    }
    if (list_.size() > left + 1) unlink_between(left, list_.size());
    join(facts_[list_[left]], no_leaf, std::numeric_limits<key_type>::max());
    facts_[list_.front()].least = 0;
    return entries;
  }

  static void join(facts& left, position right, key_type last) noexcept {
    left.greatest = last;
    left.next = right;
  }

  // Writes the current facts to the descriptors, in the order of memory, and the words of the leaves at these positions
  // to the entries.
  void write_descriptors(std::vector<search_entry>& entries) {
    constexpr std::size_t grain = 4;
    sync::run_in_parallel(threads_, store_.groups(), grain, [&](std::size_t g) {
      for (std::size_t i = 0; i < store_.leaves_of(g); ++i) {
        const auto p = static_cast<position>(g * leaves_per_group + i);
        const facts& f = facts_[p];
        if (f.is_listed)
          put_in_charge(store_.at(p), f.least, f.greatest, f.next == no_leaf ? nullptr : &store_.at(f.next));
      }
    });
    constexpr std::size_t entries_at_a_time = 4096;
    sync::run_in_parallel(threads_, entries.size(), entries_at_a_time, [&](std::size_t i) {
      entries[i].word = leaf_name(store_.at(static_cast<position>(entries[i].word))).word();
    });
  }

  // Leaf `l` was split into itself and leaf `r`, and the crash happened before its bitmap was stored (L3); or they were
  // being joined, and it happened before its link was stored: it has all entries of `r`. Otherwise the pool is corrupt.
  void complete_split(position l, position r) {
    descriptor& left = store_.at(l);
    const key_type low = facts_[r].least;
    slot_set stay = 0;
    slot_set moved = 0;
    key_type greatest = 0;
    for_each_slot(left.read_marks().used(), [&](std::size_t i) {
      const key_type key = left.home->slots[i].key.load(std::memory_order_acquire);
      (key < low ? stay : moved) |= slot_set{1} << i;
      if (key < low) greatest = std::max(greatest, key);
    });
    const bool all_there =
        stay != 0 && std::popcount(moved) == std::popcount(used_of(r)) && found_in(r, l, moved) == moved;
    if (!all_there) throw corruption{"the keys of leaf " + where(r) + " do not follow those before it"};
    left.home->bitmap.store(store_.bitmap_of(*left.home, stay), std::memory_order_release);  // (C1)
    media::persist(medium_, left.home->bitmap);                                              // (C2)
    // (C1) < (C2) < open returns: the two leaves never share entries again.
    for_each_slot(moved, [&](std::size_t i) { left.set_byte(i, 0); });
    facts_[l].greatest = greatest;
  }

  // Takes the empty leaves between two of the list (the right one may be the end) out of it.
  void unlink_between(std::size_t left, std::size_t right) {
    leaf& home = *store_.at(list_[left]).home;
    const media::pointer<leaf> next = right < list_.size() ? place_of(list_[right]) : media::pointer<leaf>();
    const slot_set used = slots_in(home.bitmap.load(std::memory_order_relaxed));
    home.next.store(next, std::memory_order_release);                            // (U1)
    home.bitmap.store(store_.bitmap_of(home, used), std::memory_order_release);  // (U2)
    media::persist(medium_, home.next);                                          // (U3)
    // (U1) < (U2): one line. A seal that is of the link before tells of a crash between the two (L4).
    // (U2) < (U3) < the leaves are free: nothing is written to a leaf that the medium still leads to.
    for (std::size_t i = left + 1; i < right; ++i) facts_[list_[i]].is_listed = false;
  }

  // Null for no_leaf.
  [[nodiscard]] media::pointer<leaf> place_of(position p) const noexcept {
    return p == no_leaf ? media::pointer<leaf>() : store_.place_of(p);
  }
  [[nodiscard]] std::string where(position p) const { return std::to_string(store_.place_of(p).word()); }

  Medium& medium_;
  leaf_store<Medium>& store_;
  unsigned threads_;
  std::unique_ptr<facts[]> facts_;  // by position
  std::vector<position> list_;      // as the medium has it, from left to right
};

}  // namespace pmlab::indexes::detail::fp_tree
