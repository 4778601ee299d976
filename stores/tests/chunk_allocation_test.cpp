// DRAM that runs out at each allocation of each operation of a chunk store: an operation that throws left each chunk as
// it was or as it should become, one that returns is done; the store answers, opens again and is well.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>

#include "stores/tests/chunk_stores.hpp"
#include "support/failing_allocations.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests::chunk_allocation_test {
namespace {

// Each block of this medium is an allocation.
using pool = media::basic_dram<media::standard_blocks>;

template <class Records>
class ChunkAllocations : public ::testing::Test {};
using kinds = ::testing::Types<records_in<pool, indexes::cceh<pool>>, records_in<pool, indexes::cceh<pool>, by_copy>,
                               records_in<pool, indexes::skip_list<pool>>, records_in<stores::records_on_blocks, void>,
                               records_in_pairs<2100>, records_in_pairs<std::uint64_t{1} << 20>>;
TYPED_TEST_SUITE(ChunkAllocations, kinds);

using content = std::map<std::string, expected_volume>;

[[nodiscard]] bool is_known(std::span<const std::byte> got, const std::vector<std::byte>& before,
                            const std::vector<std::byte>& after) {
  return std::ranges::equal(got, before) || std::ranges::equal(got, after);
}

// The free blocks are found by this thread.
constexpr stores::chunk_store_options at_need{.chunk_bytes = 8 * block, .ring = 3, .recovers_in_background = false};

// A store that is opened again, and the content that it should have.
template <class Records>
struct machine {
  explicit machine(const blocks::geometry& shape) : device(shape) {}
  using store = typename Records::template store<blocks::memory>;

  struct held {
    explicit held(machine& m) : of(m.records.open(m.device, at_need)) {}
    store of;
  };
  void open() {
    opened.reset();
    opened = std::make_unique<held>(*this);
  }
  void make_volumes() {
    for (const auto& [name, volume] : right)
      static_cast<void>(opened->of.volume(name, {.bytes = volume.blocks() * block}));
  }
  Records records{};
  blocks::memory device;
  std::unique_ptr<held> opened{};
  content right{{"a", expected_volume(100)}, {"b", expected_volume(64)}};
};

// One operation: `work` makes it, and `after` is the content behind it.
template <class Store>
struct change {
  const char* name;
  std::string volume;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::function<void(Store&)> work{};
  expected_volume after{0};
};

template <class Store>
change<Store> random_change(const content& right, std::uint64_t chunk_blocks, splitmix64& random,
                            std::uint64_t version) {
  const auto at = std::next(right.begin(), static_cast<std::ptrdiff_t>(random.below(right.size())));
  const std::uint64_t blocks_of = at->second.blocks();
  change<Store> c{.name = "write", .volume = at->first, .after = at->second};
  c.first = random.below(blocks_of);
  c.count = random.one_in(3) ? 1 : 1 + random.below(std::min<std::uint64_t>(blocks_of - c.first, 20));
  switch (random.below(9)) {
    case 0:
    case 1:
      c.name = "discard";
      c.after.write(c.first, c.count, 0);
      c.work = [n = c.volume, f = c.first, k = c.count](Store& s) { s.volume(n).discard(f * block, k * block); };
      return c;
    case 2:
      c.name = "discard of a chunk";
      c.first = c.first / chunk_blocks * chunk_blocks;
      c.count = std::min(chunk_blocks, blocks_of - c.first);
      c.after.write(c.first, c.count, 0);
      c.work = [n = c.volume, f = c.first, k = c.count](Store& s) { s.volume(n).discard(f * block, k * block); };
      return c;
    case 3:
      c.name = "group";
      c.first = random.below(blocks_of / chunk_blocks) * chunk_blocks;
      c.count = chunk_blocks;
      c.after.write(c.first + 1, 1, version);
      c.after.write(c.first + 3, 2, version);
      c.work = [n = c.volume, f = c.first, version](Store& s) {
        const auto a = data_of(f + 1, 1, version);
        const auto b = data_of(f + 3, 2, version);
        const typename Store::volume_handle::part parts[] = {{(f + 3) * block, b}, {(f + 1) * block, a}};
        s.volume(n).write_group(parts);
      };
      return c;
    default:
      c.after.write(c.first, c.count, version);
      c.work = [n = c.volume, f = c.first, k = c.count, version](Store& s) {
        s.volume(n).write(f * block, data_of(f, k, version));
      };
      return c;
  }
}

// Each chunk of the volume is as before or as after; `right` becomes what it is.
template <class Store>
void expect_whole_chunks(Store& store, const change<Store>& c, expected_volume& right) {
  auto disk = store.volume(c.volume);
  const std::uint64_t size = store.chunk_blocks();
  std::vector<std::byte> got(right.blocks() * block);
  disk.read(0, got);
  for (std::uint64_t first = 0; first < right.blocks(); first += size) {
    const std::uint64_t count = std::min(size, right.blocks() - first);
    const auto part = std::span(got).subspan(first * block, count * block);
    ASSERT_TRUE(is_known(part, right.read(first, count), c.after.read(first, count))) << "chunk " << first / size;
    if (std::ranges::equal(part, c.after.read(first, count))) right.copy(c.after, first, count);
  }
}

template <class Records>
void fail_each(std::uint64_t seed, const blocks::geometry& shape, std::uint64_t& failures, std::uint64_t& reopened) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  splitmix64 random(seed);
  machine<Records> m(shape);
  using store = typename machine<Records>::store;
  m.open();
  m.make_volumes();
  std::uint64_t version = 0;
  for (int step = 0; step < 60; ++step) {
    const change<store> c = random_change<store>(m.right, m.opened->of.chunk_blocks(), random, ++version);
    SCOPED_TRACE(std::string(c.name) + ", step " + std::to_string(step));
    expected_volume& right = m.right.at(c.volume);
    for (std::int64_t n = 0;; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      const attempt a = with_failure_at(n, [&] { c.work(m.opened->of); });
      if (a.threw) {
        ASSERT_TRUE(a.failed) << "an error without a cause: " << a.what;
        ASSERT_NO_FATAL_FAILURE(expect_whole_chunks(m.opened->of, c, right));
      } else {
        right = c.after;
      }
      if (!a.failed) break;
      ++failures;
      if (n % 5 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
      }
      if (random.one_in(30)) {
        m.open();
        ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
        ++reopened;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
  }
}

TYPED_TEST(ChunkAllocations, a_chunk_is_as_before_or_as_after) {
  std::uint64_t failures = 0;
  std::uint64_t reopened = 0;
  for (const auto& shape : {torn, whole})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      fail_each<TypeParam>(seed, shape, failures, reopened);
      if (this->HasFatalFailure()) return;
    }
  EXPECT_GT(failures, 1000U);
  EXPECT_GT(reopened, 20U);
  this->RecordProperty("failures", static_cast<int>(failures));
}

// Making, removing and opening: it throws and the volume is as before, or it is done.
TYPED_TEST(ChunkAllocations, a_volume_is_made_or_removed_or_is_as_before) {
  splitmix64 random(5);
  machine<TypeParam> m(torn);
  m.open();
  m.make_volumes();
  const std::uint64_t empty = m.opened->of.stats().free_bytes;
  std::uint64_t version = 0;
  std::uint64_t removed_without_memory = 0;
  for (int round = 0; round < 3; ++round) {
    operate(m.opened->of, m.right, random, 60, version);
    // The removal that returned: its volume is gone, whatever of it waits for the next operation.
    for (std::int64_t n = 0;; ++n) {
      bool is_removed = false;
      const attempt a = with_failure_at(n, [&] { is_removed = m.opened->of.remove_volume("b"); });
      ASSERT_EQ(a.threw, !is_removed) << "allocation " << n;
      if (is_removed) {
        removed_without_memory += a.failed ? 1 : 0;
        break;
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right)) << "allocation " << n;
    }
    ASSERT_TRUE(m.opened->of.check().ok());
    EXPECT_NE(message_of([&] { static_cast<void>(m.opened->of.volume("b")); }), "");
    if (round == 1) m.open();  // which goes on with it
    for (std::int64_t n = 0;; ++n) {
      const attempt a = with_failure_at(
          n, [&] { static_cast<void>(m.opened->of.volume("b", {.bytes = m.right.at("b").blocks() * block})); });
      if (!a.failed) break;
    }
    m.right.at("b") = expected_volume(m.right.at("b").blocks());
    ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
  }
  // The chunks of removed volumes are free when an operation has ended.
  ASSERT_TRUE(m.opened->of.remove_volume("a"));
  std::vector<std::byte> some(block);
  m.opened->of.volume("b").read(0, some);
  EXPECT_EQ(m.opened->of.stats().free_bytes, empty);
  this->RecordProperty("removed_without_memory", static_cast<int>(removed_without_memory));
}

TYPED_TEST(ChunkAllocations, an_opening_throws_or_opens) {
  splitmix64 random(9);
  machine<TypeParam> m(whole);
  m.open();
  m.make_volumes();
  std::uint64_t version = 0;
  std::uint64_t refused = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 0;; n += 1 + n / 40) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      m.opened.reset();
      const attempt a = with_failure_at(n, [&] {
        m.open();
        m.opened->of.wait_until_complete();
      });
      if (a.threw) ++refused;
      // A store whose free blocks could not be found finds them now.
      if (m.opened != nullptr && (!a.failed || a.threw || n % 4 == 0)) {
        ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
      }
      if (!a.failed) break;
    }
    operate(m.opened->of, m.right, random, 150, version);
  }
  EXPECT_GT(refused, 20U);
}

// Allocations of a group of so many single blocks.
[[nodiscard]] std::int64_t allocations_of_group(std::uint64_t ranges) {
  using store_type = stores::chunk_store<media::dram, blocks::memory>;
  blocks::memory device(blocks::geometry{.blocks = 1024, .block_bytes = block});
  media::dram medium;
  auto store = store_type::open(medium, device, {.chunk_bytes = 256 * block, .ring = 30});
  auto disk = store.volume("a", {.bytes = 256 * block});
  disk.write(0, data_of(0, 256, 1));
  store.wait_until_complete();
  const auto data = data_of(0, 1, 2);
  std::vector<store_type::volume_handle::part> parts;
  for (std::uint64_t i = 0; i < ranges; ++i) parts.push_back({2 * i * block, data});
  for (std::int64_t n = 0;; ++n)
    if (!with_failure_at(n, [&] { disk.write_group(parts); }).failed) return n;
}
TEST(ChunkAllocation, a_group_of_many_ranges_has_no_allocation_for_each) {
  const std::int64_t few = allocations_of_group(16);
  const std::int64_t many = allocations_of_group(112);
  EXPECT_GT(few, 5);
  EXPECT_LT(many, few + 96 / 2);
}

// Operations that are under way together, in chunks of their own: each that was started ends once, and `reap` throws
// nothing.
TYPED_TEST(ChunkAllocations, an_operation_of_a_queue_ends_with_an_error) {
  using store = typename machine<TypeParam>::store;
  constexpr std::uint64_t depth = 6;
  splitmix64 random(11);
  machine<TypeParam> m(torn);
  m.open();
  m.make_volumes();
  auto disk = m.opened->of.volume("a");
  const std::uint64_t size = m.opened->of.chunk_blocks();
  std::uint64_t version = 0;
  std::uint64_t failures = 0;
  std::uint64_t errors = 0;
  {
    stores::chunk_queue<store> queue(m.opened->of, depth);
    for (int round = 0; round < 250; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      std::vector<std::unique_ptr<blocks::buffer>> data;
      std::array<expected_volume, depth> after{expected_volume(0), expected_volume(0), expected_volume(0),
                                               expected_volume(0), expected_volume(0), expected_volume(0)};
      std::array<int, depth> ends{};
      std::array<bool, depth> is_started{};
      expected_volume& right = m.right.at("a");
      for (std::uint64_t tag = 0; tag < depth; ++tag) {
        const std::uint64_t first = tag * size + random.below(size - 1);
        const std::uint64_t count = 1 + random.below((tag + 1) * size - first);
        ++version;
        const auto bytes = data_of(first, count, version);
        data.push_back(std::make_unique<blocks::buffer>(bytes.size()));
        std::memcpy(data.back()->data(), bytes.data(), bytes.size());
        after[tag] = right;
        const bool discards = random.one_in(5);
        after[tag].write(first, count, discards ? 0 : version);
        const attempt a = with_failure_at(static_cast<std::int64_t>(random.below(12)), [&] {
          is_started[tag] = discards ? queue.discard(disk, first * block, count * block, tag)
                                     : queue.write(disk, first * block, data.back()->bytes(), tag);
        });
        ASSERT_EQ(a.threw, !is_started[tag]);
        failures += a.failed ? 1 : 0;
      }
      std::array<stores::chunk_completion, depth> done;
      while (queue.in_flight() > 0) {
        std::size_t count = 0;
        const attempt a =
            with_failure_at(static_cast<std::int64_t>(random.below(12)), [&] { count = queue.reap(done, 1); });
        ASSERT_FALSE(a.threw) << a.what;
        failures += a.failed ? 1 : 0;
        for (const auto& c : std::span(done).first(count)) {
          ++ends[c.tag];
          if (c.error == std::errc{}) right.copy(after[c.tag], c.tag * size, size);
          if (c.error == std::errc{}) continue;
          // The pool has none, or a merge that the write waited for has none.
          ASSERT_TRUE(c.error == std::errc::no_buffer_space || c.error == std::errc::not_enough_memory ||
                      c.error == std::errc::timed_out);
          ++errors;
        }
      }
      for (std::uint64_t tag = 0; tag < depth; ++tag) ASSERT_EQ(ends[tag], is_started[tag] ? 1 : 0);
      if (round % 10 == 0) {
        ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
      }
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
  m.open();
  ASSERT_NO_FATAL_FAILURE(expect_equal(m.opened->of, m.right));
  EXPECT_GT(failures, 200U);
  EXPECT_GT(errors, 20U);
}

// What was never written needs nothing: not for each chunk of the range.
TYPED_TEST(ChunkAllocations, a_discard_of_an_empty_volume_takes_no_memory_for_its_size) {
  constexpr std::uint64_t blocks_of = std::uint64_t{1} << 20;
  machine<TypeParam> m({.blocks = 500, .block_bytes = block});
  m.open();
  auto empty = m.opened->of.volume("large", {.bytes = blocks_of * block});
  auto other = m.opened->of.volume("other", {.bytes = 64 * block});
  other.write(0, data_of(0, 64, 1));
  const auto allocations = [&](auto&& work) {
    constexpr std::int64_t many = std::int64_t{1} << 40;
    until_failure = many;
    work();
    return many - std::exchange(until_failure, -1);
  };
  EXPECT_LT(allocations([&] { empty.discard(0, empty.bytes()); }), 200);
  empty.write(blocks_of / 2 * block, data_of(0, 20, 2));
  EXPECT_LT(allocations([&] { empty.discard(block, empty.bytes() - 2 * block); }), 400);
  std::vector<std::byte> got(20 * block, std::byte{1});
  empty.read(blocks_of / 2 * block, got);
  EXPECT_EQ(got, std::vector<std::byte>(20 * block));
  got.resize(64 * block);
  other.read(0, got);
  EXPECT_EQ(got, data_of(0, 64, 1));
  EXPECT_TRUE(m.opened->of.check().ok());
}

// A write whose ring is full waits for a merge. One that has no DRAM to begin is no merge to wait for.
TYPED_TEST(ChunkAllocations, a_write_does_not_wait_for_a_merge_that_has_no_memory_to_begin) {
  machine<TypeParam> m(torn);
  auto store = m.records.open(m.device, {.chunk_bytes = 8 * block, .ring = 1, .recovers_in_background = false});
  auto disk = store.volume("a", {.bytes = 8 * block});
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t n = 0;; ++n) {
    disk.write(0, data_of(0, 2, 1));
    disk.write(0, data_of(0, 2, 2));
    all_fail_behind = true;
    const auto data = data_of(0, 2, 3);
    // The first one may end a merge that is under way. The second one begins one.
    const attempt first = with_failure_at(n, [&] { disk.write(0, data); });
    const attempt second = with_failure_at(n, [&] { disk.write(0, data); });
    all_fail_behind = false;
    ASSERT_TRUE(store.check().ok());
    if (!first.failed && !second.failed) break;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace pmlab::tests::chunk_allocation_test
