// Reads, flushes and fences of Dash's operations, counted.
#include <pmlab/indexes/dash.hpp>
#include <pmlab/media/counted.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/counted_index.hpp"
#include "support/differential.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
using table = indexes::dash<counted_medium>;

TEST(counted_dash, works_on_it) {
  counted_index<table> counted;
  contents model;
  EXPECT_EQ(run_differential(counted.index(), model, {}), "");
}

// The floor: entry and commit in one line. A displacement flushes a second line, before the first.
TEST(counted_dash, changes_flush_one_line_and_fence_once) {
  counted_index<table> counted;
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  const auto [inserts, updates, upserts, rejected, erases, absent] = measure_changes(counted, keys);
  std::printf("  flushed lines/fences of Dash inserts:%s\n", to_string(inserts).c_str());
  // The remaining ones split a segment.
  EXPECT_EQ(inserts.size(), 2U) << to_string(inserts);
  EXPECT_GE(inserts.at({1, 1}), 0.97) << to_string(inserts);
  EXPECT_GE(inserts.at({1, 1}) + inserts.at({2, 2}), 0.997) << to_string(inserts);
  EXPECT_NEAR(updates.at({1, 1}), 1.0, 1e-9) << to_string(updates);
  EXPECT_NEAR(upserts.at({1, 1}), 1.0, 1e-9) << to_string(upserts);
  // The first one in a segment since it was split makes older removals durable.
  EXPECT_EQ(erases.size(), 2U) << to_string(erases);
  EXPECT_GE(erases.at({1, 1}), 0.999) << to_string(erases);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << to_string(rejected);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << to_string(absent);
}

// Over a doubling of the table, so that segments of every load factor count, the splits included.
TEST(counted_dash, inserts_write_at_most_one_and_a_fifth_device_lines) {
  counted_index<table> counted;
  const std::vector<std::uint64_t> keys = random_keys(400'000);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const media::counts c = counted.cost_of([&](table& t) { ASSERT_EQ(t.insert(keys[i], 1), outcome::inserted); });
    if (i >= keys.size() / 2) written += c.device_lines_written;
  }
  const double each = static_cast<double>(written) / static_cast<double>(keys.size() / 2);
  std::printf("  %.3f device lines written per insert\n", each);
  EXPECT_LE(each, 1.2);
}

// An absent key is decided in its home line, but for filter classes that an entry elsewhere has, too.
TEST(counted_dash, absent_keys_read_one_line) {
  counted_index<table> counted;
  const std::vector<std::uint64_t> keys = random_keys(300'000);
  const std::size_t there = keys.size() / 2;
  for (std::size_t i = 0; i < there; ++i) ASSERT_EQ(counted.index().insert(keys[i], 1), outcome::inserted);
  for (const bool present : {true, false}) {
    double lines = 0;
    double device_lines = 0;
    double in_one = 0;
    for (std::size_t i = 0; i < there; ++i) {
      const std::uint64_t key = keys[present ? i : there + i];
      bool found = false;
      const media::counts c = counted.cost_of([&](table& t) { found = t.find(key).has_value(); });
      ASSERT_EQ(found, present);
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
      ASSERT_GE(c.lines_read, 1U);
      lines += static_cast<double>(c.lines_read);
      device_lines += static_cast<double>(c.device_lines_read);
      in_one += c.lines_read == 1;
    }
    const auto count = static_cast<double>(there);
    std::printf("  Dash find of %s keys: %.4f lines, %.4f device lines; %.2f %% read one line\n",
                present ? "present" : "absent", lines / count, device_lines / count, 100 * in_one / count);
    EXPECT_GE(in_one / count, present ? 0.92 : 0.97);
    EXPECT_LE(lines / count, present ? 1.2 : 1.1);
    EXPECT_LE(device_lines / count, present ? 1.05 : 1.03);
  }
}

}  // namespace
}  // namespace pmlab::tests
