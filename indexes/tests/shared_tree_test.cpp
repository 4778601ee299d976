// pod::shared_tree on one host, and on several views of one DRAM: its answers, and how many lines a search refreshes.
// Caches that are not coherent, deaths and power failures are verified on the simulated machine.
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/pod/refreshed_versions.hpp>
#include <pmlab/pod/shared_tree.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "support/host_view.hpp"
#include "support/shared_index.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

using tree = pod::shared_tree<host_view>;
static_assert(indexes::ordered_index<tree>);
static_assert(tree::shared_by_hosts && tree::survives_power_failure);
template <std::size_t Locks>
using tree_with = pod::shared_tree<odd_dram, pod::tree_sizes{.locks = Locks, .remembered = 64}>;

TEST(SharedTree, OneHostAnswersAsAMap) {
  media::dram memory;
  auto index = pod::shared_tree<media::dram>::open(memory);
  const model_of_index model = expect_answers_of_a_map(index);
  std::array<indexes::entry, 100> some;
  ASSERT_EQ(index.scan(1000, some), some.size());
  auto from = model.lower_bound(1000);
  for (const indexes::entry& e : some) EXPECT_EQ(e, (indexes::entry{from->first, (from++)->second}));
}

TEST(SharedTree, EachHostSeesWhatTheOthersHaveDone) { expect_each_host_sees_what_the_others_have_done<tree>(); }

TEST(SharedTree, ASearchRefreshesNothingIfNothingChanged) {
  host_memory memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  tree writer = tree::open(first), reader = tree::open(second);
  constexpr std::uint64_t keys = 60'000;
  for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(writer.insert(mix_bits(key), key), outcome::inserted);
  constexpr std::uint64_t lines = 8;
  const std::uint64_t levels = reader.stats().depth;
  ASSERT_EQ(levels, 4U);
  const std::uint64_t key = mix_bits(keys / 2);
  // A host that has just joined has seen no node. It begins at the root of the moment.
  host_view third(memory, 1, 2);
  tree joined = tree::open(third);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), keys / 2); }), levels * lines);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), keys / 2); }), 0U);
  ASSERT_EQ(writer.update(key, 1), outcome::updated);
  // The leaf, and none of the nodes above it.
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), 1U); }), lines);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), 1U); }), 0U);
  // A host knows what it has changed itself.
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.update(key, 2), outcome::updated); }), 0U);
  EXPECT_EQ(refreshed_by(third, [&] { EXPECT_EQ(joined.find(key), 2U); }), 0U);
}

TEST(SharedTree, ThreadsOfSeveralHostsAddKeysOfTheirOwn) {
  expect_threads_of_several_hosts_add_keys_of_their_own<tree>();
}

TEST(SharedTree, AnotherNumberOfLocksIsRefused) {
  expect_that_another_number_of_locks_is_named<tree_with<64>, tree_with<256>>();
}

TEST(SharedTree, AFullMemoryChangesNothing) {
  expect_that_a_full_memory_changes_nothing<pod::shared_tree<media::dram>>();
}

TEST(RefreshedVersions, ASlotHasOneObjectWithOneVersion) {
  pod::refreshed_versions known(2);
  EXPECT_FALSE(known.has(0, 0));
  known.note(1, 10);
  known.note(2, 20);
  EXPECT_TRUE(known.has(1, 10));
  EXPECT_TRUE(known.has(2, 20));
  EXPECT_FALSE(known.has(1, 20));
  EXPECT_FALSE(known.has(1, 9));
  known.note(3, 10);  // in the slot of 1
  EXPECT_TRUE(known.has(3, 10));
  EXPECT_FALSE(known.has(1, 10));
  known.note(3, 11);
  EXPECT_FALSE(known.has(3, 10));
  EXPECT_TRUE(known.has(2, 20));
}

TEST(SharedTree, TheCheckNamesARootOfNoLevel) {
  media::dram memory;
  auto index = pod::shared_tree<media::dram>::open(memory);
  static_cast<void>(index.insert(1, 2));
  const std::uint64_t head = memory.named_root("shared_tree", "shared_tree", 1).word->load();
  const std::uint64_t root = reinterpret_cast<const std::atomic<std::uint64_t>*>(head)->load();
  reinterpret_cast<indexes::detail::fast_fair::node*>(root)->level.store(std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(index.check().ok());
  EXPECT_THROW(static_cast<void>(index.find(1)), error);
  EXPECT_THROW(static_cast<void>(index.stats()), error);
}

TEST(SharedTree, TheCheckComparesSeparatorsWithTheNodesBelow) {
  media::dram memory;
  auto index = pod::shared_tree<media::dram>::open(memory);
  for (std::uint64_t key = 100; key < 140; ++key) static_cast<void>(index.insert(key, 1));
  const std::uint64_t head = memory.named_root("shared_tree", "shared_tree", 1).word->load();
  const std::uint64_t root = reinterpret_cast<const std::atomic<std::uint64_t>*>(head)->load();
  auto& node = *reinterpret_cast<indexes::detail::fast_fair::node*>(root);
  ASSERT_EQ(node.level.load(), 1U);
  EXPECT_TRUE(index.check().ok());
  node.key(0).store(node.key_at(0) - 1);
  EXPECT_FALSE(index.check().ok());
}

TEST(SharedTree, APublicationThatThrowsLeavesNoLockHeld) {
  // The tree, the split of the first leaf, a root above the two, and further splits.
  expect_that_a_publication_that_throws_leaves_no_lock_held<pod::shared_tree<odd_dram>>(6, 1000);
}

}  // namespace
}  // namespace pmlab::tests
