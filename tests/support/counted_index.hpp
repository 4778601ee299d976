// An index on a counted medium, and the cost of its operations there.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>

#include <algorithm>
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

inline std::vector<std::uint64_t> random_keys(std::size_t count) {
  random source(1);
  return make_keys(key_set::anywhere, count, source);
}

using flushes_and_fences = std::pair<std::uint64_t, std::uint64_t>;
[[nodiscard]] inline flushes_and_fences writes_of(const media::counts& c) { return {c.lines_flushed, c.fences}; }

// How often each (flushed lines, fences) occurred; [(1, 1)] = 1 means always one of each.
using shares = std::map<flushes_and_fences, double>;

inline std::string to_string(const shares& all) {
  std::string text;
  for (const auto& [cost, share] : all)
    text += " " + std::to_string(cost.first) + "/" + std::to_string(cost.second) + ": " +
            std::to_string(100 * share).substr(0, 6) + " %";
  return text;
}

// The costs of many operations: of each on average, and the most of one.
class cost_sums {
 public:
  void add(const media::counts& c) {
    sum_ += c;
    most_.lines_read = std::max(most_.lines_read, c.lines_read);
    most_.device_lines_read = std::max(most_.device_lines_read, c.device_lines_read);
    if (c.publications != 0) return;
    most_.lines_flushed = std::max(most_.lines_flushed, c.lines_flushed);
    most_.fences = std::max(most_.fences, c.fences);
    ++unpublished_[writes_of(c)];
  }

  [[nodiscard]] double mean(std::uint64_t media::counts::*what) const {
    return static_cast<double>(sum_.*what) / static_cast<double>(sum_.operations);
  }
  // The most of one operation; flushes and fences: of one without a publication.
  [[nodiscard]] const media::counts& most() const noexcept { return most_; }
  // The share of the operations without a publication that had each cost.
  [[nodiscard]] shares unpublished() const {
    shares result;
    for (const auto& [cost, count] : unpublished_)
      result[cost] = static_cast<double>(count) / static_cast<double>(sum_.operations);
    return result;
  }

 private:
  media::counts sum_{};
  media::counts most_{};
  std::map<flushes_and_fences, std::uint64_t> unpublished_;
};

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
  // The costs of `operation(index, key)` for each of the keys.
  template <class Operation>
  cost_sums costs_of(const std::vector<std::uint64_t>& keys, Operation&& operation) {
    cost_sums sums;
    for (const std::uint64_t key : keys) sums.add(cost_of([&](Index& index) { operation(index, key); }));
    return sums;
  }

  // Inserts `count` random keys. As many others are absent.
  void load(std::size_t count) {
    present = random_keys(2 * count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(index_.insert(present[i], i), indexes::outcome::inserted);
    absent.assign(present.begin() + static_cast<std::ptrdiff_t>(count), present.end());
    present.resize(count);
  }
  std::vector<std::uint64_t> present;
  std::vector<std::uint64_t> absent;

  Index& index() { return index_; }
  counted_medium& medium() { return medium_; }

 private:
  counted_medium medium_;
  Index index_ = Index::open(medium_);
};

}  // namespace pmlab::tests
