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

namespace pmlab::tests {
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
  EXPECT_NE(message.find("is full"), std::string::npos) << message;
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
  EXPECT_NE(message_of([&] { disk.write(0, data_of(0, 2, 2)); }).find("no or two owners"), std::string::npos);
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
    const std::uint64_t first = random.below(128);
    const std::uint64_t chunk_end = (first / 32 + 1) * 32;
    const std::uint64_t count = 1 + random.below(std::min<std::uint64_t>(chunk_end - first, 6));
    if (message_of([&] { disk.write(first * block, data_of(first, count, version)); }).empty())
      right.at("a").write(first, count, version);
    else
      ++failed;
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
  EXPECT_NE(message_of([&] { disk.write(0, data_of(0, 1, 1)); }).find("no request succeeds after a failed flush"),
            std::string::npos);
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
  EXPECT_NE(open(pool, device, {.chunk_bytes = 1000}).find("chunk"), std::string::npos);
  EXPECT_NE(open(pool, device, {.chunk_bytes = 512 * block}).find("256 blocks"), std::string::npos);
  EXPECT_NE(open(pool, device, {.chunk_bytes = 32 * block, .ring = 0}).find("ring"), std::string::npos);
  EXPECT_NE(open(pool, device, {.chunk_bytes = 32 * block, .ring = 31}).find("ring"), std::string::npos);
  EXPECT_NE(open(pool, least, small).find("at least one chunk"), std::string::npos);
  {
    auto store = store_on<media::dram>::open(pool, device, small);
    auto disk = store.volume("a", {.bytes = 64 * block});
    std::vector<std::byte> data(2 * block);
    EXPECT_NE(message_of([&] { disk.write(100, data); }).find("whole blocks"), std::string::npos);
    EXPECT_NE(message_of([&] { disk.read(0, std::span(data).first(100)); }).find("whole blocks"), std::string::npos);
    EXPECT_NE(message_of([&] { disk.write(63 * block, data); }).find("beyond the end"), std::string::npos);
    EXPECT_NE(message_of([&] { static_cast<void>(store.volume("b")); }).find("no volume 'b'"), std::string::npos);
    EXPECT_NE(message_of([&] { static_cast<void>(store.volume("b", {.bytes = 100})); }).find("multiple"),
              std::string::npos);
    EXPECT_NE(message_of([&] { static_cast<void>(store.volume("", {.bytes = block})); }).find("cannot name"),
              std::string::npos);
    const typename store_on<media::dram>::volume_handle::part apart[] = {{0, data}, {40 * block, data}};
    EXPECT_NE(message_of([&] { disk.write_group(apart); }).find("not in one chunk"), std::string::npos);
    const typename store_on<media::dram>::volume_handle::part same[] = {{0, data}, {block, data}};
    EXPECT_NE(message_of([&] { disk.write_group(same); }).find("overlap"), std::string::npos);
  }
  EXPECT_NE(open(pool, other, small).find("is not the drive"), std::string::npos);
  EXPECT_NE(open(pool, smaller, small).find("was made for a drive"), std::string::npos);
  media::dram empty;
  EXPECT_NE(open(empty, device, small).find("another chunk store"), std::string::npos);
  device.content()[40] ^= std::byte{1};
  EXPECT_NE(open(pool, device, small).find("damaged"), std::string::npos);
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

// A queue that began a merge and is not used any more: others go on.
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
  EXPECT_GT(store.stats().remaps, 0U);
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

// ---- records on the drive itself

using on_blocks = records_in<stores::records_on_blocks, void>;
using counted_drive = blocks::counted<blocks::memory>;

TEST(ChunkStoreOnBlocks, a_redirected_write_is_one_index_block_and_a_merge_at_most_one) {
  counted_drive device(torn);
  auto store = on_blocks().open(device, small);
  auto disk = store.volume("a", {.bytes = 256 * block});
  disk.write(0, data_of(0, 256, 1));
  device.reset();
  const auto before = store.stats();
  splitmix64 random(3);
  for (std::uint64_t i = 0; i < 500; ++i) disk.write(random.below(64) * 4 * block, data_of(0, 4, 2 + i));
  const auto after = store.stats();
  EXPECT_EQ(after.redirected - before.redirected, 500U);
  EXPECT_GT(after.merges - before.merges, 50U);
  const blocks::counts index = device.of(blocks::stream::index);
  // A merge and a write that meet share one.
  EXPECT_GE(index.writes, 500U);
  EXPECT_LE(index.writes, 500 + after.merges - before.merges);
  EXPECT_EQ(index.bytes_written, index.writes * block);
  EXPECT_EQ(device.of(blocks::stream::data).bytes_written, 500U * 4 * block);
  EXPECT_LE(device.total().bytes_written - index.bytes_written, 2.05 * 500 * 4 * block);
}

// From one thread: changes that come together share the write of their index block.
TEST(ChunkStoreOnBlocks, thirty_two_writes_at_a_time_need_a_third_of_the_index_blocks) {
  counted_drive device(blocks::geometry{.blocks = 4096, .block_bytes = 4096});
  using store_type = on_blocks::store<counted_drive>;
  auto store = on_blocks().open(device, {.chunk_bytes = 64 * 4096});
  auto disk = store.volume("a", {.bytes = 1024 * 4096});
  blocks::buffer data(1024 * 4096);
  disk.write(0, data.bytes());
  device.reset();
  const auto before = store.stats();
  constexpr std::uint64_t writes = 2000;
  {
    stores::chunk_queue<store_type> queue(store, 32);
    splitmix64 random(5);
    stores::chunk_completion done[32];
    for (std::uint64_t i = 0; i < writes;) {
      if (queue.write(disk, random.below(512) * 2 * 4096, data.bytes().first(2 * 4096), i))
        ++i;
      else
        static_cast<void>(queue.reap(done, 1));
    }
  }
  EXPECT_EQ(store.stats().redirected - before.redirected, writes);
  EXPECT_LE(device.of(blocks::stream::index).bytes_written * 3, writes * 4096);
  EXPECT_TRUE(store.check().ok());
}

TEST(ChunkStoreOnBlocks, an_overwrite_of_one_block_in_place_writes_no_index) {
  counted_drive device(whole);
  auto store = on_blocks().open(device, small);
  auto disk = store.volume("a", {.bytes = 64 * block});
  disk.write(0, data_of(0, 32, 1));
  device.reset();
  for (std::uint64_t i = 0; i < 10; ++i) disk.write(i * block, data_of(i, 1, 2 + i));
  EXPECT_EQ(device.total().bytes_written, 10U * block);
}

// The paper: 236 MB for the 1.5 million chunks of 1.6 TB. Here a hundredth of them.
TEST(ChunkStoreOnBlocks, a_chunk_has_less_than_two_hundred_bytes_of_dram) {
  constexpr std::uint64_t chunks = 15259;
  blocks::memory device(blocks::geometry{.blocks = 17408, .block_bytes = 4096});
  auto store = on_blocks().open(device, {.chunk_bytes = 4096});
  auto disk = store.volume("a", {.bytes = chunks * 4096});
  blocks::buffer data(4096);
  for (std::uint64_t c = 0; c < chunks; ++c) disk.write(c * 4096, data.bytes());
  EXPECT_EQ(store.stats().chunks, chunks);
  // The drive has room for as many chunks as it has blocks.
  EXPECT_LT(static_cast<double>(store.stats().medium_bytes) / 17408, 198.0);
}

// A process that is killed: some of 16 writes are durable, and each is there wholly or not at all.
TEST(ChunkStoreOnBlocks, opens_after_a_kill) {
  blocks::memory device(torn);
  using store_type = on_blocks::store<blocks::memory>;
  splitmix64 random(11);
  std::uint64_t version = 1;
  for (int round = 0; round < 20; ++round) {
    blocks::memory image(torn);
    std::vector<std::uint64_t> least(8, 0);
    {
      auto store = on_blocks().open(device, small);
      auto disk = store.volume("a", {.bytes = 64 * block});
      std::vector<blocks::buffer> data;
      for (int i = 0; i < 16; ++i) data.emplace_back(8 * block);
      stores::chunk_queue<store_type> queue(store, 16);
      for (std::uint64_t i = 0; i < 16; ++i) {
        const std::uint64_t first = (random.below(8)) * 8;
        const auto bytes = data_of(first, 8, version++);
        std::memcpy(data[i].data(), bytes.data(), bytes.size());
        ASSERT_TRUE(queue.write(disk, first * block, data[i].bytes(), first / 8));
      }
      stores::chunk_completion done[16];
      static_cast<void>(queue.reap(std::span(done).first(1 + random.below(15)), 1));
      std::memcpy(image.content().data(), device.content().data(), image.content().size());
    }
    auto store = on_blocks().open(image, small);
    const auto report = store.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
    auto disk = store.volume("a");
    std::vector<std::byte> all(64 * block);
    disk.read(0, all);
    for (std::uint64_t part = 0; part < 8; ++part) {
      std::uint64_t words[2];
      std::memcpy(words, all.data() + part * 8 * block, sizeof words);
      const std::vector<std::byte> got(all.begin() + static_cast<std::ptrdiff_t>(part * 8 * block),
                                       all.begin() + static_cast<std::ptrdiff_t>((part + 1) * 8 * block));
      ASSERT_TRUE(got == (words[1] == 0 ? std::vector<std::byte>(8 * block) : data_of(part * 8, 8, words[1])));
    }
  }
}

TEST(ChunkStoreOnBlocks, an_index_block_that_cannot_be_written_fails_the_write_and_changes_nothing) {
  using drive = blocks::faulty<blocks::memory>;
  drive device(std::uint64_t{3}, whole);
  std::map<std::string, expected_volume> right{{"a", expected_volume(128)}};
  {
    auto store = on_blocks().open(device, small);
    auto disk = store.volume("a", {.bytes = 128 * block});
    splitmix64 random(9);
    int failed = 0;
    for (std::uint64_t version = 1; version <= 600; ++version) {
      if (random.one_in(4))
        device.inject({.kind = random.one_in(2) ? blocks::fault::io_error : blocks::fault::short_transfer,
                       .what = blocks::operation::write_durable,
                       .only = blocks::stream::index});
      const std::uint64_t first = random.below(128);
      const std::uint64_t chunk_end = (first / 32 + 1) * 32;
      const std::uint64_t count = 1 + random.below(std::min<std::uint64_t>(chunk_end - first, 6));
      if (message_of([&] { disk.write(first * block, data_of(first, count, version)); }).empty())
        right.at("a").write(first, count, version);
      else
        ++failed;
      if (version % 50 == 0) expect_equal(store, right);
    }
    EXPECT_GT(failed, 50);
    device.stop();
    for (std::uint64_t c = 0; c < 4; ++c) disk.write(c * 32 * block, data_of(c * 32, 2, 1000));
    for (std::uint64_t c = 0; c < 4; ++c) right.at("a").write(c * 32, 2, 1000);
    expect_equal(store, right);
  }
  auto again = on_blocks().open(device, small);
  expect_equal(again, right);
}

// A write of an index block that fails may be on the drive nevertheless. What is acknowledged behind it stays: writes,
// discards, and removals of volumes, whose numbers others get.
TEST(ChunkStoreOnBlocks, a_failed_answer_of_the_drive_undoes_nothing_that_is_acknowledged) {
  using drive = blocks::faulty<blocks::memory>;
  constexpr std::uint64_t blocks_of = 64;
  std::uint64_t failed = 0, removed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    splitmix64 random(seed);
    drive device(seed, whole);
    auto store = on_blocks().open(device, tiny);
    std::string name = "a";
    auto disk = store.volume(name, {.bytes = blocks_of * block});
    // For each block: versions that a crash may leave.
    std::vector<std::set<std::uint64_t>> may_have(blocks_of, std::set<std::uint64_t>{0});
    for (std::uint64_t version = 1; version <= 80; ++version) {
      if (random.one_in(3))
        device.inject({.kind = random.one_in(4) ? blocks::fault::io_error : blocks::fault::failed_answer,
                       .times = 1 + random.below(3),
                       .what = blocks::operation::write_durable,
                       .only = blocks::stream::index});
      const std::uint64_t first = random.below(blocks_of);
      const std::uint64_t count = 1 + random.below(std::min<std::uint64_t>(8 - first % 8, 4));
      const bool discards = random.one_in(3);
      const std::string what = message_of([&] {
        if (discards)
          disk.discard(first * block, count * block);
        else
          disk.write(first * block, data_of(first, count, version));
      });
      failed += what.empty() ? 0 : 1;
      for (std::uint64_t b = first; b < first + count; ++b) {
        if (what.empty()) may_have[b].clear();
        may_have[b].insert(discards ? 0 : version);
      }
      if (random.one_in(20)) {
        if (!message_of([&] { store.remove_volume(name); }).empty()) break;
        ++removed;
        device.stop();
        name += "a";
        disk = store.volume(name, {.bytes = blocks_of * block});
        may_have.assign(blocks_of, std::set<std::uint64_t>{0});
      }
      if (!random.one_in(5)) continue;
      blocks::memory crashed(whole);
      std::ranges::copy(device.inner().content(), crashed.content().begin());
      auto again = on_blocks().open(crashed, tiny);
      auto left = again.volume(name);
      std::vector<std::byte> data(blocks_of * block);
      left.read(0, data);
      for (std::uint64_t b = 0; b < blocks_of; ++b) {
        std::uint64_t words[2];
        std::memcpy(words, data.data() + b * block, sizeof words);
        ASSERT_TRUE(may_have[b].contains(words[1]) && (words[1] == 0 || words[0] == b))
            << "block " << b << " has version " << words[1] << ", seed " << seed << ", behind version " << version;
      }
      ASSERT_EQ(again.check().violations.size(), 0U);
    }
  }
  EXPECT_GT(failed, 300U);
  EXPECT_GT(removed, 60U);
}

// A group in more pieces than a ring names is refused, and its chunk keeps its blocks.
TEST(ChunkStoreOnBlocks, a_group_that_is_in_too_many_pieces_is_refused_whole) {
  std::uint64_t refused = 0, written = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    splitmix64 random(seed);
    blocks::memory device(blocks::geometry{.blocks = 160 + random.below(40), .block_bytes = block});
    auto store = on_blocks().open(device, {.chunk_bytes = 16 * block, .ring = 4});
    auto disk = store.volume("a", {.bytes = 400 * block});
    std::map<std::string, expected_volume> right{{"a", expected_volume(400)}};
    for (std::uint64_t version = 1; version <= 300; ++version) {
      const std::uint64_t chunk = random.below(12);
      const std::string what = message_of([&] {
        if (random.one_in(4)) {
          const std::uint64_t first = random.below(16);
          disk.discard((chunk * 16 + first) * block, (16 - first) * block);
          right.at("a").write(chunk * 16 + first, 16 - first, 0);
          return;
        }
        std::vector<std::uint64_t> at;
        for (std::uint64_t b = random.below(3); b < 16; b += 2 + random.below(4)) at.push_back(chunk * 16 + b);
        if (at.size() > 4) at.resize(4);
        std::vector<std::vector<std::byte>> data;
        std::vector<decltype(store)::volume_handle::part> parts;
        for (const std::uint64_t b : at) data.push_back(data_of(b, random.one_in(2) && b % 16 < 15 ? 2 : 1, version));
        for (std::size_t i = 0; i < at.size(); ++i)
          if (i + 1 < at.size() && at[i] + data[i].size() / block > at[i + 1]) data[i].resize(block);
        for (std::size_t i = 0; i < at.size(); ++i) parts.push_back({at[i] * block, data[i]});
        disk.write_group(parts);
        for (std::size_t i = 0; i < at.size(); ++i) right.at("a").write(at[i], data[i].size() / block, version);
        ++written;
      });
      refused += what.empty() ? 0 : 1;
      if (version % 50 == 0) {
        expect_equal(store, right);
        ASSERT_EQ(store.check().violations.size(), 0U) << store.check().violations.front() << ", seed " << seed;
      }
    }
  }
  EXPECT_GT(refused, 40U);
  EXPECT_GT(written, 1000U);
}

// A merge of another queue makes room in a ring: a caller that only polls sees that.
TEST(ChunkStoreOnBlocks, a_poll_goes_on_with_a_write_that_waits_for_the_merge_of_another_queue) {
  blocks::memory device(torn);
  auto store = on_blocks().open(device, tiny);
  using store_type = decltype(store);
  auto disk = store.volume("a", {.bytes = 8 * block});
  disk.write(0, data_of(0, 8, 1));
  stores::chunk_queue<store_type> merging(store, 8);
  stores::chunk_queue<store_type> polling(store, 1);
  blocks::buffer data(block);
  std::array<stores::chunk_completion, 8> done;
  // Until the ring is full, and its merge has begun and is not reaped.
  bool waits = false;
  for (int i = 0; i < 10 && !waits; ++i) {
    ASSERT_TRUE(merging.write(disk, 0, data.bytes(), 0));
    while (merging.reap(done, 0) == 0) continue;
    if (!merging.has_merges()) continue;
    for (int k = 0; k < 3 && !waits; ++k) {
      ASSERT_TRUE(polling.write(disk, block, data.bytes(), 1));
      for (int poll = 0; poll < 50 && polling.in_flight() > 0; ++poll) static_cast<void>(polling.reap(done, 0));
      waits = polling.in_flight() > 0;
    }
  }
  ASSERT_TRUE(waits);
  ASSERT_TRUE(merging.go_on_with_merges());
  std::size_t ended = 0;
  for (int poll = 0; poll < 1000 && ended == 0; ++poll) ended = polling.reap(done, 0);
  ASSERT_EQ(ended, 1U);
  EXPECT_EQ(done[0].error, std::errc{});
}

// ---- records as values of a key-value device

[[nodiscard]] pairs_type opened_pairs(media::dram& medium, blocks::memory& flash, std::size_t largest_value = 4096) {
  return pairs_type::open(medium, flash,
                          {.unit_bytes = 64,
                           .superblock_bytes = 16384,
                           .over_provisioning = 0.2,
                           .buffer_bytes = 16384,
                           .largest_value = largest_value});
}

constexpr blocks::geometry flash_of_tests{.blocks = 4097, .block_bytes = 512};

TEST(ChunkStoreOnKv, a_put_that_fails_fails_the_write_and_changes_nothing) {
  using when = failing_pairs::when;
  using store_type = stores::chunk_store<stores::records_on_kv<failing_pairs>, blocks::memory>;
  blocks::memory device(whole);
  blocks::memory flash(flash_of_tests);
  media::dram medium;
  auto inner = opened_pairs(medium, flash);
  failing_pairs pairs{inner};
  std::map<std::string, expected_volume> right{{"a", expected_volume(128)}};
  {
    auto store = store_type::open(pairs, device, small, {.cache_bytes = 4200});
    auto disk = store.volume("a", {.bytes = 128 * block});
    splitmix64 random(9);
    int failed = 0;
    for (std::uint64_t version = 1; version <= 600; ++version) {
      if (random.one_in(4)) pairs.next = random.one_in(2) ? when::before : when::after;
      const std::uint64_t first = random.below(128);
      const std::uint64_t count = 1 + random.below(std::min<std::uint64_t>((first / 32 + 1) * 32 - first, 6));
      const std::string why = message_of([&] { disk.write(first * block, data_of(first, count, version)); });
      if (why.empty()) {
        right.at("a").write(first, count, version);
      } else {
        EXPECT_NE(why.find("the key-value device beside"), std::string::npos) << why;
        ++failed;
      }
      pairs.next = when::never;
      if (version % 50 == 0) expect_equal(store, right);
    }
    EXPECT_GT(failed, 50);
    for (std::uint64_t c = 0; c < 4; ++c) disk.write(c * 32 * block, data_of(c * 32, 2, 1000));
    for (std::uint64_t c = 0; c < 4; ++c) right.at("a").write(c * 32, 2, 1000);
    expect_equal(store, right);
  }
  auto again = store_type::open(pairs, device, small);
  expect_equal(again, right);
}

// A change fails, one after it succeeds, one after that fails: only then does the owner of the first one hold its blocks.
TEST(ChunkStoreOnKv, blocks_of_a_failed_change_are_free_if_a_later_one_succeeded) {
  namespace parts = stores::detail::chunk_store;
  constexpr std::uint64_t key = std::uint64_t{1} << 40;
  blocks::memory device(whole);
  blocks::memory flash(flash_of_tests);
  media::dram medium;
  auto inner = opened_pairs(medium, flash);
  failing_pairs pairs{inner};
  parts::free_map free;
  parts::chunk_shape shape{8, 3, by_copy};
  parts::records_in_pairs<failing_pairs, blocks::memory> records(pairs, device, free, shape, {}, false, {});
  parts::record& r = *records.take();
  ASSERT_TRUE(records.enter(key, r));
  std::array<parts::index_change, 3> changes;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    pairs.next = i == 1 ? failing_pairs::when::never : failing_pairs::when::before;
    {
      const auto guard = records.guard(r);
      records.edit(r, 1).key.store(key);
      records.add(r, changes[i], 1);
    }
    records.settle(changes[i]);
    EXPECT_EQ(changes[i].succeeded(), i == 1);
  }
  const auto guard = records.guard(r);
  records.hold(r, {40, 2}, changes[0].era());
  EXPECT_EQ(free.free_blocks(), 2U);
  records.hold(r, {50, 3}, changes[2].era());
  EXPECT_EQ(free.free_blocks(), 2U);
}

// A record whose put failed is kept until the device has the words of before; then it is a cached one as any other.
TEST(ChunkStoreOnKv, a_record_whose_put_failed_leaves_the_cache) {
  using store_type = stores::chunk_store<stores::records_on_kv<failing_pairs>, blocks::memory>;
  constexpr std::uint64_t chunks = 500;  // several in each part: a part keeps its last record
  blocks::memory device(blocks::geometry{.blocks = 2400, .block_bytes = block});
  blocks::memory flash(flash_of_tests);
  media::dram medium;
  auto inner = opened_pairs(medium, flash);
  failing_pairs pairs{inner};
  auto store = store_type::open(pairs, device, {.chunk_bytes = block, .ring = 3}, {.cache_bytes = 0});
  auto disk = store.volume("a", {.bytes = chunks * block});
  for (std::uint64_t c = 0; c < chunks; ++c) disk.write(c * block, data_of(c, 1, 1));
  for (std::uint64_t c = 0; c < chunks; c += 5) {
    pairs.next = failing_pairs::when::before;
    EXPECT_NE(message_of([&] { disk.write(c * block, data_of(c, 1, 2)); }), "");
  }
  const auto misses_of_reading = [&] {
    const std::uint64_t before = store.stats().record_misses;
    for (std::uint64_t c = 0; c < chunks; ++c) {
      std::vector<std::byte> got(block);
      disk.read(c * block, got);
      EXPECT_TRUE(got == data_of(c, 1, 1)) << c;
    }
    return store.stats().record_misses - before;
  };
  EXPECT_LT(misses_of_reading(), chunks) << "the device is brought to the words of before";
  EXPECT_EQ(misses_of_reading(), chunks) << "without a cache each read asks the device";
}

TEST(ChunkStoreOnKv, the_cache_of_records_is_bounded) {
  constexpr std::uint64_t chunks = 2000;
  blocks::memory device(blocks::geometry{.blocks = 2400, .block_bytes = block, .atomic_bytes = block});
  blocks::memory flash(flash_of_tests);
  media::dram medium;
  auto pairs = opened_pairs(medium, flash);
  using store_type = stores::chunk_store<stores::records_on_kv<pairs_type>, blocks::memory>;
  std::uint64_t misses = 0;
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, std::uint64_t{50'000}, std::uint64_t{0}}) {
    auto store = store_type::open(pairs, device, {.chunk_bytes = block, .ring = 3}, {.cache_bytes = bytes});
    auto disk = store.volume("a", {.bytes = chunks * block});
    for (std::uint64_t b = 0; b < chunks; ++b) disk.write(b * block, data_of(b, 1, bytes + 1));
    for (int round = 0; round < 2; ++round) {
      const auto before = store.stats();
      for (std::uint64_t b = 0; b < chunks; ++b) {
        std::vector<std::byte> got(block);
        disk.read(b * block, got);
        ASSERT_TRUE(got == data_of(b, 1, bytes + 1)) << b;
      }
      misses = store.stats().record_misses - before.record_misses;
    }
    EXPECT_LE(store.stats().medium_bytes, bytes);
    // 192 bytes and a share of a set are what a record takes: all of them, a tenth, or none.
    const std::uint64_t least = bytes == 0 ? chunks : bytes == 50'000 ? chunks / 2 : 0;
    const std::uint64_t most = bytes == 0 ? chunks : bytes == 50'000 ? chunks - 1 : chunks / 10;
    EXPECT_GE(misses, least);
    EXPECT_LE(misses, most);
    const auto report = store.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
  }
}

TEST(ChunkStoreOnKv, a_full_device_fails_the_write_and_goes_on) {
  blocks::memory device(blocks::geometry{.blocks = 2400, .block_bytes = 512});
  blocks::memory flash(blocks::geometry{.blocks = 257, .block_bytes = 512});
  media::dram medium;
  auto pairs = opened_pairs(medium, flash);
  using store_type = stores::chunk_store<stores::records_on_kv<pairs_type>, blocks::memory>;
  auto store = store_type::open(pairs, device, {.chunk_bytes = block, .ring = 3});
  auto disk = store.volume("a", {.bytes = 2000 * block});
  std::uint64_t written = 0;
  EXPECT_THROW(for (; written < 2000; ++written) disk.write(written * block, data_of(written, 1, 1)),
               stores::chunk_store_full);
  ASSERT_GT(written, 100U);
  ASSERT_LT(written, 2000U);
  const auto report = store.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
  disk.discard(0, 50 * block);
  disk.write(written * block, data_of(written, 1, 1));
  std::vector<std::byte> got(block);
  disk.read(written * block, got);
  EXPECT_TRUE(got == data_of(written, 1, 1));
}

TEST(ChunkStoreOnKv, refuses_wrong_devices_by_name) {
  using store_type = stores::chunk_store<stores::records_on_kv<pairs_type>, blocks::memory>;
  blocks::memory device(torn), other(torn), larger(blocks::geometry{.blocks = 600, .block_bytes = block});
  blocks::memory flash(flash_of_tests), short_flash(flash_of_tests), fresh_flash(flash_of_tests);
  media::dram medium, short_medium, fresh_medium;
  auto pairs = opened_pairs(medium, flash);
  const auto open = [](pairs_type& in, blocks::memory& on, stores::kv_records records = {}) {
    return message_of([&] { static_cast<void>(store_type::open(in, on, small, records)); });
  };
  EXPECT_EQ(open(pairs, device), "");
  EXPECT_EQ(open(pairs, device), "");
  EXPECT_NE(open(pairs, other).find("is not the drive"), std::string::npos);
  EXPECT_NE(open(pairs, larger).find("was made for a drive of 512 blocks"), std::string::npos);
  EXPECT_NE(open(pairs, device, {.space = 1}).find("belongs to another chunk store"), std::string::npos);
  EXPECT_EQ(open(pairs, other, {.space = 2}), "");
  static_cast<void>(pairs.put("a key", {}, stores::kv_mode::post, 3));
  EXPECT_NE(open(pairs, larger, {.space = 3}).find("no chunk store's"), std::string::npos);
  auto with_short_values = opened_pairs(short_medium, short_flash, 100);
  EXPECT_NE(open(with_short_values, larger).find("values of at most 100"), std::string::npos);
  EXPECT_NE(message_of([&] { static_cast<void>(on_blocks().open(device, small)); }).find("on a key-value device"),
            std::string::npos);
}

TEST(ChunkStoreOnBlocks, refuses_wrong_and_damaged_drives_by_name) {
  const auto open = [](auto& device, const stores::chunk_store_options& options) {
    return message_of([&] { static_cast<void>(on_blocks().open(device, options)); });
  };
  blocks::memory device(torn);
  blocks::memory least(blocks::geometry{.blocks = 36, .block_bytes = block});
  EXPECT_NE(open(least, small).find("for one chunk"), std::string::npos);
  EXPECT_NE(open(device, {.chunk_bytes = 1000}).find("chunk"), std::string::npos);
  {
    auto store = on_blocks().open(device, small);
    auto disk = store.volume("a", {.bytes = 64 * block});
    disk.write(0, data_of(0, 32, 1));
    std::vector<std::vector<std::byte>> data;
    std::vector<on_blocks::store<blocks::memory>::volume_handle::part> group;
    for (std::uint64_t i = 0; i < 7; ++i) data.push_back(data_of(2 * i, 1, 2));
    for (std::uint64_t i = 0; i < 7; ++i) group.push_back({2 * i * block, data[i]});
    EXPECT_NE(message_of([&] { disk.write_group(group); }).find("more ranges than the ring"), std::string::npos);
    disk.write_group(std::span(group).first(6));
    EXPECT_NE(message_of([&] {
                for (int i = 0; i < 300; ++i) static_cast<void>(store.volume(std::to_string(i), {.bytes = block}));
              }).find("has room for 7 volumes"),
              std::string::npos);
  }
  // A pool's store, and the other way round.
  media::dram pool;
  EXPECT_NE(message_of([&] {
              static_cast<void>(store_on<media::dram>::open(pool, device, small));
            }).find("another chunk store"),
            std::string::npos);
  blocks::memory of_a_pool(torn);
  media::dram own;
  { static_cast<void>(store_on<media::dram>::open(own, of_a_pool, small)); }
  EXPECT_NE(open(of_a_pool, small).find("records in a pool"), std::string::npos);
  EXPECT_EQ(open(of_a_pool, {.chunk_bytes = 32 * block, .format = true}), "");
  // Damage: the header, its magic, an index block in both places.
  for (const std::size_t at : {std::size_t{0}, std::size_t{40}, std::size_t{70}}) {
    device.content()[at] ^= std::byte{1};
    EXPECT_NE(open(device, small).find("block 0 of device memory is damaged"), std::string::npos) << at;
    device.content()[at] ^= std::byte{1};
  }
  EXPECT_EQ(open(device, small), "");
  device.content()[3 * block + 100] ^= std::byte{1};
  EXPECT_NE(open(device, small).find("index block 1 "), std::string::npos);
}

}  // namespace
}  // namespace pmlab::tests
