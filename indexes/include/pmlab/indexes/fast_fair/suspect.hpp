// Validates nodes of a FAST-FAIR tree that may be damaged.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::fast_fair {

using place = media::pointer<node>;

inline constexpr std::uint64_t most_levels_of_a_tree = 64;

// A node and its low key.
struct child {
  std::uint64_t low;
  place at;
};

struct slots_found {
  std::vector<std::size_t> entries;  // ascending, by slot and by key
  std::size_t wrong = 0;             // slots whose keys break the order, or are not the node's
};

// Reads any words as a node, and none outside of the medium.
template <class Medium>
class suspect_nodes {
 public:
  explicit suspect_nodes(const Medium& medium) noexcept : medium_(medium) {}

  // None: nothing of a root is left there.
  [[nodiscard]] std::optional<std::uint64_t> level_of_root(place root) const {
    if (!media::can_name(medium_, root) || is_blank(*medium_.resolve(root))) return std::nullopt;
    const std::uint64_t stated = medium_.resolve(root)->level.load(std::memory_order_acquire);
    const place first = medium_.resolve(root)->first_child.load(std::memory_order_acquire);
    if (stated == 0 && !first && has_whole_header(root, 0)) return 0;
    if (const std::optional<std::uint64_t> below = level_of_children(root)) return *below + 1;
    const bool is_inner = stated != 0 && stated < most_levels_of_a_tree && is_on(first, stated - 1);
    return is_inner ? stated : 0;
  }

  // True if the header may belong to a node of this level that is in use.
  [[nodiscard]] bool has_whole_header(place p, std::uint64_t level) const {
    const node& n = *medium_.resolve(p);
    const std::uint64_t high = n.high_key.load(std::memory_order_acquire);
    const place link = n.sibling.load(std::memory_order_acquire);
    const place first = n.first_child.load(std::memory_order_acquire);
    if (!has_level_and_is_no_waste(p, level) || high == 0) return false;
    if (level == 0 ? static_cast<bool>(first) : !media::can_name(medium_, first)) return false;
    return link ? media::can_name(medium_, link) : high == greatest_key;
  }

  [[nodiscard]] bool has_level_and_is_no_waste(place p, std::uint64_t level) const {
    return is_on(p, level) && medium_.resolve(p)->gone.load(std::memory_order_acquire) == 0;
  }

  // True if this may be the node of `level` with keys from `low` on and below `end`, with or without its header.
  [[nodiscard]] bool fits(place p, std::uint64_t level, std::uint64_t low, std::uint64_t end) const {
    if (!media::can_name(medium_, p)) return false;
    node& n = *medium_.resolve(p);
    if (n.gone.load(std::memory_order_acquire) == 1 || is_blank(n)) return false;
    if (!is_on(p, level) && !may_be_on(p, level)) return false;
    const std::uint64_t high = n.high_key.load(std::memory_order_acquire);
    if (has_whole_header(p, level) && high > low && high <= end) return true;
    return !slots_between(n, low, end).entries.empty();
  }

  // True if its header belongs to a node of `level` that may begin at `low`.
  [[nodiscard]] bool follows(place p, std::uint64_t level, std::uint64_t low) const {
    return media::can_name(medium_, p) && has_whole_header(p, level) &&
           medium_.resolve(p)->high_key.load(std::memory_order_acquire) > low;
  }

  // The least key of the node itself, or the greatest one if it has none.
  [[nodiscard]] std::uint64_t least_key(place p, std::uint64_t level) const {
    node& n = *medium_.resolve(p);
    const std::uint64_t end = has_whole_header(p, level) ? n.high_key.load(std::memory_order_acquire) : greatest_key;
    const slots_found found = slots_between(n, 0, end);
    return found.entries.empty() ? greatest_key : n.key_at(found.entries.front());
  }

  // The slots that are entries of a node that has the keys from `low` on and below `end`, ignoring its header (N2).
  [[nodiscard]] slots_found slots_between(node& n, std::uint64_t low, std::uint64_t end) const {
    slots_found found;
    std::vector<std::size_t> used;
    std::size_t beyond = 0;  // slots before this one whose keys are not below `end`
    for (std::size_t i = 0; i < capacity; ++i) {
      const std::uint64_t key = n.key_at(i);
      if (key >= end) ++beyond;
      if (key >= end || key == (i + 1 < capacity ? n.key_at(i + 1) : end)) continue;
      found.wrong += std::exchange(beyond, 0);  // N1: these are the last ones
      if (key >= low)
        used.push_back(i);
      else
        ++found.wrong;
    }
    found.entries = longest_ascending(n, used);
    found.wrong += used.size() - found.entries.size();
    return found;
  }

 private:
  [[nodiscard]] bool is_on(place p, std::uint64_t level) const {
    return media::can_name(medium_, p) && medium_.resolve(p)->level.load(std::memory_order_acquire) == level;
  }

  [[nodiscard]] static bool is_blank(node& n) noexcept {
    for (std::size_t i = 0; i < capacity; ++i)
      if (n.key_at(i) != 0) return false;
    return n.high_key.load(std::memory_order_acquire) == 0;
  }

  // A node whose header has another level: its neighbour, or the targets of its slots, tell its true level.
  [[nodiscard]] bool may_be_on(place p, std::uint64_t level) const {
    const std::optional<std::uint64_t> below = level_of_children(p);
    if (level > 0) return below == level - 1;
    const node& n = *medium_.resolve(p);
    return !below || *below + 1 != n.level.load(std::memory_order_acquire);
  }

  // The level of the nodes that more than half of the values name; none: they name no nodes.
  [[nodiscard]] std::optional<std::uint64_t> level_of_children(place p) const {
    node& n = *medium_.resolve(p);
    std::array<std::size_t, most_levels_of_a_tree> on{};
    std::size_t used = 0;
    const auto count = [&](place at) {
      ++used;
      if (!media::can_name(medium_, at)) return;
      node& target = *medium_.resolve(at);
      const std::uint64_t level = target.level.load(std::memory_order_acquire);
      if (level < on.size() && !is_blank(target)) ++on[level];
    };
    for (std::size_t i = 0; i < capacity; ++i)
      if (n.key_at(i) != greatest_key) count(place(n.value_at(i)));
    if (used == 0) count(n.first_child.load(std::memory_order_acquire));
    const auto most = std::max_element(on.begin(), on.end());
    if (*most * 2 <= used) return std::nullopt;
    return static_cast<std::uint64_t>(most - on.begin());
  }

  // As many of these slots as possible whose keys ascend.
  [[nodiscard]] static std::vector<std::size_t> longest_ascending(node& n, const std::vector<std::size_t>& slots) {
    std::array<std::size_t, capacity> length{};
    std::array<std::size_t, capacity> before{};
    std::size_t best = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      length[i] = 1;
      before[i] = i;
      for (std::size_t k = 0; k < i; ++k)
        if (n.key_at(slots[k]) < n.key_at(slots[i]) && length[k] + 1 > length[i]) {
          length[i] = length[k] + 1;
          before[i] = k;
        }
      if (length[i] > length[best]) best = i;
    }
    std::vector<std::size_t> result;
    if (slots.empty()) return result;
    for (std::size_t i = best;; i = before[i]) {
      result.push_back(slots[i]);
      if (before[i] == i) break;
    }
    std::reverse(result.begin(), result.end());
    return result;
  }

  const Medium& medium_;
};

}  // namespace pmlab::indexes::detail::fast_fair
