// Leaves of a FAST-FAIR tree to which no way leads any more: blocks of the medium that look like them.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/fast_fair/suspect.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::fast_fair {

// Keys from `low` on and below `high`, in leaves that were not found.
struct gap {
  std::uint64_t low;
  std::uint64_t high;
  place next;  // the leaf behind them; null: it is not known, or there is none
};

// Leaves that belong into a gap have keys in its range, and their links lead, through each other, to the leaf behind
// it. Freed blocks may look the same, if a crash left them during a split; then the links of the true ones reach more
// entries. If the links of leaves do not lead there, those that do not overlap are used, and may be wrong.
template <class Medium>
class lost_leaves {
 public:
  // `seen`: the leaves that were found.
  lost_leaves(const Medium& medium, const suspect_nodes<Medium>& suspect, const std::unordered_set<std::uint64_t>& seen)
      : medium_(medium), suspect_(suspect), seen_(seen) {}

  // True if the end of the medium is known.
  [[nodiscard]] bool can_look() const noexcept { return end_of_medium() != 0; }

  // Reads the whole medium once, if there are gaps.
  void look_for(const std::vector<gap>& gaps) {
    found_.resize(gaps.size());
    if (gaps.empty() || !can_look()) return;
    std::vector<std::unordered_map<std::uint64_t, leaf_facts>> candidates(gaps.size());
    for (std::uint64_t word = alignof(node); word + sizeof(node) <= end_of_medium(); word += alignof(node)) {
      const place p(word);
      if (!looks_like_a_leaf(p) || seen_.contains(word)) continue;
      for (std::size_t i = 0; i < gaps.size(); ++i)
        if (belongs_into(gaps[i], p)) candidates[i].emplace(word, facts_of(gaps[i], p));
    }
    for (std::size_t i = 0; i < gaps.size(); ++i) choose(gaps[i], candidates[i], found_[i]);
  }

  [[nodiscard]] const std::vector<place>& leaves_of(std::size_t gap_number) const { return found_[gap_number].leaves; }
  // True if links lead from the first of them to the leaf behind the gap.
  [[nodiscard]] bool is_sure_of(std::size_t gap_number) const { return found_[gap_number].is_sure; }

 private:
  struct leaf_facts {
    std::uint64_t least;
    std::uint64_t high;
    place link;
    std::size_t entries;
    bool has_one_before = false;
  };
  using facts = std::unordered_map<std::uint64_t, leaf_facts>;

  struct leaves_found {
    std::vector<place> leaves;
    bool is_sure = false;
  };

  // Leaves that links connect.
  struct chain {
    std::vector<place> leaves;
    std::size_t entries = 0;
    std::uint64_t least = greatest_key;
    std::uint64_t high = 0;
    bool arrives = false;
  };

  // 0: not known.
  [[nodiscard]] std::uint64_t end_of_medium() const noexcept {
    if constexpr (Medium::parts.pointer_bound) {
      const std::uint64_t bound = medium_.pointer_bound();
      return bound == std::numeric_limits<std::uint64_t>::max() ? 0 : bound;
    } else {
      return 0;
    }
  }

  [[nodiscard]] bool looks_like_a_leaf(place p) const {
    node& n = *medium_.resolve(p);
    if (n.level.load(std::memory_order_acquire) != 0 || n.greatest_present.load(std::memory_order_acquire) > 1)
      return false;
    if (!suspect_.has_whole_header(p, 0)) return false;
    const std::uint64_t high = n.high_key.load(std::memory_order_acquire);
    const place link = n.sibling.load(std::memory_order_acquire);
    if (link && medium_.resolve(link)->high_key.load(std::memory_order_acquire) <= high) return false;
    for (std::size_t i = 1; i < capacity; ++i)
      if (n.key_at(i) < std::min(n.key_at(i - 1), high)) return false;  // N1
    return true;
  }

  [[nodiscard]] bool belongs_into(const gap& g, place p) const {
    node& n = *medium_.resolve(p);
    const std::uint64_t high = n.high_key.load(std::memory_order_acquire);
    // Only the leftmost leaf has a queue of retired nodes.
    if (g.low != 0 && n.next_retired.load(std::memory_order_acquire)) return false;
    return high > g.low && high <= g.high && (n.key_at(0) >= g.low || n.key_at(0) >= high);
  }

  [[nodiscard]] leaf_facts facts_of(const gap& g, place p) const {
    node& n = *medium_.resolve(p);
    const std::uint64_t high = n.high_key.load(std::memory_order_acquire);
    const slots_found found = suspect_.slots_between(n, g.low, high);
    return {found.entries.empty() ? high : n.key_at(found.entries.front()), high,
            n.sibling.load(std::memory_order_acquire), found.entries.size()};
  }

  static void choose(const gap& g, facts& candidates, leaves_found& found) {
    for (auto& [word, leaf] : candidates)
      if (const auto next = candidates.find(leaf.link.word());
          next != candidates.end() && next->second.high > leaf.high)
        next->second.has_one_before = true;
    std::vector<chain> chains;
    for (const auto& [word, leaf] : candidates)
      if (!leaf.has_one_before) chains.push_back(chain_from(g, candidates, place(word)));
    std::sort(chains.begin(), chains.end(), [](const chain& a, const chain& b) {
      return std::pair(a.arrives, a.entries) > std::pair(b.arrives, b.entries);
    });
    if (chains.empty()) return;
    // Without a leaf behind the gap, another tree of the pool may have such chains, too.
    found.is_sure = chains.front().arrives && g.next;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (const chain& c : chains) {
      if (found.is_sure && !taken.empty()) break;
      const bool overlaps = std::any_of(taken.begin(), taken.end(),
                                        [&](const auto& t) { return c.least < t.second && t.first < c.high; });
      if (overlaps || c.entries == 0) continue;
      taken.push_back({c.least, c.high});
      found.leaves.insert(found.leaves.end(), c.leaves.begin(), c.leaves.end());
    }
  }

  // High keys ascend along the links, so that it terminates.
  [[nodiscard]] static chain chain_from(const gap& g, const facts& candidates, place first) {
    chain result;
    for (place at = first;;) {
      const leaf_facts& leaf = candidates.at(at.word());
      result.leaves.push_back(at);
      result.entries += leaf.entries;
      if (result.least == greatest_key) result.least = leaf.least;
      result.high = leaf.high;
      const auto next = candidates.find(leaf.link.word());
      if (next == candidates.end() || next->second.high <= leaf.high || next->second.least < leaf.high) {
        result.arrives = leaf.link == g.next && leaf.high == g.high;
        return result;
      }
      at = leaf.link;
    }
  }

  const Medium& medium_;
  const suspect_nodes<Medium>& suspect_;
  const std::unordered_set<std::uint64_t>& seen_;
  std::vector<leaves_found> found_;
};

}  // namespace pmlab::indexes::detail::fast_fair
