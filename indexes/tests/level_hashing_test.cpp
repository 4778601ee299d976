// Level hashing's own behaviour: shards that grow one after the other, chosen keys, levels that wait for readers.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/level_hashing.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/few_shards.hpp"
#include "support/history.hpp"
#include "support/linearizability.hpp"
#include "support/operations.hpp"
#include "support/temporary_folder.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

template <std::size_t Shards>
using dram_of_shards = of_shards<media::dram, Shards>;

template <class Medium>
using level_hashing = indexes::level_hashing<Medium>;

std::uint64_t mixed(std::uint64_t i) { return i * 0x9e3779b97f4a7c15 + 12345; }

// Staggered shards: at any number of keys, sixteen bytes of a key and value take at most thirty in the medium.
TEST(level_hashing, bytes_per_key_do_not_depend_on_the_number_of_keys) {
  media::dram memory;
  auto table = level_hashing<media::dram>::open(memory);
  double least = 1000;
  double most = 0;
  std::uint64_t keys = 0;
  std::uint64_t wanted = 150'000;
  for (int size = 0; size < 20; ++size, wanted = wanted * 5 / 4) {
    for (; keys < wanted; ++keys) ASSERT_EQ(table.insert(mixed(keys), keys), outcome::inserted);
    const double bytes = static_cast<double>(table.stats().medium_bytes) / static_cast<double>(keys);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
    EXPECT_LE(bytes, 30) << keys << " keys";
  }
  std::printf("  150 k to %llu keys: %.2f to %.2f bytes per key\n", static_cast<unsigned long long>(keys), least, most);
  EXPECT_LE(most / least, 1.08);
}

// A pool of few shards, whose levels soon are larger than libpmemobj's classes.
using pool_of_few_shards = of_shards<media::pmem, 2>;

TEST(level_hashing, L12_large_levels_are_there_after_reopening) {
  const temporary_folder folder;
  constexpr std::uint64_t keys = 300'000;
  for (const bool first : {true, false}) {
    pool_of_few_shards pool(folder.file("pool"), {.create_bytes = std::uint64_t{128} << 20, .huge_pages = false});
    auto table = level_hashing<pool_of_few_shards>::open(pool);
    for (std::uint64_t i = 0; first && i < keys; ++i) ASSERT_EQ(table.insert(mixed(i), i), outcome::inserted) << i;
    for (std::uint64_t i = 0; i < keys; ++i) ASSERT_EQ(table.find(mixed(i)), i);
    const indexes::check_report report = table.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
    EXPECT_EQ(report.entries, keys);
    EXPECT_GT(table.stats().nodes * 128 / 2, std::uint64_t{1} << 20) << "the levels of a shard are small";
  }
}

// L12: it grows by more than a thousandfold under threads, and nothing that it was made with limits that.
TEST(level_hashing, L12_grows_a_thousandfold_under_threads) {
  const watchdog hang(std::chrono::seconds(240), replay_command(1));
  dram_of_shards<2> memory;
  auto table = level_hashing<dram_of_shards<2>>::open(memory);
  constexpr std::uint64_t few = 200;
  constexpr std::uint64_t many = 300'000;
  constexpr unsigned threads = 4;
  for (std::uint64_t i = 0; i < few; ++i) ASSERT_EQ(table.insert(mixed(i), i), outcome::inserted);
  std::atomic<std::uint64_t> wrong{0};
  run_threads(threads, [&](unsigned t) {
    for (std::uint64_t i = few + t; i < many; i += threads) {
      if (table.insert(mixed(i), i) != outcome::inserted) ++wrong;
      if (table.find(mixed(i / 2 / threads * threads + t)) == std::nullopt && i > 4 * few) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(table.size(), many);
  const indexes::check_report report = table.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_GE(table.stats().load_factor, 0.3);
  EXPECT_EQ(memory.used().allocated_bytes, table.stats().medium_bytes) << "retired levels are counted";
}

// L8, L3, L9: threads insert, update and erase the same keys of one shard while its entries are moved and it grows.
TEST(level_hashing, L3_L8_L9_histories_in_a_shard_that_moves_and_grows_are_linearizable) {
  const watchdog hang(std::chrono::seconds(240), replay_command(1));
  for (const std::uint64_t seed : seeds(6)) {
    dram_of_shards<1> memory;
    auto table = level_hashing<dram_of_shards<1>>::open(memory);
    history_options options;
    options.seed = seed;
    options.threads = static_cast<unsigned>(2 + seed % 5);
    options.operations_per_thread = 8000 / options.threads;
    for (std::uint64_t i = 0; i < 3 + seed % 5; ++i) options.contended.push_back(mixed(i));
    // At times among few entries, at times among nearly as many as there is room for.
    for (std::uint64_t i = 0; i < 300 + 150 * seed; ++i) options.filler.push_back(mixed(100 + i));
    ASSERT_EQ(check_concurrent_history(table, options), "") << "replay: " << replay_command(seed);
    const indexes::check_report report = table.check();
    ASSERT_TRUE(report.ok()) << report.violations.front() << "; replay: " << replay_command(seed);
  }
}

// Readers of levels that are released meanwhile: AddressSanitizer and the simulated machine look at this one, too.
TEST(level_hashing, L6_readers_stay_in_released_levels_unharmed) {
  const watchdog hang(std::chrono::seconds(240), replay_command(1));
  for (int round = 0; round < 20; ++round) {
    dram_of_shards<1> memory;
    auto table = level_hashing<dram_of_shards<1>>::open(memory);
    constexpr std::uint64_t there = 64;
    constexpr std::uint64_t many = 20'000;
    for (std::uint64_t i = 0; i < there; ++i) ASSERT_EQ(table.insert(mixed(i), i), outcome::inserted);
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> wrong{0};
    run_threads(3, [&](unsigned t) {
      if (t == 0) {
        for (std::uint64_t i = there; i < many; ++i) wrong += table.insert(mixed(i), i) != outcome::inserted;
        done = true;
        return;
      }
      std::vector<std::uint64_t> keys;
      for (std::uint64_t i = 0; i < there; ++i) keys.push_back(mixed(i));
      std::vector<std::optional<std::uint64_t>> values(there);
      while (!done) {
        for (std::uint64_t i = 0; i < there; ++i) wrong += table.find(keys[i]) != i;
        table.find_batch(keys, values);
        for (std::uint64_t i = 0; i < there; ++i) wrong += values[i] != i;
      }
    });
    ASSERT_EQ(wrong, 0U);
  }
}

// Keys that share all four buckets, which no hash produces by chance: `full`, not a level of all memory.
TEST(level_hashing, C7_chosen_keys_are_refused_before_they_fill_the_memory) {
  dram_of_shards<4> memory;
  auto table = level_hashing<dram_of_shards<4>>::open(memory);
  using indexes::detail::level_hashing::candidates;
  const candidates model(0);
  constexpr unsigned chosen_bits = 10;
  std::vector<std::uint64_t> chosen;
  random source(3);
  while (chosen.size() < 60) {
    // The first candidate's bits are those of 0; the second one's are random.
    const std::uint64_t hash = (source.next() & ~std::uint64_t{0xffffffff} & (~std::uint64_t{0} >> 2)) |
                               (source.next() & (0xffffffff >> chosen_bits));
    if (candidates(hash).number(1, chosen_bits) == model.number(1, chosen_bits)) chosen.push_back(hash);
  }
  std::uint64_t refused = 0;
  contents there;
  for (const std::uint64_t hash : chosen) {
    const std::uint64_t key = level_hashing<dram_of_shards<4>>::key_of_hash(hash);
    const outcome o = table.insert(key, hash);
    if (o == outcome::full) {
      ++refused;
      EXPECT_EQ(table.find(key), std::nullopt);
    } else {
      ASSERT_EQ(o, outcome::inserted);
      there[key] = hash;
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GE(there.size(), 28U) << "four full buckets";
  EXPECT_LE(memory.used().allocated_bytes, 64U << 10);
  EXPECT_EQ(compare_all(table, there), "");
  // It serves on, in that shard and in others.
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(table.insert(mixed(i), i), outcome::inserted);
    there[mixed(i)] = i;
  }
  EXPECT_EQ(compare_all(table, there), "");
}

// L10: there is no byte that ends a key.
TEST(level_hashing, L10_keys_with_zero_bytes_inside_stay_apart) {
  dram_of_shards<4> memory;
  auto table = level_hashing<dram_of_shards<4>>::open(memory);
  contents model;
  for (unsigned bytes = 0; bytes < 256; ++bytes) {
    std::uint64_t key = 0;
    for (unsigned i = 0; i < 8; ++i)
      if ((bytes >> i & 1) != 0) key |= std::uint64_t{0x41} << (8 * i);
    ASSERT_EQ(table.insert(key, bytes), outcome::inserted);
    model[key] = bytes;
  }
  EXPECT_EQ(compare_all(table, model), "");
}

// A pool that was made with another number of shards than this program would take.
TEST(level_hashing, a_table_keeps_the_shards_that_it_was_made_with) {
  using few = of_shards<media::pmem, 8>;
  const temporary_folder folder;
  contents model;
  {
    few pool(folder.file("pool"), {.create_bytes = 32 << 20});
    auto table = level_hashing<few>::open(pool);
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      ASSERT_EQ(table.insert(mixed(i), i), outcome::inserted);
      model[mixed(i)] = i;
    }
  }
  media::pmem pool(folder.file("pool"));
  auto table = level_hashing<media::pmem>::open(pool);
  EXPECT_LE(table.stats().dram_bytes, 8U * 64);
  EXPECT_EQ(compare_all(table, model), "");
  for (std::uint64_t i = 20'000; i < 60'000; ++i) {
    ASSERT_EQ(table.insert(mixed(i), i), outcome::inserted);
    model[mixed(i)] = i;
  }
  EXPECT_EQ(compare_all(table, model), "");
}

}  // namespace
}  // namespace pmlab::tests
