// Reads a damaged wB+-tree: from left to right through its inner nodes, and through the links of its leaves.
#pragma once

#include <pmlab/indexes/detail/problem_list.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace pmlab::indexes::detail::wb_tree {

// Two paths lead to a leaf: its parent's entry, and its left neighbour's link. Leaves that the inner nodes miss,
// because one of these is overwritten, are read through the links. Neither path reaches a leaf behind a lost link whose
// parent is lost, too. Ascending keys, each once; each leaf once, so that it terminates.
template <class Medium, class Function>
class salvager {
 public:
  salvager(const Medium& medium, Function& function) : medium_(medium), function_(function) {}

  // Returns all problems in words; empty: there was none.
  [[nodiscard]] std::string run(std::uint64_t root_word) {
    if (root_word == 0) return {};
    const place root(root_word);
    if (media::can_name(medium_, root))
      descend(root, level_of_root(root), 0, std::nullopt);
    else
      add("its root is overwritten");
    follow_links(place());
    return problems_.text();
  }

 private:
  using place = media::pointer<node>;
  using bound = std::optional<key_type>;  // none: there is no greater key, or it is not known

  void add(const std::string& problem) { problems_.add(problem); }
  [[nodiscard]] static std::string text_of(place p, std::uint64_t level) {
    return "node " + std::to_string(p.word()) + " of level " + std::to_string(level);
  }

  [[nodiscard]] slot_array array_of(place p) const { return medium_.resolve(p)->array(); }
  [[nodiscard]] bool is_in_use(place p) const {
    return media::can_name(medium_, p) && array_of(p).is_valid() && array_of(p).level() != gone_level;
  }
  [[nodiscard]] bool is_node_of(place p, std::uint64_t level) const {
    return is_in_use(p) && array_of(p).level() == level;
  }

  // True: it is no leaf whose slot array was overwritten by another node's. Such a leaf has values, not children.
  [[nodiscard]] bool is_inner_node(place p) const {
    if (!is_in_use(p) || array_of(p).level() == 0 || array_of(p).count() == 0) return false;
    const node& n = *medium_.resolve(p);
    bool has_child = true;
    for (std::size_t rank = 0; has_child && rank < n.array().count(); ++rank)
      has_child = media::can_name(medium_, n.child_at(n.array()[rank]));
    for (std::size_t rank = 0; has_child && rank < n.array().count(); ++rank)
      if (is_node_of(n.child_at(n.array()[rank]), n.array().level() - 1)) return true;
    return false;
  }

  // The level of the root; without its slot array, one above its child for the lowest keys. A leaf has no child.
  [[nodiscard]] std::uint64_t level_of_root(place root) const {
    if (is_in_use(root)) return array_of(root).level();
    for (const entry_slot& slot : medium_.resolve(root)->entries)
      if (const place child(slot.value.load(std::memory_order_acquire)); is_first_child(slot, 0) && is_in_use(child))
        return array_of(child).level() + 1;
    return 0;
  }
  [[nodiscard]] static bool is_first_child(const entry_slot& slot, key_type low) {
    return slot.key.load(std::memory_order_acquire) == low;
  }

  // The node at `p`, which is on `level` and has keys from `low` on and below `end`, as its parent states.
  void descend(place p, std::uint64_t level, key_type low, bound end) {
    if (!media::can_name(medium_, p) || (level == 0 && is_inner_node(p))) {
      add("no way leads to " + text_of(p, level));
    } else if (level == 0) {
      if (next_) follow_links(p);
      if (next_ && *next_ != p) add("the link before " + text_of(p, 0) + " is lost");
      if (!seen_.contains(p.word())) read(p, low, end);
    } else if (is_node_of(p, level) && array_of(p).count() != 0) {
      descend_to_children(p, level, low, end);
    } else {
      add(text_of(p, level) + " is overwritten");
      if (next_) return;  // links lead to its leaves
      for (const entry_slot& slot : medium_.resolve(p)->entries) {
        const place child(slot.value.load(std::memory_order_acquire));
        if (is_first_child(slot, low) && is_node_of(child, level - 1))
          return descend(child, level - 1, low, std::nullopt);
      }
    }
  }

  void descend_to_children(place p, std::uint64_t level, key_type low, bound end) {
    const node& n = *medium_.resolve(p);
    const slot_array order = n.array();
    place before{};
    for (std::size_t rank = 0; rank < order.count(); ++rank) {
      const key_type key = n.key_at(order[rank]);
      const place child = n.child_at(order[rank]);
      const bool follows =
          !is_node_of(before, level - 1) || medium_.resolve(before)->high_key.load(std::memory_order_acquire) == key;
      if (rank == 0 ? key != low : !follows) {
        add("a separator of " + text_of(p, level) + " or a high key below it is overwritten");
        if (rank != 0) {  // links lead to its leaves
          if (is_node_of(child, level - 1)) before = child;
          continue;
        }
      }
      descend(child, level - 1, rank == 0 ? low : key, rank + 1 < order.count() ? n.key_at(order[rank + 1]) : end);
      before = child;
    }
  }

  // Reads the leaves from the last one's link on, until `end`. They have lower keys than `end`, which is in the
  // tree; null: all of them.
  void follow_links(place end) {
    while (next_ && *next_ && *next_ != end) {
      const place p = *next_;
      const bool is_next = is_node_of(p, 0) && !seen_.contains(p.word()) && (!end || is_before(p, end));
      if (!is_next) {
        add("the link to " + text_of(p, 0) + " leads elsewhere");
        if (!end) next_.reset();
        return;
      }
      add("no parent leads to " + text_of(p, 0));
      read(p, least_next_, std::nullopt);
    }
  }
  [[nodiscard]] bool is_before(place p, place end) const {
    const node& last = *medium_.resolve(end);
    const slot_array order = last.array();
    const key_type high = medium_.resolve(p)->high_key.load(std::memory_order_acquire);
    return !order.is_valid() || order.count() == 0 || high <= last.key_at(order[0]);
  }

  // Passes the leaf's entries, of keys from `low` on and below `end`.
  void read(place p, key_type low, bound end) {
    seen_.insert(p.word());
    const node& n = *medium_.resolve(p);
    const place next = n.sibling.load(std::memory_order_acquire);
    std::vector<entry> entries;
    if (is_node_of(p, 0)) {
      const slot_array order = n.array();
      for (std::size_t rank = 0; rank < order.count(); ++rank)
        entries.push_back({n.key_at(order[rank]), n.value_at(order[rank])});
      next_ = next;
    } else {
      add(text_of(p, 0) + " is overwritten: some of its entries may have been erased");
      for (std::size_t slot = 0; slot < capacity; ++slot)
        if (n.key_at(slot) != 0 || n.value_at(slot) != 0) entries.push_back({n.key_at(slot), n.value_at(slot)});
      std::stable_sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) { return a.key < b.key; });
      next_.reset();
      if (is_node_of(next, 0) && (!end || n.high_key.load(std::memory_order_acquire) == *end)) next_ = next;
    }
    const std::size_t all = entries.size();
    // Without its slot array, a leaf shows also the entries that a split has moved out, and the high key beside the
    // array is likely to be overwritten, too: the parent's bound is the right one.
    const bound below = end && !is_node_of(p, 0) ? end : bound_of(n, entries, end);
    std::erase_if(entries, [&](const entry& e) {
      return e.key < std::max(low, least_next_) || (below && e.key >= *below) || is_done_;
    });
    keep_ascending(entries);
    if (entries.size() != all) add("entries of " + text_of(p, 0) + " have impossible keys");
    for (const entry& e : entries) function_(e.key, e.value);
    if (entries.empty()) return;
    least_next_ = entries.back().key + 1;
    is_done_ = least_next_ == 0;
  }

  // The parent's bound of a leaf or its own one, if they differ: the own one if many entries would be beyond the other.
  // A few may have been overwritten together with it.
  [[nodiscard]] static bound bound_of(const node& n, const std::vector<entry>& entries, bound end) {
    constexpr std::ptrdiff_t few = slots_beside_array + 1;
    if (!n.sibling.load(std::memory_order_acquire)) return end;
    const key_type high = n.high_key.load(std::memory_order_acquire);
    if (!end || high == *end) return high;
    const auto beyond =
        std::count_if(entries.begin(), entries.end(), [&](const entry& e) { return e.key >= *end && e.key < high; });
    return beyond > few ? high : *end;
  }

  // Removes as few entries as leave an ascending row: those whose keys were overwritten.
  static void keep_ascending(std::vector<entry>& entries) {
    std::vector<std::size_t> length(entries.size(), 1);  // size of the longest row that ends with the entry
    std::vector<std::size_t> before(entries.size());
    std::size_t last = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      before[i] = i;
      for (std::size_t j = 0; j < i; ++j)
        if (entries[j].key < entries[i].key && length[j] + 1 > length[i]) {
          length[i] = length[j] + 1;
          before[i] = j;
        }
      if (length[i] > length[last]) last = i;
    }
    if (entries.empty()) return;
    std::vector<entry> row{entries[last]};
    for (; before[last] != last; last = before[last]) row.push_back(entries[before[last]]);
    entries.assign(row.rbegin(), row.rend());
  }

  const Medium& medium_;
  Function& function_;
  std::optional<place> next_;               // the link of the last leaf that was read; none: it is not known
  key_type least_next_ = 0;                 // the key after the last one
  bool is_done_ = false;                    // there is no key after the last one
  std::unordered_set<std::uint64_t> seen_;  // leaves
  problem_list problems_;
};

// Calls function(key, value) for each readable entry of the tree whose root is at `root_word`, ascending. Changes
// nothing; follows no word that cannot be a node. Returns the damage as text; empty: none.
template <class Medium, class Function>
[[nodiscard]] std::string salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  return salvager<Medium, std::remove_reference_t<Function>>(medium, function).run(root_word);
}

}  // namespace pmlab::indexes::detail::wb_tree
