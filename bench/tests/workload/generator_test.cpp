#include "support/message_of.hpp"

#include "bench/workload/generator.hpp"
#include "bench/workload/keys.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

using namespace pmlab::workload;
using pmlab::tests::message_of;
using enum operation_kind;

generator_options options_of(const char* mix_text, const char* keys = "") {
  generator_options options;
  options.operations_mix = parse_mix(mix_text);
  options.keys = *keys == '\0' ? options.operations_mix.usual_keys : parse_distribution(keys);
  options.records = 10'000;
  options.operations = 200'000;
  options.seed = 42;
  return options;
}

bool same(const operation& a, const operation& b) {
  return a.kind == b.kind && a.key == b.key && a.value == b.value && a.length == b.length;
}

bool same(const std::vector<operation>& a, const std::vector<operation>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const operation& x, const operation& y) { return same(x, y); });
}

TEST(generator, kinds_come_in_their_shares) {
  for (const char* const text : {"ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f",
                                 "read=.3,insert=.2,update=.1,erase=.15,scan=.05,rmw=.2"}) {
    const generator_options options = options_of(text);
    std::array<double, operation_kinds> counts{};
    for (const operation& made : generate(options)) ++counts.at(static_cast<std::size_t>(made.kind));
    const auto total = static_cast<double>(options.operations);
    for (std::size_t kind = 0; kind < operation_kinds; ++kind) {
      const double share = options.operations_mix.share.at(kind);
      EXPECT_NEAR(counts.at(kind), share * total, 4 * std::sqrt(share * (1 - share) * total)) << text << " " << kind;
    }
  }
}

TEST(generator, fields_are_those_of_the_kind) {
  std::set<std::uint64_t> written;
  std::array<int, 101> lengths{};
  for (const operation& made : generate(options_of("read=.2,insert=.1,update=.1,erase=.1,scan=.4,rmw=.1"))) {
    if (made.kind == insert || made.kind == update || made.kind == read_modify_write) {
      EXPECT_TRUE(is_value_of(made.value, made.key));
      EXPECT_TRUE(written.insert(sequence_of(made.value)).second) << "a sequence occurred twice";
    } else {
      EXPECT_EQ(made.value, 0U);
    }
    if (made.kind == scan)
      ++lengths.at(made.length);
    else
      EXPECT_EQ(made.length, 0U);
  }
  EXPECT_EQ(lengths[0], 0);
  EXPECT_FALSE(written.contains(0)) << "0 belongs to the load";
  for (std::size_t length = 1; length <= 100; ++length) EXPECT_NEAR(lengths.at(length), 800, 150) << length;
}

TEST(generator, a_seed_repeats_and_another_seed_or_thread_differs) {
  for (const char* const keys : {"uniform", "zipfian:0.99", "latest", "sequential", "self-similar:0.2"}) {
    generator_options options = options_of("ycsb-a", keys);
    options.threads = 2;
    const std::vector<operation> once = generate(options);
    EXPECT_TRUE(same(once, generate(options))) << keys;
    generator_options other = options;
    other.seed = 43;
    EXPECT_FALSE(same(once, generate(other))) << keys;
    other = options;
    other.thread = 1;
    EXPECT_FALSE(same(once, generate(other))) << keys;
  }
}

// The sequence depends on integer arithmetic alone here, so it is the same wherever pmlab runs.
TEST(generator, a_seed_gives_the_same_operations_on_every_machine) {
  generator_options options = options_of("read=.5,insert=.5", "uniform");
  options.operations = 8;
  std::vector<std::uint64_t> indexes;
  std::string kinds;
  for (const operation& made : generate(options)) {
    indexes.push_back(index_of(made.key));
    kinds += made.kind == insert ? 'i' : 'r';
  }
  EXPECT_EQ(kinds, "iiiriiri");
  EXPECT_EQ(indexes, (std::vector<std::uint64_t>{10000, 10001, 10002, 9236, 10003, 10004, 3514, 10005}));
}

TEST(generator, threads_share_the_operations_and_insert_different_records) {
  constexpr std::uint32_t threads = 3;
  generator_options options = options_of("insert=.6,read=.2,update=.2");
  options.operations = 100'001;
  options.threads = threads;
  std::unordered_set<std::uint64_t> inserted;
  std::unordered_set<std::uint64_t> sequences_seen;
  std::uint64_t operations = 0;
  for (options.thread = 0; options.thread < threads; ++options.thread) {
    std::unordered_set<std::uint64_t> mine;
    const std::vector<operation> made = generate(options);
    operations += made.size();
    EXPECT_NEAR(static_cast<double>(made.size()), 100'001.0 / 3, 1);
    for (const operation& one : made) {
      const std::uint64_t index = index_of(one.key);
      if (one.kind == insert) {
        EXPECT_GE(index, options.records);
        EXPECT_TRUE(inserted.insert(one.key).second) << "two threads insert the same record";
        mine.insert(one.key);
      } else {
        EXPECT_TRUE(index < options.records || mine.contains(one.key)) << "a record of another thread, or of none";
      }
      if (one.kind == read) continue;
      EXPECT_TRUE(sequences_seen.insert(sequence_of(one.value)).second);
    }
  }
  EXPECT_EQ(operations, options.operations);
}

TEST(generator, latest_asks_for_what_was_just_inserted) {
  generator_options options = options_of("ycsb-d");
  options.threads = 2;
  options.thread = 1;
  std::vector<std::uint64_t> mine;
  int recent = 0;
  int reads = 0;
  for (const operation& made : generate(options)) {
    if (made.kind == insert) {
      mine.push_back(made.key);
    } else if (mine.size() >= 100) {
      ++reads;
      const bool found = std::find(mine.end() - 100, mine.end(), made.key) != mine.end();
      recent += found ? 1 : 0;
    }
  }
  // The first 100 ranks of 10,000 to 15,000 by Zipf's law: 5.29 / (10.22 to 10.67).
  EXPECT_NEAR(static_cast<double>(recent) / reads, 0.506, 0.01);
}

TEST(generator, other_distributions_reach_inserted_records_too) {
  for (const char* const keys : {"uniform", "zipfian:0.99", "self-similar:0.2", "sequential"}) {
    generator_options options = options_of("insert=.5,read=.5", keys);
    options.records = 1000;
    int inserted = 0;
    for (const operation& made : generate(options))
      inserted += made.kind == read && index_of(made.key) >= options.records ? 1 : 0;
    EXPECT_GT(inserted, 1000) << keys;
  }
}

TEST(generator, few_records_and_many_inserts_come_to_an_end) {
  generator_options options = options_of("insert=.5,read=.5", "zipfian:10");
  options.records = 1;
  EXPECT_EQ(generate(options).size(), options.operations);
}

TEST(generator, sequential_reads_every_record_in_turn) {
  generator_options options = options_of("read=1", "sequential");
  options.threads = 2;
  options.thread = 1;
  options.operations = 20'000;
  const std::vector<operation> made = generate(options);
  for (std::uint64_t i = 0; i < made.size(); ++i) ASSERT_EQ(index_of(made[i].key), (5000 + i) % 10'000);
}

TEST(generator, loads_of_all_threads_cover_every_record_once) {
  for (const std::uint32_t threads : {1U, 3U, 7U}) {
    std::uint64_t next = 0;
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      for (const operation& made : generate_load(1000, thread, threads)) {
        ASSERT_EQ(made.kind, insert);
        ASSERT_EQ(made.key, key_of(next++));
        ASSERT_EQ(made.value, value_of(made.key, 0));
      }
    EXPECT_EQ(next, 1000U);
  }
  EXPECT_EQ(generate_load(2, 5, 7).size(), 0U);
}

TEST(generator, what_cannot_be_generated_is_refused) {
  generator_options options = options_of("ycsb-a");
  options.records = 0;
  EXPECT_NE(message_of([&] { (void)generate(options); }), "");
  options.operations = 0;
  EXPECT_EQ(generate(options).size(), 0U);
  options = options_of("insert=1");
  options.records = 0;
  EXPECT_EQ(generate(options).size(), options.operations);
  options = options_of("ycsb-e");
  options.max_scan_length = 0;
  EXPECT_NE(message_of([&] { (void)generate(options); }), "");
  options = options_of("ycsb-a");
  options.thread = 1;
  EXPECT_THROW((void)generate(options), std::invalid_argument);
  EXPECT_THROW((void)generate_load(10, 0, 0), std::invalid_argument);
}

}  // namespace
