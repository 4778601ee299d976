// Chunk stores whose records are on the drive itself, or are pairs of a key-value device: what they cost, and drives
// and devices that fail.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "stores/tests/chunk_stores.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
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

namespace pmlab::tests::chunk_containers_test {
namespace {

using on_blocks = records_in<stores::records_on_blocks, void>;
using counted_drive = blocks::counted<blocks::memory>;
using faulty_drive = blocks::faulty<blocks::memory>;

// A drive that states more blocks than it has.
struct many_blocks : blocks::memory {
  using memory::memory;
  using queue = blocks::memory::queue;
  [[nodiscard]] blocks::geometry shape() const noexcept {
    blocks::geometry g = memory::shape();
    g.blocks = std::uint64_t{1} << 32;
    return g;
  }
};

TEST(ChunkStoreOnBlocks, a_drive_of_more_blocks_than_entries_can_name_is_refused) {
  many_blocks device(torn);
  const std::string said = message_of([&] { (void)on_blocks().open(device, small); });
  EXPECT_NE(said.find("at most 2^32 - 3 blocks"), std::string::npos) << said;
}

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
      if (!write_somewhere(disk, right.at("a"), random, version)) ++failed;
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

// A merge of another queue makes room in a ring: a caller that only polls moves it on.
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
  unsigned behind_a_merge = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(merging.write(disk, 0, data.bytes(), 0));
    while (merging.reap(done, 0) == 0) continue;
    if (!merging.has_merges()) continue;
    ++behind_a_merge;
    for (int k = 0; k < 6; ++k) {
      ASSERT_TRUE(polling.write(disk, block, data.bytes(), 1));
      std::size_t ended = 0;
      for (int poll = 0; poll < 1000 && ended == 0; ++poll) ended = polling.reap(done, 0);
      ASSERT_EQ(ended, 1U);
      EXPECT_EQ(done[0].error, std::errc{});
    }
  }
  EXPECT_GT(behind_a_merge, 0U);
}

// Reads and writes of a queue that is not reaped, also one of the writing thread's own, keep the ring of a chunk full
// for no writer. Other threads read meanwhile, which is no failure of the merge.
template <class Store>
void write_beside_an_unpolled_queue(Store& store, std::uint64_t chunk_blocks) {
  constexpr unsigned unpolled = 8;
  auto disk = store.volume("a", {.bytes = chunk_blocks * block});
  disk.write(0, data_of(0, chunk_blocks, 1));
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      std::vector<std::byte> got(chunk_blocks * block);
      while (!is_over.load()) disk.read(0, got);
    });
  std::string failure;
  {
    std::vector<blocks::buffer> data;
    for (unsigned i = 0; i < unpolled; ++i) data.emplace_back(2 * block);
    stores::chunk_queue<Store> idle(store, unpolled);
    splitmix64 random(5);
    std::array<stores::chunk_completion, unpolled> done;
    for (int round = 0; round < 30 && failure.empty(); ++round) {
      for (unsigned i = 0; i < unpolled; ++i) {
        const std::uint64_t at = random.below(chunk_blocks - 1) * block;
        ASSERT_TRUE(i % 4 == 3 ? idle.write(disk, at, data[i].bytes(), i) : idle.read(disk, at, data[i].bytes(), i));
      }
      failure = message_of([&] {
        for (int i = 0; i < 12; ++i) disk.write(random.below(chunk_blocks) * block, data_of(0, 1, 2));
      });
      EXPECT_EQ(idle.reap(done, unpolled), unpolled);
      for (const stores::chunk_completion& c : done) EXPECT_EQ(c.error, std::errc{});
    }
  }
  is_over.store(true);
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(failure, "");
  EXPECT_TRUE(store.check().ok());
}
TEST(ChunkStoreOnBlocks, a_write_waits_for_no_queue_that_is_not_reaped) {
  for (const std::uint32_t ring : {3U, 5U})
    for (const std::uint64_t chunk_blocks : {16U, 64U}) {
      blocks::memory device(blocks::geometry{.blocks = 2000, .block_bytes = block});
      auto store = on_blocks().open(device, {.chunk_bytes = chunk_blocks * block, .ring = ring});
      write_beside_an_unpolled_queue(store, chunk_blocks);
      if (::testing::Test::HasFailure()) return;
    }
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

// A removal whose index write is done and fails: what is acknowledged for the volume afterwards is there, or nothing
// is.
TEST(ChunkStoreOnBlocks, a_failed_removal_loses_no_write_that_follows) {
  for (const bool drive_is_well : {true, false}) {
    faulty_drive device(1, torn);
    const auto data = data_of(0, 1, 7);
    {
      auto store = on_blocks().open(device, small);
      auto disk = store.volume("a", {.bytes = 64 * block});
      device.inject({.kind = blocks::fault::failed_answer, .only = blocks::stream::index});
      if (!drive_is_well)
        device.inject({.kind = blocks::fault::io_error, .skip = 1, .times = 1000, .only = blocks::stream::index});
      EXPECT_THROW(store.remove_volume("a"), error);
      if (drive_is_well) {
        disk.write(0, data);
      } else {
        EXPECT_THROW(disk.write(0, data), error);
        EXPECT_THROW(static_cast<void>(store.volume("a")), error);
      }
      device.stop();
      auto again = store.volume("a");
      again.write(block, data_of(1, 1, 8));
    }
    auto store = on_blocks().open(device, small);
    auto disk = store.volume("a");
    std::vector<std::byte> got(2 * block);
    disk.read(0, got);
    EXPECT_TRUE(std::ranges::equal(std::span(got).last(block), data_of(1, 1, 8)));
    EXPECT_EQ(std::ranges::equal(std::span(got).first(block), data), drive_is_well);
    EXPECT_TRUE(store.check().ok());
  }
}

// A write that failed, and whose index block the drive has: behind a closing it is not there. Where the drive refuses
// the index block of before, the store is not closed.
TEST(ChunkStoreOnBlocks, a_failed_write_is_not_there_behind_a_closing) {
  for (const bool drive_is_well : {true, false}) {
    faulty_drive device(1, torn);
    const std::vector<std::byte> before = data_of(0, 2, 1);
    const auto content = [&] {
      const auto all = device.inner().content();
      return std::vector<std::byte>(all.begin(), all.end());
    };
    std::vector<std::byte> left;
    {
      auto store = on_blocks().open(device, small);
      auto disk = store.volume("a", {.bytes = 64 * block});
      disk.write(0, before);
      device.inject({.kind = blocks::fault::failed_answer, .only = blocks::stream::index});
      if (!drive_is_well)
        device.inject({.kind = blocks::fault::io_error, .skip = 1, .times = 1000, .only = blocks::stream::index});
      EXPECT_THROW(disk.write(0, data_of(0, 2, 2)), error);
      left = content();
    }
    device.stop();
    if (!drive_is_well) {
      EXPECT_EQ(content(), left);
      continue;
    }
    auto store = on_blocks().open(device, small);
    std::vector<std::byte> got(2 * block);
    store.volume("a").read(0, got);
    EXPECT_EQ(got, before);
    EXPECT_TRUE(store.check().ok());
  }
}

// A removal whose first write is durable has happened: what fails of it later is not the caller's.
TEST(ChunkStoreOnBlocks, a_removal_that_fails_behind_its_first_write_has_happened) {
  for (std::uint64_t skip = 1; skip < 4; ++skip) {
    SCOPED_TRACE(skip);
    faulty_drive device(1, torn);
    auto store = on_blocks().open(device, small);
    const std::uint64_t free = store.stats().free_bytes;
    auto disk = store.volume("a", {.bytes = 64 * block});
    disk.write(0, data_of(0, 64, 7));
    device.inject(
        {.kind = blocks::fault::io_error, .skip = skip, .times = 1000, .what = blocks::operation::write_durable});
    EXPECT_TRUE(store.remove_volume("a"));
    EXPECT_THROW(static_cast<void>(store.volume("a")), error);
    device.stop();
    EXPECT_FALSE(store.remove_volume("a"));
    static_cast<void>(store.finish_removals());
    EXPECT_EQ(store.stats().free_bytes, free);
    EXPECT_TRUE(store.check().ok());
  }
}

// A making that failed affects no other volume, even of those in the same index block.
TEST(ChunkStoreOnBlocks, a_failed_making_hides_no_other_volume) {
  faulty_drive device(1, torn);
  auto store = on_blocks().open(device, small);
  static_cast<void>(store.volume("a", {.bytes = 64 * block}));
  device.inject({.kind = blocks::fault::failed_answer, .only = blocks::stream::index});
  device.inject({.kind = blocks::fault::io_error, .skip = 1, .times = 1000, .only = blocks::stream::index});
  EXPECT_THROW(static_cast<void>(store.volume("b", {.bytes = 64 * block})), error);
  EXPECT_NO_THROW(static_cast<void>(store.volume("a")));
  EXPECT_THROW(static_cast<void>(store.volume("b", {.bytes = 64 * block})), error);
  device.stop();
  EXPECT_EQ(store.volume("b", {.bytes = 32 * block}).bytes(), 32U * block);
}

// First writes of many chunks fail; then one index block is bad for ever. The records of the others are free again.
TEST(ChunkStoreOnBlocks, one_bad_index_block_keeps_its_own_records_only) {
  constexpr blocks::geometry little{.blocks = 300, .block_bytes = block, .atomic_bytes = block};
  faulty_drive device(1, little);
  const stores::chunk_store_options options{.chunk_bytes = 8 * block, .ring = 5};
  auto store = on_blocks().open(device, options);
  auto disk = store.volume("a", {.bytes = 8000 * block});
  device.inject({.kind = blocks::fault::io_error, .times = 1'000'000, .only = blocks::stream::index});
  for (std::uint64_t c = 0; c < 200; ++c) EXPECT_THROW(disk.write(c * 8 * block, data_of(0, 1, c)), error);
  const std::vector<blocks::injected_fault> failed = device.injected();
  device.stop();
  // The two places of the index block that failed first.
  const std::uint64_t place = failed.front().into.first;
  device.inject({.kind = blocks::fault::io_error,
                 .times = 1'000'000,
                 .only = blocks::stream::index,
                 .first = place - 1,
                 .end = place + 2});
  unsigned written = 0;
  for (std::uint64_t c = 500; c < 530; ++c) try {
      disk.write(c * 8 * block, data_of(8 * c, 1, 1));
      ++written;
    } catch (const error&) {
    }
  EXPECT_GE(written, 20U);
}

// First writes of many chunks fail, and are not tried again: their records are free when the drive is well.
TEST(ChunkStoreOnBlocks, failed_first_writes_fill_no_drive_that_is_well_again) {
  constexpr blocks::geometry little{.blocks = 100, .block_bytes = block, .atomic_bytes = block};
  faulty_drive device(1, little);
  const stores::chunk_store_options options{.chunk_bytes = 8 * block, .ring = 4};
  auto store = on_blocks().open(device, options);
  auto disk = store.volume("a", {.bytes = 8000 * block});
  const std::uint64_t free = store.stats().free_bytes;
  device.inject({.kind = blocks::fault::io_error, .times = 1'000'000, .only = blocks::stream::index});
  for (std::uint64_t c = 100; c < 200; ++c) EXPECT_THROW(disk.write(c * 8 * block, data_of(0, 8, c)), error);
  EXPECT_TRUE(store.check().ok()) << store.check().violations.front();
  device.stop();
  for (std::uint64_t c = 0; c < 8; ++c) ASSERT_NO_THROW(disk.write(c * 8 * block, data_of(8 * c, 8, c + 1))) << c;
  EXPECT_TRUE(store.check().ok()) << store.check().violations.front();
  EXPECT_EQ(store.stats().free_bytes, free - 8 * 8 * block);
  for (std::uint64_t c = 0; c < 8; ++c) {
    std::vector<std::byte> got(8 * block);
    disk.read(c * 8 * block, got);
    EXPECT_TRUE(got == data_of(8 * c, 8, c + 1)) << c;
  }
}

// A drive, and records on a key-value device that fails on request.
struct failing_machine {
  using store_type = stores::chunk_store<stores::records_on_kv<failing_pairs>, blocks::memory>;
  blocks::memory drive{whole};
  blocks::memory flash{flash_of_tests};
  media::dram medium;
  pairs_type inner = opened_pairs(medium, flash);
  failing_pairs pairs{inner};

  store_type open(const stores::kv_records& records = {}) { return store_type::open(pairs, drive, small, records); }
};

TEST(ChunkStoreOnKv, a_put_that_fails_fails_the_write_and_changes_nothing) {
  using when = failing_pairs::when;
  failing_machine m;
  failing_pairs& pairs = m.pairs;
  std::map<std::string, expected_volume> right{{"a", expected_volume(128)}};
  {
    auto store = m.open({.cache_bytes = 4200});
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
        EXPECT_PRED2(says, why, "the key-value device beside");
        ++failed;
      }
      pairs.next = when::never;
      if (version % 50 == 0) expect_equal(store, right);
    }
    EXPECT_GT(failed, 50);
    for (std::uint64_t c = 0; c < 4; ++c) disk.write(c * 32 * block, data_of(c * 32, 2, 1000));
    for (std::uint64_t c = 0; c < 4; ++c) right.at("a").write(c * 32, 2, 1000);
    expect_equal(store, right);
    // One that the device has nevertheless: behind a closing it is not there.
    pairs.next = when::after;
    EXPECT_NE(message_of([&] { disk.write(0, data_of(0, 2, 1001)); }), "");
    pairs.next = when::never;
  }
  auto again = m.open();
  expect_equal(again, right);
}

// A put that failed may be durable: of a removal, too.
TEST(ChunkStoreOnKv, a_failed_removal_loses_no_write_that_follows) {
  using when = failing_pairs::when;
  for (const bool device_is_well : {true, false}) {
    SCOPED_TRACE(device_is_well);
    failing_machine m;
    failing_pairs& pairs = m.pairs;
    const auto data = data_of(1, 1, 9);
    {
      auto store = m.open();
      auto disk = store.volume("a", {.bytes = 16 * block});
      pairs.next = when::after;
      pairs.goes_on = !device_is_well;
      EXPECT_THROW(store.remove_volume("a"), error);
      if (device_is_well) {
        disk.write(block, data);
      } else {
        // The handle is void for ever: the volume may be another one by then.
        EXPECT_THROW(static_cast<void>(store.volume("a")), error);
        pairs.next = when::never;
        EXPECT_THROW(disk.write(block, data), error);
      }
      pairs.goes_on = false;
      EXPECT_NO_THROW(static_cast<void>(store.volume("a")));
    }
    auto store = m.open();
    std::vector<std::byte> got(block);
    store.volume("a").read(block, got);
    EXPECT_EQ(got == data, device_is_well);
    EXPECT_TRUE(store.check().ok());
  }
}

// The erasure of a record that failed may be durable. Its words in DRAM are not those of a later volume.
TEST(ChunkStoreOnKv, a_later_volume_has_nothing_of_a_removed_one) {
  using when = failing_pairs::when;
  failing_machine m;
  failing_pairs& pairs = m.pairs;
  auto store = m.open();
  auto disk = store.volume("a", {.bytes = 32 * block});
  disk.write(0, data_of(0, 4, 7));
  pairs.next = when::after;
  pairs.skip = 1;  // the put of the volume
  EXPECT_TRUE(store.remove_volume("a"));
  static_cast<void>(store.finish_removals());
  auto later = store.volume("b", {.bytes = 32 * block});
  std::vector<std::byte> got(block);
  later.read(0, got);
  EXPECT_TRUE(got == std::vector<std::byte>(block));
  EXPECT_TRUE(store.check().ok());
}

// "There is no such volume" holds after a crash, too.
TEST(ChunkStoreOnKv, a_failed_making_that_is_durable_is_undone_before_a_removal_finds_none) {
  using when = failing_pairs::when;
  failing_machine m;
  failing_pairs& pairs = m.pairs;
  {
    auto store = m.open();
    pairs.next = when::after;
    EXPECT_THROW(static_cast<void>(store.volume("a", {.bytes = 32 * block})), error);
    pairs.next = when::before;
    EXPECT_THROW(store.remove_volume("a"), error);
    EXPECT_FALSE(store.remove_volume("a"));
  }
  auto store = m.open();
  EXPECT_THROW(static_cast<void>(store.volume("a")), error);
}

// A change fails, one after it succeeds, one after that fails: only then does the owner of the first one hold its
// blocks.
TEST(ChunkStoreOnKv, blocks_of_a_failed_change_are_free_if_a_later_one_succeeded) {
  namespace parts = stores::detail::chunk_store;
  constexpr std::uint64_t key = std::uint64_t{1} << 40;
  failing_machine m;
  failing_pairs& pairs = m.pairs;
  parts::free_map free;
  parts::chunk_shape shape{8, 3, by_copy};
  parts::records_in_pairs<failing_pairs, blocks::memory> records(pairs, m.drive, free, shape, {}, false, {});
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
  EXPECT_PRED2(says, open(pairs, other), "is not the drive");
  EXPECT_PRED2(says, open(pairs, larger), "was made for a drive of 512 blocks");
  EXPECT_PRED2(says, open(pairs, device, {.space = 1}), "belongs to another chunk store");
  EXPECT_EQ(open(pairs, other, {.space = 2}), "");
  static_cast<void>(pairs.put("a key", {}, stores::kv_mode::post, 3));
  EXPECT_PRED2(says, open(pairs, larger, {.space = 3}), "no chunk store's");
  auto with_short_values = opened_pairs(short_medium, short_flash, 100);
  EXPECT_PRED2(says, open(with_short_values, larger), "values of at most 100");
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(on_blocks().open(device, small)); }), "on a key-value device");
}

TEST(ChunkStoreOnBlocks, refuses_wrong_and_damaged_drives_by_name) {
  const auto open = [](auto& device, const stores::chunk_store_options& options) {
    return message_of([&] { static_cast<void>(on_blocks().open(device, options)); });
  };
  blocks::memory device(torn);
  blocks::memory least(blocks::geometry{.blocks = 36, .block_bytes = block});
  EXPECT_PRED2(says, open(least, small), "for one chunk");
  EXPECT_PRED2(says, open(device, {.chunk_bytes = 1000}), "chunk");
  {
    auto store = on_blocks().open(device, small);
    auto disk = store.volume("a", {.bytes = 64 * block});
    disk.write(0, data_of(0, 32, 1));
    std::vector<std::vector<std::byte>> data;
    std::vector<on_blocks::store<blocks::memory>::volume_handle::part> group;
    for (std::uint64_t i = 0; i < 7; ++i) data.push_back(data_of(2 * i, 1, 2));
    for (std::uint64_t i = 0; i < 7; ++i) group.push_back({2 * i * block, data[i]});
    EXPECT_PRED2(says, message_of([&] { disk.write_group(group); }), "more ranges than the ring");
    disk.write_group(std::span(group).first(6));
    EXPECT_PRED2(says, message_of([&] {
                   for (int i = 0; i < 300; ++i) static_cast<void>(store.volume(std::to_string(i), {.bytes = block}));
                 }),
                 "has room for 7 volumes");
  }
  // A pool's store, and the other way round.
  media::dram pool;
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(store_on<media::dram>::open(pool, device, small)); }),
               "another chunk store");
  blocks::memory of_a_pool(torn);
  media::dram own;
  { static_cast<void>(store_on<media::dram>::open(own, of_a_pool, small)); }
  EXPECT_PRED2(says, open(of_a_pool, small), "records in a pool");
  EXPECT_EQ(open(of_a_pool, {.chunk_bytes = 32 * block, .format = true}), "");
  // Damage: the header, its magic, an index block in both places.
  for (const std::size_t at : {std::size_t{0}, std::size_t{40}, std::size_t{70}}) {
    device.content()[at] ^= std::byte{1};
    EXPECT_PRED2(says, open(device, small), "block 0 of device memory is damaged") << at;
    device.content()[at] ^= std::byte{1};
  }
  EXPECT_EQ(open(device, small), "");
  device.content()[3 * block + 100] ^= std::byte{1};
  EXPECT_PRED2(says, open(device, small), "index block 1 ");
}

}  // namespace
}  // namespace pmlab::tests::chunk_containers_test
