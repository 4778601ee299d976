// An index on a counted medium, and the cost of its operations there.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
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

// The costs of all changes of each of the keys, in a row: of new keys, of known ones, of an insert of a known one, and
// of erases of known and absent ones.
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

  // The mean number of lines that a find of each of these keys reads; it writes nothing back.
  double lines_of_finds(const std::vector<std::uint64_t>& keys, bool present) {
    std::uint64_t lines = 0;
    for (const std::uint64_t key : keys) {
      const media::counts c = cost_of([&](Index& i) { EXPECT_EQ(i.find(key).has_value(), present); });
      EXPECT_GE(c.lines_read, present ? 1U : 0U);
      EXPECT_EQ(c.lines_flushed + c.fences, 0U);
      lines += c.lines_read;
    }
    return static_cast<double>(lines) / static_cast<double>(keys.size());
  }

  // One flush and one fence for a changed value; none if there is nothing to change.
  void expect_updates_to_flush_one_line() {
    for (const std::uint64_t key : keys_) {
      ASSERT_EQ(writes_of([&](Index& i) { i.update(key, 1); }), one);
      ASSERT_EQ(writes_of([&](Index& i) { i.upsert(key, 2); }), one);
      ASSERT_EQ(writes_of([&](Index& i) { i.insert(key, 3); }), none);
    }
    for (const std::uint64_t key : absent_) ASSERT_EQ(writes_of([&](Index& i) { i.erase(key); }), none);
  }

  // What a scan of a hundred entries reads on average.
  struct lines_and_device_lines {
    double lines, device_lines;
  };
  lines_and_device_lines lines_of_scans() {
    std::array<indexes::entry, 100> out;
    constexpr std::size_t scans = 1000;
    std::uint64_t lines = 0;
    std::uint64_t device_lines = 0;
    for (std::size_t n = 0; n < scans; ++n) {
      const media::counts c = cost_of([&](Index& i) { static_cast<void>(i.scan(keys_[n], out)); });
      lines += c.lines_read;
      device_lines += c.device_lines_read;
    }
    return {static_cast<double>(lines) / scans, static_cast<double>(device_lines) / scans};
  }

  // A batch reads a line for each entry, and few more.
  void expect_a_batch_to_read_the_lines_of_its_entries() {
    std::array<std::optional<std::uint64_t>, 16> values;
    const std::span<const std::uint64_t> sixteen(keys_.data(), values.size());
    const media::counts c = cost_of([&](Index& i) { i.find_batch(sixteen, values); });
    EXPECT_GE(c.lines_read, values.size());
    EXPECT_LE(c.lines_read, values.size() + 8);
  }

  // The statistics name the bytes that are allocated, of the empty index and of 20,000 keys; those of each key are
  // returned, with and without those in DRAM.
  struct bytes_of_a_key {
    double in_medium, in_all;
  };
  bytes_of_a_key expect_stats_to_say_what_the_medium_counts() {
    const auto agrees = [&] { return index_.stats().medium_bytes == medium_.used().allocated_bytes; };
    EXPECT_TRUE(agrees());
    load(20'000);
    EXPECT_TRUE(agrees());
    const auto stats = index_.stats();
    const auto entries = static_cast<double>(stats.entries);
    return {static_cast<double>(stats.medium_bytes) / entries,
            static_cast<double>(stats.medium_bytes + stats.dram_bytes) / entries};
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
