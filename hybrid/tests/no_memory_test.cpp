// The hybrid index where a thread gets no memory: no call waits for it, each is made or throws.
#include <pmlab/base/error.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/nv_tree.hpp>
#include <pmlab/indexes/wb_tree.hpp>
#include <pmlab/media/dram.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "support/failing_allocations.hpp"
#include "support/watchdog.hpp"

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
// Its first change of a thread needs memory.
using tree_first = hybrid::hybrid_index<indexes::wb_tree<dram>, tree, primary::tree>;
// Its prefetches need memory at a thread's first call.
using prefetching = hybrid::hybrid_index<indexes::nv_tree<dram>, tree, primary::tree>;

constexpr std::uint64_t keys = 64;
// More than the allocations of a thread's first calls of both halves.
constexpr std::int64_t most_allocations = 24;

struct opened_options {
  update how;
  std::size_t queue;
};

template <class Index>
class hybrid_without_memory : public testing::Test {
 protected:
  // No updater: who waits applies the changes.
  static options with(const opened_options& given) {
    options o;
    o.how = given.how;
    o.queue = given.queue;
    o.batch = 1;
    o.queues = 1;
    o.updaters = 0;
    o.rebuilders = 0;
    return o;
  }

  // Calls work() in a new thread, which gets no memory from its allocation `n` on. True: it threw.
  template <class Work>
  bool throws_without_memory(std::int64_t n, Work&& work) {
    tests::attempt a;
    std::thread([&] {
      tests::all_fail_behind = true;
      a = tests::with_failure_at(n, work);
    }).join();
    refused += a.failed ? 1 : 0;
    return a.threw;
  }
  void TearDown() override { EXPECT_NE(refused, 0); }

  void fill(Index& index) {
    for (std::uint64_t key = 0; key < keys; ++key) {
      ASSERT_EQ(index.insert(key, key + 1), outcome::inserted);
      expected[key] = key + 1;
    }
    index.settle();
  }

  void expect_holds(Index& index) {
    for (std::uint64_t key = 0; key < keys; ++key) {
      const auto wanted = expected.find(key);
      EXPECT_EQ(index.find(key), wanted == expected.end() ? std::nullopt : std::optional(wanted->second)) << key;
    }
    std::vector<entry> found(2 * keys);
    found.resize(index.scan(0, found));
    std::vector<entry> wanted;
    for (const auto& [key, value] : expected) wanted.push_back({key, value});
    EXPECT_EQ(found, wanted);
    const indexes::check_report report = index.check();
    EXPECT_TRUE(report.ok()) << report.violations.front();
  }

  tests::watchdog hangs{std::chrono::seconds(100), "a call waits for memory"};
  std::map<std::uint64_t, std::uint64_t> expected;
  std::uint64_t refused = 0;  // calls that got no memory
};
using all = testing::Types<hash_first, tree_first, prefetching>;
TYPED_TEST_SUITE(hybrid_without_memory, all);

TYPED_TEST(hybrid_without_memory, an_erasure_is_made_or_throws) {
  for (const opened_options& given : {opened_options{update::synchronous, 64}, {update::asynchronous, 64}}) {
    dram of_hash;
    dram of_tree;
    auto index = TypeParam::open(of_hash, of_tree, this->with(given));
    this->fill(index);
    std::uint64_t throwing = 0;
    for (std::int64_t n = 0; n < most_allocations; ++n) {
      const auto key = static_cast<std::uint64_t>(n);
      const bool threw = this->throws_without_memory(n, [&] { EXPECT_EQ(index.erase(key), outcome::erased); });
      if (!threw) this->expected.erase(key);
      throwing += threw ? 1 : 0;
    }
    EXPECT_LT(throwing, most_allocations);
    this->expect_holds(index);
  }
}

// A change that waits in the queue needs memory of the thread that applies it.
TYPED_TEST(hybrid_without_memory, a_writer_of_a_full_queue_throws_and_changes_nothing) {
  dram of_hash;
  dram of_tree;
  auto index = TypeParam::open(of_hash, of_tree, this->with({update::asynchronous, 1}));
  this->fill(index);
  std::uint64_t throwing = 0;
  for (std::int64_t n = 0; n < most_allocations; ++n) {
    const auto queued = static_cast<std::uint64_t>(2 * n);
    EXPECT_EQ(index.erase(queued), outcome::erased);
    this->expected.erase(queued);
    std::uint64_t made = 0;
    throwing += this->throws_without_memory(n, [&] {
      for (; made < 4; ++made) EXPECT_EQ(index.upsert(queued + 1, made), outcome::updated);
    });
    if (made != 0) this->expected[queued + 1] = made - 1;
    // Its place is free again: with memory all goes on.
    EXPECT_EQ(index.update(keys - 1, queued), outcome::updated);
    this->expected[keys - 1] = queued;
  }
  EXPECT_LT(throwing, most_allocations);
  this->expect_holds(index);
}

TYPED_TEST(hybrid_without_memory, a_scan_sees_all_or_throws) {
  dram of_hash;
  dram of_tree;
  auto index = TypeParam::open(of_hash, of_tree, this->with({update::asynchronous, 64}));
  this->fill(index);
  for (std::int64_t n = 0; n < most_allocations; ++n) {
    const auto queued = static_cast<std::uint64_t>(n);
    EXPECT_EQ(index.erase(queued), outcome::erased);
    this->expected.erase(queued);
    std::array<entry, 2 * keys> found;
    std::size_t count = 0;
    const bool threw = this->throws_without_memory(n, [&] { count = index.scan(0, found); });
    EXPECT_TRUE(threw || (count == this->expected.size() && found[0].key == queued + 1)) << n;
  }
  this->expect_holds(index);
}

// Several erasures find no memory for the replica, and only one of them has a place in the queue.
TYPED_TEST(hybrid_without_memory, a_replica_that_cannot_lose_keys_is_not_asked) {
  for (std::int64_t n = 0; n < most_allocations; ++n) {
    dram of_hash;
    dram of_tree;
    auto index = TypeParam::open(of_hash, of_tree, this->with({update::synchronous, 1}));
    this->fill(index);
    std::size_t erased = 0;
    this->throws_without_memory(n, [&] {
      for (; erased < 4; ++erased) EXPECT_EQ(index.erase(erased), outcome::erased);
    });
    for (std::uint64_t key = 0; key < erased; ++key) this->expected.erase(key);
    for (std::uint64_t key = 0; key < keys; ++key)
      EXPECT_EQ(index.find(key).has_value(), this->expected.count(key) != 0) << key;
    if (index.is_complete()) {
      EXPECT_EQ(index.upsert(1, 9), erased > 1 ? outcome::inserted : outcome::updated);
      this->expected[1] = 9;
      this->expect_holds(index);
    } else {
      // The primary still answers for points.
      std::array<entry, 1> found;
      EXPECT_THROW(static_cast<void>(index.scan(0, found)), error);
      EXPECT_THROW(static_cast<void>(index.insert(keys, 1)), error);
      EXPECT_EQ(index.find(keys), std::nullopt);
    }
  }
}

}  // namespace
