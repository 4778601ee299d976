// A tiered store that got full: erasures go on without a limit, and what they free is written again, for all sizes of
// drives, segments, memory and values.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/tiered.hpp>
#include <pmlab/stores/tiered/memory.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace pmlab::tests::tiered_full_test {
namespace {

using logged = stores::tiered<blocks::memory>;
using in_memory = stores::tiered<blocks::memory, blocks::emulated_clock, stores::memtable_on<media::dram>>;

// What becomes of half of the data.
enum class half { first, every_second, random, overwritten };

struct shape {
  std::uint64_t staging_kib;  // 0: none
  std::uint64_t capacity_kib;
  std::uint64_t segment_kib;
  std::uint64_t memory_kib;
  std::size_t value_bytes;
  half which = half::random;
  bool background = false;
  bool reopens = false;
  stores::placement place = stores::placement::staging_max_capacity;
  std::uint64_t manifest_kib = 64;
  std::uint64_t leaf_kib = 0;
};

std::string in_words(const shape& s) {
  return "staging " + std::to_string(s.staging_kib) + " KiB, capacity " + std::to_string(s.capacity_kib) +
         " KiB, segments " + std::to_string(s.segment_kib) + " KiB, memory " + std::to_string(s.memory_kib) +
         " KiB, values " + std::to_string(s.value_bytes) + " bytes, half " + std::to_string(static_cast<int>(s.which)) +
         (s.background ? ", threads" : "") + (s.reopens ? ", reopened" : "") +
         (s.leaf_kib > 0 ? ", small leaves, " : ", ") + std::string(stores::name_of(s.place));
}

// The drives of a store, and its pool if it has one.
template <class Store>
class machine {
 public:
  explicit machine(const shape& s) : s_(s), capacity_({.blocks = s.capacity_kib * 2, .block_bytes = 512}) {
    if (s.staging_kib > 0) staging_.emplace(blocks::geometry{.blocks = s.staging_kib * 2, .block_bytes = 512});
  }
  std::unique_ptr<Store> open() {
    stores::tiered_options o;
    o.segment_bytes = s_.segment_kib << 10;
    o.memory_limit = s_.memory_kib << 10;
    o.manifest_bytes = s_.manifest_kib << 10;
    o.leaf_bytes = s_.leaf_kib << 10;
    o.page_bytes = 1024;
    o.background = s_.background;
    o.loss.or_bytes = 16 << 10;
    o.place = s_.staging_kib > 0 ? s_.place : stores::placement::capacity_only;
    if constexpr (std::is_same_v<Store, logged>) {
      if (!staging_) return Store::open({.capacity = capacity_}, o);
      return Store::open({.staging = *staging_, .capacity = capacity_}, o);
    } else {
      o.loss.at_most = std::chrono::nanoseconds(0);
      return Store::open({.staging = *staging_, .capacity = capacity_, .memory = &pool_}, o);
    }
  }

 private:
  shape s_;
  std::optional<blocks::memory> staging_;
  blocks::memory capacity_;
  media::dram pool_{{.capacity_bytes = 2 << 20}};
};

std::string value_of(std::uint64_t key, std::size_t bytes, char generation) {
  std::string value(bytes, generation);
  const std::string number = std::to_string(key);
  if (bytes >= number.size()) value.replace(0, number.size(), number);
  return value;
}

// Fills a store, erases half of its data, and writes again. `key_bytes` of each pair are counted with its value.
template <class Store>
void half_is_written_again(const shape& s) {
  SCOPED_TRACE(in_words(s));
  machine<Store> m(s);
  auto db = m.open();
  auto t = db->table("t");
  const auto key_of = [](const char* kind, std::uint64_t n) {
    return kind + std::to_string(n * 2654435761 % 4294967296);
  };
  // Puts new keys until the store is full; their bytes.
  const auto fill = [&](const char* kind, std::uint64_t& count) {
    std::uint64_t bytes = 0;
    std::string why;
    for (count = 0; count < 1000000; ++count) {
      const std::string key = key_of(kind, count);
      why = message_of([&] { t.put(key, value_of(count, s.value_bytes, 'f')); });
      if (!why.empty()) break;
      bytes += key.size() + s.value_bytes;
    }
    EXPECT_PRED2(says, why, "the tiered store is full");
    return bytes;
  };
  std::uint64_t count = 0;
  const std::uint64_t first = fill("first", count);
  ASSERT_GT(count, 0U);
  const auto reopen = [&] {
    if (!s.reopens) return;
    db.reset();
    db = m.open();
    t = db->table("t");
  };
  reopen();
  splitmix64 random(count);
  std::vector<bool> is_gone(count);
  std::uint64_t left = count / 2 + count % 2;
  for (std::uint64_t n = 0; n < count; ++n) {
    if (s.which == half::first          ? n > count / 2
        : s.which != half::every_second ? random.below(count - n) < left && left-- > 0
                                        : n % 2 == 1)
      continue;
    is_gone[n] = true;
    const std::string why = message_of([&] {
      if (s.which == half::overwritten && s.value_bytes > 0)
        t.put(key_of("first", n), "");
      else
        t.erase(key_of("first", n));
    });
    if (s.which == half::overwritten && why.find("full") != std::string::npos) {
      // A put may be refused; the advice is to erase.
      t.erase(key_of("first", n));
      continue;
    }
    ASSERT_EQ(why, "") << "change " << n << " of " << count;
  }
  // Erasures of absent keys need room in the log, too, and end by being spilled.
  for (std::uint64_t n = 0; n < 2000; ++n)
    ASSERT_EQ(message_of([&] { t.erase("none" + std::to_string(n)); }), "") << "erasure " << n;
  reopen();
  std::uint64_t more = 0;
  const std::uint64_t again = fill("again", more);
  if (s.leaf_kib > 0 && s.leaf_kib < 4 * s.segment_kib) {
    // Leaves share segments of keys; so few in each leave holes where nothing is gained.
    EXPECT_GT(again, first / 5) << first << " bytes at first, then " << again;
  } else {
    EXPECT_GE(again * 5, first * 2) << first << " bytes at first, then " << again;
    EXPECT_EQ(message_of([&] { db->compact(); }), "");
  }
  for (std::uint64_t n = 0; n < count; ++n) {
    const auto found = t.get(key_of("first", n));
    if (!is_gone[n]) {
      ASSERT_EQ(found, value_of(n, s.value_bytes, 'f')) << n;
    } else if (found) {
      ASSERT_EQ(*found, "") << n;
    }
  }
  for (std::uint64_t n = 0; n < more; ++n) ASSERT_EQ(t.get(key_of("again", n)), value_of(n, s.value_bytes, 'f')) << n;
  const auto report = db->check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
}

// Small enough for one segment with the header of a group and of a record, and a key.
constexpr std::size_t largest_in(std::uint64_t segment_kib) { return (segment_kib << 10) - 150; }

TEST(TieredFull, ValuesOfEachSize) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{100}, std::size_t{1000}, std::size_t{3000}, std::size_t{5000}, largest_in(8)})
    for (const half which : {half::first, half::every_second, half::random, half::overwritten})
      // The keys of what is overwritten stay: they count only beside values that are longer.
      if (which != half::overwritten || bytes >= 1000) half_is_written_again<logged>({256, 512, 8, 128, bytes, which});
}

TEST(TieredFull, DrivesOfEachSize) {
  for (const auto& [staging, capacity] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 400}, {200, 2000}, {1000, 200}, {236, 130}})
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{1000}, largest_in(8)})
      half_is_written_again<logged>({staging, capacity, 8, 64, bytes});
}

TEST(TieredFull, SegmentsAndMemoryOfEachSize) {
  for (const std::uint64_t segment : {2U, 8U, 32U})
    for (const std::uint64_t memory : {16U, 64U, 1024U})
      half_is_written_again<logged>({25 * segment + 140, 30 * segment, segment, memory, 600});
}

TEST(TieredFull, EachPolicy) {
  for (const auto place :
       {stores::placement::staging_only, stores::placement::capacity_only, stores::placement::staging_min_capacity})
    half_is_written_again<logged>({600, 600, 8, 128, 1000, half::random, false, false, place});
}

// Leaves share segments of keys, so that the merge of a few of them frees none.
TEST(TieredFull, LeavesOfAFewSegments) {
  for (const std::uint64_t leaf : {4U, 16U})
    for (const std::uint64_t memory : {256U, 8192U})
      for (const std::size_t bytes : {std::size_t{2}, std::size_t{500}, std::size_t{1000}})
        half_is_written_again<logged>(
            {700, 400, 4, memory, bytes, half::random, false, false, stores::placement::staging_only, 128, leaf});
}

TEST(TieredFull, ReopenedWhileItIsFull) {
  for (const half which : {half::every_second, half::random, half::overwritten})
    half_is_written_again<logged>({256, 512, 8, 128, 1000, which, false, true});
}

TEST(TieredFull, ThreadsOfItsOwn) {
  for (const half which : {half::first, half::random}) {
    half_is_written_again<logged>({256, 512, 8, 128, 1000, which, true});
    half_is_written_again<logged>({0, 512, 8, 128, 100, which, true});
  }
}

TEST(TieredFull, NewestChangesInPersistentMemory) {
  for (const half which : {half::first, half::random, half::overwritten}) {
    half_is_written_again<in_memory>({300, 600, 8, 128, 1000, which});
    if (which != half::overwritten) half_is_written_again<in_memory>({300, 600, 8, 128, 100, which});
  }
}

// A manifest names each segment: one that cannot refuses the step that would make room.
TEST(TieredFull, ManifestsTooSmallForTheSegmentsAreRefused) {
  shape s{1000, 1000, 4, 128, 1000};
  s.manifest_kib = 8;
  const std::string why = message_of([&] { machine<logged>(s).open(); });
  EXPECT_PRED2(says, why, "manifests of 8192 bytes are too small for the 494 segments of the drives");
  EXPECT_PRED2(says, why, "choose manifest_bytes of at least 8704");
  s.manifest_kib = 9;
  for (const half which : {half::random, half::overwritten}) {
    s.which = which;
    half_is_written_again<logged>(s);
  }
}

// A store is not made on drives on which what is kept would be most of it.
TEST(TieredFull, TooFewSegmentsAreRefused) {
  machine<logged> few({200, 48, 8, 64, 0});
  EXPECT_PRED2(says, message_of([&] { few.open(); }), "have room for 13 segments");
  EXPECT_PRED2(says, message_of([&] { few.open(); }), "give them at least 18 (147456 bytes");
}

}  // namespace
}  // namespace pmlab::tests::tiered_full_test
