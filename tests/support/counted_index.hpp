// An index on a counted medium, and the cost of its operations there.
#pragma once

#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/operations.hpp"

namespace pmlab::tests {

using counted_medium = media::counted<media::dram>;

template <class Index>
class counted_index {
 public:
  // The cost of one call of `operation(index)`.
  template <class Operation>
  media::counts cost_of(Operation&& operation) {
    medium_.reset();
    medium_.begin_operation();
    operation(index_);
    medium_.end_operation();
    return medium_.total();
  }

  Index& index() { return index_; }
  counted_medium& medium() { return medium_; }

 private:
  counted_medium medium_;
  Index index_ = Index::open(medium_);
};

inline std::vector<std::uint64_t> random_keys(std::size_t count) {
  random source(1);
  return make_keys(key_set::anywhere, count, source);
}

using flushes_and_fences = std::pair<std::uint64_t, std::uint64_t>;

// How often each (flushed lines, fences) occurred; [(1, 1)] = 1 means always one of each.
using shares = std::map<flushes_and_fences, double>;

inline std::string to_string(const shares& all) {
  std::string text;
  for (const auto& [cost, share] : all)
    text += " " + std::to_string(cost.first) + "/" + std::to_string(cost.second) + ": " +
            std::to_string(100 * share).substr(0, 6) + " %";
  return text;
}

// The costs of operation(index, key) for each of the keys, those left out that published something.
template <class Index, class Operation>
shares measure(counted_index<Index>& counted, const std::vector<std::uint64_t>& keys, Operation&& operation) {
  shares result;
  for (const std::uint64_t key : keys) {
    const media::counts c = counted.cost_of([&](Index& index) { operation(index, key); });
    if (c.publications == 0) result[{c.lines_flushed, c.fences}] += 1.0 / static_cast<double>(keys.size());
  }
  return result;
}

}  // namespace pmlab::tests
