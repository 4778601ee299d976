// Reads a damaged wB+-tree: from left to right through its inner nodes, and through the links of its leaves.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace pmlab::indexes::detail::wb_tree {

// Two paths lead to a leaf: its parent's entry, and its left neighbour's link. Leaves that the inner nodes skip, because
// one of these is overwritten, are read through the links. Neither path reaches a leaf behind a lost link whose parent
// is lost, too. Ascending keys, each once; every step moves right or down, so that it terminates.
template <class Medium, class Function>
class salvager {
 public:
  salvager(const Medium& medium, Function& function) : medium_(medium), function_(function) {}

  // Returns all problems in words; empty: there was none.
  [[nodiscard]] std::string run(std::uint64_t root_word) {
    if (root_word == 0) return {};
    const place root(root_word);
    const bool is_node = media::can_name(medium_, root) && medium_.resolve(root)->array().level() != gone_level;
    if (is_node)
      descend(root, medium_.resolve(root)->array().level(), 0, std::nullopt);
    else
      add("its root is overwritten");
    follow_links(std::nullopt);
    if (leaves_ == 0) add("no leaf was found");
    return problems();
  }

 private:
  using place = media::pointer<node>;
  using bound = std::optional<key_type>;  // none: there is no greater key

  void add(const std::string& problem) {
    constexpr std::size_t most = 20;
    if (problems_.size() < most) problems_.push_back(problem);
    ++problem_count_;
  }
  [[nodiscard]] std::string problems() const {
    std::string text;
    for (const std::string& p : problems_) text += (text.empty() ? "" : ", ") + p;
    if (problem_count_ > problems_.size())
      text += ", and " + std::to_string(problem_count_ - problems_.size()) + " more";
    return text;
  }
  [[nodiscard]] static std::string text_of(place p, std::uint64_t level) {
    return "node " + std::to_string(p.word()) + " of level " + std::to_string(level);
  }

  [[nodiscard]] bool is_node_of(place p, std::uint64_t level) const {
    if (!media::can_name(medium_, p)) return false;
    const slot_array order = medium_.resolve(p)->array();
    return order.is_valid() && order.level() == level;
  }

  // The node at `p`, for which its parent states its level and its keys: from `low` on and below `end`.
  void descend(place p, std::uint64_t level, key_type low, bound end) {
    if (!is_node_of(p, level)) {
      add("no way leads to " + text_of(p, level));
      return;
    }
    const node& n = *medium_.resolve(p);
    const slot_array order = n.array();
    if (level == 0) {
      if (next_ && *next_ != p) follow_links(low);
      give(p, low, end);
      return;
    }
    for (std::size_t rank = 0; rank < order.count(); ++rank) {
      const key_type key = n.key_at(order[rank]);
      const bool is_last = rank + 1 == order.count();
      const bound child_end = is_last ? end : bound(n.key_at(order[rank + 1]));
      if (key < low || (child_end && key >= *child_end))
        add("separators of " + text_of(p, level) + " are overwritten");
      else
        descend(n.child_at(order[rank]), level - 1, key, child_end);
    }
  }

  // Reads the leaves from the last one's link on, as far as they have keys below `end`.
  void follow_links(bound end) {
    while (next_ && *next_) {
      const key_type low = low_of_next_;
      if (end && low >= *end) break;
      if (!is_node_of(*next_, 0)) {
        add("the link to " + text_of(*next_, 0) + " is lost");
        break;
      }
      if (end) add("no parent leads to " + text_of(*next_, 0));
      const place p = *next_;
      give(p, low, end);
      if (low_of_next_ <= low && next_ && *next_) {
        add("the high key of " + text_of(p, 0) + " is overwritten");
        break;
      }
    }
    if (!end && !next_) add("the last leaves are lost");
  }

  // Passes the leaf's entries from `low` on and below `end`.
  void give(place p, key_type low, bound end) {
    const node& n = *medium_.resolve(p);
    const slot_array order = n.array();
    ++leaves_;
    std::size_t wrong = 0;
    for (std::size_t rank = 0; rank < order.count(); ++rank) {
      const key_type key = n.key_at(order[rank]);
      if (key < low || (end && key >= *end) || (given_ && key <= *given_)) {
        ++wrong;
        continue;
      }
      function_(key, n.value_at(order[rank]));
      given_ = key;
    }
    if (wrong != 0) add(std::to_string(wrong) + " entries of " + text_of(p, 0) + " hold impossible keys");
    next_ = n.sibling.load(std::memory_order_acquire);
    low_of_next_ = n.high_key.load(std::memory_order_acquire);
    if (end && (!*next_ || low_of_next_ != *end))
      add("the link or the high key of " + text_of(p, 0) + " is overwritten");
  }

  const Medium& medium_;
  Function& function_;
  std::optional<place> next_;  // the link of the last leaf that was read; none: there is no such leaf
  key_type low_of_next_ = 0;
  std::optional<key_type> given_;  // the last key
  std::size_t leaves_ = 0;
  std::vector<std::string> problems_;
  std::size_t problem_count_ = 0;
};

// Calls function(key, value) for each readable entry of the tree whose root is at `root_word`, ascending. Changes
// nothing; follows no word that cannot be a node. Returns the damage as text; empty: none.
template <class Medium, class Function>
[[nodiscard]] std::string salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  return salvager<Medium, std::remove_reference_t<Function>>(medium, function).run(root_word);
}

}  // namespace pmlab::indexes::detail::wb_tree
