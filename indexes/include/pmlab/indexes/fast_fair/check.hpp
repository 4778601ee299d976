// The check of a FAST-FAIR tree: every invariant, level by level. (T1, T2: fast_fair.hpp.)
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::fast_fair {

// Follows no pointer that cannot name a node, and moves right only while the high keys ascend: so it terminates, and
// does not crash, with any content of the medium.
template <media::medium Medium>
class checker {
  using node_pointer = media::pointer<node>;

 public:
  explicit checker(const Medium& medium) noexcept : medium_(medium) {}

  // Checks the tree with this root.
  [[nodiscard]] check_report run(node_pointer leftmost, std::uint64_t levels) const {
    check_report report;
    std::vector<child> known;
    for (std::uint64_t level = levels; level > 0 && report.ok(); --level)
      leftmost = check_level(leftmost, level - 1, known, report);
    return report;
  }

 private:
  // A node, and the key that the level above has as its least one.
  struct child {
    key_type low;
    node_pointer at;
  };

  // Checks the level that begins at `leftmost`; returns where the next one below begins. `known`: the nodes of the
  // level that the one above knows, and then those of the next one that this one knows.
  node_pointer check_level(node_pointer leftmost, std::uint64_t level, std::vector<child>& known,
                           check_report& report) const {
    node_pointer next_level{};
    std::vector<child> children;
    std::size_t met = 0;  // number of the `known` ones that were met: a complete list meets all, in their order
    key_type low = 0;
    for (node_pointer at = leftmost;;) {
      const auto where = [&] { return "node at " + std::to_string(at.word()) + " of level " + std::to_string(level); };
      if (!media::can_name(medium_, at)) {
        report.add("T2: there is no " + where());
        return next_level;
      }
      node& n = *medium_.resolve(at);
      if (at == leftmost) next_level = n.first_child.load(std::memory_order_acquire);
      if (level > 0) children.push_back({low, n.first_child.load(std::memory_order_acquire)});
      if (met < known.size() && known[met].at == at && known[met++].low != low)
        report.add("T5: the parent of " + where() + " has another least key for it than the node before it");
      const key_type high = n.high_key.load(std::memory_order_acquire);
      const node_pointer next = n.sibling.load(std::memory_order_acquire);
      if (n.level.load(std::memory_order_acquire) != level)
        report.add("T2: " + where() + " has another level in its header");
      if (n.is_gone()) report.add("Q2: " + where() + " is marked as retired");
      if (high <= low) report.add("T1: the high key of " + where() + " is not above the one before it");
      if (!next && high != greatest_key) report.add("T1: " + where() + " is the last of its level and has a high key");
      for (std::size_t i = 0; i < capacity; ++i) {
        const key_type k = n.key_at(i);
        const auto slot = [&] { return "slot " + std::to_string(i) + " of " + where(); };
        if (i > 0 && k < std::min(n.key_at(i - 1), high)) report.add("N1: " + slot() + " decreases");
        if (n.is_free(i)) continue;
        if (k < low) report.add("T1: " + slot() + " is below its node");
        if (level == 0) {
          ++report.entries;
        } else if (const node_pointer to(n.value_at(i)); !media::can_name(medium_, to)) {
          report.add("T2: " + slot() + " leads nowhere");
        } else if (medium_.resolve(to)->level.load(std::memory_order_acquire) != level - 1) {
          report.add("T2: " + slot() + " leads to another level than the next one");
        } else {
          children.push_back({k, to});
        }
      }
      if (level == 0 && !next && n.greatest_present.load(std::memory_order_acquire) != 0) ++report.entries;
      if (!next && met < known.size())
        report.add("T2: no link leads to the node at " + std::to_string(known[met].at.word()) + " of level " +
                   std::to_string(level) + ", which its parent knows");
      if (!next || high <= low) {
        known = std::move(children);
        return next_level;
      }
      low = high;
      at = next;
    }
  }

  const Medium& medium_;
};

}  // namespace pmlab::indexes::detail::fast_fair
