// A tiered store whose memtable is in persistent memory, against a std::map: crashes take nothing. And its read cache.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/tiered.hpp>
#include <pmlab/stores/tiered/memory.hpp>

#include "stores/tests/tiered_store.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <malloc.h>

namespace pmlab::tests::tiered_memory_test {
namespace {

using namespace std::chrono_literals;
using pool = media::dram;  // stands for persistent memory: it outlives the store
template <class Index>
using store_on = stores::tiered<drive, blocks::virtual_clock, stores::memtable_on<pool, Index>>;
using store = store_on<indexes::skip_list<pool>>;
using logged = stores::tiered<drive, blocks::virtual_clock>;

stores::tiered_options small_options() {
  stores::tiered_options o;
  o.loss = {.at_most = 0ms};
  o.memory_limit = 64 << 10;
  o.background = false;
  o.most_sets = 3;
  o.segment_bytes = 8192;
  o.manifest_bytes = 9216;
  o.page_bytes = 1024;
  o.memtable_bytes = 24 << 10;
  o.identity = {3, 4};
  return o;
}

// With memory, which a crash leaves as it is.
struct machine : two_drives {
  explicit machine(std::uint64_t blocks = 1024, media::dram_options memory_options = {})
      : two_drives(blocks, blocks), memory(memory_options) {}

  template <class Store = store>
  std::unique_ptr<Store> open(const stores::tiered_options& options = small_options()) {
    if constexpr (std::is_same_v<Store, logged>)
      return Store::open({.staging = staging, .capacity = capacity}, options, blocks::virtual_clock(time));
    else
      return Store::open({.staging = staging, .capacity = capacity, .memory = &memory}, options,
                         blocks::virtual_clock(time));
  }

  pool memory;
};

std::string key_of(splitmix64& random, std::uint64_t keys) {
  const std::uint64_t n = random.below(keys);
  if (n < 8) return std::string("\0\0\1\xff", n % 4) + std::string(n / 4, '\0');
  std::string key = "key" + std::to_string(n * 7919 % keys);
  if (n % 5 == 0) key.append(n % 90, 'x');
  return key;
}

// Changes, batches and reads; crashes without a sync.
template <class Store>
void operate(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  splitmix64 random(seed);
  machine m;
  content right;
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;
  std::uint64_t ingests = 0;
  for (int round = 0; round < 8; ++round) {
    auto options = small_options();
    options.place = static_cast<stores::placement>(seed % 4);
    if (random.one_in(2)) options.cache_bytes = 16 << 10;
    auto db = m.template open<Store>(options);
    auto t = db->table("t");
    ASSERT_EQ(db->stats().sequence, sequence);
    ASSERT_EQ(all_of(t), right);
    std::optional<std::pair<typename Store::snapshot_handle, content>> held;
    for (int step = 0; step < 250; ++step) {
      const std::string key = key_of(random, 60);
      switch (random.below(10)) {
        case 0:
          t.erase(key);
          right.erase(key);
          ++sequence;
          break;
        case 1: sequence += write_batch(*db, t, right, random, number, [&] { return key_of(random, 60); }); break;
        case 2: ASSERT_EQ(t.get(key), value_in(right, key)); break;
        case 3:
          if (random.one_in(3)) {
            held.reset();
            held.emplace(db->snapshot(), right);
          }
          break;
        case 4:
          if (held) {
            const auto way = random.one_in(2) ? stores::direction::forward : stores::direction::backward;
            ASSERT_EQ(all_of(t, &held->first, way), held->second);
          }
          break;
        case 5: {
          auto c = t.cursor({.from = key, .way = stores::direction::backward});
          auto it = right.end();
          while (it != right.begin() && (--it)->first >= key) {
            ASSERT_TRUE(c.next());
            ASSERT_EQ(c.key(), it->first);
            ASSERT_EQ(c.value(), it->second);
          }
          break;
        }
        default: right[key] = value_of(random, ++number); ASSERT_EQ(t.put(key, right[key]), ++sequence);
      }
      ASSERT_LE(db->stats().memory_bytes, options.memory_limit);
    }
    ASSERT_EQ(db->stats().durable, sequence);
    ASSERT_EQ(all_of(t, stores::direction::backward), right);
    ingests += db->stats().ingests;
    held.reset();
    expect_sound(*db);
    m.crash(db, random);
  }
  EXPECT_GT(ingests, 8U) << "the memtable never became a set";
}

TEST(TieredMemory, LosesNothing) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) operate<store>(seed);
}
TEST(TieredMemory, AnyOrderedIndex) { operate<store_on<indexes::fast_fair<pool>>>(11); }

TEST(TieredMemory, WritesNoLog) {
  machine m(8192);
  auto options = small_options();
  options.segment_bytes = 64 << 10;
  options.memtable_bytes = 256 << 10;
  options.memory_limit = 1 << 20;
  auto db = m.open(options);
  auto t = db->table("t");
  m.staging.inner().reset();
  const std::uint64_t user = load(*db, t, 1500);
  EXPECT_EQ(m.staging.inner().of(blocks::stream::log).bytes_written, 0U);
  const auto values = m.staging.inner().of(blocks::stream::values).bytes_written;
  EXPECT_LT(static_cast<double>(values), 1.1 * static_cast<double>(user));
  EXPECT_GT(static_cast<double>(values), 0.9 * static_cast<double>(user));
}

// The versions that a set has leave the memory: no more of it is used after many memtables than after a few.
TEST(TieredMemory, MemoryIsUsedAgain) {
  machine m(4096);
  splitmix64 random(1);
  auto db = m.open();
  auto t = db->table("t");
  std::uint64_t most = 0;
  for (int i = 0; i < 4000; ++i) {
    t.put(key_of(random, 200), std::string(100, 'v'));
    if (i == 500) most = db->stats().medium_bytes;
    if (i > 500) {
      ASSERT_LT(db->stats().medium_bytes, 2 * most) << i;
    }
  }
  EXPECT_GT(db->stats().ingests, 10U);
}

TEST(TieredMemory, FullMemoryAndFullDrivesLoseNothing) {
  // Memory that is full before a memtable is due, and drives that are full at last.
  machine m(260, {.capacity_bytes = 768 << 10});
  auto options = small_options();
  options.memtable_bytes = std::uint64_t{1} << 30;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  fill(t, right, 3000, [](int) { return 700; });
  EXPECT_GT(right.size(), 50U);
  EXPECT_TRUE(all_of(t) == right);
  splitmix64 random(2);
  m.crash(db, random);
  db = m.open(options);
  t = db->table("t");
  EXPECT_TRUE(all_of(t) == right);
  empty_and_use_again(*db, t, right);
}

// A cursor holds the memtable that it reads; memory is short until it ends.
TEST(TieredMemory, AMemtableStaysWhileACursorReadsIt) {
  machine m(4096);
  auto db = m.open();
  auto t = db->table("t");
  content right;
  for (int i = 0; i < 50; ++i) {
    right["key" + std::to_string(i)] = "value" + std::to_string(i);
    t.put("key" + std::to_string(i), "value" + std::to_string(i));
  }
  {
    auto c = t.cursor();
    ASSERT_TRUE(c.next());
    content found{{c.key(), c.value()}};
    db->compact();
    for (int i = 0; i < 50; ++i) t.put("key" + std::to_string(i), "new");
    db->compact();
    while (c.next()) found[c.key()] = c.value();
    EXPECT_EQ(found, right);
  }
  const auto before = db->stats().medium_bytes;
  t.put("one", "more");
  db->compact();
  EXPECT_LT(db->stats().medium_bytes, before);
  EXPECT_EQ(t.get("key7"), "new");
}

TEST(TieredMemory, FailedIngestsChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    splitmix64 random(seed);
    machine m;
    content right;
    auto db = m.open();
    auto t = db->table("t");
    put_while_drives_fail(m, *db, t, right, random, [&] { return key_of(random, 40); });
    ASSERT_EQ(all_of(t), right);
    db->compact();
    expect_sound(*db);
    m.crash(db, random);
    ASSERT_EQ(all_of(m.open()->table("t")), right);
  }
}

TEST(TieredMemory, MemoryAndDrivesBelongTogether) {
  machine a;
  a.open()->table("t").put("a", "1");
  machine b;
  auto other = small_options();
  other.identity = {5, 6};
  b.open(other)->table("t").put("b", "2");
  const auto open = [&](machine& drives, pool* memory, const stores::tiered_options& options = small_options()) {
    return message_of([&] {
      store::open({.staging = drives.staging, .capacity = drives.capacity, .memory = memory}, options,
                  blocks::virtual_clock(a.time));
    });
  };
  pool blank;
  EXPECT_PRED2(says, open(a, &b.memory), "the memory belongs to another tiered store than the drives");
  EXPECT_PRED2(says, open(a, &blank), "the memory is empty");
  EXPECT_PRED2(says, open(a, nullptr), "no memory");
  machine fresh;
  EXPECT_PRED2(says, open(fresh, &a.memory), "belongs to another tiered store, and the drives are blank");
  auto with_bound = small_options();
  with_bound.loss = {.at_most = 10ms};
  EXPECT_PRED2(says, message_of([&] { a.open<logged>(with_bound); }), "are in persistent memory, and none is given");
  EXPECT_PRED2(says, message_of([&] { fresh.open<logged>(); }), "a loss of at most 0 ms without persistent memory");
  machine without;
  without.open<logged>(with_bound)->table("t").put("a", "1");
  EXPECT_PRED2(says, open(without, &without.memory), "the memory is empty");
  EXPECT_EQ(without.open<logged>(with_bound)->table("t").get("a"), "1");
  // Nothing of this has changed anything.
  EXPECT_EQ(a.open()->table("t").get("a"), "1");
  EXPECT_EQ(b.open(other)->table("t").get("b"), "2");
  // Another type of index is another layout.
  EXPECT_PRED2(says, message_of([&] { a.open<store_on<indexes::fast_fair<pool>>>(); }), "is an index of layout");
  // Drives of an older moment, where the memory has given up what they do not have yet.
  const auto old = a.of(a.staging).content();
  auto db = a.open();
  for (int i = 0; i < 300; ++i) db->table("t").put("key" + std::to_string(i), "v");
  db->compact();
  db->table("t").put("last", "v");
  db.reset();
  a.of(a.staging).restore(old);
  EXPECT_PRED2(says, message_of([&] { a.open(); }), "is of an older moment");
  auto again = small_options();
  again.format = true;
  EXPECT_EQ(a.open(again)->table("t").get("a"), std::nullopt);
  EXPECT_EQ(a.open()->table("t").get("last"), std::nullopt);
}

// The making of a store is cut off behind each of its requests; so is the making of another one in its place.
TEST(TieredMemory, MakingMayBeInterrupted) {
  for (std::uint64_t passed = 0; passed < 14; ++passed)
    for (const bool format : {false, true}) {
      machine m;
      if (format) m.open()->table("t").put("old", "1");
      auto options = small_options();
      options.format = format;
      options.identity = {7, 8};
      m.cut_off(passed, [&] { static_cast<void>(m.open(options)->table("t")); });
      // An interrupted format is repeated.
      auto db = m.open(options);
      if (!format) {
        EXPECT_EQ(db->stats().sequence, 0U);
      }
      db->table("t").put("a", "1");
      db.reset();
      options.format = false;
      EXPECT_EQ(m.open(options)->table("t").get("a"), "1") << passed;
      EXPECT_EQ(m.open(options)->table("t").get("old"), std::nullopt) << passed;
    }
}

TEST(TieredMemory, RefusesBadInput) {
  machine m(1024, {.capacity_bytes = 256 << 10});
  auto db = m.open();
  auto t = db->table("t");
  EXPECT_PRED2(says, message_of([&] { t.put("k", std::string(9000, 'v')); }), "a segment has room for");
  store::batch large;
  for (int i = 0; i < 4000; ++i) large.put(t, "k" + std::to_string(i), "");
  EXPECT_PRED2(says, message_of([&] { db->write(large); }), "at once");
  EXPECT_EQ(all_of(t), content{});
}

// ---- the cache of pages and values, and the limit of memory ----

stores::tiered_options cached_options() {
  auto o = small_options();
  o.loss = {.at_most = 10ms, .or_bytes = 4096};
  o.memory_limit = 256 << 10;
  o.cache_bytes = 96 << 10;
  return o;
}

TEST(TieredCache, ReadsTwiceFromTheDriveOnce) {
  machine m(4096);
  auto db = m.open<logged>(cached_options());
  auto t = db->table("t");
  for (int i = 0; i < 60; ++i) t.put("key" + std::to_string(i), std::string(300, static_cast<char>('a' + i % 26)));
  db->compact();
  const auto reads = [&] {
    std::uint64_t all = 0;
    for (drive* d : {&m.staging, &m.capacity})
      for (const auto s : {blocks::stream::keys, blocks::stream::values}) all += d->inner().of(s).reads;
    return all;
  };
  const auto read_all = [&] {
    for (int i = 0; i < 60; ++i)
      ASSERT_EQ(t.get("key" + std::to_string(i)), std::string(300, static_cast<char>('a' + i % 26)));
  };
  read_all();
  const std::uint64_t once = reads();
  EXPECT_GT(once, 0U);
  const auto before = db->stats();
  read_all();
  EXPECT_EQ(reads(), once);
  const auto after = db->stats();
  EXPECT_EQ(after.value_hits - before.value_hits, 60U);
  EXPECT_EQ(after.page_misses, before.page_misses);
  EXPECT_GT(after.cached_bytes, 60 * 300U);
  EXPECT_LE(after.cached_bytes, cached_options().cache_bytes);
}

// A walk fills a cache that has room, and leaves one that is full as it is.
TEST(TieredCache, AWalkFillsItAndPushesNothingOut) {
  machine m(4096);
  auto options = cached_options();
  const auto reads = [&] {
    std::uint64_t all = 0;
    for (drive* d : {&m.staging, &m.capacity}) all += d->inner().of(blocks::stream::values).reads;
    return all;
  };
  const auto fill = [&](auto& t, int values, std::size_t bytes) {
    for (int i = 0; i < values; ++i)
      t.put("key" + std::to_string(1000 + i), std::string(bytes, static_cast<char>('a' + i % 26)));
  };
  auto db = m.open<logged>(options);
  auto t = db->table("t");
  fill(t, 60, 300);
  db->compact();
  const content all = all_of(t);
  const std::uint64_t once = reads();
  EXPECT_GT(once, 0U);
  EXPECT_EQ(all_of(t), all);
  EXPECT_EQ(reads(), once) << "the second walk finds all in the cache";
  // More than it has room for. Gets have read each of these values once, so the cache would let them go for others.
  db.reset();
  db = m.open<logged>(options);
  auto again = db->table("t");
  fill(again, 400, 2000);
  db->compact();
  constexpr int got = 20;
  const auto get = [&] {
    for (int i = 0; i < got; ++i) ASSERT_TRUE(again.get("key" + std::to_string(1000 + i)).has_value());
  };
  get();
  EXPECT_EQ(all_of(again).size(), 400U);
  const std::uint64_t before = reads();
  get();
  EXPECT_EQ(reads(), before) << "the walk pushed out what had been read";
  EXPECT_LE(db->stats().cached_bytes, options.cache_bytes);
}

// The cache has every other value of pairs that lie all over the log. Each of these lies right before one that it
// lacks. The others are read at once, and nothing between them.
TEST(TieredCache, AWalkWaitsOnceForTheValuesThatItLacks) {
  machine m(1 << 15);
  auto options = cached_options();
  options.memory_limit = 16 << 20;
  options.segment_bytes = 512 << 10;
  options.manifest_bytes = 128 << 10;
  options.most_sets = 8;
  auto db = m.open<logged>(options);
  auto t = db->table("t");
  const auto key = [](int pair, char which) { return "key" + std::to_string(pair) + which; };
  // The last pair is behind the first, and near it.
  const std::vector<int> order{0, 7, 5, 3, 1, 6, 4, 2};
  for (const int pair : order) {
    for (const char which : {'a', 'b'}) t.put(key(pair, which), std::string(100, which));
    t.put("other" + std::to_string(pair), std::string(50000, 'o'));
  }
  ASSERT_EQ(db->stats().ingests, 0U);
  for (int i = 0; db->stats().ingests == 0; ++i) t.put("other" + std::to_string(100 + i), std::string(50000, 'o'));
  ASSERT_EQ(db->stats().spills, 0U);
  for (std::size_t i = 0; i < order.size(); ++i) ASSERT_TRUE(t.get(key(static_cast<int>(i), 'a')).has_value());
  for (drive* d : {&m.staging, &m.capacity}) {
    static_cast<void>(two_drives::of(*d).take_waits());
    d->inner().reset();
  }
  auto walk = t.cursor({.to = "other", .most = 50});
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const char which : {'a', 'b'}) {
      ASSERT_TRUE(walk.next());
      EXPECT_EQ(walk.key(), key(static_cast<int>(i), which));
      EXPECT_EQ(walk.value(), std::string(100, which));
    }
  EXPECT_FALSE(walk.next());
  const auto of_values = m.staging.inner().of(blocks::stream::values);
  EXPECT_EQ(of_values.reads, order.size());
  EXPECT_LE(of_values.bytes_read, 2 * order.size() * m.staging.shape().block_bytes);
  EXPECT_EQ(m.staging.inner().of(blocks::stream::keys).reads, 0U) << "the gets have left the page in the cache";
  EXPECT_EQ(two_drives::of(m.staging).take_waits(), 1U);
  EXPECT_EQ(m.capacity.inner().total().reads, 0U);
}

// Segments are freed and used again under a cache that is full of what they had.
TEST(TieredCache, NeverAnswersWithWhatWasReplaced) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    splitmix64 random(seed);
    machine m(400);
    auto options = cached_options();
    options.most_sets = 1;
    options.memory_limit = 96 << 10;
    options.cache_bytes = 64 << 10;
    auto db = m.open<logged>(options);
    auto t = db->table("t");
    content right;
    for (int i = 0; i < 3000; ++i) {
      const std::string key = "key" + std::to_string(random.below(50));
      if (random.one_in(2)) {
        right[key] = "value" + std::to_string(i) + std::string(random.below(300), 'v');
        t.put(key, right[key]);
      } else {
        ASSERT_EQ(t.get(key), value_in(right, key));
      }
      if (i % 500 == 499) db->compact();
    }
    EXPECT_TRUE(all_of(t) == right);
    EXPECT_GT(db->stats().value_hits, 100U);
    expect_sound(*db);
  }
}

TEST(TieredCache, RefusesACacheLargerThanMemory) {
  machine m;
  auto options = cached_options();
  options.cache_bytes = options.memory_limit;
  EXPECT_PRED2(says, message_of([&] { m.open<logged>(options); }),
               "a cache of 262144 bytes in a memory limit of 262144");
}

// The heap of the process, by the allocator's own count.
std::uint64_t heap_bytes() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

// The most bytes of the heap that a walk over all of a table takes, of values that lie all over the log: those of
// `sizes`, in the order of keys. The blocks of the drive have `block_bytes`.
std::uint64_t peak_of_a_walk(std::uint32_t block_bytes, const std::vector<std::size_t>& sizes, std::size_t most) {
  blocks::memory drive({.blocks = (std::uint64_t{256} << 20) / block_bytes, .block_bytes = block_bytes});
  stores::tiered_options o;
  o.place = stores::placement::capacity_only;
  o.memory_limit = 128 << 20;
  o.background = false;
  o.page_bytes = std::max<std::uint32_t>(o.page_bytes, block_bytes);
  const auto db = stores::tiered<blocks::memory>::open({.capacity = drive}, o);
  auto t = db->table("t");
  constexpr std::size_t step = 7;
  for (std::size_t first = 0; first < step; ++first)
    for (std::size_t i = first; i < sizes.size(); i += step)
      t.put("key" + std::to_string(100000 + i), std::string(sizes[i], 'v'));
  for (int i = 0; db->stats().ingests == 0; ++i) t.put("other" + std::to_string(i), std::string(100000, 'o'));
  EXPECT_EQ(db->stats().spills, 0U);
  auto walk = t.cursor({.to = "other", .most = most});
  const std::uint64_t before = heap_bytes();
  std::uint64_t peak = 0;
  std::size_t found = 0;
  for (; walk.next(); ++found) {
    EXPECT_EQ(walk.value().size(), sizes[found]);
    const std::uint64_t now = heap_bytes();
    peak = std::max(peak, now - std::min(now, before));
  }
  EXPECT_EQ(found, sizes.size());
  return peak;
}

// Each batch of a walk ends with a large value, one pair earlier than the batch before it. Then: small values in large
// blocks.
TEST(TieredCache, ACursorHoldsTheBlocksOfOneBatch) {
  constexpr std::size_t large = 300 << 10;
  constexpr std::uint64_t blocks_ahead = 512 << 10;
  constexpr std::uint64_t pages_and_keys = 128 << 10;
  std::vector<std::size_t> sizes(4 + 8 + 16 + 32 + 64, 10);
  for (std::size_t batch = 0; batch < 60; ++batch) {
    sizes.insert(sizes.end(), 127 - batch, 10);
    sizes.push_back(large);
  }
  for (const std::size_t most : {~std::size_t{0}, sizes.size()}) {
    // The large value itself, the blocks around it, and those of a run of one value.
    EXPECT_LT(peak_of_a_walk(4096, sizes, most), blocks_ahead + 3 * (large + 8192) + pages_and_keys);
    constexpr std::uint32_t large_block = 16 << 10;
    EXPECT_LT(peak_of_a_walk(large_block, std::vector<std::size_t>(500, 500), most),
              blocks_ahead + 3 * large_block + 8 * large_block + pages_and_keys);
  }
}

// A load of ten times the limit, and reads of all of it. The figure of the allocator has buffers of segments, too,
// which the store's own figure does not have.
TEST(TieredCache, TheHeapStaysBelowTheLimit) {
  blocks::memory fast({.blocks = 4096, .block_bytes = 4096});
  blocks::memory large({.blocks = 12288, .block_bytes = 4096});
  blocks::virtual_time time;
  stores::tiered_options o;
  o.memory_limit = 3 << 20;
  o.cache_bytes = 1 << 20;
  o.background = false;
  o.segment_bytes = 128 << 10;
  o.manifest_bytes = 128 << 10;
  o.loss.or_bytes = 256 << 10;
  const std::uint64_t before = heap_bytes();
  std::uint64_t peak = 0;
  using plain = stores::tiered<blocks::memory, blocks::virtual_clock>;
  const auto db = plain::open({.staging = fast, .capacity = large}, o, blocks::virtual_clock(time));
  auto t = db->table("t");
  const auto measure = [&] {
    const std::uint64_t now = heap_bytes();
    peak = std::max(peak, now - std::min(now, before));
    ASSERT_LE(db->stats().memory_bytes, o.memory_limit);
  };
  splitmix64 random(1);
  constexpr std::uint64_t keys = 28000;
  for (std::uint64_t i = 0; i < keys; ++i) {
    t.put("key" + std::to_string(i * 7919 % keys), std::string(1000, static_cast<char>('a' + i % 26)));
    if (i % 20 == 0) measure();
  }
  for (std::uint64_t i = 0; i < 2 * keys; ++i) {
    const std::uint64_t n = random.below(random.below(random.below(keys) + 1) + 1);
    const std::optional<std::string> value = t.get("key" + std::to_string(n * 7919 % keys));
    ASSERT_TRUE(value.has_value());
    ASSERT_EQ((*value)[7], static_cast<char>('a' + n % 26));
    if (i % 20 == 0) measure();
  }
  const auto s = db->stats();
  EXPECT_LE(peak, o.memory_limit);
  EXPECT_GT(s.cached_bytes, o.cache_bytes * 9 / 10);
  EXPECT_GT(s.value_hits, 500U);
  EXPECT_GT(s.page_hits, keys / 4);
  RecordProperty("peak_of_the_heap", std::to_string(peak));
}

// Real threads, the real clock: the ingester takes memtables out of the memory while writers fill it.
TEST(TieredMemory, ThreadsOfItsOwn) {
  using real = stores::tiered<drive, blocks::emulated_clock, stores::memtable_on<pool>>;
  machine m(1 << 15);
  auto options = small_options();
  options.manifest_bytes = 128 << 10;
  options.background = true;
  options.memory_limit = 1 << 20;
  options.cache_bytes = 128 << 10;
  const auto open = [&] {
    return real::open({.staging = m.staging, .capacity = m.capacity, .memory = &m.memory}, options);
  };
  constexpr int threads = 3;
  constexpr int each = 1000;
  {
    auto db = open();
    auto t = db->table("t");
    put_by_threads(t, threads, each, [&](int, int i) {
      if (i % 100 != 0) return;
      const auto way = i % 200 == 0 ? stores::direction::forward : stores::direction::backward;
      EXPECT_GT(count_of(t.cursor({.way = way})), i);
    });
    EXPECT_EQ(db->stats().sequence, static_cast<std::uint64_t>(threads * each));
  }
  auto db = open();
  EXPECT_EQ(count_of(db->table("t").cursor()), threads * each);
  EXPECT_GT(db->stats().sets + db->stats().leaf_sets, 0U);
}

}  // namespace
}  // namespace pmlab::tests::tiered_memory_test
