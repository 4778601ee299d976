// Damage of a chunk store: every bit of its headers and index blocks flipped; drive and records of different moments; a
// store of before there were sessions. The answer is a right one, or one error that names the damage.
//
// PMLAB_TEST_STRIDE=1 flips each bit; by default each test opens its store a few thousand times.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "stores/tests/chunk_stores.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::tests {
namespace {

namespace layout = stores::detail::chunk_store;
using bytes = std::vector<std::byte>;
using content = std::map<std::string, expected_volume>;

[[nodiscard]] bytes content_of(blocks::memory& device) {
  const auto all = device.content();
  return {all.begin(), all.end()};
}
void restore(blocks::memory& device, const bytes& to) { std::ranges::copy(to, device.content().begin()); }

// Opens, and returns the error; each volume is right, if there is none.
template <class Open>
[[nodiscard]] std::string answer(Open&& open, const content& right, const std::string& what) {
  return message_of([&] {
    auto store = open();
    for (const auto& [name, volume] : right) {
      bytes got(volume.blocks() * block);
      store.volume(name).read(0, got);
      EXPECT_TRUE(got == volume.read(0, volume.blocks())) << what << ": volume " << name << " is wrong in silence";
    }
    const auto report = store.check();
    EXPECT_TRUE(report.ok()) << what << ": " << report.violations.front();
  });
}

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

constexpr blocks::geometry torn_small{.blocks = 200, .block_bytes = block, .atomic_bytes = 0, .volatile_cache = true};
// A drive that may tear a block into sectors.
constexpr blocks::geometry sectors{.blocks = 200, .block_bytes = 2 * block, .atomic_bytes = 0, .volatile_cache = true};

[[nodiscard]] layout::word& session_in(media::dram& medium) {
  const auto root = medium.named_root("chunk_store", "chunk_store", 1).word->load();
  return medium.resolve(media::pointer<layout::superblock>(root))->volumes.front().session;
}

template <class Store>
void make(Store& store, content& right, splitmix64& random, std::uint64_t& version, int steps) {
  for (const auto& [name, volume] : right) static_cast<void>(store.volume(name, {.bytes = volume.blocks() * block}));
  operate(store, right, random, steps, version);
}

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
    region.load(false, true);
    for (const char c : {'a', 'b', 'c'}) {
      layout::index_change change;
      {
        const auto guard = region.guard(2);
        std::memset(region.edit(2), c, index.payload_bytes());
        region.add(2, change);
      }
      region.settle(change);
    }
  };
  write();
  const bytes sound = content_of(device);
  for (std::uint64_t place = 0; place < 2; ++place) {
    restore(device, sound);
    device.content()[index.place(2, place) * 2 * block + 700] ^= std::byte{1};
    const bytes damaged = content_of(device);
    layout::index_region<blocks::memory> closed(device, index, free);
    EXPECT_NE(message_of([&] { closed.load(false, true); }).find("index block 2"), std::string::npos);
    EXPECT_TRUE(content_of(device) == damaged);
    layout::index_region<blocks::memory> cut_off(device, index, free);
    cut_off.load(false, false);
    EXPECT_EQ(cut_off.torn_places(), 1U);
    // Its place is forgotten, and no damage at a later opening.
    layout::index_region<blocks::memory> again(device, index, free);
    again.load(false, true);
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
  layout::word& session = session_in(records.medium);
  const std::uint64_t known = session.load();
  flip(device, 1, 1, right, open, [&] { session.store(known); });
  // The same for the word of the records.
  const bytes sound = content_of(device);
  const std::uint64_t sound_word = session.load();
  for (unsigned bit = 0; bit < 64; ++bit) {
    restore(device, sound);
    session.store(sound_word ^ std::uint64_t{1} << bit);
    const std::string error = answer(open, right, "bit of the word");
    EXPECT_NE(error.find("the session of the chunk store in dram is damaged"), std::string::npos) << error;
  }
}

// ---- sessions

// A store of before there were sessions opens, and has one then.
TEST(ChunkSessions, a_store_of_before_them_opens) {
  splitmix64 random(4);
  std::uint64_t version = 0;
  const content empty{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
  const auto forget = [](blocks::memory& device) {
    std::ranges::fill(device.content().subspan(128, 128), std::byte{});
  };
  const auto has_one = [](blocks::memory& device) { return device.content()[128] != std::byte{}; };
  const auto try_one = [&](auto& records, auto&& forget_in_records) {
    blocks::memory device(torn_small);
    content right = empty;
    const auto open = [&] { return records.open(device, tiny); };
    {
      auto store = open();
      make(store, right, random, version, 40);
    }
    ASSERT_TRUE(has_one(device));
    forget(device);
    forget_in_records();
    ASSERT_EQ(answer(open, right, "without a session"), "");
    ASSERT_TRUE(has_one(device));
    ASSERT_EQ(answer(open, right, "with a session"), "");
  };
  records_in<media::dram, indexes::cceh<media::dram>> in_memory;
  try_one(in_memory, [&] { session_in(in_memory.medium).store(0); });
  records_in<stores::records_on_blocks, void> on_blocks;
  try_one(on_blocks, [] {});
  records_in_pairs<2100> on_kv;
  try_one(on_kv, [&] {
    const std::string key(8, '\0');
    bytes header(sizeof(layout::pairs_header));
    ASSERT_EQ(on_kv.pairs->get(key, 0, header), sizeof(layout::pairs_header_and_session));
    ASSERT_NE(on_kv.pairs->put(key, header), stores::kv_outcome::full);
  });
}

// The drive fails between the promise of a session and its confirmation, at each opening and closing.
TEST(ChunkSessions, one_that_was_promised_only_is_no_damage) {
  blocks::faulty<blocks::memory> device(1U, torn_small);
  media::dram pool;
  using store = stores::chunk_store<media::dram, blocks::faulty<blocks::memory>>;
  const auto fail = [&] {
    device.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
  };
  bytes got(block);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round > 0) {
      fail();
      EXPECT_NE(message_of([&] { static_cast<void>(store::open(pool, device, tiny)); }), "");
      device.stop();
    }
    auto opened = store::open(pool, device, tiny);
    auto disk = opened.volume("a", {.bytes = 8 * block});
    disk.write(0, data_of(0, 1, 5));
    disk.read(0, got);
    EXPECT_TRUE(got == data_of(0, 1, 5));
    if (round % 2 == 1) fail();  // closing
  }
  device.stop();
  EXPECT_TRUE(store::open(pool, device, tiny).check().ok());
}

// ---- drive and records of different moments

// Records in a pool file, and the same of a key-value device.
struct in_pool {
  using store = stores::chunk_store<media::pmem, blocks::memory>;
  explicit in_pool(const std::string& path)
      : pool(path, std::filesystem::exists(path) ? media::pmem_options{}
                                                 : media::pmem_options{.create_bytes = std::size_t{16} << 20}) {}
  [[nodiscard]] store open(blocks::memory& device) { return store::open(pool, device, tiny); }
  // Besides the pool and the drive: none.
  static blocks::memory& flash() {
    static blocks::memory drive(blocks::geometry{.blocks = 1, .block_bytes = 512});
    return drive;
  }
  media::pmem pool;
};
struct in_pairs {
  using pairs_of = stores::kv_device<media::pmem, blocks::memory>;
  using store = stores::chunk_store<stores::records_on_kv<pairs_of>, blocks::memory>;
  explicit in_pairs(const std::string& path)
      : pool(path, std::filesystem::exists(path) ? media::pmem_options{}
                                                 : media::pmem_options{.create_bytes = std::size_t{16} << 20}) {}
  [[nodiscard]] store open(blocks::memory& device) {
    pairs.reset(new pairs_of(pairs_of::open(pool, flash(),
                                            {.unit_bytes = 64,
                                             .superblock_bytes = 16384,
                                             .over_provisioning = 0.2,
                                             .buffer_bytes = 16384,
                                             .largest_value = 4096})));
    return store::open(*pairs, device, tiny);
  }
  // One flash for all, whose content is part of a moment.
  static blocks::memory& flash() {
    static blocks::memory drive(blocks::geometry{.blocks = 1025, .block_bytes = 512});
    return drive;
  }
  media::pmem pool;
  std::unique_ptr<pairs_of> pairs{};
};

struct moment {
  std::string pool;
  bytes drive;
  bytes flash;
  content right;
};

template <class Records>
class ChunkMoments : public ::testing::Test {};
using placed_records = ::testing::Types<in_pool, in_pairs>;
TYPED_TEST_SUITE(ChunkMoments, placed_records);

TYPED_TEST(ChunkMoments, that_do_not_belong_together_are_an_error) {
  const temporary_folder folder;
  blocks::memory device(torn_small);
  restore(TypeParam::flash(), bytes(TypeParam::flash().content().size()));
  const std::string path = folder.file("pool");
  content right{{"a", expected_volume(40)}, {"b", expected_volume(16)}};
  splitmix64 random(3);
  std::uint64_t version = 0;
  std::vector<moment> moments;
  const auto keep = [&] {
    const std::string copy = folder.file("pool" + std::to_string(moments.size()));
    std::filesystem::copy_file(path, copy);
    moments.push_back({copy, content_of(device), content_of(TypeParam::flash()), right});
  };
  for (int round = 0; round < 4; ++round) {
    TypeParam records(path);
    {
      auto store = records.open(device);
      make(store, right, random, version, 40);
      if (round == 3) keep();  // as after a crash
    }
    keep();
  }
  for (std::size_t r = 0; r < moments.size(); ++r)
    for (std::size_t d = 0; d < moments.size(); ++d) {
      SCOPED_TRACE("records of moment " + std::to_string(r) + ", drive of " + std::to_string(d));
      std::filesystem::copy_file(moments[r].pool, path, std::filesystem::copy_options::overwrite_existing);
      restore(TypeParam::flash(), moments[r].flash);
      restore(device, moments[d].drive);
      TypeParam records(path);
      const std::string found = answer([&] { return records.open(device); }, moments[r].right, "a pair");
      if (r == d) {
        EXPECT_EQ(found, "");
      } else {
        EXPECT_NE(found.find("of an older moment than"), std::string::npos) << found;
      }
    }
}

}  // namespace
}  // namespace pmlab::tests
