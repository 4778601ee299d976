// Dash's own behaviour: how full segments are before they split, displacement, the stash, and segments of earlier runs.
#include <pmlab/indexes/dash.hpp>
#include <pmlab/media/dram.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/forwarding_index.hpp"
#include "support/history.hpp"
#include "support/linearizability.hpp"
#include "support/operations.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
namespace parts = indexes::detail::dash;
using parts::segment;

template <class Medium>
using dash = indexes::dash<Medium>;
using table = dash<media::dram>;

std::uint64_t mixed(std::uint64_t i) { return i * 0x9e3779b97f4a7c15 + 12345; }

// DRAM that knows its segments.
class known_segments : public media::dram {
 public:
  class publication : public media::dram::publication {
   public:
    explicit publication(known_segments& medium) : media::dram::publication(medium), medium_(medium) {}
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      void* const made = media::dram::publication::allocate(bytes, alignment);
      if (bytes == sizeof(segment)) medium_.segments.push_back(static_cast<segment*>(made));
      return made;
    }

   private:
    known_segments& medium_;
  };

  std::vector<segment*> segments;
};

// Hashes of the segment of the prefix 0, and of a home bucket and line if these are given.
std::uint64_t hash_in_first_segment(random& source) { return source.next() >> 1; }
std::uint64_t hash_of_home_line(random& source, std::size_t bucket, std::size_t line) {
  return (hash_in_first_segment(source) & ~std::uint64_t{parts::lines_per_segment - 1}) | line << parts::bucket_bits |
         bucket;
}

template <class Table>
void expect_sound(const Table& t, std::uint64_t entries) {
  const indexes::check_report report = t.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, entries);
  EXPECT_EQ(t.size(), entries);
}

// The target of [Dash]: over 90 % on the mean of many segments that are filled at random.
TEST(dash, segments_are_over_ninety_percent_full_before_they_split) {
  constexpr int trials = 100;
  double sum = 0;
  double least = 1;
  for (int trial = 0; trial < trials; ++trial) {
    media::dram memory;
    auto t = table::open(memory);
    random source(static_cast<std::uint64_t>(trial));
    std::uint64_t inserted = 0;
    while (t.stats().nodes == 2) {
      for (int i = 0; i < (inserted < 800 ? 100 : 1); ++i, ++inserted)
        ASSERT_EQ(t.insert(table::key_of_hash(hash_in_first_segment(source)), inserted), outcome::inserted);
    }
    // The last one has split the segment.
    const double load = static_cast<double>(inserted - 1) / static_cast<double>(parts::slots_per_segment);
    sum += load;
    least = std::min(least, load);
  }
  std::printf("  load factor before a split: %.3f on the mean, %.3f at the least\n", sum / trials, least);
  EXPECT_GE(sum / trials, 0.92);
  EXPECT_GE(least, 0.85);
}

// At any number of keys: 16 bytes of key and value take 21 bytes at the best and 27 on the mean.
TEST(dash, bytes_per_key_over_a_growth) {
  media::dram memory;
  auto t = table::open(memory);
  double least = 1000;
  double sum = 0;
  int sizes = 0;
  std::uint64_t keys = 0;
  for (double wanted = 50'000; wanted < 200'000; wanted *= 1.05, ++sizes) {
    for (; static_cast<double>(keys) < wanted; ++keys) ASSERT_EQ(t.insert(mixed(keys), keys), outcome::inserted);
    const double bytes = static_cast<double>(t.stats().medium_bytes) / static_cast<double>(keys);
    least = std::min(least, bytes);
    sum += bytes;
  }
  std::printf("  50 k to 200 k keys: %.2f bytes per key at the best, %.2f on the mean\n", least, sum / sizes);
  EXPECT_LE(least, 21);
  EXPECT_LE(sum / sizes, 27);
}

// Keys of one home line fill its bucket, the next one and the stash; then the segment splits.
TEST(dash, keys_of_one_line_fill_two_buckets_and_the_stash) {
  for (const std::size_t bucket : {0U, 7U, 63U}) {
    media::dram memory;
    auto t = table::open(memory);
    random source(bucket);
    std::vector<std::uint64_t> keys;
    const auto add = [&] {
      keys.push_back(table::key_of_hash(hash_of_home_line(source, bucket, 1)));
      return t.insert(keys.back(), keys.size());
    };
    constexpr std::size_t room = 2 * parts::slots_per_bucket + parts::stash_lines * parts::entries_per_stash_line;
    while (keys.size() < room) ASSERT_EQ(add(), outcome::inserted);
    EXPECT_EQ(t.stats().nodes, 2U);
    expect_sound(t, room);
    ASSERT_EQ(add(), outcome::inserted);
    EXPECT_GT(t.stats().nodes, 2U);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(t.find(keys[i]), i + 1);
    for (const std::uint64_t key : keys) {
      EXPECT_EQ(t.update(key, ~key), outcome::updated);
      EXPECT_EQ(t.insert(key, 0), outcome::exists);
    }
    expect_sound(t, keys.size());
    for (const std::uint64_t key : keys) ASSERT_EQ(t.erase(key), outcome::erased);
    for (const std::uint64_t key : keys) ASSERT_EQ(t.find(key), std::nullopt);
    expect_sound(t, 0);
  }
}

// A full bucket beside an empty one: an entry moves on, and the new one takes its slot.
TEST(dash, a_displaced_entry_stays_findable) {
  media::dram memory;
  auto t = table::open(memory);
  random source(1);
  std::vector<std::uint64_t> keys;
  const auto add = [&](std::size_t bucket) {
    keys.push_back(table::key_of_hash(hash_of_home_line(source, bucket, keys.size() % parts::lines_per_bucket)));
    ASSERT_EQ(t.insert(keys.back(), keys.size()), outcome::inserted);
  };
  for (std::size_t i = 0; i < parts::slots_per_bucket; ++i) add(6);
  for (std::size_t i = 0; i < parts::slots_per_bucket; ++i) add(5);
  // Buckets 5 and 6 are full. Room comes from bucket 7, which the entries of 6 may move to.
  for (std::size_t i = 0; i < parts::slots_per_bucket; ++i) add(5);
  EXPECT_EQ(t.stats().nodes, 2U);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(t.find(keys[i]), i + 1);
  expect_sound(t, keys.size());
  for (std::size_t i = 0; i < keys.size(); i += 2) ASSERT_EQ(t.erase(keys[i]), outcome::erased);
  expect_sound(t, keys.size() / 2);
}

// All entries of a full segment move: they keep their places, since filling the new segment one by one may not succeed.
TEST(dash, a_split_that_moves_every_entry_finds_room_for_them) {
  for (const std::uint64_t seed : seeds(20)) {
    media::dram memory;
    auto t = table::open(memory);
    random source(seed);
    std::vector<std::uint64_t> keys;
    while (t.stats().nodes < 5) {
      keys.push_back(table::key_of_hash((hash_in_first_segment(source) >> 3) | std::uint64_t{7} << 60));
      ASSERT_EQ(t.insert(keys.back(), keys.size()), outcome::inserted) << "replay: " << replay_command(seed);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(t.find(keys[i]), i + 1);
    expect_sound(t, keys.size());
  }
}

// Filter bits of entries that have gone do not stay: absent keys read one line as before.
TEST(dash, erase_clears_the_filter) {
  known_segments memory;
  auto t = dash<known_segments>::open(memory);
  random source(1);
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < 700; ++i) {
    keys.push_back(table::key_of_hash(hash_in_first_segment(source)));
    ASSERT_EQ(t.insert(keys.back(), 1), outcome::inserted);
  }
  for (const std::uint64_t key : keys) ASSERT_EQ(t.erase(key), outcome::erased);
  for (const segment* s : memory.segments)
    for (const parts::bucket& b : s->buckets)
      for (const auto& line : b.lines) EXPECT_EQ(parts::filter_of(line), 0);
}

// A displacement that a crash has cut off after its copy: both copies are there, and equal.
TEST(dash, L3_the_second_copy_of_a_displacement_is_removed_for_good) {
  constexpr std::size_t bucket = 3;
  known_segments memory;
  random source(1);
  const std::uint64_t hash = hash_of_home_line(source, bucket, 2);
  const std::uint64_t key = table::key_of_hash(hash);
  {
    auto t = dash<known_segments>::open(memory);
    ASSERT_EQ(t.insert(key, 5), outcome::inserted);
  }
  for (const bool is_reopened_first : {false, true}) {
    segment* const s = *std::find_if(memory.segments.begin(), memory.segments.end(), [&](segment* candidate) {
      return static_cast<bool>(parts::find_in_segment(*candidate, hash, [](const auto&) {}));
    });
    auto& copy = s->buckets[parts::next_bucket(bucket)].lines[0];
    copy.keys[1] = parts::live_word(hash, true);
    copy.values[1] = s->buckets[bucket].lines[2].values[0].load();
    auto t = dash<known_segments>::open(memory);
    // Before and after the recovery of the segment.
    if (is_reopened_first) expect_sound(t, 1);
    ASSERT_EQ(t.update(key, 6), outcome::updated);
    EXPECT_EQ(copy.keys[1] & parts::live_word(0, false), 0U);
    expect_sound(t, 1);
    ASSERT_EQ(t.erase(key), outcome::erased);
    EXPECT_EQ(t.find(key), std::nullopt);
    auto again = dash<known_segments>::open(memory);
    EXPECT_EQ(again.find(key), std::nullopt);
    expect_sound(again, 0);
    ASSERT_EQ(again.insert(key, 5), outcome::inserted);
  }
}

// An entry that a split moved to its home line, whose removal from its old place a crash has undone: the old copy has
// an old value, and it does not count.
TEST(dash, L3_the_old_copy_of_an_entry_that_moved_home_does_not_count) {
  constexpr std::size_t bucket = 5;
  constexpr std::size_t line = 1;
  for (const int place : {0, 1, 2}) {
    known_segments memory;
    random source(1);
    const std::uint64_t hash = hash_of_home_line(source, bucket, line);
    const std::uint64_t key = table::key_of_hash(hash);
    {
      auto t = dash<known_segments>::open(memory);
      ASSERT_EQ(t.insert(key, 5), outcome::inserted);
    }
    segment* const s = *std::find_if(memory.segments.begin(), memory.segments.end(), [&](segment* candidate) {
      return static_cast<bool>(parts::find_in_segment(*candidate, hash, [](const auto&) {}));
    });
    if (place < 2) {
      auto& copy = s->buckets[place == 0 ? bucket : parts::next_bucket(bucket)].lines[3];
      copy.values[2] = 4;
      copy.keys[2] = parts::live_word(hash, place == 1);
    } else {
      s->stash[7].values[1] = 4;
      s->stash[7].hashes[1] = hash;
      s->stash[7].live = 2;
    }
    auto t = dash<known_segments>::open(memory);
    expect_sound(t, 1);
    t.for_each([&](std::uint64_t found, std::uint64_t value) {
      EXPECT_EQ(found, key);
      EXPECT_EQ(value, 5U);
    });
    EXPECT_EQ(t.find(key), 5U);
    ASSERT_EQ(t.erase(key), outcome::erased);
    EXPECT_EQ(t.find(key), std::nullopt);
    auto again = dash<known_segments>::open(memory);
    EXPECT_EQ(again.find(key), std::nullopt);
    expect_sound(again, 0);
  }
}

// A split leaves few entries outside of their home lines, in both halves.
TEST(dash, a_split_moves_entries_to_their_home_lines) {
  known_segments memory;
  auto t = dash<known_segments>::open(memory);
  random source(3);
  std::vector<std::uint64_t> hashes;
  while (t.stats().nodes == 2) {
    hashes.push_back(hash_in_first_segment(source));
    ASSERT_EQ(t.insert(table::key_of_hash(hashes.back()), hashes.size()), outcome::inserted);
  }
  // One of two segments was split, and the last one is new.
  const bool first_is_old =
      static_cast<bool>(parts::find_in_segment(*memory.segments[0], hashes[0], [](const auto&) {}));
  const std::array<segment*, 2> halves{memory.segments[first_is_old ? 0 : 1], memory.segments.back()};
  std::array<int, 2> entries{};
  std::array<int, 2> at_home{};
  for (const std::uint64_t hash : hashes) {
    const std::size_t half = hash >> 62;
    ++entries[half];
    at_home[half] += static_cast<bool>(parts::find_in_line(parts::home_line(*halves[half], hash), hash, 0));
  }
  for (const std::size_t half : {0U, 1U}) {
    const double share = static_cast<double>(at_home[half]) / static_cast<double>(entries[half]);
    std::printf("  half %zu: %.1f %% in their home lines\n", half, 100 * share);
    EXPECT_GE(share, 0.92);
  }
}

// Filters of an earlier run are not believed: neither missing bits nor ones that nothing needs.
TEST(dash, C10_filters_are_computed_again_after_a_restart) {
  known_segments memory;
  random source(1);
  std::vector<std::uint64_t> keys;
  {
    auto t = dash<known_segments>::open(memory);
    for (int i = 0; i < 900; ++i) {
      keys.push_back(table::key_of_hash(hash_in_first_segment(source)));
      ASSERT_EQ(t.insert(keys.back(), keys.size()), outcome::inserted);
    }
  }
  for (const unsigned bits : {0x0000U, 0xffffU, 0x1234U}) {
    for (segment* s : memory.segments)
      for (parts::bucket& b : s->buckets)
        for (auto& line : b.lines) parts::set_filter(line, static_cast<parts::line_filter>(bits));
    auto t = dash<known_segments>::open(memory);
    for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(t.find(keys[i]), i + 1);
    expect_sound(t, keys.size());
  }
}

// All keys belong to one group of buckets: few of them fill it, so that entries are displaced, fill the stash, and the
// segment splits.
template <class Medium>
class in_one_group : public forwarding_index<dash<Medium>> {
  using base = forwarding_index<dash<Medium>>;
  static constexpr std::uint64_t group_bits = 0x38;

 public:
  static in_one_group open(Medium& medium, std::string_view name = base::layout_name) {
    return in_one_group(medium, name);
  }
  outcome insert(std::uint64_t key, std::uint64_t value) { return this->inner().insert(inside(key), value); }
  outcome update(std::uint64_t key, std::uint64_t value) { return this->inner().update(inside(key), value); }
  outcome upsert(std::uint64_t key, std::uint64_t value) { return this->inner().upsert(inside(key), value); }
  outcome erase(std::uint64_t key) { return this->inner().erase(inside(key)); }
  std::optional<std::uint64_t> find(std::uint64_t key) { return this->inner().find(inside(key)); }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    std::vector<std::uint64_t> chosen;
    for (const std::uint64_t key : keys) chosen.push_back(inside(key));
    this->inner().find_batch(chosen, values);
  }
  template <class Function>
  void for_each(Function&& function) const {
    base::for_each([&](std::uint64_t key, std::uint64_t value) { function(outside(key), value); });
  }

 private:
  in_one_group(Medium& medium, std::string_view name) : base([&] { return dash<Medium>::open(medium, name); }) {}

  static std::uint64_t inside(std::uint64_t key) {
    const std::uint64_t chosen = indexes::detail::key_of_hash(indexes::detail::hash_of_key(key) & ~group_bits);
    const std::scoped_lock guard(names_mutex);
    names.emplace(chosen, key);
    return chosen;
  }
  static std::uint64_t outside(std::uint64_t chosen) {
    const std::scoped_lock guard(names_mutex);
    return names.at(chosen);
  }

  // The names outside of the keys inside.
  static inline std::mutex names_mutex;
  static inline std::unordered_map<std::uint64_t, std::uint64_t> names;
};

// Threads insert, update and erase the same keys of one group while its entries are displaced and its segment splits.
TEST(dash, L3_L8_histories_in_a_group_that_is_full_are_linearizable) {
  const watchdog hang(std::chrono::seconds(240), replay_command(1));
  for (const std::uint64_t seed : seeds(6)) {
    media::dram memory;
    auto t = in_one_group<media::dram>::open(memory);
    history_options options;
    options.seed = seed;
    options.threads = static_cast<unsigned>(2 + seed % 5);
    options.operations_per_thread = 8000 / options.threads;
    for (std::uint64_t i = 0; i < 3 + seed % 5; ++i) options.contended.push_back(i);
    for (std::uint64_t i = 0; i < 250 + 100 * seed; ++i) options.filler.push_back(100 + i);
    ASSERT_EQ(check_concurrent_history(t, options), "") << "replay: " << replay_command(seed);
    const indexes::check_report report = t.check();
    ASSERT_TRUE(report.ok()) << report.violations.front() << "; replay: " << replay_command(seed);
  }
}

// A reader misses no key that is displaced meanwhile, back and forth.
TEST(dash, readers_find_keys_that_are_displaced_meanwhile) {
  const watchdog hang(std::chrono::seconds(240), replay_command(1));
  media::dram memory;
  auto t = in_one_group<media::dram>::open(memory);
  constexpr std::uint64_t there = 100;
  for (std::uint64_t i = 0; i < there; ++i) ASSERT_EQ(t.insert(i, i), outcome::inserted);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> wrong{0};
  run_threads(3, [&](unsigned thread) {
    if (thread == 0) {
      for (std::uint64_t round = 0; round < 300; ++round) {
        const std::uint64_t first = there + 40 * round;
        for (std::uint64_t i = 0; i < 40; ++i) wrong += t.insert(first + i, i) != outcome::inserted;
        for (std::uint64_t i = 0; i < 40; ++i) wrong += t.erase(first + i) != outcome::erased;
      }
      done = true;
      return;
    }
    while (!done)
      for (std::uint64_t i = 0; i < there; ++i) wrong += t.find(i) != i;
  });
  EXPECT_EQ(wrong, 0U);
  expect_sound(t, there);
}

}  // namespace
}  // namespace pmlab::tests
