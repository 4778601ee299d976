// pod::shared_dash on one host, and on several views of one DRAM: its answers, and how many lines a search refreshes.
// Caches that are not coherent, deaths and power failures are verified on the simulated machine.
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/indexes/dash/segment.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/pod/shared_dash.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "support/host_view.hpp"
#include "support/message_of.hpp"
#include "support/shared_index.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
namespace parts = indexes::detail::dash;

using table = pod::shared_dash<host_view>;
static_assert(indexes::point_index<table> && !indexes::ordered_index<table>);
static_assert(table::shared_by_hosts && table::survives_power_failure);
// Hosts that forget.
using small_table =
    pod::shared_dash<host_view, pod::table_sizes{.locks = 2, .stash_locks = 1, .remembered = 16, .known_places = 2}>;
template <std::size_t Locks>
using table_with = pod::shared_dash<odd_dram, pod::table_sizes{.locks = Locks}>;

// Keys of two buckets that lie side by side, and of any segment.
std::vector<std::uint64_t> crowded_keys(std::size_t count) {
  constexpr std::uint64_t places = 0xff, near_places = 0xc1;
  std::vector<std::uint64_t> keys;
  splitmix64 random(3);
  while (keys.size() < count) {
    const std::uint64_t hash = random.next();
    keys.push_back(table::key_of_hash((hash & ~places) | (hash & near_places)));
  }
  return keys;
}

TEST(SharedDash, OneHostAnswersAsAMap) {
  media::dram memory;
  auto index = pod::shared_dash<media::dram>::open(memory);
  expect_answers_of_a_map(index);
  EXPECT_GT(index.stats().nodes, 2U);
}

TEST(SharedDash, EachHostSeesWhatTheOthersHaveDone) {
  expect_each_host_sees_what_the_others_have_done<table>();
  expect_each_host_sees_what_the_others_have_done<small_table>();
}

TEST(SharedDash, ThreadsOfSeveralHostsAddKeysOfTheirOwn) {
  expect_threads_of_several_hosts_add_keys_of_their_own<table>();
  expect_threads_of_several_hosts_add_keys_of_their_own<small_table>();
}

// All that moves and overflows: displaced entries, the stash, and splits of full buckets.
TEST(SharedDash, CrowdedKeysComeAndGo) {
  host_memory memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  table a = table::open(first), b = table::open(second);
  const std::vector<std::uint64_t> keys = crowded_keys(3000);
  model_of_index model;
  splitmix64 random(4);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ((i % 2 == 0 ? a : b).insert(keys[i], i), outcome::inserted);
    model[keys[i]] = i;
    const std::uint64_t other = keys[random.below(i + 1)];
    if (random.one_in(3)) {
      EXPECT_EQ(b.erase(other), model.erase(other) != 0 ? outcome::erased : outcome::absent);
    }
    for (table* on : {&a, &b}) {
      const auto there = model.find(other);
      EXPECT_EQ(on->find(other), there == model.end() ? std::nullopt : std::optional(there->second));
    }
  }
  expect_entries(a, model);
  expect_entries(b, model);
  EXPECT_GT(a.stats().nodes, 16U);
}

TEST(SharedDash, ASearchRefreshesNothingIfNothingChanged) {
  host_memory memory;
  host_view first(memory, 0, 2), second(memory, 1, 2), third(memory, 1, 2);
  table writer = table::open(first), reader = table::open(second);
  // In one home line, and beyond it.
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 6; ++i) keys.push_back(table::key_of_hash(i << 40 | 0x15));
  for (const std::uint64_t key : keys) ASSERT_EQ(writer.insert(key, 1), outcome::inserted);
  const auto lines_of = [&](host_view& view, table& on, std::uint64_t key, std::uint64_t value) {
    return refreshed_by(view, [&] { EXPECT_EQ(on.find(key), value); });
  };
  // The home line, and the line that tells of a split.
  EXPECT_EQ(lines_of(second, reader, keys[0], 1), 2U);
  EXPECT_EQ(lines_of(second, reader, keys[0], 1), 0U);
  EXPECT_EQ(lines_of(second, reader, keys[1], 1), 0U);
  // An entry that lies elsewhere.
  EXPECT_EQ(lines_of(second, reader, keys[5], 1), 1U);
  EXPECT_EQ(lines_of(second, reader, keys[5], 1), 0U);
  // A host knows what it has changed itself; the others refresh the two lines.
  EXPECT_EQ(writer.update(keys[0], 2), outcome::updated);
  EXPECT_EQ(lines_of(first, writer, keys[0], 2), 0U);
  EXPECT_EQ(lines_of(second, reader, keys[0], 2), 2U);
  EXPECT_EQ(lines_of(second, reader, keys[0], 2), 0U);
  EXPECT_EQ(refreshed_by(second, [&] { EXPECT_EQ(reader.update(keys[0], 3), outcome::updated); }), 0U);
  EXPECT_EQ(lines_of(second, reader, keys[0], 3), 0U);
  // Another group has not changed.
  const std::uint64_t far = table::key_of_hash(0x2f);
  ASSERT_EQ(writer.insert(far, 1), outcome::inserted);
  EXPECT_EQ(lines_of(second, reader, far, 1), 2U);
  EXPECT_EQ(writer.update(keys[0], 4), outcome::updated);
  EXPECT_EQ(lines_of(second, reader, far, 1), 0U);
  // A host that has just joined knows nothing.
  table joined = table::open(third);
  EXPECT_EQ(lines_of(third, joined, keys[0], 4), 2U);
}

TEST(SharedDash, AnotherNumberOfLocksIsRefused) {
  expect_that_another_number_of_locks_is_named<table_with<64>, table_with<256>>();
  host_memory memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  const table made = table::open(first);
  using other = pod::shared_dash<host_view, pod::table_sizes{.stash_locks = 16}>;
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(other::open(second)); }), "another number of locks");
}

TEST(SharedDash, AFullMemoryChangesNothing) {
  expect_that_a_full_memory_changes_nothing<pod::shared_dash<media::dram>>();
}

TEST(SharedDash, APublicationThatThrowsLeavesNoLockHeld) {
  // The table, and its first splits.
  expect_that_a_publication_that_throws_leaves_no_lock_held<pod::shared_dash<odd_dram>>(4, 6000);
}

// Keys whose hashes begin alike divide no segment: the table is full for them at some depth, and for no others.
TEST(SharedDash, KeysOfOnePlaceFillNoMemory) {
  media::dram memory;
  auto index = pod::shared_dash<media::dram>::open(memory);
  std::uint64_t count = 0;
  // Bits 16 to 23 of the hash are the only ones that differ, and those of its class.
  while (count < 0x10000 && index.insert(table::key_of_hash(count << 8), count) == outcome::inserted) ++count;
  EXPECT_LT(count, 100U);
  EXPECT_LT(index.stats().nodes, 64U);
  EXPECT_EQ(index.insert(table::key_of_hash(~0ULL), 1), outcome::inserted);
  EXPECT_TRUE(index.check().ok());
  EXPECT_EQ(index.size(), count + 1);
}

// The first segment, and the word that leads to the half that was split off first.
struct places_of_damage {
  parts::segment* segment;
  std::atomic<std::uint64_t>* half;
};
places_of_damage places_in(media::dram& memory) {
  const std::uint64_t head = memory.named_root("shared_dash", "shared_dash", 1).word->load();
  auto* const s = reinterpret_cast<parts::segment*>(reinterpret_cast<const std::atomic<std::uint64_t>*>(head)->load());
  return {s, reinterpret_cast<std::atomic<std::uint64_t>*>(s + 1) + 1};
}

TEST(SharedDash, TheCheckNamesDamage) {
  const auto violation = [](auto&& damage) {
    media::dram memory;
    auto index = pod::shared_dash<media::dram>::open(memory);
    for (std::uint64_t key = 0; key < 6000; ++key) static_cast<void>(index.insert(key, key));
    EXPECT_TRUE(index.check().ok());
    damage(places_in(memory));
    const indexes::check_report report = index.check();
    return report.ok() ? std::string() : report.violations.front();
  };
  EXPECT_PRED2(says, violation([](const places_of_damage& at) { at.half->store(12345); }), "a link");
  EXPECT_PRED2(says, violation([](const places_of_damage& at) { at.half[0] = at.half[1].load(); }),
               "two links to one segment");
  EXPECT_PRED2(says, violation([](const places_of_damage& at) { at.half[20] = at.half[0].load(); }),
               "a split that there was not");
  EXPECT_PRED2(says, violation([](const places_of_damage& at) {
                 for (auto& word : at.segment->buckets[0].lines[0].keys) word.store(~0ULL);
               }),
               "I3");
  EXPECT_PRED2(says, violation([](const places_of_damage& at) {
                 for (auto& bucket : at.segment->buckets)
                   for (auto& line : bucket.lines) parts::set_filter(line, 0);
               }),
               "I1");
}

TEST(SharedDash, ADamagedLinkThrowsAndLeavesNoLockHeld) {
  media::dram memory;
  auto index = pod::shared_dash<media::dram>::open(memory);
  for (std::uint64_t key = 0; key < 6000; ++key) static_cast<void>(index.insert(key, key));
  auto again = pod::shared_dash<media::dram>::open(memory);
  const places_of_damage at = places_in(memory);
  const std::uint64_t before = at.half->exchange(12345);
  constexpr std::uint64_t of_the_half = std::uint64_t{1} << 62;
  const std::uint64_t key = table::key_of_hash(of_the_half);
  EXPECT_THROW(static_cast<void>(again.find(key)), error);
  EXPECT_THROW(static_cast<void>(again.insert(key, 1)), error);
  EXPECT_THROW(static_cast<void>(again.size()), error);
  at.half->store(before);
  EXPECT_EQ(again.insert(key, 1), outcome::inserted);
  EXPECT_EQ(again.find(key), 1U);
}

}  // namespace
}  // namespace pmlab::tests
