// An index on a counted medium, and the cost of its operations there.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

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

// The costs of all changes of each of the keys, in a row: of new keys, of known ones, of an insert of a known one, and of
// erases of known and absent ones.
struct costs_of_changes {
  shares inserts, updates, upserts, rejected, erases, absent;
};

template <class Index>
costs_of_changes measure_changes(counted_index<Index>& counted, const std::vector<std::uint64_t>& keys) {
  costs_of_changes result;
  result.inserts = measure(counted, keys, [](Index& i, std::uint64_t key) { i.insert(key, key); });
  result.updates = measure(counted, keys, [](Index& i, std::uint64_t key) { i.update(key, ~key); });
  result.upserts = measure(counted, keys, [](Index& i, std::uint64_t key) { i.upsert(key, key); });
  result.rejected = measure(counted, keys, [](Index& i, std::uint64_t key) { i.insert(key, key); });
  result.erases = measure(counted, keys, [](Index& i, std::uint64_t key) { i.erase(key); });
  result.absent = measure(counted, keys, [](Index& i, std::uint64_t key) { i.erase(key); });
  return result;
}

// Fixture of tests that count the operations of one index.
template <class Index>
class counted_test : public testing::Test {
 protected:
  template <class Operation>
  media::counts cost_of(Operation&& operation) {
    return counted_.cost_of(operation);
  }

  template <class Operation>
  flushes_and_fences writes_of(Operation&& operation) {
    const media::counts c = cost_of(operation);
    return {c.lines_flushed, c.fences};
  }

  // Inserts `count` random keys. As many others are absent.
  void load(std::size_t count) {
    keys_ = random_keys(2 * count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(index_.insert(keys_[i], i), indexes::outcome::inserted);
    absent_.assign(keys_.begin() + static_cast<std::ptrdiff_t>(count), keys_.end());
    keys_.resize(count);
  }

  static constexpr flushes_and_fences none{0, 0};
  static constexpr flushes_and_fences one{1, 1};
  static constexpr flushes_and_fences two{2, 2};

  counted_index<Index> counted_;
  counted_medium& medium_ = counted_.medium();
  Index& index_ = counted_.index();
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> absent_;
};

}  // namespace pmlab::tests
