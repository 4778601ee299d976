// The hybrid index on real threads: opening, space, queues, and the guarantees of its options.
#include <pmlab/base/error.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace pmlab;
using hybrid::options;
using hybrid::primary;
using hybrid::update;
using indexes::entry;
using indexes::outcome;
using media::dram;

using hash = indexes::cceh<dram>;
using tree = indexes::fast_fair<dram>;
using hash_first = hybrid::hybrid_index<hash, tree, primary::hash>;
using tree_first = hybrid::hybrid_index<hash, tree, primary::tree>;
static_assert(indexes::ordered_index<hash_first> && indexes::ordered_index<tree_first>);

// Neither ascending nor dense.
std::uint64_t key_of(std::uint64_t i) { return i * 0x9e3779b97f4a7c15; }

options with(update how) {
  options o;
  o.how = how;
  return o;
}

template <class Index>
std::vector<entry> all_of(Index& index) {
  std::vector<entry> found;
  index.for_each_in(0, ~std::uint64_t{0}, [&](std::uint64_t key, std::uint64_t value) {
    found.push_back({key, value});
  });
  return found;
}

template <class Index>
void expect_holds(Index& index, const std::map<std::uint64_t, std::uint64_t>& expected) {
  std::vector<entry> wanted;
  for (const auto& [key, value] : expected) {
    wanted.push_back({key, value});
    EXPECT_EQ(index.find(key), value);
  }
  EXPECT_EQ(all_of(index), wanted);
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
}

template <class Index>
class hybrid_index : public testing::Test {};
using both = testing::Types<hash_first, tree_first>;
TYPED_TEST_SUITE(hybrid_index, both);

TYPED_TEST(hybrid_index, does_what_an_ordered_index_does) {
  for (const update how : {update::synchronous, update::asynchronous, update::adaptive}) {
    dram of_hash;
    dram of_tree;
    auto index = TypeParam::open(of_hash, of_tree, with(how));
    std::map<std::uint64_t, std::uint64_t> expected;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      EXPECT_EQ(index.insert(key_of(i), i), outcome::inserted);
      EXPECT_EQ(index.insert(key_of(i), i + 1), outcome::exists);
      expected[key_of(i)] = i;
    }
    for (std::uint64_t i = 0; i < 3000; i += 3) {
      EXPECT_EQ(index.erase(key_of(i)), outcome::erased);
      EXPECT_EQ(index.update(key_of(i), 1), outcome::absent);
      EXPECT_EQ(index.upsert(key_of(i + 1), i), outcome::updated);
      expected.erase(key_of(i));
      expected[key_of(i + 1)] = i;
    }
    expect_holds(index, expected);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < 100; ++i) keys.push_back(key_of(i));
    std::vector<std::optional<std::uint64_t>> values(keys.size());
    index.find_batch(keys, values);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i].has_value(), i % 3 != 0);
  }
}

TYPED_TEST(hybrid_index, makes_its_replica_anew) {
  dram of_hash;
  dram of_tree;
  std::map<std::uint64_t, std::uint64_t> expected;
  constexpr bool hash_is_primary = std::is_same_v<TypeParam, hash_first>;
  // More than one part of the sorted load.
  for (std::uint64_t i = 0; i < 100'000; ++i) expected[key_of(i)] = i;
  {
    hash h = hash::open(of_hash);
    tree t = tree::open(of_tree);
    for (const auto& [key, value] : expected) hash_is_primary ? h.insert(key, value) : t.insert(key, value);
    // A replica that outlived a crash may be behind, ahead, or have another value.
    const auto in_replica = [&](std::uint64_t key, std::uint64_t value) {
      hash_is_primary ? t.insert(key, value) : h.insert(key, value);
    };
    in_replica(key_of(1), 1);
    in_replica(key_of(2), 77);
    in_replica(12345, 5);
  }
  for (const unsigned threads : {0U, 1U, 3U}) {
    options o = with(update::synchronous);
    o.rebuilders = threads;
    auto index = TypeParam::open(of_hash, of_tree, o);
    EXPECT_EQ(index.find(key_of(9)), 9U);
    index.wait_until_complete();
    EXPECT_EQ(index.hybrid_statistics().rebuilt, expected.size());
    expect_holds(index, expected);
  }
}

// For any spread of keys: their upper bits give the order if they differ, otherwise bounds.
TEST(hybrid_index_tree, is_made_anew_in_order_of_any_keys) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  const auto in_order = [](const std::vector<std::uint64_t>& keys) {
    dram of_hash;
    dram of_tree;
    std::map<std::uint64_t, std::uint64_t> expected;
    {
      hash h = hash::open(of_hash);
      for (const std::uint64_t key : keys) {
        h.insert(key, ~key);
        expected[key] = ~key;
      }
    }
    options o = with(update::asynchronous);
    o.rebuilders = 2;
    auto index = hash_first::open(of_hash, of_tree, o);
    expect_holds(index, expected);
  };
  in_order({});
  in_order({top});
  in_order({0, top});
  std::vector<std::uint64_t> dense;
  std::vector<std::uint64_t> two_clusters;
  std::vector<std::uint64_t> powers;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    dense.push_back(i);
    two_clusters.push_back(i % 2 == 0 ? i : top - i);
    powers.push_back((std::uint64_t{1} << (i % 48)) + i);
  }
  in_order(dense);
  in_order(two_clusters);
  in_order(powers);
}

TEST(hybrid_index_plus, serves_while_its_hash_is_made_anew) {
  dram of_hash;
  dram of_tree;
  for (const update how : {update::synchronous, update::asynchronous}) {
    auto index = tree_first::open(of_hash, of_tree, with(how));
    constexpr std::uint64_t keys = 20'000;
    for (std::uint64_t i = 0; i < keys; ++i) index.upsert(key_of(i), 0);
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> writers;
    for (unsigned t = 0; t < 2; ++t)
      writers.emplace_back([&, t] {
        // Each has keys of its own, so it knows the expected values.
        for (std::uint64_t round = 1; !done; ++round)
          for (std::uint64_t i = t; i < 1000; i += 2) {
            index.upsert(key_of(i), round);
            if (index.find(key_of(i)) != round) ++wrong;
            index.erase(key_of(i));
            if (index.find(key_of(i))) ++wrong;
          }
      });
    for (int i = 0; i < 10; ++i) {
      index.rebuild(true);
      if (index.find(key_of(keys - 1)) != 0U) ++wrong;
    }
    index.wait_until_complete();
    done = true;
    for (std::thread& t : writers) t.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_TRUE(index.is_complete());
    EXPECT_TRUE(index.check().ok());
  }
}

TEST(hybrid_index_space, a_tree_without_space_refuses_new_keys_and_loses_none) {
  for (const update how : {update::synchronous, update::asynchronous}) {
    dram of_hash;
    dram of_tree(media::dram_options{.capacity_bytes = 64 << 10});
    // Entries that a late updater leaves beside the tree must be few, compared to the tree.
    options o = with(how);
    o.queues = 2;
    o.queue = 16;
    auto index = hash_first::open(of_hash, of_tree, o);
    std::map<std::uint64_t, std::uint64_t> expected;
    std::uint64_t next = 0;
    const auto fill = [&] {
      for (;; ++next) {
        const outcome answer = index.insert(key_of(next), next);
        if (answer == outcome::full) return;
        ASSERT_EQ(answer, outcome::inserted);
        ASSERT_LT(next, 100'000U);
        expected[key_of(next)] = next;
      }
    };
    fill();
    EXPECT_GT(expected.size(), 1000U);
    EXPECT_EQ(index.find(key_of(next)), std::nullopt) << "full changes nothing";
    EXPECT_EQ(index.insert(key_of(0), 1), outcome::exists);
    EXPECT_EQ(index.update(key_of(next - 1), 7), outcome::updated);
    expected[key_of(next - 1)] = 7;
    expect_holds(index, expected);
    // It continues when there is space again.
    for (std::uint64_t i = 0; i < next; i += 2) {
      EXPECT_EQ(index.erase(key_of(i)), outcome::erased);
      expected.erase(key_of(i));
    }
    const std::size_t before = expected.size();
    fill();
    EXPECT_GT(expected.size(), before);
    expect_holds(index, expected);
  }
}

// What was beside the full tree has no space in it after the rebuild either.
TEST(hybrid_index_space, a_tree_that_is_full_can_be_erased_from_after_it_was_opened_again) {
  for (const update how : {update::synchronous, update::asynchronous}) {
    dram of_hash;
    dram of_tree(media::dram_options{.capacity_bytes = 64 << 10});
    options o = with(how);
    o.queues = 1;
    o.queue = 16;
    o.updaters = 0;  // entries wait until the queue is full: some find no space
    std::map<std::uint64_t, std::uint64_t> expected;
    std::uint64_t next = 0;
    {
      auto index = hash_first::open(of_hash, of_tree, o);
      for (; index.insert(key_of(next), next) == outcome::inserted; ++next) expected[key_of(next)] = next;
      // Keys of the tree are replaced by others, so that the rebuild finds other leaves full.
      for (std::uint64_t i = 0; i < next; i += 100) {
        EXPECT_EQ(index.erase(key_of(i)), outcome::erased);
        expected.erase(key_of(i));
      }
      for (int refused = 0; refused < 300; ++next)
        if (index.insert(key_of(next), next) == outcome::inserted)
          expected[key_of(next)] = next;
        else
          ++refused;
    }
    ASSERT_GT(expected.size(), 1000U);
    // Some more, as a queue may hold that was dropped by a crash.
    {
      auto of_points = hash::open(of_hash);
      for (std::uint64_t i = 0; i < 200; ++i) {
        ASSERT_EQ(of_points.insert(key_of(next + i), i), outcome::inserted);
        expected[key_of(next + i)] = i;
      }
    }
    auto index = hash_first::open(of_hash, of_tree, o);
    EXPECT_NO_THROW(expect_holds(index, expected));
    ASSERT_NO_THROW(index.wait_until_complete());
    EXPECT_EQ(index.insert(key_of(next + 200), 1), outcome::full);
    for (std::uint64_t i = 0; i < next; i += 2)
      if (expected.erase(key_of(i)) != 0) {
        ASSERT_EQ(index.erase(key_of(i)), outcome::erased);
      }
    EXPECT_EQ(index.insert(key_of(next + 200), 1), outcome::inserted);
    expected[key_of(next + 200)] = 1;
    expect_holds(index, expected);
  }
}

TEST(hybrid_index_space, a_hash_without_space_sends_finds_to_the_tree) {
  for (const update how : {update::synchronous, update::asynchronous}) {
    dram of_hash(media::dram_options{.capacity_bytes = 256 << 10});
    dram of_tree;
    auto index = tree_first::open(of_hash, of_tree, with(how));
    std::map<std::uint64_t, std::uint64_t> expected;
    for (std::uint64_t i = 0; i < 30'000; ++i) {
      EXPECT_EQ(index.insert(key_of(i), i), outcome::inserted);
      expected[key_of(i)] = i;
    }
    for (std::uint64_t i = 0; i < 30'000; i += 5) {
      EXPECT_EQ(index.upsert(key_of(i), 3), outcome::updated);
      expected[key_of(i)] = 3;
    }
    index.settle();
    EXPECT_FALSE(index.is_complete());
    expect_holds(index, expected);
    for (std::uint64_t i = 5000; i < 30'000; ++i) {
      index.erase(key_of(i));
      expected.erase(key_of(i));
    }
    index.settle();
    index.rebuild();
    index.wait_until_complete();
    EXPECT_TRUE(index.is_complete()) << "there is space again";
    expect_holds(index, expected);
  }
}

TEST(hybrid_index_space, a_primary_without_space_changes_nothing) {
  dram of_hash(media::dram_options{.capacity_bytes = 256 << 10});
  dram of_tree;
  auto index = hash_first::open(of_hash, of_tree);
  std::map<std::uint64_t, std::uint64_t> expected;
  std::uint64_t next = 0;
  for (; index.insert(key_of(next), next) == outcome::inserted; ++next) expected[key_of(next)] = next;
  EXPECT_EQ(index.find(key_of(next)), std::nullopt);
  expect_holds(index, expected);
}

// ---- both halves in one pool ----

using media::pmem;
using pool_hash = indexes::cceh<pmem>;
using pool_tree = indexes::fast_fair<pmem>;
using pool_hash_first = hybrid::hybrid_index<pool_hash, pool_tree, primary::hash>;
using pool_tree_first = hybrid::hybrid_index<pool_hash, pool_tree, primary::tree>;

class hybrid_index_pool : public testing::Test {
 protected:
  static constexpr std::uint64_t entries = 500;

  // What opening says; "": it opens.
  template <class Index>
  static std::string refusal(pmem& pool) {
    try {
      static_cast<void>(Index::open(pool, pool));
    } catch (const error& e) {
      return e.what();
    }
    return "";
  }
  static std::uint64_t missing(pmem& pool) {
    auto index = pool_hash_first::open(pool, pool);
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < entries; ++i) count += index.find(i) == i ? 0 : 1;
    return count;
  }

  tests::temporary_folder folder_;
  pmem pool_{folder_.file("pool"), {.create_bytes = 32 << 20}};
};

// Its queue is dropped when it is closed: the tree lacks all of the entries, and the hash would lose them.
TEST_F(hybrid_index_pool, of_which_one_is_the_replica_is_not_opened_with_that_as_the_primary) {
  options o;
  o.updaters = 0;
  {
    auto index = pool_hash_first::open(pool_, pool_, o);
    for (std::uint64_t i = 0; i < entries; ++i) ASSERT_EQ(index.insert(i, i), outcome::inserted);
  }
  EXPECT_NE(refusal<pool_tree_first>(pool_).find("'fast_fair' is the replica of a hybrid index"), std::string::npos);
  // Its half in DRAM makes no difference.
  dram memory;
  using in_dram = hybrid::hybrid_index<hash, pool_tree, primary::tree>;
  EXPECT_THROW(static_cast<void>(in_dram::open(memory, pool_)), error);
  EXPECT_EQ(missing(pool_), 0U);
  auto index = pool_hash_first::open(pool_, pool_);
  EXPECT_TRUE(index.check().ok());
}

TEST_F(hybrid_index_pool, takes_no_index_with_entries_for_the_replica_of_an_empty_one) {
  {
    auto alone = pool_hash::open(pool_);
    for (std::uint64_t i = 0; i < entries; ++i) ASSERT_EQ(alone.insert(i, i), outcome::inserted);
  }
  for (int again = 0; again < 2; ++again)
    EXPECT_NE(refusal<pool_tree_first>(pool_).find("'fast_fair', is empty, and 'cceh' has entries"), std::string::npos);
  EXPECT_EQ(refusal<pool_hash_first>(pool_), "");
  EXPECT_EQ(missing(pool_), 0U);
}

TEST(hybrid_index_queue, writers_that_find_it_full_wait_and_lose_nothing) {
  dram of_hash;
  dram of_tree;
  options o = with(update::asynchronous);
  o.updaters = 0;
  o.queues = 1;
  o.queue = 8;
  auto index = hash_first::open(of_hash, of_tree, o);
  std::map<std::uint64_t, std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 500; ++i) {
    index.insert(key_of(i), i);
    expected[key_of(i)] = i;
  }
  const hybrid::statistics s = index.hybrid_statistics();
  EXPECT_GT(s.writer_waits, 0U);
  EXPECT_LE(s.waiting, 8U);
  EXPECT_LE(s.deepest, 9U);
  expect_holds(index, expected);
  EXPECT_EQ(index.hybrid_statistics().queued, 500U);
}

TEST(hybrid_index_queue, a_scan_that_may_be_stale_misses_no_more_than_it_may) {
  dram of_hash;
  dram of_tree;
  options o = with(update::asynchronous);
  o.updaters = 0;
  o.queues = 1;
  o.queue = 64;
  o.batch = 1;
  o.scan = hybrid::scans::stale_ok;
  o.stale_bound = 4;
  auto index = hash_first::open(of_hash, of_tree, o);
  for (std::uint64_t i = 0; i < 20; ++i) index.insert(i, i);
  std::vector<entry> found(30);
  EXPECT_EQ(index.scan(0, found), 16U);
  index.settle();
  EXPECT_EQ(index.scan(0, found), 20U);
}

TEST(hybrid_index_queue, the_load_decides_how_the_replica_is_updated) {
  dram of_hash;
  dram of_tree;
  options o = with(update::adaptive);
  o.window = 512;
  auto index = tree_first::open(of_hash, of_tree, o);
  const auto load = [&](unsigned writes_of_ten) {
    for (std::uint64_t i = 0; i < 4000; ++i)
      i % 10 < writes_of_ten ? static_cast<void>(index.upsert(key_of(i), i)) : static_cast<void>(index.find(key_of(i)));
    return index.hybrid_statistics();
  };
  EXPECT_FALSE(load(0).asynchronous);
  EXPECT_TRUE(load(10).asynchronous);
  EXPECT_TRUE(load(5).asynchronous) << "between the bounds it stays";
  EXPECT_FALSE(load(1).asynchronous);
  EXPECT_FALSE(load(5).asynchronous) << "between the bounds it stays";
  EXPECT_EQ(index.hybrid_statistics().switches, 2U);
  EXPECT_TRUE(index.check().ok());
}

// Both halves of both in one medium.
TYPED_TEST(hybrid_index, of_two_names_are_two) {
  dram memory;
  const auto named = [](std::string_view name) {
    options o;
    o.name = name;
    return o;
  };
  auto first = TypeParam::open(memory, memory, named("first"));
  auto second = TypeParam::open(memory, memory, named("second"));
  EXPECT_EQ(first.insert(1, 10), outcome::inserted);
  EXPECT_EQ(second.insert(1, 20), outcome::inserted);
  EXPECT_EQ(second.insert(2, 21), outcome::inserted);
  first.settle();
  second.settle();
  expect_holds(first, {{1, 10}});
  expect_holds(second, {{1, 20}, {2, 21}});
  EXPECT_THROW((void)TypeParam::open(memory, memory, named("a name of more than 21")), error);
}

TEST(hybrid_index_options, what_cannot_be_is_refused) {
  dram of_hash;
  dram of_tree;
  options o;
  o.stripes = 3;
  EXPECT_THROW(hash_first::open(of_hash, of_tree, o), error);
  o = {};
  o.queue = std::size_t{1} << 20;
  EXPECT_THROW(hash_first::open(of_hash, of_tree, o), error);
  o = {};
  o.batch = ~std::size_t{0};
  EXPECT_THROW(hash_first::open(of_hash, of_tree, o), error);
  const auto said = [&] { return pmlab::tests::message_of([&] { hash_first::open(of_hash, of_tree, o); }); };
  o = {};
  o.stripes = 1;  // a power of two
  EXPECT_NE(said().find("at least 2"), std::string::npos) << said();
  o = {};
  o.name = "a name of 22 character";
  EXPECT_NE(said().find("'a name of 22 character' cannot name a hybrid index; use 1 to 21"), std::string::npos)
      << said();
}

}  // namespace
