// A chunk store against blocks in a map: its records on DRAM, in a pool and on the drive, with and without the drive's
// promise, reopened, full, and with a drive that fails.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "stores/tests/chunk_stores.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::tests::chunk_store_test {
namespace {

// One set of seven records, which is that of one part of the chunks in 64.
using with_few_cached = records_in_pairs<2100>;
using with_all_cached = records_in_pairs<std::uint64_t{1} << 20>;

template <class Records>
class ChunkStore : public ::testing::Test {};
using kinds = ::testing::Types<records_in<media::dram, indexes::cceh<media::dram>>,
                               records_in<media::dram, indexes::skip_list<media::dram>>,
                               records_in<stores::records_on_blocks, void>, with_few_cached, with_all_cached>;
TYPED_TEST_SUITE(ChunkStore, kinds);

// With one index: for all that does not depend on it.
template <class Records>
class ChunkStoreContainer : public ::testing::Test {};
using containers = ::testing::Types<records_in<media::dram, indexes::cceh<media::dram>>,
                                    records_in<media::dram, indexes::cceh<media::dram>, by_copy>,
                                    records_in<stores::records_on_blocks, void>, with_few_cached>;
TYPED_TEST_SUITE(ChunkStoreContainer, containers);

TYPED_TEST(ChunkStore, agrees_with_blocks_in_a_map_and_opens_again) {
  for (const auto& drive : {torn, whole})
    for (const auto& options : {small, tiny, small_by_copy, tiny_by_copy})
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", ring " + std::to_string(options.ring));
        splitmix64 random(seed);
        TypeParam records;
        blocks::memory device(drive);
        std::map<std::string, expected_volume> right{{"a", expected_volume(100)}, {"b", expected_volume(64)}};
        std::uint64_t version = 0;
        for (int round = 0; round < 4; ++round) {
          auto opened = records.open(device, options);
          for (const auto& [name, content] : right)
            static_cast<void>(opened.volume(name, {.bytes = content.blocks() * block}));
          operate(opened, right, random, 150, version);
          if (this->HasFatalFailure()) return;
          expect_equal(opened, right);
          if (this->HasFatalFailure()) return;
        }
      }
}

TEST(ChunkStoreInAPool, is_there_after_reopening_the_pool) {
  const temporary_folder folder;
  blocks::memory device(torn);
  splitmix64 random(5);
  std::map<std::string, expected_volume> right{{"a", expected_volume(100)}, {"b", expected_volume(64)}};
  std::uint64_t version = 0;
  for (int round = 0; round < 3; ++round) {
    media::pmem pool(folder.file("pool"), {.create_bytes = std::size_t{64} << 20});
    auto opened = store_on<media::pmem>::open(pool, device, small);
    for (const auto& [name, content] : right)
      static_cast<void>(opened.volume(name, {.bytes = content.blocks() * block}));
    if (round > 0) expect_equal(opened, right);
    operate(opened, right, random, 200, version);
    expect_equal(opened, right);
  }
}

TEST(ChunkStoreSpace, a_redirected_write_is_one_line_one_flush_one_fence) {
  using medium = media::counted<media::dram>;
  medium pool;
  blocks::memory device(torn);
  auto store = store_on<medium>::open(pool, device, {.chunk_bytes = 32 * block, .ring = 16});
  auto disk = store.volume("a", {.bytes = 64 * block});
  disk.write(0, data_of(0, 32, 1));
  disk.write(0, data_of(0, 4, 2));
  pool.reset();
  for (std::uint64_t i = 0; i < 10; ++i) disk.write(i % 3 * block, data_of(i % 3, 4, 3 + i));
  EXPECT_EQ(pool.total().lines_flushed, 10U);
  EXPECT_EQ(pool.total().fences, 10U);
  EXPECT_EQ(pool.total().publications, 0U);
}

TEST(ChunkStoreSpace, an_overwrite_of_one_block_in_place_writes_no_memory) {
  using medium = media::counted<media::dram>;
  medium pool;
  blocks::counted<blocks::memory> device(whole);
  auto store = store_on<medium, blocks::counted<blocks::memory>>::open(pool, device, small);
  auto disk = store.volume("a", {.bytes = 64 * block});
  disk.write(0, data_of(0, 32, 1));
  pool.reset();
  device.reset();
  for (std::uint64_t i = 0; i < 10; ++i) disk.write(i * block, data_of(i, 1, 2 + i));
  EXPECT_EQ(pool.total().lines_flushed, 0U);
  EXPECT_EQ(pool.total().fences, 0U);
  EXPECT_EQ(device.total().bytes_written, 10U * block);
}

TEST(ChunkStoreSpace, overwrites_write_each_byte_once) {
  media::dram pool;
  blocks::counted<blocks::memory> device(torn);
  auto store = store_on<media::dram, blocks::counted<blocks::memory>>::open(pool, device, small);
  auto disk = store.volume("a", {.bytes = 256 * block});
  disk.write(0, data_of(0, 256, 1));
  device.reset();
  splitmix64 random(3);
  std::uint64_t written = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t count = 1 + random.below(8);
    const std::uint64_t first = random.below(256 - count);
    disk.write(first * block, data_of(first, count, 2 + i));
    written += count * block;
  }
  EXPECT_EQ(device.total().bytes_written, written);
  EXPECT_GT(store.stats().merges, 100U);
  EXPECT_TRUE(store.check().ok());
}

// Bytes written to the drive for each byte that a user overwrites, `blocks_of` blocks at a time.
double amplification_of(stores::merge_policy merge, const blocks::geometry& promises, std::uint64_t blocks_of) {
  constexpr std::uint64_t chunks = 4;
  media::dram pool;
  blocks::geometry drive = promises;
  drive.blocks = 4096;
  blocks::counted<blocks::memory> device(drive);
  auto store = store_on<media::dram, blocks::counted<blocks::memory>>::open(
      pool, device, {.chunk_bytes = 256 * block, .merge = merge});
  auto disk = store.volume("a", {.bytes = chunks * 256 * block});
  disk.write(0, data_of(0, chunks * 256, 1));
  device.reset();
  splitmix64 random(blocks_of);
  constexpr int writes = 3000;
  for (int i = 0; i < writes; ++i)
    disk.write(random.below(chunks * 256 / blocks_of) * blocks_of * block, data_of(0, blocks_of, 2));
  EXPECT_TRUE(store.check().ok());
  if (merge == stores::merge_policy::copy) {
    EXPECT_EQ(store.stats().remaps, 0U);
    EXPECT_EQ(store.stats().copied_bytes, device.of(blocks::stream::merge).bytes_written);
  }
  return static_cast<double>(device.total().bytes_written) / static_cast<double>(writes * blocks_of * block);
}

TEST(ChunkStoreSpace, merging_by_copy_writes_each_byte_twice_at_most) {
  for (const std::uint64_t blocks_of : {2U, 4U, 8U, 16U}) {
    EXPECT_LE(amplification_of(by_copy, torn, blocks_of), 2.05) << blocks_of;
    EXPECT_GE(amplification_of(by_copy, torn, blocks_of), 1.5) << blocks_of;
    EXPECT_LE(amplification_of(stores::merge_policy::remap, torn, blocks_of), 1.02) << blocks_of;
  }
  EXPECT_EQ(amplification_of(by_copy, whole, 1), 1.0);
  EXPECT_EQ(amplification_of(stores::merge_policy::remap, whole, 1), 1.0);
}

TEST(ChunkStoreSpace, a_merge_by_copy_is_one_line_one_flush_one_fence) {
  using medium = media::counted<media::dram>;
  medium pool;
  blocks::memory device(torn);
  auto store = store_on<medium>::open(pool, device, {.chunk_bytes = 32 * block, .ring = 16, .merge = by_copy});
  auto disk = store.volume("a", {.bytes = 64 * block});
  disk.write(0, data_of(0, 32, 1));
  pool.reset();
  std::uint64_t version = 2;
  for (; store.stats().merges < 10; ++version) disk.write(version % 3 * block, data_of(version % 3, 4, version));
  EXPECT_EQ(pool.total().lines_flushed, version - 2 + 10);
  EXPECT_EQ(pool.total().fences, version - 2 + 10);
  EXPECT_EQ(pool.total().publications, 0U);
}

TEST(ChunkStoreOptions, a_store_keeps_its_merge_policy) {
  media::dram pool;
  blocks::memory device(torn);
  { static_cast<void>(store_on<media::dram>::open(pool, device, small_by_copy)); }
  auto store = store_on<media::dram>::open(pool, device, small);
  auto disk = store.volume("a", {.bytes = 64 * block});
  for (std::uint64_t i = 1; i < 40; ++i) disk.write(0, data_of(0, 4, i));
  EXPECT_GT(store.stats().copied_bytes, 0U);
}

TYPED_TEST(ChunkStoreContainer, a_full_drive_changes_nothing_and_a_discard_makes_room) {
  TypeParam records;
  blocks::memory device(torn);
  auto store = records.open(device, small);
  const std::uint64_t empty = store.stats().free_bytes;
  auto disk = store.volume("a", {.bytes = 2000 * block});
  std::map<std::string, expected_volume> right{{"a", expected_volume(2000)}};
  std::uint64_t written = 0;
  std::string message;
  for (; written < 2000 && message.empty(); written += 8) {
    message = message_of([&] { disk.write(written * block, data_of(written, 8, 1)); });
    if (message.empty()) right.at("a").write(written, 8, 1);
  }
  EXPECT_PRED2(says, message, "is full");
  EXPECT_GT(written, 400U);
  expect_equal(store, right);
  disk.discard(0, 64 * block);
  right.at("a").write(0, 64, 0);
  disk.write(64 * block, data_of(64, 30, 2));
  right.at("a").write(64, 30, 2);
  expect_equal(store, right);
  EXPECT_TRUE(store.remove_volume("a"));
  EXPECT_FALSE(store.remove_volume("a"));
  EXPECT_EQ(store.stats().free_bytes, empty);
}

// Free space in single blocks: a write then needs more pieces than the ring has entries.
TEST(ChunkStoreSpace, a_write_into_scattered_space_is_atomic_too) {
  media::dram pool;
  blocks::memory device(torn);
  auto store = store_on<media::dram>::open(pool, device, {.chunk_bytes = 32 * block, .ring = 4});
  auto disk = store.volume("a", {.bytes = 15 * 32 * block});
  auto second = store.volume("b", {.bytes = 64 * block});
  std::map<std::string, expected_volume> right{{"a", expected_volume(15 * 32)}, {"b", expected_volume(64)}};
  disk.write(0, data_of(0, 15 * 32, 1));
  right.at("a").write(0, 15 * 32, 1);
  second.write(0, data_of(0, 31, 2));  // all that was free
  right.at("b").write(0, 31, 2);
  EXPECT_EQ(store.stats().free_bytes, 0U);
  for (std::uint64_t b = 0; b < 4 * 32; b += 2) {
    disk.discard(b * block, block);
    right.at("a").write(b, 1, 0);
  }
  EXPECT_EQ(store.stats().longest_free_extent, block);
  second.write(32 * block, data_of(32, 32, 3));
  right.at("b").write(32, 32, 3);
  second.write(10 * block, data_of(10, 20, 4));
  right.at("b").write(10, 20, 4);
  EXPECT_EQ(store.stats().replaced_maps, 2U);
  expect_equal(store, right);
}

// Reads, writes in place, and first writes in chunks that are there, need no free blocks.
TEST(ChunkStoreRecovery, is_not_waited_for_by_operations_that_need_no_free_blocks) {
  media::dram pool;
  blocks::memory device(whole);
  std::map<std::string, expected_volume> right{{"a", expected_volume(128)}};
  constexpr stores::chunk_store_options at_need{.chunk_bytes = 32 * block, .ring = 6, .recovers_in_background = false};
  const auto write = [&](auto& disk, std::uint64_t first, std::uint64_t count, std::uint64_t version) {
    disk.write(first * block, data_of(first, count, version));
    right.at("a").write(first, count, version);
  };
  {
    auto store = store_on<media::dram>::open(pool, device, at_need);
    auto disk = store.volume("a", {.bytes = 128 * block});
    write(disk, 0, 40, 1);
    write(disk, 3, 4, 2);
  }
  {
    auto store = store_on<media::dram>::open(pool, device, at_need);
    auto disk = store.volume("a");
    std::vector<std::byte> got(64 * block);
    disk.read(0, got);
    EXPECT_TRUE(got == right.at("a").read(0, 64));
    write(disk, 4, 1, 3);    // in place, where a ring entry has it
    write(disk, 33, 1, 4);   // in place, in the base extent
    write(disk, 50, 10, 5);  // first, in a chunk that is there
    EXPECT_FALSE(store.is_complete());
  }
  auto store = store_on<media::dram>::open(pool, device, at_need);
  auto disk = store.volume("a");
  write(disk, 51, 1, 6);
  EXPECT_FALSE(store.is_complete());
  write(disk, 100, 2, 7);  // in a new chunk
  EXPECT_TRUE(store.is_complete());
  expect_equal(store, right);
}

TEST(ChunkStoreRecovery, on_several_threads_finds_the_same_free_blocks) {
  media::dram pool;
  blocks::memory device(blocks::geometry{.blocks = 1 << 16, .block_bytes = block});
  std::map<std::string, expected_volume> right{{"a", expected_volume(30000)}};
  std::uint64_t free_bytes = 0;
  {
    auto store = store_on<media::dram>::open(pool, device, tiny);
    auto disk = store.volume("a", {.bytes = 30000 * block});
    splitmix64 random(1);
    for (std::uint64_t version = 1; version < 9000; ++version) {
      const std::uint64_t first = random.below(30000 - 3);
      disk.write(first * block, data_of(first, 3, version));
      right.at("a").write(first, 3, version);
    }
    free_bytes = store.stats().free_bytes;
  }
  for (const unsigned threads : {1U, 4U}) {
    stores::chunk_store_options options = tiny;
    options.recovery_threads = threads;
    auto store = store_on<media::dram>::open(pool, device, options);
    expect_equal(store, right);
    EXPECT_EQ(store.stats().free_bytes, free_bytes);
    EXPECT_GT(store.stats().chunks, 3000U);
  }
}

TEST(ChunkStoreRecovery, a_block_with_two_owners_stops_writes_and_no_reads) {
  media::dram pool;
  blocks::memory device(torn);
  std::map<std::string, expected_volume> right{{"a", expected_volume(32)}};
  {
    auto store = store_on<media::dram>::open(pool, device, small);
    auto disk = store.volume("a", {.bytes = 96 * block});
    disk.write(0, data_of(0, 96, 1));
  }
  namespace layout = stores::detail::chunk_store;
  const auto root = pool.named_root("chunk_store", "chunk_store", 1).word->load();
  auto* const super = pool.resolve(media::pointer<layout::superblock>(root));
  auto* const slab = pool.resolve(media::pointer<layout::slab>(super->slabs.load()));
  slab->at(1, 6)->head.store(slab->at(2, 6)->head.load());
  auto store = store_on<media::dram>::open(pool, device, small);
  auto disk = store.volume("a");
  std::vector<std::byte> got(32 * block);
  disk.read(0, got);
  EXPECT_TRUE(got == data_of(0, 32, 1));
  EXPECT_PRED2(says, message_of([&] { disk.write(0, data_of(0, 2, 2)); }), "no or two owners");
  EXPECT_FALSE(store.check().ok());
}

// Entries 7 and 8 of a ring lie in two lines, so a crash may keep the second entry of a group alone. It would be valid
// again behind the next write.
TEST(ChunkStoreRecovery, drops_all_entries_of_a_group_that_was_cut_off) {
  media::dram pool;
  blocks::memory device(torn);
  constexpr stores::chunk_store_options ten{.chunk_bytes = 32 * block, .ring = 10};
  {
    auto store = store_on<media::dram>::open(pool, device, ten);
    auto disk = store.volume("a", {.bytes = 32 * block});
    disk.write(0, data_of(0, 32, 1));
    for (std::uint64_t i = 0; i < 7; ++i) disk.write(0, data_of(0, 1, 2 + i));
    const auto a = data_of(3, 1, 20);
    const auto b = data_of(5, 1, 20);
    const typename store_on<media::dram>::volume_handle::part group[] = {{3 * block, a}, {5 * block, b}};
    disk.write_group(group);
  }
  namespace layout = stores::detail::chunk_store;
  const auto root = pool.named_root("chunk_store", "chunk_store", 1).word->load();
  auto* const super = pool.resolve(media::pointer<layout::superblock>(root));
  auto* const slab = pool.resolve(media::pointer<layout::slab>(super->slabs.load()));
  layout::record* const record = slab->at(0, 10);
  ASSERT_NE(record->key.load(), 0U);
  ASSERT_NE(record->ring()[8].load(), 0U);
  record->ring()[7].store(0);

  auto store = store_on<media::dram>::open(pool, device, ten);
  auto disk = store.volume("a");
  std::map<std::string, expected_volume> right{{"a", expected_volume(32)}};
  right.at("a").write(0, 32, 1);
  right.at("a").write(0, 1, 8);
  expect_equal(store, right);
  disk.write(10 * block, data_of(10, 1, 30));
  right.at("a").write(10, 1, 30);
  expect_equal(store, right);
}

TYPED_TEST(ChunkStoreContainer, a_failed_write_is_one_failed_operation) {
  using drive = blocks::faulty<blocks::memory>;
  TypeParam records;
  drive device(std::uint64_t{3}, torn);
  auto store = records.open(device, small);
  auto disk = store.volume("a", {.bytes = 128 * block});
  std::map<std::string, expected_volume> right{{"a", expected_volume(128)}};
  splitmix64 random(9);
  device.inject_at_random({blocks::fault::io_error, blocks::fault::no_space, blocks::fault::short_transfer}, 6);
  int failed = 0;
  for (std::uint64_t version = 1; version <= 600; ++version) {
    if (!write_somewhere(disk, right.at("a"), random, version)) ++failed;
  }
  EXPECT_GT(failed, 50);
  device.stop();
  expect_equal(store, right);
}

TYPED_TEST(ChunkStoreContainer, a_failed_flush_of_the_drive_is_named) {
  using drive = blocks::faulty<blocks::memory>;
  TypeParam records;
  drive device(std::uint64_t{3}, torn);
  auto store = records.open(device, small);
  auto disk = store.volume("a", {.bytes = 128 * block});
  device.inject({.kind = blocks::fault::failed_flush});
  blocks::synchronous flusher(device);
  EXPECT_THROW(flusher.flush(), error);
  EXPECT_PRED2(says, message_of([&] { disk.write(0, data_of(0, 1, 1)); }), "no request succeeds after a failed flush");
}

TEST(ChunkStoreBadInput, is_refused_by_name) {
  const auto open = [](auto& pool, auto& device, const stores::chunk_store_options& options) {
    return message_of([&] { store_on<media::dram>::open(pool, device, options); });
  };
  media::dram pool;
  blocks::memory device(torn);
  blocks::memory other(torn);
  blocks::memory smaller(blocks::geometry{.blocks = 300, .block_bytes = block});
  blocks::memory least(blocks::geometry{.blocks = 20, .block_bytes = block});
  EXPECT_PRED2(says, open(pool, device, {.chunk_bytes = 1000}), "chunk");
  EXPECT_PRED2(says, open(pool, device, {.chunk_bytes = 512 * block}), "256 blocks");
  EXPECT_PRED2(says, open(pool, device, {.chunk_bytes = 32 * block, .ring = 0}), "ring");
  EXPECT_PRED2(says, open(pool, device, {.chunk_bytes = 32 * block, .ring = 31}), "ring");
  EXPECT_PRED2(says, open(pool, least, small), "at least one chunk");
  {
    auto store = store_on<media::dram>::open(pool, device, small);
    auto disk = store.volume("a", {.bytes = 64 * block});
    std::vector<std::byte> data(2 * block);
    EXPECT_PRED2(says, message_of([&] { disk.write(100, data); }), "whole blocks");
    EXPECT_PRED2(says, message_of([&] { disk.read(0, std::span(data).first(100)); }), "whole blocks");
    EXPECT_PRED2(says, message_of([&] { disk.write(63 * block, data); }), "beyond the end");
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(store.volume("b")); }), "no volume 'b'");
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(store.volume("b", {.bytes = 100})); }), "multiple");
    for (const std::string& name : {std::string(), std::string(41, 'n'), std::string("a\0", 2)})
      EXPECT_PRED2(says, message_of([&] { static_cast<void>(store.volume(name, {.bytes = block})); }), "cannot name");
    const typename store_on<media::dram>::volume_handle::part apart[] = {{0, data}, {40 * block, data}};
    EXPECT_PRED2(says, message_of([&] { disk.write_group(apart); }), "not in one chunk");
    const typename store_on<media::dram>::volume_handle::part same[] = {{0, data}, {block, data}};
    EXPECT_PRED2(says, message_of([&] { disk.write_group(same); }), "overlap");
  }
  EXPECT_PRED2(says, open(pool, other, small), "is not the drive");
  EXPECT_PRED2(says, open(pool, smaller, small), "was made for a drive");
  media::dram empty;
  EXPECT_PRED2(says, open(empty, device, small), "another chunk store");
  device.content()[40] ^= std::byte{1};
  EXPECT_PRED2(says, open(pool, device, small), "damaged");
  device.content()[40] ^= std::byte{1};
  EXPECT_EQ(open(pool, device, small), "");
  media::dram another;
  EXPECT_EQ(open(another, device, {.chunk_bytes = 32 * block, .ring = 6, .format = true}), "");
}

TYPED_TEST(ChunkStoreContainer, runs_operations_of_several_threads) {
  TypeParam records;
  blocks::memory device(blocks::geometry{.blocks = 4096, .block_bytes = block, .atomic_bytes = block});
  using store_type = typename TypeParam::template store<blocks::memory>;
  auto store = records.open(device, small);
  auto disk = store.volume("a", {.bytes = 1024 * block});
  constexpr std::uint64_t threads = 3;
  std::vector<std::thread> running;
  for (std::uint64_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      // Each thread has the chunks whose number is t modulo 3, and reads all; one chunk is written by all threads.
      splitmix64 random(t);
      stores::chunk_queue<store_type> queue(store, 16);
      std::vector<blocks::buffer> data;
      for (int i = 0; i < 16; ++i) data.emplace_back(8 * block);
      std::vector<std::uint64_t> unused(16);
      for (std::uint64_t i = 0; i < 16; ++i) unused[i] = i;
      for (std::uint64_t step = 1; step < 3000 || queue.in_flight() > 0;) {
        if (step < 3000 && !unused.empty()) {
          const std::uint64_t slot = unused.back();
          unused.pop_back();
          const std::uint64_t chunk = random.one_in(4) ? 30 : random.below(10) * threads + t;
          const std::uint64_t count = 1 + random.below(8);
          const std::uint64_t first = chunk * 32 + random.below(32 - count);
          if (random.one_in(3)) {
            ASSERT_TRUE(queue.read(disk, first * block, data[slot].bytes().first(count * block), slot));
          } else {
            const auto bytes = data_of(first, count, step * threads + t);
            std::memcpy(data[slot].data(), bytes.data(), bytes.size());
            ASSERT_TRUE(queue.write(disk, first * block, data[slot].bytes().first(count * block), slot));
          }
          ++step;
          continue;
        }
        stores::chunk_completion done[4];
        const std::size_t count = queue.reap(done, 1);
        ASSERT_GT(count, 0U);
        for (const auto& c : std::span(done).first(count)) {
          ASSERT_EQ(c.error, std::errc{});
          unused.push_back(c.tag);
        }
      }
    });
  for (std::thread& t : running) t.join();
  // Each block has its own number, or zeros.
  std::vector<std::byte> all(1024 * block);
  disk.read(0, all);
  for (std::uint64_t b = 0; b < 1024; ++b) {
    std::uint64_t words[2];
    std::memcpy(words, all.data() + b * block, sizeof words);
    if (words[1] == 0) continue;
    ASSERT_EQ(
        std::vector<std::byte>(all.begin() + static_cast<std::ptrdiff_t>(b * block),
                               all.begin() + static_cast<std::ptrdiff_t>((b + 1) * block)) == data_of(b, 1, words[1]),
        true)
        << b;
  }
  const auto report = store.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
}

// Each thread's ring entries fill the ring of the same chunk, and each thread's merge is what the others wait for.
TEST(ChunkQueue, writes_of_several_threads_to_one_chunk_wait_for_its_merges) {
  for (const std::uint32_t ring : {1U, 2U, 4U}) {
    media::dram pool;
    blocks::memory device(torn);
    using store_type = store_on<media::dram>;
    auto store = store_type::open(pool, device, {.chunk_bytes = 32 * block, .ring = ring, .merge = by_copy});
    auto disk = store.volume("a", {.bytes = 32 * block});
    disk.write(0, data_of(0, 32, 1));
    constexpr std::uint64_t threads = 4;
    constexpr std::uint64_t writes = 1500;
    std::vector<std::thread> running;
    // Two threads of single operations, and two with queues.
    for (std::uint64_t t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        stores::chunk_queue<store_type> queue(store, 4);
        std::vector<blocks::buffer> data;
        for (int i = 0; i < 4; ++i) data.emplace_back(2 * block);
        std::vector<std::byte> got(2 * block);
        for (std::uint64_t i = 2; i < writes; ++i) {
          const std::uint64_t first = t * 8 + i % 4 * 2;
          const auto bytes = data_of(first, 2, i);
          if (t < 2) {
            disk.write(first * block, bytes);
            disk.read(first * block, got);
            ASSERT_TRUE(got == bytes) << "write " << i << " of thread " << t;
            continue;
          }
          stores::chunk_completion done[4];
          if (queue.in_flight() == 4) {
            ASSERT_EQ(queue.reap(done, 4), 4U);
            for (const auto& c : done) ASSERT_EQ(c.error, std::errc{});
          }
          std::memcpy(data[i % 4].data(), bytes.data(), bytes.size());
          ASSERT_TRUE(queue.write(disk, first * block, data[i % 4].bytes(), i));
        }
        stores::chunk_completion last[4];
        const std::size_t ended = queue.reap(last, 4);
        for (std::size_t i = 0; i < ended; ++i) ASSERT_EQ(last[i].error, std::errc{}) << "the last writes";
      });
    for (std::thread& t : running) t.join();
    std::map<std::string, expected_volume> right{{"a", expected_volume(32)}};
    for (std::uint64_t t = 0; t < threads; ++t)
      for (std::uint64_t i = writes - 4; i < writes; ++i) right.at("a").write(t * 8 + i % 4 * 2, 2, i);
    expect_equal(store, right);
    EXPECT_GT(store.stats().copied_bytes, 0U);
  }
}

// A queue that began a merge and is not used any more: others go on with it.
TEST(ChunkQueue, an_idle_queue_with_a_merge_stops_no_other_thread) {
  media::dram pool;
  blocks::memory device(torn);
  using store_type = store_on<media::dram>;
  auto store = store_type::open(pool, device, {.chunk_bytes = 32 * block, .ring = 4, .merge = by_copy});
  auto disk = store.volume("a", {.bytes = 64 * block});
  disk.write(0, data_of(0, 32, 1));
  std::map<std::string, expected_volume> right{{"a", expected_volume(64)}};
  right.at("a").write(0, 32, 1);
  stores::chunk_queue<store_type> idle(store, 4);
  blocks::buffer data(2 * block);
  std::uint64_t version = 2;
  stores::chunk_completion done[1];
  for (; version < 5; ++version) {
    const auto bytes = data_of(0, 2, version);
    std::memcpy(data.data(), bytes.data(), bytes.size());
    ASSERT_TRUE(idle.write(disk, 0, data.bytes(), 0));
    ASSERT_EQ(idle.reap(done, 1), 1U);
  }
  for (; version < 40; ++version) {
    disk.write(version % 8 * block, data_of(version % 8, 2, version));
    right.at("a").write(version % 8, 2, version);
  }
  EXPECT_GT(store.stats().copied_bytes, 0U);
  expect_equal(store, right);
}

TEST(ChunkQueue, takes_no_more_operations_than_its_depth) {
  media::dram pool;
  blocks::memory device(torn);
  using store_type = store_on<media::dram>;
  auto store = store_type::open(pool, device, small);
  auto disk = store.volume("a", {.bytes = 64 * block});
  stores::chunk_queue<store_type> queue(store, 2);
  blocks::buffer data(block);
  EXPECT_TRUE(queue.write(disk, 0, data.bytes(), 7));
  EXPECT_TRUE(queue.write(disk, block, data.bytes(), 8));
  EXPECT_FALSE(queue.write(disk, 2 * block, data.bytes(), 9));
  stores::chunk_completion done[4];
  std::size_t count = 0;
  while (count < 2) count += queue.reap(std::span(done).subspan(count), 2);
  EXPECT_EQ(done[0].tag + done[1].tag, 15U);
  EXPECT_EQ(queue.reap(done, 1), 0U);
}

}  // namespace
}  // namespace pmlab::tests::chunk_store_test
