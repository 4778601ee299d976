// Handles of volumes that are no more: removed ones, whose number a new volume has; with operations in flight; of a
// closed store and of another one. A void handle is an error that names the volume, and reaches no other volume.
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::tests::chunk_volumes_test {
namespace {

constexpr std::uint32_t block = 512;
constexpr blocks::geometry torn{.blocks = 512, .block_bytes = block, .atomic_bytes = 0, .volatile_cache = true};
constexpr blocks::geometry whole{.blocks = 512, .block_bytes = block, .atomic_bytes = block, .volatile_cache = true};
constexpr stores::chunk_store_options small{.chunk_bytes = 8 * block, .ring = 6};

[[nodiscard]] std::vector<std::byte> filled(std::uint64_t blocks_of, int value) {
  return std::vector<std::byte>(blocks_of * block, static_cast<std::byte>(value));
}

struct in_memory {
  using store = stores::chunk_store<media::dram, blocks::memory>;
  media::dram pool{};
  [[nodiscard]] store open(blocks::memory& drive) { return store::open(pool, drive, small); }
};
struct on_blocks {
  using store = stores::chunk_store<stores::records_on_blocks, blocks::memory>;
  [[nodiscard]] store open(blocks::memory& drive) { return store::open(drive, small); }
};
struct on_pairs {
  using pairs_type = stores::kv_device<media::dram, blocks::memory>;
  using store = stores::chunk_store<stores::records_on_kv<pairs_type>, blocks::memory>;
  media::dram pool{};
  blocks::memory flash{blocks::geometry{.blocks = 2049, .block_bytes = 512}};
  pairs_type pairs = pairs_type::open(pool, flash,
                                      {.unit_bytes = 64,
                                       .superblock_bytes = 16384,
                                       .over_provisioning = 0.2,
                                       .buffer_bytes = 16384,
                                       .largest_value = 4096});
  [[nodiscard]] store open(blocks::memory& drive) { return store::open(pairs, drive, small, {.cache_bytes = 2100}); }
};

template <class Container>
class ChunkVolumes : public ::testing::Test {};
using containers = ::testing::Types<in_memory, on_blocks, on_pairs>;
TYPED_TEST_SUITE(ChunkVolumes, containers);

TYPED_TEST(ChunkVolumes, a_handle_of_a_removed_volume_is_void_and_reaches_no_other_volume) {
  for (const auto& shape : {torn, whole}) {
    TypeParam container;
    blocks::memory drive(shape);
    auto store = container.open(drive);
    auto old = store.volume("first tenant", {.bytes = 32 * block});
    old.write(0, filled(16, 1));
    const auto copy = old;
    ASSERT_TRUE(store.remove_volume("first tenant"));
    auto next = store.volume("second tenant", {.bytes = 32 * block});
    ASSERT_EQ(next.id(), old.id());
    next.write(0, filled(16, 2));
    std::vector<std::byte> got(16 * block);
    const typename TypeParam::store::volume_handle::part parts[] = {{0, std::span(got).first(block)}};
    for (auto handle : {old, copy}) {
      const std::string messages[] = {
          message_of([&] { handle.write(0, filled(1, 3)); }), message_of([&] { handle.read(0, got); }),
          message_of([&] { handle.discard(0, 32 * block); }), message_of([&] { handle.write_group(parts); })};
      for (const std::string& m : messages) EXPECT_PRED2(says, m, "'first tenant' was removed");
    }
    stores::chunk_queue queue(store, 4);
    blocks::buffer data(block);
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(queue.write(old, 0, data.bytes(), 1)); }), "was removed");
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(queue.read(old, 0, data.bytes(), 1)); }), "was removed");
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(queue.discard(old, 0, block, 1)); }), "was removed");
    EXPECT_EQ(queue.in_flight(), 0U);
    next.read(0, got);
    EXPECT_EQ(got, filled(16, 2));
    EXPECT_TRUE(store.check().ok());
  }
}

TYPED_TEST(ChunkVolumes, operations_in_flight_when_their_volume_is_removed_end_with_an_error) {
  for (const auto& shape : {torn, whole}) {
    TypeParam container;
    blocks::memory drive(shape);
    auto store = container.open(drive);
    auto old = store.volume("first tenant", {.bytes = 64 * block});
    old.write(0, filled(16, 1));
    {
      // To a place of its own, to the place that the block has, and to a chunk without a record.
      stores::chunk_queue queue(store, 4);
      std::array<blocks::buffer, 4> data;
      for (auto& d : data) d = blocks::buffer(2 * block);
      ASSERT_TRUE(queue.write(old, 0, data[0].bytes(), 0));
      ASSERT_TRUE(queue.write(old, 8 * block, data[1].bytes().first(block), 1));
      ASSERT_TRUE(queue.write(old, 40 * block, data[2].bytes(), 2));
      ASSERT_TRUE(queue.read(old, 10 * block, data[3].bytes(), 3));
      ASSERT_TRUE(store.remove_volume("first tenant"));
      // Its number is not free yet.
      auto next = store.volume("second tenant", {.bytes = 64 * block});
      EXPECT_NE(next.id(), old.id());
      next.write(0, filled(64, 2));
      std::array<stores::chunk_completion, 4> done;
      std::size_t count = 0;
      while (count < 4) count += queue.reap(std::span(done).subspan(count), 1);
      for (const auto& c : done) EXPECT_EQ(c.error, c.tag == 3 ? std::errc{} : std::errc::identifier_removed) << c.tag;
      EXPECT_EQ(std::count(data[3].bytes().begin(), data[3].bytes().end(), std::byte{1}), 2 * block);
      std::vector<std::byte> got(64 * block);
      next.read(0, got);
      EXPECT_EQ(got, filled(64, 2));
    }
    // Now it is, with all blocks of the volume.
    EXPECT_EQ(store.stats().chunks, 8U);
    auto third = store.volume("third tenant", {.bytes = 64 * block});
    EXPECT_EQ(third.id(), old.id());
    std::vector<std::byte> got(64 * block);
    third.read(0, got);
    EXPECT_EQ(got, filled(64, 0));
    const auto report = store.check();
    EXPECT_TRUE(report.ok()) << report.violations.front();
  }
}

// Each tenant writes only its own number, and reads only that or zeros, until its volume is removed under it.
TYPED_TEST(ChunkVolumes, are_removed_while_other_threads_use_them) {
  for (const auto& shape : {torn, whole}) {
    TypeParam container;
    blocks::memory drive(shape);
    auto store = container.open(drive);
    using handle = typename TypeParam::store::volume_handle;
    constexpr int tenants = 8;
    std::vector<std::optional<handle>> open(tenants);
    std::atomic<int> now{-1};
    std::atomic<int> wrong{0};
    std::vector<std::thread> users;
    for (std::uint64_t t = 0; t < 2; ++t)
      users.emplace_back([&, t] {
        std::vector<std::byte> got(10 * block);
        for (int last = -1; last < tenants - 1;) {
          const int number = now.load();
          if (number == last) {
            std::this_thread::yield();
            continue;
          }
          last = number;
          handle mine = *open[static_cast<std::size_t>(number)];
          const auto data = filled(3, number + 1);
          try {
            for (std::uint64_t i = 0;; ++i) {
              const std::uint64_t first = (i * 5 + t) % 50;
              mine.write(first * block, std::span(data).first(i % 2 == 0 ? data.size() : block));
              mine.read(first * block, got);
              for (const std::byte b : got) wrong += b != std::byte{0} && b != data.front() ? 1 : 0;
              if (i % 7 == 0) mine.discard(first * block, 4 * block);
            }
          } catch (const error& e) {
            if (std::string(e.what()).find("tenant") == std::string::npos) ++wrong;
          }
        }
      });
    for (int number = 0; number < tenants; ++number) {
      const std::string name = "tenant " + std::to_string(number);
      open[static_cast<std::size_t>(number)] = store.volume(name, {.bytes = 64 * block});
      now = number;
      for (int i = 0; i < 20; ++i) std::this_thread::yield();
      std::vector<std::byte> some(block);
      for (int i = 0; i < 20; ++i) open[static_cast<std::size_t>(number)]->read(0, some);
      ASSERT_TRUE(store.remove_volume(name));
    }
    for (std::thread& t : users) t.join();
    EXPECT_EQ(wrong.load(), 0);
    store.finish_removals();
    EXPECT_EQ(store.stats().chunks, 0U);
    const auto report = store.check();
    EXPECT_TRUE(report.ok()) << report.violations.front();
  }
}

TEST(ChunkVolumesOnBlocks, a_removal_that_waits_for_an_operation_is_completed_by_the_next_opening) {
  blocks::memory drive(torn);
  blocks::memory after_crash(torn);
  {
    on_blocks container;
    auto store = container.open(drive);
    auto old = store.volume("old", {.bytes = 64 * block});
    old.write(0, filled(64, 1));
    blocks::buffer data(block);
    stores::chunk_queue queue(store, 1);
    ASSERT_TRUE(queue.write(old, 0, data.bytes(), 0));
    ASSERT_TRUE(store.remove_volume("old"));
    EXPECT_EQ(store.stats().chunks, 1U);
    std::ranges::copy(drive.content(), after_crash.content().begin());
  }
  on_blocks container;
  auto store = container.open(after_crash);
  EXPECT_EQ(store.stats().chunks, 0U);
  EXPECT_EQ(store.stats().volumes, 0U);
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(store.volume("old")); }), "no volume 'old'");
  EXPECT_TRUE(store.check().ok());
}

TYPED_TEST(ChunkVolumes, handles_of_a_closed_store_and_of_another_one_are_refused) {
  TypeParam container;
  TypeParam other_container;
  blocks::memory drive(torn);
  blocks::memory other_drive(torn);
  std::optional<typename TypeParam::store::volume_handle> kept;
  {
    auto store = container.open(drive);
    auto other = other_container.open(other_drive);
    kept = store.volume("mine", {.bytes = 8 * block});
    auto theirs = other.volume("theirs", {.bytes = 8 * block});
    stores::chunk_queue queue(store, 1);
    blocks::buffer data(block);
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(queue.write(theirs, 0, data.bytes(), 1)); }),
                 "'theirs' is of");
    auto moved = std::move(*kept);
    moved.write(0, filled(1, 1));
    kept->write(0, filled(1, 2));  // what was moved from is a handle
    EXPECT_EQ(kept->name(), "mine");
  }
  std::vector<std::byte> got(block);
  for (const std::string& m : {message_of([&] { kept->read(0, got); }), message_of([&] { kept->write(0, got); }),
                               message_of([&] { kept->discard(0, block); })})
    EXPECT_PRED2(says, m, "store of volume 'mine' is closed");
  auto store = container.open(drive);
  store.volume("mine").read(0, got);
  EXPECT_EQ(got, filled(1, 2));
  EXPECT_PRED2(says, message_of([&] { kept->read(0, got); }), "closed");
}

}  // namespace
}  // namespace pmlab::tests::chunk_volumes_test
