// The check of a wB+-tree: every invariant, level by level. (T1 to T3: wb_tree.hpp.)
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/indexes/wb_tree/slot_array.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::indexes::detail::wb_tree {

// Follows no pointer that cannot name a node: so it terminates, and does not crash, with any content of the medium.
template <media::medium Medium>
class checker {
  using node_pointer = media::pointer<node>;

 public:
  explicit checker(const Medium& medium) noexcept : medium_(medium) {}

  [[nodiscard]] check_report run(node_pointer root_at) const {
    check_report report;
    if (!media::can_name(medium_, root_at)) {
      report.add("T2: the root leads nowhere");
      return report;
    }
    const slot_array of_root = medium_.resolve(root_at)->array();
    if (!of_root.is_valid() || of_root.level() == gone_level) {
      report.add("N1: the root has an impossible slot array");
      return report;
    }
    std::vector<known_node> known{{0, root_at}};
    for (std::uint64_t level = of_root.level() + 1; level > 0; --level) known = check_level(known, level - 1, report);
    return report;
  }

 private:
  // A child, and the key from which on it holds all of its level.
  struct known_node {
    key_type low;
    node_pointer at;
  };
  // Checks the nodes of a level, which the one above knows as `known`. Returns the nodes of the next one.
  std::vector<known_node> check_level(const std::vector<known_node>& known, std::uint64_t level,
                                      check_report& report) const {
    std::vector<known_node> children;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto where = [&] {
        return "node at " + std::to_string(known[i].at.word()) + " of level " + std::to_string(level);
      };
      if (!media::can_name(medium_, known[i].at)) {
        report.add("T2: there is no " + where());
        continue;
      }
      const node& n = *medium_.resolve(known[i].at);
      const slot_array order = n.array();
      const key_type low = known[i].low;
      const key_type high = n.high_key.load(std::memory_order_acquire);
      const node_pointer next = n.sibling.load(std::memory_order_acquire);
      const bool is_last = i + 1 == known.size();
      if (order.level() != level) report.add("T3: " + where() + " is on another level, or retired");
      if (!order.is_valid()) report.add("N1: " + where() + " has an impossible slot array");
      if (next != (is_last ? node_pointer() : known[i + 1].at))
        report.add("T2: " + where() + " links another node than the level above knows next");
      if (high != (is_last ? no_bound : known[i + 1].low))
        report.add("T1: the high key of " + where() + " is not the low key of the next one");
      if (level > 0 && order.count() == 0) report.add("N2: " + where() + " has no child");
      for (std::size_t rank = 0; rank < order.count(); ++rank) {
        const key_type key = n.key_at(order[rank]);
        if (rank > 0 && key <= n.key_at(order[rank - 1])) report.add("N1: " + where() + " is not sorted");
        if (key < low || (!is_last && key >= high)) report.add("T1: " + where() + " has a key outside of its range");
        if (level > 0 && rank == 0 && key != low) report.add("N2: " + where() + " does not begin at its low key");
        if (level > 0)
          children.push_back({key, n.child_at(order[rank])});
        else
          ++report.entries;
      }
    }
    return children;
  }

  const Medium& medium_;
};

}  // namespace pmlab::indexes::detail::wb_tree
