// Reads an FP-tree that does not open: all its leaves, with or without a link that leads to them.
#pragma once

#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/leaf_group.hpp>
#include <pmlab/indexes/detail/problem_list.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace pmlab::indexes::detail::fp_tree {

// Reads the leaves that the list leads to; then those that are outside of it, which a lost link left there, or a crash;
// and of a leaf whose bitmap is overwritten the slots whose keys belong between those of its neighbours. Only leaves of
// groups are read, so that a wrong link brings up nothing that never was one.
template <class Medium, class Function>
class salvager {
 public:
  salvager(const Medium& medium, std::uint64_t root_word, Function& function)
      : medium_(medium),
        function_(function),
        groups_(
            follow_groups<leaf>(medium, root_word, true, group_bytes, [this](const std::string& text) { add(text); })),
        leaves_(medium, groups_, sizeof(leaf), leaves_in) {}

  void run() {
    if (const place leftmost = leaves_.first_of_oldest()) follow_the_list(leftmost);
    read_what_is_outside();
    for (const overwritten_leaf& l : overwritten_) read_between_neighbours(l);
    if (!problems_.is_empty()) throw corruption{problems_.text()};
  }

 private:
  using place = media::pointer<leaf>;

  struct overwritten_leaf {
    place at;
    std::optional<key_type> above;  // the greatest key before it; none: it is the leftmost leaf
  };

  void add(const std::string& problem) { problems_.add(problem); }

  // The meaning of a leaf's first two words.
  struct header {
    slot_set used;
    place next;
    bool is_whole;     // its seal holds; without seals: it is plausible
    bool has_bitmap;   // the bitmap is intact, the link perhaps not
    place sealed_for;  // then: the link that its seal is of
  };

  [[nodiscard]] header read(place p) const {
    const leaf& l = *medium_.resolve(p);
    const std::uint64_t bitmap = l.bitmap.load(std::memory_order_acquire);
    header found{slots_in(bitmap), l.next.load(std::memory_order_acquire), false, false, {}};
    const bool leads_on = !found.next || leaves_.contain(found.next);
    found.is_whole = groups_.is_sealed ? bitmap == sealed(p, found.used, found.next) : bitmap == found.used && leads_on;
    found.has_bitmap = found.is_whole || (!groups_.is_sealed && bitmap == found.used);
    return found;
  }

  // The seal of a leaf does not hold: it may be for another link, which was lost, or which a crash left behind.
  void find_what_it_is_sealed_for(place p, header& h) const {
    const std::uint64_t bitmap = medium_.resolve(p)->bitmap.load(std::memory_order_acquire);
    if (!groups_.is_sealed || (bitmap & sealed_bit) == 0) return;
    const auto is_of = [&](place next) {
      h.sealed_for = next;
      return bitmap == sealed(p, h.used, next);
    };
    h.has_bitmap = is_of({}) || leaves_.any_of(is_of);
  }

  void follow_the_list(place leftmost) {
    std::vector<overwritten_leaf> coming{{leftmost, std::nullopt}};
    while (!coming.empty()) {
      const overwritten_leaf from = coming.back();
      coming.pop_back();
      if (!leaves_.contain(from.at)) {
        add("its list of leaves leads nowhere");
        continue;
      }
      if (!seen_.insert(from.at.word()).second) continue;
      header h = read(from.at);
      if (!h.is_whole) find_what_it_is_sealed_for(from.at, h);
      if (!h.is_whole && h.has_bitmap) add("the link of leaf " + std::to_string(from.at.word()) + " is overwritten");
      if (!h.has_bitmap) {
        overwritten_.push_back(from);
        continue;
      }
      const std::optional<key_type> greatest = give(from.at, h.used);
      const std::optional<key_type> above = greatest ? greatest : from.above;
      if (h.next) coming.push_back({h.next, above});
      if (!h.is_whole && h.sealed_for) coming.push_back({h.sealed_for, above});
    }
  }

  // Gives the entries of a leaf. Their greatest key.
  std::optional<key_type> give(place p, slot_set used) {
    const leaf& l = *medium_.resolve(p);
    std::optional<key_type> greatest;
    key_type least = std::numeric_limits<key_type>::max();
    for_each_slot(used, [&](std::size_t i) {
      const key_type key = l.slots[i].key.load(std::memory_order_acquire);
      function_(key, l.slots[i].value.load(std::memory_order_acquire));
      least = std::min(least, key);
      greatest = std::max(greatest.value_or(key), key);
    });
    if (greatest) lows_.push_back(least);
    return greatest;
  }

  void read_what_is_outside() {
    std::uint64_t outside = 0;
    leaves_.any_of([&](place p) {
      const header h = read(p);
      if (h.is_whole && h.used != 0 && seen_.insert(p.word()).second) {
        ++outside;
        give(p, h.used);
      }
      return false;
    });
    if (outside != 0)
      add(std::to_string(outside) +
          " leaves with entries are outside its list, and were read, too: entries that were erased may be among them");
  }

  void read_between_neighbours(const overwritten_leaf& lost) {
    std::sort(lows_.begin(), lows_.end());
    const auto after = lost.above ? std::upper_bound(lows_.begin(), lows_.end(), *lost.above) : lows_.begin();
    const leaf& l = *medium_.resolve(lost.at);
    std::uint64_t given = 0;
    // Backwards: an entry that an insert moved away from the bitmap's line left its words there, with a value that may
    // be older. The caller keeps the first of two.
    for (std::size_t i = capacity; i-- > 0;) {
      const slot& s = l.slots[i];
      const key_type key = s.key.load(std::memory_order_acquire);
      if ((lost.above && key <= *lost.above) || (after != lows_.end() && key >= *after)) continue;
      function_(key, s.value.load(std::memory_order_acquire));
      ++given;
    }
    add("the bitmap of leaf " + std::to_string(lost.at.word()) + " is overwritten: " + std::to_string(given) +
        " entries are its by their keys, and some of them may have been erased");
  }

  const Medium& medium_;
  Function& function_;
  problem_list problems_;  // problems of the members below, too
  group_list<leaf> groups_;
  salvaged_leaves<leaf, Medium> leaves_;
  std::unordered_set<std::uint64_t> seen_;  // leaves, by their places
  std::vector<key_type> lows_;              // the least keys of leaves that were read
  std::vector<overwritten_leaf> overwritten_;
};

// Calls function(key, value) for each entry of the tree whose groups begin at `root_word`, first for its list. An entry
// that a split was moving is passed twice (L3), and so may be one of a leaf whose bitmap is overwritten: mostly with
// the newer value first. Changes nothing. Throws corruption afterwards if there was any damage.
template <class Medium, class Function>
void salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  salvager<Medium, std::remove_reference_t<Function>>(medium, root_word, function).run();
}

}  // namespace pmlab::indexes::detail::fp_tree
