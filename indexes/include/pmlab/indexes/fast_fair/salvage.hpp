// Reads a damaged FAST-FAIR tree: level by level, through the links and through the nodes of the level above.
#pragma once

#include <pmlab/indexes/detail/problem_list.hpp>
#include <pmlab/indexes/fast_fair/lost_leaves.hpp>
#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/fast_fair/suspect.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::fast_fair {

// Two paths lead to a node: its left neighbour's link, with the high key there, and its parent, with the separator
// there, which is the same key (T5). Each level is walked from left to right; if a link is invalid, or skips nodes that
// the level above knows, the walk continues with the nodes that that level knows. A node whose header is overwritten is
// read between its own low key and that of the next node. Leaves that neither path reaches are searched for in the
// whole medium.
template <class Medium, class Function>
class salvager {
 public:
  salvager(const Medium& medium, Function& function) : medium_(medium), suspect_(medium), function_(function) {}

  // Returns all problems in words; empty: there was none.
  [[nodiscard]] std::string run(std::uint64_t root_word) {
    if (root_word != 0) {
      std::vector<child> known;
      std::uint64_t level = 0;
      const place root(root_word);
      if (const std::optional<std::uint64_t> found = suspect_.level_of_root(root)) {
        level = *found;
        known.push_back({0, root});
      } else {
        add("its root is overwritten");
      }
      for (; level > 0; --level) known = children_of(walk(level, std::move(known)));
      for (const stretch& s : walk(0, std::move(known))) give(s);
      read_what_is_lost();
    }
    return problems_.text();
  }

 private:
  // Reads the entries of `from` that are at or above `low` and below `end`.
  struct stretch {
    place from;
    key_type low;
    key_type end;
    bool is_last;  // the last one of its level, as far as it is known
  };

  void add(const std::string& problem) { problems_.add(problem); }
  [[nodiscard]] static std::string text_of(place p, std::uint64_t level) {
    return "node " + std::to_string(p.word()) + " of level " + std::to_string(level);
  }

  // ---- one level ----

  // Where the walk continues, and the end of the key range of the node before.
  struct step {
    place next{};  // null: there is no more
    key_type end = greatest_key;
    key_type low = greatest_key;  // low key of `next`
  };

  // The nodes of a level from left to right, each with its range. `known`: those that the level above leads to, by
  // their low keys. Each node once, so that it terminates.
  std::vector<stretch> walk(std::uint64_t level, std::vector<child> known) {
    keep_what_fits(level, known);
    seen_.clear();
    std::vector<stretch> result;
    if (known.empty()) {
      add_gap(level, 0, greatest_key, {});
      return result;
    }
    if (known.front().low != 0) {
      add("no way leads to the first nodes of level " + std::to_string(level));
      add_gap(level, 0, known.front().low, known.front().at);
    }
    auto after = known.cbegin();  // the first of the known ones that may be next
    for (child at = known.front();;) {
      seen_.insert(at.at.word());
      while (after != known.cend() && (after->low <= at.low || seen_.contains(after->at.word()))) ++after;
      if (!suspect_.has_whole_header(at.at, level)) add("the header of " + text_of(at.at, level) + " is overwritten");
      const step s = step_from(at, level, {after, known.cend()});
      result.push_back({at.at, at.low, s.end, !s.next});
      if (!s.next) return result;
      at = {s.low, s.next};
    }
  }

  // The next nodes that the level above knows.
  struct coming {
    std::vector<child>::const_iterator first, last;

    [[nodiscard]] bool is_empty() const { return first == last; }
    [[nodiscard]] key_type low() const { return is_empty() ? greatest_key : first->low; }
    [[nodiscard]] place at() const { return is_empty() ? place{} : first->at; }
    // True if the level above says that `at` begins elsewhere.
    [[nodiscard]] bool places_elsewhere(place at, key_type low) const {
      return std::any_of(first, last, [&](const child& c) { return c.at == at && c.low != low; });
    }
  };

  // The link of `at` and the entry of the level above, if they agree; if not, the more likely one.
  step step_from(const child& at, std::uint64_t level, const coming& above) {
    const node& n = *medium_.resolve(at.at);
    const key_type high = n.high_key.load(std::memory_order_acquire);
    const place link = n.sibling.load(std::memory_order_acquire);
    const bool ascends = high > at.low;
    if (!link && high == greatest_key && above.is_empty()) return {};
    if (link && ascends && link == above.at()) {
      if (high == above.low()) return {link, high, high};
      // One of the two keys is wrong. The entries between them, up to the least of the next node, are taken for true.
      add("the high key of " + text_of(at.at, level) + " or the separator behind it is overwritten: entries between " +
          "them may have been erased");
      const key_type end = std::min(std::max(high, above.low()), suspect_.least_key(link, level));
      return {link, end, std::min(high, above.low())};
    }
    if (link && ascends && !seen_.contains(link.word())) {
      const bool may_be_new = high < above.low() && suspect_.fits(link, level, high, above.low());
      if (may_be_new) return {link, high, high};  // T2: the level above does not know it
      // A link that skips nodes leads to one that the level above knows, and the high key is still right.
      const bool is_next =
          high != above.low() && !above.places_elsewhere(link, high) && suspect_.follows(link, level, high);
      if (is_next) {
        add("the parents of nodes behind " + text_of(at.at, level) + " lead elsewhere");
        return {link, high, high};
      }
    }
    return step_over_a_lost_link(at, level, above, high);
  }

  step step_over_a_lost_link(const child& at, std::uint64_t level, const coming& above, key_type high) {
    add("the link of " + text_of(at.at, level) + " is lost");
    const bool has_high_key = high > at.low && high < above.low() && suspect_.has_level_and_is_no_waste(at.at, level);
    if (has_high_key) add_gap(level, high, above.low(), above.at());
    return {above.at(), has_high_key ? high : above.low(), above.low()};
  }

  // Removes everything that is no node of this level with keys between its own low key and the next one's.
  void keep_what_fits(std::uint64_t level, std::vector<child>& known) {
    std::vector<child> kept;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const key_type next = i + 1 < known.size() ? known[i + 1].low : greatest_key;
      if (suspect_.fits(known[i].at, level, known[i].low, next)) kept.push_back(known[i]);
    }
    if (kept.size() < known.size())
      add(std::to_string(known.size() - kept.size()) + " links of parents to nodes of level " + std::to_string(level) +
          " lead elsewhere");
    known = std::move(kept);
  }

  // ---- nodes ----

  std::vector<child> children_of(const std::vector<stretch>& level) {
    std::vector<child> children;
    for (const stretch& s : level) {
      node& n = *medium_.resolve(s.from);
      children.push_back({s.low, n.first_child.load(std::memory_order_acquire)});
      const slots_found found = suspect_.slots_between(n, s.low, s.end);
      // A separator equal to the low key would be none of this node's: its first child has that.
      for (const std::size_t i : found.entries)
        if (n.key_at(i) != s.low) children.push_back({n.key_at(i), place(n.value_at(i))});
      note_what_is_wrong(s, found);
    }
    return children;
  }

  void give(const stretch& s) {
    node& n = *medium_.resolve(s.from);
    const slots_found found = suspect_.slots_between(n, s.low, s.end);
    for (const std::size_t i : found.entries) function_(n.key_at(i), n.value_at(i));
    note_what_is_wrong(s, found);
    if (!s.is_last) return;
    const std::uint64_t present = n.greatest_present.load(std::memory_order_acquire);
    if (present == 1 && suspect_.has_whole_header(s.from, 0))
      function_(greatest_key, n.greatest_value.load(std::memory_order_acquire));
    else if (present != 0)
      add("whether there is an entry of the greatest key is not known");
  }

  void note_what_is_wrong(const stretch& s, const slots_found& found) {
    if (found.wrong != 0)
      add(std::to_string(found.wrong) + " slots of node " + std::to_string(s.from.word()) + " hold impossible words");
  }

  // ---- unreachable leaves ----

  void add_gap(std::uint64_t level, key_type low, key_type high, place next) {
    // Nodes below a gap of an inner level are found, or missed, on the levels below.
    if (level == 0 && low < high) gaps_.push_back({low, high, next});
  }

  void read_what_is_lost() {
    lost_leaves<Medium> lost(medium_, suspect_, seen_);
    lost.look_for(gaps_);
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      std::uint64_t entries = 0;
      for (const place p : lost.leaves_of(i)) {
        node& n = *medium_.resolve(p);
        for (const std::size_t slot :
             suspect_.slots_between(n, gaps_[i].low, n.high_key.load(std::memory_order_acquire)).entries) {
          ++entries;
          function_(n.key_at(slot), n.value_at(slot));
        }
      }
      const std::string behind = gaps_[i].low == 0 ? "the first leaves" : "leaves behind a lost link";
      add(lost.can_look() ? behind + " were looked for in the whole pool: " + std::to_string(entries) + " entries" +
                                (lost.is_sure_of(i) ? "" : ", and some may be missing, or never have been this tree's")
                          : behind + " are lost");
    }
  }

  const Medium& medium_;
  suspect_nodes<Medium> suspect_;
  Function& function_;
  std::unordered_set<std::uint64_t> seen_;  // nodes of the level that is walked
  std::vector<gap> gaps_;
  problem_list problems_;
};

// Calls function(key, value) for each readable entry of the tree whose root is at `root_word`. A key that occurs twice,
// because it is unknown which of two nodes is in charge of it, is first passed from the one on the left. Changes
// nothing; follows no word that cannot be a node. Returns the damage as text; empty: none.
template <class Medium, class Function>
[[nodiscard]] std::string salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  return salvager<Medium, std::remove_reference_t<Function>>(medium, function).run(root_word);
}

}  // namespace pmlab::indexes::detail::fast_fair
