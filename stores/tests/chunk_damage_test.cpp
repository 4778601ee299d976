// Damage of a chunk store: every bit of its headers and index blocks flipped. The answer is a right one, or one error
// that names the damage.
//
// PMLAB_TEST_STRIDE=1 flips each bit; by default each test opens its store a few thousand times.
#include <pmlab/base/checksum.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "stores/tests/chunk_moments.hpp"
#include "stores/tests/chunk_stores.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::tests::chunk_damage_test {
namespace {

using bytes = std::vector<std::byte>;

[[nodiscard]] std::uint64_t stride(std::uint64_t usual) {
  const char* const wanted = std::getenv("PMLAB_TEST_STRIDE");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

// Flips bits of the first `blocks_of` blocks, in words that are not zero. `undo`: what an opening changed elsewhere.
template <class Open, class Undo>
void flip(blocks::memory& device, std::uint64_t blocks_of, std::uint64_t each, const content& right, Open&& open,
          Undo&& undo) {
  const bytes sound = content_of(device);
  std::uint64_t used = 0;
  std::uint64_t opened = 0;
  std::uint64_t refused = 0;
  for (std::size_t bit = 0; bit < blocks_of * block * 8; ++bit) {
    std::uint64_t word = 0;
    std::memcpy(&word, &sound[bit / 64 * 8], sizeof word);
    if (word == 0 || used++ % each != 0) continue;
    bytes damaged = sound;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    restore(device, damaged);
    const std::string error = answer(open, right, "bit " + std::to_string(bit));
    refused += error.empty() ? 0 : 1;
    EXPECT_TRUE(error.empty() || error.find("damaged") != std::string::npos ||
                error.find("not the drive") != std::string::npos)
        << error;
    ++opened;
    undo();
    if (::testing::Test::HasFailure()) return;
  }
  restore(device, sound);
  EXPECT_EQ(answer(open, right, "sound"), "");
  EXPECT_GT(refused, opened / 10);
  EXPECT_GT(opened, 100U);
  ::testing::Test::RecordProperty("opened", static_cast<int>(opened));
}

// A drive that may tear a block into sectors.
constexpr blocks::geometry sectors{.blocks = 200, .block_bytes = 2 * block, .atomic_bytes = 0, .volatile_cache = true};

// The index blocks of a store that was closed: torn writes look as damage does, and there are none.
TEST(ChunkDamage, any_bit_of_an_index_on_the_drive_of_a_store_that_was_closed) {
  blocks::memory device(torn_small);
  records_in<stores::records_on_blocks, void> records;
  content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
  splitmix64 random(1);
  std::uint64_t version = 0;
  std::uint64_t region = 0;
  const auto open = [&] { return records.open(device, tiny); };
  {
    auto store = open();
    make(store, right, random, version, 80);
  }
  layout::region_header h;
  std::memcpy(static_cast<void*>(&h), device.content().data() + sizeof(layout::drive_header), sizeof h);
  region = 1 + 2 * (h.volume_blocks + h.record_blocks);
  flip(device, region, stride(5), right, open, [] {});
}

// The same on a drive whose blocks are of several sectors: a place of an index block that is damaged looks torn there.
TEST(ChunkDamage, a_damaged_index_block_of_a_store_that_was_closed_is_no_torn_one) {
  constexpr std::uint32_t size = 2 * block;
  blocks::memory device(sectors);
  records_in<stores::records_on_blocks, void> records;
  const auto open = [&] { return records.open(device, {.chunk_bytes = 8 * size, .ring = 3}); };
  bytes in_use;
  {
    auto store = open();
    auto disk = store.volume("a", {.bytes = 8 * size});
    for (int i = 1; i < 5; ++i) disk.write(0, bytes(2 * size, static_cast<std::byte>(i)));
    in_use = content_of(device);
  }
  const bytes closed = content_of(device);
  layout::region_header h;
  std::memcpy(static_cast<void*>(&h), closed.data() + sizeof(layout::drive_header), sizeof h);
  const std::size_t newest_record = 1 + 2 * std::size_t{h.volume_blocks};
  for (std::size_t place = 0; place < 2; ++place)
    for (const bool was_closed : {true, false}) {
      restore(device, was_closed ? closed : in_use);
      device.content()[(newest_record + place) * size + 90] ^= std::byte{4};
      const std::string error = message_of([&] { static_cast<void>(open()); });
      EXPECT_EQ(error.find("index block") != std::string::npos, was_closed) << error;
    }
}

// The index blocks alone, place by place.
TEST(ChunkDamage, a_damaged_place_is_no_torn_one_if_the_store_was_closed) {
  blocks::memory device(sectors);
  layout::free_map free;
  const layout::index_layout index{.block_bytes = 2 * block, .first = 3, .blocks = 4, .identity = {7, 8}};
  const auto write = [&] {
    layout::index_region<blocks::memory> region(device, index, free);
    region.format();
    region.load(false);
    for (const char c : {'a', 'b', 'c'}) {
      layout::index_change change;
      {
        const auto guard = region.guard(2);
        std::memset(region.edit(2), c, index.payload_bytes());
        region.add(2, change);
      }
      region.settle(change);
    }
    return region.writes();
  };
  const std::uint64_t closed_at = write();
  const bytes sound = content_of(device);
  for (std::uint64_t place = 0; place < 2; ++place) {
    restore(device, sound);
    device.content()[index.place(2, place) * 2 * block + 700] ^= std::byte{1};
    const bytes damaged = content_of(device);
    layout::index_region<blocks::memory> closed(device, index, free);
    EXPECT_PRED2(says, message_of([&] { closed.load(false, closed_at); }), "index block 2");
    EXPECT_TRUE(content_of(device) == damaged);
    layout::index_region<blocks::memory> cut_off(device, index, free);
    cut_off.load(false, place == 0 ? 0 : closed_at - 2);
    EXPECT_EQ(cut_off.torn_places(), 1U);
    // Its place is forgotten, and no damage at a later opening.
    layout::index_region<blocks::memory> again(device, index, free);
    again.load(false, cut_off.writes());
    layout::index_region<blocks::memory> of_a_release_before(device, index, free);
    of_a_release_before.load(false, layout::unknown_writes);
  }
}

// A place that the drive gives as zeros may be one that a release before forgot; one with a former content has a right
// checksum. Both are the newer place of an index block: the write that was there is missed.
TEST(ChunkDamage, a_lost_write_of_an_index_block_of_a_store_that_was_closed_is_no_old_content) {
  constexpr std::uint32_t size = 2 * block;
  for (const std::uint32_t atomic : {0U, block, size}) {
    blocks::memory device(blocks::geometry{.blocks = 200, .block_bytes = size, .atomic_bytes = atomic});
    records_in<stores::records_on_blocks, void> records;
    const auto open = [&] { return records.open(device, {.chunk_bytes = 8 * size, .ring = 3}); };
    bytes before;
    {
      auto store = open();
      auto disk = store.volume("a", {.bytes = 8 * size});
      disk.write(0, bytes(2 * size, std::byte{1}));
      before = content_of(device);
      for (int i = 2; i < 4; ++i) disk.write(0, bytes(2 * size, static_cast<std::byte>(i)));
    }
    const bytes closed = content_of(device);
    layout::region_header h;
    std::memcpy(static_cast<void*>(&h), closed.data() + sizeof(layout::drive_header), sizeof h);
    const std::size_t region_end = 1 + 2 * (std::size_t{h.volume_blocks} + h.record_blocks);
    unsigned refused = 0;
    for (std::size_t at = 1; at < region_end; ++at)
      for (const std::size_t zeros : {std::size_t{64}, std::size_t{block}, std::size_t{size}, std::size_t{0}}) {
        SCOPED_TRACE("atomic " + std::to_string(atomic) + ", block " + std::to_string(at) + ", " +
                     std::to_string(zeros) + " bytes");
        restore(device, closed);
        const auto place = device.content().subspan(at * size, size);
        if (zeros > 0)
          std::ranges::fill(place.first(zeros), std::byte{});
        else
          std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at * size), size, place.begin());
        const std::string error = message_of([&] {
          auto store = open();
          bytes got(size);
          store.volume("a").read(0, got);
          EXPECT_EQ(got.front(), std::byte{3});
          EXPECT_TRUE(store.check().ok());
        });
        EXPECT_TRUE(error.empty() || error.find("is damaged") != std::string::npos) << error;
        refused += error.empty() ? 0 : 1;
      }
    // The newer place of the volumes' block and of the record's: zeros three times, and of the latter a former content.
    EXPECT_GE(refused, 7U);
  }
}

TEST(ChunkDamage, any_bit_of_the_header_of_a_drive_beside_records_in_memory) {
  blocks::memory device(torn_small);
  records_in<media::dram, indexes::cceh<media::dram>> records;
  content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
  splitmix64 random(2);
  std::uint64_t version = 0;
  const auto open = [&] { return records.open(device, tiny); };
  {
    auto store = open();
    make(store, right, random, version, 80);
  }
  const session_words session(records.medium);
  flip(device, 1, 1, right, open, [&, known = session.now()] { session.set(known); });
  // The same for the words of the records.
  const bytes sound = content_of(device);
  const auto sound_words = session.now();
  for (unsigned bit = 0; bit < 128; ++bit) {
    restore(device, sound);
    auto words = sound_words;
    words[bit / 64] ^= std::uint64_t{1} << bit % 64;
    session.set(words);
    const std::string error = answer(open, right, "bit of the words");
    EXPECT_PRED2(says, error, "the session of the chunk store in dram is damaged");
  }
}

// The words of a store in a pool that lead to all else: each bit of the superblock, of its volumes, and of the heads of
// slabs; and the places of maps. The store is right, or one error names the damage; it never goes beyond the pool.
TEST(ChunkDamage, any_bit_of_a_superblock_in_a_pool) {
  const temporary_folder folder;
  blocks::memory device(torn_small);
  media::pmem pool(folder.file("pool"), {.create_bytes = std::size_t{16} << 20});
  content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
  splitmix64 random(3);
  std::uint64_t version = 0;
  using store_type = stores::chunk_store<media::pmem, blocks::memory>;
  // The walk over the records is part of the opening.
  stores::chunk_store_options options = tiny;
  options.recovers_in_background = false;
  const auto open = [&] { return store_type::open(pool, device, options); };
  {
    auto store = open();
    make(store, right, random, version, 200);
  }
  auto& super = *pool.resolve(media::pointer<layout::superblock>(
      pool.named_root(store_type::layout_name, store_type::layout_name, store_type::layout_version).word->load()));
  // What an opening changes.
  const bytes sound = content_of(device);
  std::vector<layout::word*> words;
  for (layout::word* w : {&super.state, &super.identity[0], &super.identity[1], &super.block_bytes, &super.chunk_blocks,
                          &super.ring, &super.blocks, &super.slabs, &super.volumes[2].session})
    words.push_back(w);
  for (std::size_t i = 0; i < 3; ++i) {
    words.push_back(&super.volumes[i].state);
    words.push_back(&super.volumes[i].bytes);
    words.push_back(&super.volumes[i].name[0]);
  }
  layout::slab& newest = *pool.resolve(media::pointer<layout::slab>(super.slabs.load()));
  words.push_back(&newest.next);
  words.push_back(&newest.count);
  // The word of a map that leads elsewhere in the pool is not noticed: records have no checksum.
  const std::size_t first_map = words.size();
  std::size_t maps = 0;
  for (std::uint64_t i = 0; i < newest.count; ++i) {
    layout::record& r = *newest.at(i, tiny.ring);
    if (r.key.load() == 0) continue;
    words.push_back(&r.map);
    maps += r.map.load() != 0 ? 1 : 0;
  }
  EXPECT_GT(maps, 0U);
  const std::array<std::uint64_t, 2> session{super.volumes[0].session, super.volumes[1].session};
  std::uint64_t refused = 0, opened = 0;
  for (std::size_t n = 0; n < words.size(); ++n)
    for (unsigned bit = 0; bit < 64; ++bit) {
      if (n >= first_map && bit >= 6 && bit < 24) continue;
      words[n]->fetch_xor(std::uint64_t{1} << bit);
      const std::uint64_t damaged = words[n]->load();
      const std::string where = "word " + std::to_string(n) + ", bit " + std::to_string(bit);
      const std::string error = answer(open, right, where);
      ++(error.empty() ? opened : refused);
      // An unused volume's size and name have no meaning.
      const bool is_of_none = words[n] == &super.volumes[2].bytes || words[n] == &super.volumes[2].name[0];
      EXPECT_TRUE(!error.empty() || is_of_none) << where;
      EXPECT_TRUE(error.empty() || error.find("damaged") != std::string::npos ||
                  error.find("was made for") != std::string::npos ||
                  error.find("is not the drive") != std::string::npos || error.find("two owners") != std::string::npos)
          << where << ": " << error;
      EXPECT_EQ(words[n]->load(), damaged) << where;
      words[n]->fetch_xor(std::uint64_t{1} << bit);
      for (std::size_t i = 0; i < session.size(); ++i) super.volumes[i].session = session[i];
      restore(device, sound);
      if (::testing::Test::HasFailure()) return;
    }
  EXPECT_EQ(answer(open, right, "sound"), "");
  std::printf("bits of the superblock: %lu refused, %lu of no meaning\n", refused, opened);
}

// As a store of before the checksum: it opens, and has one from then on.
TEST(ChunkDamage, a_superblock_of_before_its_checksum_opens_and_gets_one) {
  blocks::memory device(torn_small);
  records_in<media::dram, indexes::cceh<media::dram>> records;
  content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
  splitmix64 random(4);
  std::uint64_t version = 0;
  const auto open = [&] { return records.open(device, tiny); };
  {
    auto store = open();
    make(store, right, random, version, 80);
  }
  auto& super = *records.medium.resolve(
      media::pointer<layout::superblock>(records.medium.named_root("chunk_store", "chunk_store", 1).word->load()));
  const auto mark = std::uint64_t{layout::ring_word::has_checks} << 32;
  const std::uint64_t marked = super.ring;
  const std::uint64_t sum = super.volumes[2].session;
  super.volumes[2].session = 0;
  super.ring = marked & ~mark;
  for (layout::volume_slot& v : super.volumes) v.state = v.state & 3;
  EXPECT_EQ(answer(open, right, "of before"), "");
  EXPECT_EQ(super.volumes[2].session, sum);
  // Releases of before refuse a policy that they do not know. To them a state with a check is no volume.
  EXPECT_GT(layout::parts_of<layout::ring_word>(super.ring).merge,
            static_cast<std::uint32_t>(stores::merge_policy::copy));
  // Checks without the mark, as for a while between two releases; and a crash behind (H0).
  std::array<std::uint64_t, 6> words{super.identity[0],  super.identity[1], super.block_bytes,
                                     super.chunk_blocks, marked & ~mark,    super.blocks};
  for (const std::uint64_t ring : {marked & ~mark, marked}) {
    super.ring = ring;
    super.volumes[2].session = checksum(words.data(), sizeof words) | std::uint64_t{3} << 62;
    EXPECT_EQ(answer(open, right, "without the mark"), "");
    EXPECT_EQ(super.ring, marked);
    EXPECT_EQ(super.volumes[2].session, sum);
  }
  super.volumes[0].state ^= 1;
  EXPECT_PRED2(says, answer(open, right, "a state"), "the superblock of the chunk store in dram is damaged");
}

// Records in memory have no checksum. A word of one that names a place beyond the drive costs its chunk, whatever meets
// it: reads, writes in place, first writes, merges, an opening. All else goes on, and a discard mends the chunk.
struct beyond_the_drive {
  bool in_place = false;
  stores::merge_policy merge = stores::merge_policy::remap;
  std::uint64_t damaged = 0, errors_of_reads = 0, errors_of_writes = 0;

  static constexpr std::uint64_t chunk_blocks = tiny.chunk_bytes / block;
  using change = std::uint32_t (*)(std::uint32_t);
  static std::uint32_t high_bit(std::uint32_t place) { return place ^ std::uint32_t{1} << 30; }
  // Places behind it would be at the beginning of the drive again.
  static std::uint32_t near_the_end(std::uint32_t /*place*/) { return 0xfffffffaU; }
  // A word that names a place, and its chunk.
  struct place {
    std::uint64_t key;
    std::function<void(change)> damage;
  };

  template <class Records>
  static std::vector<place> places_of(Records& records) {
    auto& super = *records.medium.resolve(
        media::pointer<layout::superblock>(records.medium.named_root("chunk_store", "chunk_store", 1).word->load()));
    std::vector<place> all;
    for (std::uint64_t at = super.slabs; at != 0;) {
      layout::slab& s = *records.medium.resolve(media::pointer<layout::slab>(at));
      for (std::uint64_t i = 0; i < s.count; ++i) {
        layout::record& r = *s.at(i, tiny.ring);
        if (r.key == 0) continue;
        // The place is the lower half of a head and of an entry.
        const auto add = [&](layout::word& w) {
          all.push_back({r.key, [&w](change c) { w = w >> 32 << 32 | c(static_cast<std::uint32_t>(w)); }});
        };
        add(r.head);
        for (std::uint32_t e = 0; e < tiny.ring; ++e) add(r.ring()[e]);
        if (r.map == 0) continue;
        auto* const map = records.medium.resolve(media::pointer<layout::map_entry>(r.map.load()));
        for (std::uint32_t b = 0; b < chunk_blocks; ++b)
          if (map[b] != 0) all.push_back({r.key, [map, b](change c) { map[b] = c(map[b]); }});
      }
      at = s.next;
    }
    return all;
  }

  // Damages the word of this number. False: there are not so many.
  [[nodiscard]] bool round(std::size_t number, change how) {
    blocks::geometry shape = torn_small;
    if (in_place) shape.atomic_bytes = block;
    blocks::memory device(shape);
    records_in<media::dram, indexes::cceh<media::dram>> records;
    content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
    splitmix64 random(5);
    std::uint64_t version = 0;
    stores::chunk_store_options options = tiny;
    options.merge = merge;
    options.recovers_in_background = false;
    const auto open = [&] { return records.open(device, options); };
    {
      auto store = open();
      make(store, right, random, version, 80);
    }
    const std::vector<place> all = places_of(records);
    if (number >= all.size()) return false;
    all[number].damage(how);
    const std::uint64_t hit = all[number].key;
    const std::string where = "word " + std::to_string(number) + (how == high_bit ? ", a high bit" : ", near the end");
    const auto is_hit = [&](std::uint32_t volume, std::uint64_t chunk) {
      return layout::name_chunk(volume, chunk) == hit;
    };
    // An error of the chunk that was hit names the damage; others have none.
    const auto expect_error = [&](const std::string& error, bool may_fail, std::uint64_t& count) {
      count += error.empty() ? 0 : 1;
      EXPECT_TRUE(error.empty() || (may_fail && error.find("is damaged") != std::string::npos)) << where << error;
      return error.empty();
    };
    {
      auto store = open();
      for (auto& [name, volume] : right) {
        auto disk = store.volume(name);
        for (std::uint64_t b = 0; b < volume.blocks(); ++b) {
          bytes got(block);
          const std::string error = message_of([&] { disk.read(b * block, got); });
          if (expect_error(error, is_hit(disk.id(), b / chunk_blocks), errors_of_reads)) {
            EXPECT_TRUE(got == volume.read(b, 1)) << where << name << b;
          }
        }
      }
      for (auto& one : right) {
        expected_volume& volume = one.second;
        auto disk = store.volume(one.first);
        const auto write = [&](std::uint64_t first, std::uint64_t count) {
          const std::string error = message_of([&] { disk.write(first * block, data_of(first, count, ++version)); });
          if (expect_error(error, is_hit(disk.id(), first / chunk_blocks), errors_of_writes))
            volume.write(first, count, version);
        };
        for (std::uint64_t b = 0; b < volume.blocks(); ++b) write(b, 1);
        // Rings become full: chunks are merged.
        for (int i = 0; i < 6; ++i)
          for (std::uint64_t b = 0; b < volume.blocks(); b += chunk_blocks) write(b + random.below(4), 3);
        const std::uint64_t chunk = hit & 0xffffffff;
        if (!is_hit(disk.id(), chunk)) continue;
        disk.discard(chunk * tiny.chunk_bytes, tiny.chunk_bytes);
        volume.write(chunk * chunk_blocks, chunk_blocks, 0);
        ++damaged;
        write(chunk * chunk_blocks + 1, 5);
      }
      EXPECT_NO_FATAL_FAILURE(expect_equal(store, right)) << where;
    }
    EXPECT_EQ(answer(open, right, where), "");
    return !::testing::Test::HasFailure();
  }
};
TEST(ChunkDamage, a_place_beyond_the_drive_costs_its_chunk) {
  for (const bool in_place : {false, true})
    for (const auto merge : {stores::merge_policy::remap, by_copy}) {
      beyond_the_drive t{.in_place = in_place, .merge = merge};
      for (const auto how : {beyond_the_drive::high_bit, beyond_the_drive::near_the_end})
        for (std::size_t n = 0; t.round(n, how); ++n) continue;
      if (HasFailure()) return;
      EXPECT_GT(t.damaged, 50U);
      EXPECT_GT(t.errors_of_reads, 50U);
      EXPECT_GT(t.errors_of_writes, 0U);
      std::printf("%lu places beyond the drive, %lu errors of reads, %lu of writes\n", t.damaged, t.errors_of_reads,
                  t.errors_of_writes);
    }
}

// The same while the store is open: a merge by copy meets the place, or goes there.
TEST(ChunkDamage, a_place_beyond_the_drive_ends_the_merge_that_meets_it) {
  for (const bool of_base : {false, true}) {
    blocks::memory device(torn_small);
    records_in<media::dram, indexes::cceh<media::dram>> records;
    content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
    const auto open = [&] { return records.open(device, tiny_by_copy); };
    {
      auto store = open();
      for (const auto& [name, volume] : right)
        static_cast<void>(store.volume(name, {.bytes = volume.blocks() * block}));
      auto disk = store.volume("a");
      std::uint64_t version = 0;
      const auto write = [&](std::uint64_t first, std::uint64_t count) {
        disk.write(first * block, data_of(first, count, ++version));
        right.at("a").write(first, count, version);
      };
      for (std::uint64_t b = 0; b < 40; b += 8) write(b, 8);
      write(2, 1);
      const auto places = beyond_the_drive::places_of(records);
      const auto head = std::ranges::find(places, disk.id() * (std::uint64_t{1} << 40), &beyond_the_drive::place::key);
      ASSERT_NE(head, places.end());
      (of_base ? head : std::next(head))->damage(beyond_the_drive::high_bit);
      // The merge that is to make room for the fourth fails; so the ring goes into a map.
      for (std::uint64_t i = 0; i < 12; ++i) write(4 + i % 4, 1);
      EXPECT_GT(store.stats().remaps, 0U);
      bytes got(block);
      EXPECT_PRED2(says, message_of([&] { disk.read((of_base ? 0 : 2) * block, got); }), "is damaged");
      for (std::uint64_t i = 0; i < 12; ++i) write(8 + i % 4, 2);
      disk.discard(0, 8 * block);
      right.at("a").write(0, 8, 0);
      write(1, 3);
    }
    EXPECT_EQ(answer(open, right, "mended"), "");
  }
}

// A file takes the size of blocks from the header. Without it, that is another one, and the index lies elsewhere.
TEST(ChunkDamage, a_lost_header_of_large_blocks_is_no_empty_drive_of_small_ones) {
  constexpr blocks::geometry large{.blocks = 128, .block_bytes = 16384, .atomic_bytes = 16384, .volatile_cache = false};
  constexpr blocks::geometry small{.blocks = 512, .block_bytes = 4096, .atomic_bytes = 4096, .volatile_cache = false};
  using store_type = stores::chunk_store<stores::records_on_blocks, blocks::memory>;
  blocks::memory device(large);
  {
    auto store = store_type::open(device, {.chunk_bytes = 4 * 16384});
    static_cast<void>(store.volume("a", {.bytes = 4 * 16384}));
  }
  device.content()[0] ^= std::byte{1};
  blocks::memory same(small);
  std::ranges::copy(device.content(), same.content().begin());
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(store_type::open(same, {.chunk_bytes = 4 * 16384})); }),
               "block 0 of device memory is damaged");
}

}  // namespace
}  // namespace pmlab::tests::chunk_damage_test
