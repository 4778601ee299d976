// Memory that runs out at each allocation of each operation of a tiered store: a change that throws is not made, a
// change that returns is; the store answers, opens again and is well.
#include <pmlab/base/random.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/tiered.hpp>
#include <pmlab/stores/tiered/memory.hpp>
#include <pmlab/stores/tiered/read_cache.hpp>

#include "stores/tests/tiered_store.hpp"
#include "support/failing_allocations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::tests::tiered_allocation_test {
namespace {

using namespace std::chrono_literals;
// Each block of this medium is an allocation.
using pool = media::basic_dram<media::standard_blocks>;
using logged = stores::tiered<drive, blocks::virtual_clock>;
using remembered = stores::tiered<drive, blocks::virtual_clock, stores::memtable_on<pool>>;

stores::tiered_options small_options() {
  stores::tiered_options o;
  o.loss = {.at_most = 10ms, .or_bytes = 2048};
  o.memory_limit = 64 << 10;
  o.background = false;
  o.most_sets = 2;
  o.most_leaf_sets = 2;
  o.leaf_bytes = 6000;
  o.segment_bytes = 8192;
  o.manifest_bytes = 32 << 10;
  o.page_bytes = 1024;
  o.memtable_bytes = 6000;
  o.identity = {3, 4};
  return o;
}

template <class Store>
struct machine : two_drives {
  machine() : two_drives(2048, 2048) {}
  std::unique_ptr<Store> open() {
    if constexpr (std::is_same_v<Store, logged>)
      return Store::open({.staging = staging, .capacity = capacity}, small_options(), blocks::virtual_clock(time));
    else
      return Store::open({.staging = staging, .capacity = capacity, .memory = &memory}, small_options(),
                         blocks::virtual_clock(time));
  }
  pool memory;
};

// One kind of change: makes it in the content, and in the store with allocation `n` failing.
template <class Store>
struct changing {
  const char* name;
  std::function<attempt(Store&, content&, std::int64_t n)> change;
};

template <class Store>
std::vector<changing<Store>> changes(splitmix64& random, std::uint64_t& number) {
  const auto key = [&random] { return "key" + std::to_string(random.below(40)); };
  return {
      {"put",
       [&random, &number, key](Store& db, content& right, std::int64_t n) {
         auto t = db.table("t");
         const std::string k = key();
         right[k] = value_of(random, ++number);
         return with_failure_at(n, [&] { t.put(k, right[k]); });
       }},
      {"erase",
       [key](Store& db, content& right, std::int64_t n) {
         auto t = db.table("t");
         const std::string k = key();
         right.erase(k);
         return with_failure_at(n, [&] { t.erase(k); });
       }},
      {"batch",
       [&random, &number, key](Store& db, content& right, std::int64_t n) {
         auto t = db.table("t");
         typename Store::batch b;
         for (int i = 0; i < 4; ++i) {
           const std::string k = key();
           if (random.one_in(3)) {
             b.erase(t, k);
             right.erase(k);
           } else {
             right[k] = value_of(random, ++number);
             b.put(t, k, right[k]);
           }
         }
         return with_failure_at(n, [&] { db.write(b); });
       }},
      {"compact", [](Store& db, content&, std::int64_t n) { return with_failure_at(n, [&] { db.compact(); }); }},
      {"sync", [](Store& db, content&, std::int64_t n) { return with_failure_at(n, [&] { db.sync(); }); }},
      {"another table",
       [&number](Store& db, content&, std::int64_t n) {
         const std::string name = "t" + std::to_string(number % 3);
         return with_failure_at(n, [&] { static_cast<void>(db.table(name)); });
       }},
  };
}

// Each change with each of its allocations failing. Content and sequence are those of the changes that returned.
template <class Store>
void fail_each(std::uint64_t seed, std::uint64_t& failures, std::uint64_t& reopened) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  splitmix64 random(seed);
  machine<Store> m;
  auto db = m.open();
  content right;
  std::uint64_t number = 0;
  const auto kinds = changes<Store>(random, number);
  for (int step = 0; step < 60; ++step) {
    const auto& kind = kinds[random.one_in(3) ? random.below(kinds.size()) : random.below(3)];
    SCOPED_TRACE(std::string(kind.name) + ", step " + std::to_string(step));
    for (std::int64_t n = 0;; n += 1 + n / 20) {
      // The same keys and values each time.
      const splitmix64 chosen = random;
      const std::uint64_t sequence = db->stats().sequence;
      content next = right;
      const attempt a = kind.change(*db, next, n);
      if (!a.threw) right = std::move(next);
      if (a.threw) {
        ASSERT_TRUE(a.failed) << "an error without a cause: " << a.what;
        ASSERT_EQ(db->stats().sequence, sequence) << "a change that threw was made in part";
      }
      if (!a.failed) break;
      ++failures;
      if (n % 7 == 0) {
        auto t = db->table("t");
        ASSERT_EQ(all_of(t), right) << "allocation " << n;
        ASSERT_EQ(all_of(t, stores::direction::backward), right) << "allocation " << n;
        ASSERT_NO_FATAL_FAILURE(expect_sound(*db));
      }
      if (random.one_in(40)) {
        db->sync();
        db.reset();
        db = m.open();
        ASSERT_EQ(all_of(db->table("t")), right) << "opened again behind allocation " << n;
        ASSERT_NO_FATAL_FAILURE(expect_sound(*db));
        ++reopened;
      }
      if (a.threw) random = chosen;
    }
  }
  db->sync();
  m.crash(db, random);
  db = m.open();
  ASSERT_EQ(all_of(db->table("t")), right);
  expect_sound(*db);
}

TEST(TieredAllocations, AChangeThatThrowsIsNotMade) {
  std::uint64_t failures = 0;
  std::uint64_t reopened = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) fail_each<logged>(seed, failures, reopened);
  EXPECT_GT(failures, 5000U);
  EXPECT_GT(reopened, 50U);
  RecordProperty("failures", static_cast<int>(failures));
}
TEST(TieredAllocations, AChangeInMemoryThatThrowsIsNotMade) {
  std::uint64_t failures = 0;
  std::uint64_t reopened = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) fail_each<remembered>(seed, failures, reopened);
  EXPECT_GT(failures, 5000U);
  EXPECT_GT(reopened, 50U);
}

// Reads throw, or give the answer.
template <class Store>
void fail_each_read() {
  splitmix64 random(7);
  machine<Store> m;
  auto db = m.open();
  content right;
  std::uint64_t number = 0;
  auto t = db->table("t");
  for (int i = 0; i < 60; ++i)
    write_batch(*db, t, right, random, number, [&] { return "key" + std::to_string(random.below(60)); });
  const auto then = db->snapshot();
  const content before = right;
  for (int i = 0; i < 6; ++i)
    write_batch(*db, t, right, random, number, [&] { return "key" + std::to_string(random.below(60)); });
  const std::vector<std::function<void()>> reads{
      [&] { ASSERT_EQ(t.get("key7"), value_in(right, "key7")); },
      [&] { ASSERT_EQ(t.get("key7", &then), value_in(before, "key7")); },
      [&] { ASSERT_EQ(all_of(t), right); },
      [&] { ASSERT_EQ(all_of(t, &then, stores::direction::backward), before); },
      [&] { static_cast<void>(db->snapshot()); },
      [&] { static_cast<void>(db->stats()); },
      [&] { static_cast<void>(db->step()); },
  };
  for (const auto& read : reads) {
    std::int64_t n = 0;
    while (with_failure_at(n, read).failed) n += 1 + n / 20;
    read();
  }
  expect_sound(*db);
}
TEST(TieredAllocations, AReadThrowsOrAnswers) {
  fail_each_read<logged>();
  fail_each_read<remembered>();
}

// A cursor whose step found no memory goes on: behind the key whose value it was, or where it was.
TEST(TieredAllocations, ACursorGoesOnBehindAStepWithoutMemory) {
  two_drives m(2048, 2048);
  auto options = small_options();
  options.most_sets = 1;
  auto db = logged::open({.staging = m.staging, .capacity = m.capacity}, options, blocks::virtual_clock(m.time));
  content right;
  auto t = db->table("t");
  const auto put = [&](int n) {
    const std::string key = "key" + std::to_string(1000 + n);
    t.put(key, right[key] = std::string(n % 2 == 0 ? 200 : 500, static_cast<char>('a' + n % 26)));
  };
  for (int n = 0; n < 400; n += 2) put(n);
  db->compact();
  // The lower leaves get a set more than those behind them.
  const auto more_sets = [&] { return db->stats().leaf_sets - db->stats().leaves; };
  for (int i = 0; i < 120 && more_sets() == 0; ++i) put(1 + 2 * (i * 7 % 120));
  ASSERT_GT(more_sets(), 0U);
  ASSERT_LT(more_sets(), db->stats().leaves);
  for (const auto way : {stores::direction::forward, stores::direction::backward}) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : right) keys.push_back(key);
    if (way == stores::direction::backward) std::reverse(keys.begin(), keys.end());
    // The step behind so many others is tried with each of its allocations failing.
    for (std::size_t before = 0; before < keys.size(); ++before) {
      bool any_failed = true;
      for (std::int64_t n = 0; any_failed; ++n) {
        SCOPED_TRACE("allocation " + std::to_string(n) + " behind " + std::to_string(before) + " keys");
        auto c = t.cursor({.way = way});
        for (std::size_t i = 0; i < before; ++i) ASSERT_TRUE(c.next());
        const attempt a = with_failure_at(n, [&] { ASSERT_TRUE(c.next()); });
        any_failed = a.failed;
        std::size_t at = before;
        bool is_there = !a.threw || c.next();
        // The value of one key may have found none.
        if (a.threw && is_there && c.key() != keys[at]) ++at;
        if (a.threw && !is_there) ++at;
        for (; is_there; is_there = c.next(), ++at) {
          ASSERT_LT(at, keys.size());
          ASSERT_EQ(c.key(), keys[at]);
          ASSERT_EQ(c.value(), right[keys[at]]);
        }
        ASSERT_EQ(at, keys.size());
      }
    }
  }
}

// The cache of a store keeps what it finds, and counts that, whichever allocation of an addition fails.
TEST(TieredAllocations, ACacheKeepsOnlyWhatItFinds) {
  using stores::detail::tiered::cached_name;
  bool any_failed = true;
  for (std::int64_t n = 0; any_failed; ++n) {
    SCOPED_TRACE(n);
    any_failed = false;
    stores::detail::tiered::read_cache cache(8192);
    std::vector<std::weak_ptr<const std::uint64_t>> added;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto what = std::make_shared<const std::uint64_t>(i);
      added.push_back(what);
      const attempt a = with_failure_at(n, [&] { cache.add({0, i}, what, 1000); });
      any_failed = any_failed || a.failed;
    }
    std::size_t found = 0;
    for (std::uint64_t i = 0; i < added.size(); ++i) {
      const bool is_found = cache.find<std::uint64_t>(cached_name{0, i}) != nullptr;
      EXPECT_EQ(is_found, !added[i].expired()) << "entry " << i;
      found += is_found ? 1 : 0;
    }
    EXPECT_GE(cache.bytes(), 1000 * found);
    EXPECT_LE(cache.bytes(), cache.most_bytes());
    EXPECT_TRUE(any_failed || found > 0);
  }
}

// Opening throws, or opens.
template <class Store>
void fail_each_opening() {
  splitmix64 random(8);
  machine<Store> m;
  content right;
  std::uint64_t number = 0;
  for (int round = 0; round < 3; ++round) {
    std::unique_ptr<Store> db;
    for (std::int64_t n = 0;; n += 1 + n / 20) {
      const attempt a = with_failure_at(n, [&] { db = m.open(); });
      if (!a.failed) break;
      ASSERT_EQ(db == nullptr, a.threw);
      if (db != nullptr) {
        ASSERT_EQ(all_of(db->table("t")), right);
        db.reset();
      }
    }
    auto t = db->table("t");
    ASSERT_EQ(all_of(t), right);
    for (int i = 0; i < 60; ++i)
      write_batch(*db, t, right, random, number, [&] { return "key" + std::to_string(random.below(60)); });
    expect_sound(*db);
    db->sync();
    m.crash(db, random);
  }
}
TEST(TieredAllocations, AnOpeningThrowsOrOpens) {
  fail_each_opening<logged>();
  fail_each_opening<remembered>();
}

// Threads of a store in which one allocation in so many fails: they try again, and the store is well.
TEST(TieredAllocations, ThreadsOfAStoreTryAgain) {
  two_drives drives(8192, 8192);
  auto options = small_options();
  options.background = true;
  options.memory_limit = 256 << 10;
  using threaded = stores::tiered<drive>;
  auto db = threaded::open({.staging = drives.staging, .capacity = drives.capacity}, options);
  auto t = db->table("t");
  is_foreground = true;
  content right;
  for (const std::uint64_t one_in : {7U, 31U, 3U}) {
    one_in_background.store(one_in);
    for (int i = 0; i < 1500; ++i) {
      const std::string key = "key" + std::to_string(i % 300);
      right[key] = std::string(60, static_cast<char>('a' + i % 26));
      t.put(key, right[key]);
    }
    one_in_background.store(0);
  }
  is_foreground = false;
  EXPECT_GT(background_failures.load(), 0U);
  db->compact();
  EXPECT_EQ(all_of(t), right);
  expect_sound(*db);
}

}  // namespace
}  // namespace pmlab::tests::tiered_allocation_test
