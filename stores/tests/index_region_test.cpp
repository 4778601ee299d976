// The index blocks of a chunk store without persistent memory: two places, torn writes, shared writes, failed writes.
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/stores/chunk_store/chunk_table.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests::index_region_test {
namespace {

namespace parts = stores::detail::chunk_store;

constexpr std::uint32_t block = 512;
constexpr blocks::geometry torn{.blocks = 64, .block_bytes = block, .atomic_bytes = 0};
constexpr parts::index_layout layout{.block_bytes = block, .first = 3, .blocks = 20, .identity = {7, 8}};

template <class Device>
using region_on = parts::index_region<Device>;
using counted_drive = blocks::counted<blocks::memory>;
using faulty_drive = blocks::faulty<blocks::memory>;

template <class Device>
void change(region_on<Device>& region, std::uint32_t number, char to, parts::index_change& c) {
  const auto guard = region.guard(number);
  std::memset(region.edit(number), to, layout.payload_bytes());
  region.add(number, c);
}
template <class Device>
[[nodiscard]] bool write(region_on<Device>& region, std::uint32_t number, char to) {
  parts::index_change c;
  change(region, number, to, c);
  region.settle(c);
  return c.succeeded();
}
template <class Device>
[[nodiscard]] char current(region_on<Device>& region, std::uint32_t number) {
  const auto guard = region.guard(number);
  return static_cast<char>(region.current(number)[100]);
}

TEST(IndexRegion, is_empty_at_first_and_keeps_what_was_written) {
  blocks::memory drive(torn);
  parts::free_map free;
  region_on<blocks::memory> region(drive, layout, free);
  region.format();
  region.load(true);
  EXPECT_EQ(current(region, 5), 0);
  for (const char c : {'a', 'b', 'c'}) EXPECT_TRUE(write(region, 5, c));
  EXPECT_TRUE(write(region, 19, 'z'));
  EXPECT_EQ(current(region, 5), 'c');
  region_on<blocks::memory> again(drive, layout, free);
  again.load(true);
  EXPECT_EQ(current(again, 5), 'c');
  EXPECT_EQ(current(again, 19), 'z');
  EXPECT_EQ(current(again, 4), 0);
}

TEST(IndexRegion, a_reader_sees_a_change_when_it_is_durable) {
  blocks::memory drive(torn);
  parts::free_map free;
  region_on<blocks::memory> region(drive, layout, free);
  region.format();
  region.load(true);
  parts::index_change c;
  change(region, 2, 'x', c);
  EXPECT_EQ(current(region, 2), 0);
  EXPECT_FALSE(c.is_settled());
  region.settle(c);
  EXPECT_EQ(current(region, 2), 'x');
}

TEST(IndexRegion, changes_of_a_block_share_a_write) {
  counted_drive drive(torn);
  parts::free_map free;
  region_on<counted_drive> region(drive, layout, free);
  region.format();
  region.load(true);
  drive.reset();
  std::array<parts::index_change, 10> all;
  for (auto& c : all) change(region, 3, 'a', c);
  while (!all.back().is_settled()) region.drive_all();
  for (const auto& c : all) EXPECT_TRUE(c.is_settled() && c.succeeded());
  EXPECT_EQ(drive.of(blocks::stream::index).writes, 1U);
  EXPECT_EQ(drive.of(blocks::stream::index).durable_writes, 1U);
}

// A write whose sectors a crash keeps in part: here, of one sector, none or garbage.
TEST(IndexRegion, a_torn_place_leaves_the_content_before) {
  blocks::memory drive(torn);
  parts::free_map free;
  {
    region_on<blocks::memory> region(drive, layout, free);
    region.format();
    region.load(true);
    for (const char c : {'a', 'b'}) EXPECT_TRUE(write(region, 5, c));
  }
  // Sequences: 1 empty, 2 'a', 3 'b', in place 1.
  std::byte* const newest = drive.content().data() + layout.place(5, 3) * block;
  newest[200] ^= std::byte{1};
  region_on<blocks::memory> region(drive, layout, free);
  region.load(false);
  EXPECT_EQ(current(region, 5), 'a');
  EXPECT_EQ(region.torn_places(), 1U);
  // Repairing the bit does not bring the torn write back: its head is gone.
  newest[200] ^= std::byte{1};
  region_on<blocks::memory> again(drive, layout, free);
  again.load(false);
  EXPECT_EQ(current(again, 5), 'a');
  EXPECT_TRUE(write(again, 5, 'c'));
  region_on<blocks::memory> last(drive, layout, free);
  last.load(true);
  EXPECT_EQ(current(last, 5), 'c');
}

// The drive is opened as one that keeps blocks whole, after it was one that tears them.
TEST(IndexRegion, a_place_that_was_forgotten_is_no_damage) {
  blocks::memory drive(torn);
  parts::free_map free;
  {
    region_on<blocks::memory> region(drive, layout, free);
    region.format();
    region.load(true);
    for (const char c : {'a', 'b'}) EXPECT_TRUE(write(region, 5, c));
  }
  drive.content()[layout.place(5, 3) * block + 200] ^= std::byte{1};
  for (const bool whole : {false, true, true}) {
    region_on<blocks::memory> region(drive, layout, free);
    region.load(whole);
    EXPECT_EQ(current(region, 5), 'a');
  }
  // Its head as a release with other checksums forgot it, and one with none.
  parts::index_block_head forgotten = parts::head_of(std::span(drive.content()).subspan(layout.place(5, 3) * block));
  constexpr std::size_t summed_from = offsetof(parts::index_block_head, sequence);
  const std::uint64_t earlier = hash_of_bytes(&forgotten.sequence, sizeof forgotten - summed_from);
  for (const auto& [checksum, is_one] : {std::pair(earlier + 1, false), std::pair(earlier, true)}) {
    forgotten.checksum = checksum;
    std::memcpy(&drive.content()[layout.place(5, 3) * block], &forgotten, sizeof forgotten);
    region_on<blocks::memory> region(drive, layout, free);
    EXPECT_EQ(message_of([&] { region.load(true); }).empty(), is_one);
  }
  // As a release before forgot it; of a drive that tears no block it is a block that was lost.
  std::fill_n(&drive.content()[layout.place(5, 3) * block], 64, std::byte{});
  for (const bool whole : {false, true}) {
    region_on<blocks::memory> region(drive, layout, free);
    EXPECT_EQ(message_of([&] { region.load(whole); }).empty(), !whole);
  }
  // The place that is left has no such excuse.
  drive.content()[layout.place(5, 2) * block + 200] ^= std::byte{1};
  region_on<blocks::memory> region(drive, layout, free);
  EXPECT_PRED2(says, message_of([&] { region.load(true); }), "index block 5");
}

// A change fails, one after it succeeds, one after that fails: only then does the owner of the first one hold its
// blocks.
TEST(IndexRegion, blocks_of_a_failed_change_are_free_if_a_later_one_succeeded) {
  faulty_drive drive(std::uint64_t{3}, torn);
  parts::free_map free;
  region_on<faulty_drive> region(drive, layout, free);
  region.format();
  region.load(true);
  std::array<parts::index_change, 3> changes;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i != 1) drive.inject({.kind = blocks::fault::io_error});
    change(region, 5, static_cast<char>('a' + i), changes[i]);
    region.settle(changes[i]);
    EXPECT_EQ(changes[i].succeeded(), i == 1);
  }
  const auto guard = region.guard(5);
  region.hold(5, {40, 2}, changes[0].era());
  EXPECT_EQ(free.free_blocks(), 2U);
  region.hold(5, {50, 3}, changes[2].era());
  EXPECT_EQ(free.free_blocks(), 2U);
}

TEST(IndexRegion, damage_is_named_and_never_served) {
  blocks::memory drive(torn);
  parts::free_map free;
  {
    region_on<blocks::memory> region(drive, layout, free);
    region.format();
  }
  const auto load = [&](bool whole) {
    region_on<blocks::memory> region(drive, layout, free);
    return message_of([&] { region.load(whole); });
  };
  std::byte* const one = drive.content().data() + layout.place(6, 0) * block;
  std::byte* const other = drive.content().data() + layout.place(6, 1) * block;
  EXPECT_EQ(load(true), "");
  one[300] ^= std::byte{4};
  EXPECT_PRED2(says, load(true), "index block 6 of the chunk store");
  EXPECT_EQ(load(false), "");
  other[64] ^= std::byte{4};
  EXPECT_PRED2(says, load(false), "index block 6 of the chunk store");
  // A block of another number, or of another store.
  std::memcpy(one, drive.content().data() + layout.place(7, 0) * block, block);
  EXPECT_PRED2(says, load(false), "is damaged");
  parts::index_layout other_store = layout;
  other_store.identity = {9, 9};
  region_on<blocks::memory> wrong(drive, other_store, free);
  EXPECT_PRED2(says, message_of([&] { wrong.load(false); }), "is damaged");
}

TEST(IndexRegion, a_failed_write_fails_all_changes_on_top_and_the_next_one_repairs_it) {
  for (const auto kind : {blocks::fault::io_error, blocks::fault::short_transfer}) {
    faulty_drive drive(std::uint64_t{3}, torn);
    parts::free_map free;
    region_on<faulty_drive> region(drive, layout, free);
    region.format();
    region.load(true);
    EXPECT_TRUE(write(region, 5, 'a'));
    drive.inject({.kind = kind, .times = 2});
    for (int i = 0; i < 2; ++i) {
      parts::index_change c;
      change(region, 5, 'b', c);
      region.settle(c);
      EXPECT_FALSE(c.succeeded());
      const auto guard = region.guard(5);
      EXPECT_FALSE(region.is_sure(5));
      EXPECT_EQ(static_cast<char>(region.newest(5)[9]), 'a');
      region.hold(5, {40, 2}, c.era());
    }
    EXPECT_EQ(free.free_blocks(), 0U);
    EXPECT_EQ(current(region, 5), 'a');
    // A crash now leaves one of both.
    region_on<faulty_drive> crashed(drive, layout, free);
    crashed.load(false);
    EXPECT_TRUE(current(crashed, 5) == 'a' || current(crashed, 5) == 'b');
    EXPECT_TRUE(write(region, 5, 'c'));
    EXPECT_EQ(free.free_blocks(), 4U);
    region_on<faulty_drive> again(drive, layout, free);
    again.load(true);
    EXPECT_EQ(current(again, 5), 'c');
  }
}

TEST(ChunkTable, has_a_few_bytes_for_each_chunk) {
  parts::chunk_table table;
  constexpr std::uint32_t chunks = 20000;
  for (std::uint32_t i = 0; i < chunks; ++i) table.set((std::uint64_t{1} << 40) + i, i);
  table.set(std::uint64_t{2} << 40, 77);
  EXPECT_EQ(table.find((std::uint64_t{1} << 40) + 1234), 1234U);
  EXPECT_EQ(table.find(std::uint64_t{2} << 40), 77U);
  EXPECT_EQ(table.find(std::uint64_t{3} << 40), std::nullopt);
  EXPECT_LT(table.bytes(), chunks * 5);
  table.erase(std::uint64_t{2} << 40, 76);
  EXPECT_EQ(table.find(std::uint64_t{2} << 40), 77U);
  table.erase(std::uint64_t{2} << 40, 77);
  EXPECT_EQ(table.find(std::uint64_t{2} << 40), std::nullopt);
}

}  // namespace
}  // namespace pmlab::tests::index_region_test
