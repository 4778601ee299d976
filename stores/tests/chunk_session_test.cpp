// Sessions of a chunk store: drive and records of one moment, of different ones, of copies that were both used; stores
// of releases before. The answer is a right one, or one error that names the older part.
#include <pmlab/base/checksum.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "stores/tests/chunk_moments.hpp"
#include "stores/tests/chunk_stores.hpp"
#include "stores/tests/crashing_drive.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests::chunk_session_test {
namespace {

using bytes = std::vector<std::byte>;

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
  try_one(in_memory, [&] { session_words(in_memory.medium).set({}); });
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
  bytes closed;  // the drive before the session that is not closed
  using store = stores::chunk_store<media::dram, blocks::faulty<blocks::memory>>;
  const auto fail = [&] {
    device.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
  };
  bytes got(block);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    device.stop();
    if (!closed.empty()) {
      const bytes now = content_of(device.inner());
      restore(device.inner(), closed);
      EXPECT_PRED2(says, message_of([&] { static_cast<void>(store::open(pool, device, tiny)); }),
                   "is of an older moment");
      restore(device.inner(), now);
    }
    if (round > 0) {
      fail();
      EXPECT_NE(message_of([&] { static_cast<void>(store::open(pool, device, tiny)); }), "");
      device.stop();
    }
    closed = round % 2 == 1 ? content_of(device.inner()) : bytes();
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

// Drive and records of a release before, which kept numbers without marks: each pair that it could leave opens once,
// and no other.
TEST(ChunkSessions, one_of_a_release_before_opens) {
  struct pair {
    std::uint64_t drive;
    std::uint64_t records;
    bool confirmed;
    bool opens;
  };
  const auto old_word = [](std::uint64_t value) { return value << 16 | (mix_bits(value) & 0xffff); };
  for (const pair& p : {pair{4, 4, true, true}, pair{3, 4, false, true}, pair{4, 4, false, true},
                        pair{3, 5, false, true}, pair{2, 5, false, false}, pair{3, 4, true, false},
                        pair{5, 4, true, false}, pair{5, 4, false, false}, pair{0, 1, false, true}}) {
    SCOPED_TRACE(std::to_string(p.drive) + ", " + std::to_string(p.records) +
                 (p.confirmed ? " confirmed" : " promised"));
    blocks::memory device(torn_small);
    records_in<media::dram, indexes::cceh<media::dram>> records;
    content right{{"a", expected_volume(40)}};
    const auto open = [&] { return records.open(device, tiny); };
    make_and_close(open, right);
    std::ranges::fill(device.content().subspan(128, 128), std::byte{});
    if (p.drive != 0) {
      const std::uint64_t words[2] = {p.drive, hash_of_bytes(&p.drive, sizeof p.drive)};
      std::memcpy(device.content().data() + 128 + p.drive % 2 * 64, words, sizeof words);
    }
    session_words(records.medium).set({old_word(p.records << 1 | (p.confirmed ? 1 : 0)), 0});
    const bytes before = content_of(device);
    const std::string found = answer(open, right, "a pair of before");
    EXPECT_EQ(found.empty(), p.opens) << found;
    if (!p.opens) continue;
    EXPECT_EQ(answer(open, right, "of today"), "");
    restore(device, before);
    EXPECT_PRED2(says, answer(open, right, "the drive of before"), "of an older moment");
  }
}
TEST(ChunkSessions, one_of_a_release_before_on_a_key_value_device_opens) {
  blocks::memory device(torn_small);
  records_in_pairs<2100> records;
  content right{{"a", expected_volume(40)}};
  const auto open = [&] { return records.open(device, tiny); };
  make_and_close(open, right);
  const std::string key(8, '\0');
  const std::uint64_t number = 6;
  const std::uint64_t value = number << 1 | 1;
  struct {
    layout::pairs_header header;
    std::uint64_t session;
    std::uint64_t checksum;
  } old{};
  static_assert(sizeof old == 88);
  ASSERT_EQ(records.pairs->get(key, 0, {reinterpret_cast<std::byte*>(&old), sizeof old}), 96U);
  old.session = value << 16 | (mix_bits(value) & 0xffff);
  old.checksum = hash_of_bytes(&old, 80);
  ASSERT_NE(records.pairs->put(key, {reinterpret_cast<const std::byte*>(&old), sizeof old}), stores::kv_outcome::full);
  std::ranges::fill(device.content().subspan(128, 128), std::byte{});
  const std::uint64_t words[2] = {number, hash_of_bytes(&number, sizeof number)};
  std::memcpy(device.content().data() + 128, words, sizeof words);
  const bytes before = content_of(device);
  EXPECT_EQ(answer(open, right, "of before"), "");
  EXPECT_EQ(answer(open, right, "of today"), "");
  restore(device, before);
  EXPECT_PRED2(says, answer(open, right, "the drive of before"), "of an older moment");
}

// A process dies while the drive has its moment in the cache; the next opening is cut off by a power failure.
TEST(ChunkSessions, what_the_cache_of_the_drive_has_is_durable_before_it_is_known) {
  using drive = blocks::faulty<crashing_drive>;
  using store = stores::chunk_store<media::dram, drive>;
  drive device(1U, torn_small);
  media::dram pool;
  { auto made = store::open(pool, device, tiny); }
  const session_words session(pool);
  const bytes closed = device.inner().content();
  const auto closed_words = session.now();
  session_words::words begun{};
  bytes in_use;
  {
    auto opened = store::open(pool, device, tiny);
    in_use = device.inner().content();
    begun = {closed_words[0], session.now()[1]};
  }
  blocks::buffer block_0(block);
  std::ranges::copy(std::span(in_use).first(block), block_0.data());
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    device.inner().restore(closed);
    session.set(begun);
    blocks::synchronous(device).write(0, block_0.bytes());
    device.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
    EXPECT_NE(message_of([&] { static_cast<void>(store::open(pool, device, tiny)); }), "");
    device.stop();
    splitmix64 random(seed);
    device.inner().restore(device.inner().after_crash(random));
    EXPECT_EQ(message_of([&] { static_cast<void>(store::open(pool, device, tiny)); }), "") << "seed " << seed;
  }
}

// A drive that can be read and refuses writes: the error names the cause, and a copy of the drive opens.
TEST(ChunkSessions, a_drive_that_refuses_writes_is_named) {
  const auto try_one = [](auto& records) {
    blocks::faulty<blocks::memory> device(1U, torn_small);
    content right{{"a", expected_volume(40)}};
    const auto open = [&] { return records.open(device, tiny); };
    make_and_close(open, right);
    for (const auto what : {blocks::operation::write_durable, blocks::operation::flush}) {
      device.inject({.times = 1000, .what = what});
      const std::string found = answer(open, right, "no writes");
      EXPECT_PRED2(says, found, "cannot begin a session, which is a write");
      EXPECT_PRED2(says, found, "takes writes");
      device.stop();
      EXPECT_EQ(answer(open, right, "a copy"), "");
    }
  };
  records_in<media::dram, indexes::cceh<media::dram>> in_memory;
  try_one(in_memory);
  records_in<stores::records_on_blocks, void> on_blocks;
  try_one(on_blocks);
  records_in_pairs<2100> on_kv;
  try_one(on_kv);
}

// Records that cannot be told that the drive has the moment: the opening fails, and the next one goes on.
TEST(ChunkSessions, one_that_the_records_have_no_space_to_confirm_is_an_error) {
  using store = stores::chunk_store<stores::records_on_kv<failing_pairs>, blocks::faulty<blocks::memory>>;
  blocks::faulty<blocks::memory> device(1U, torn_small);
  records_in_pairs<2100> records;
  content right{{"a", expected_volume(40)}};
  make_and_close([&] { return records.open(device, tiny); }, right);
  failing_pairs pairs{*records.pairs, failing_pairs::when::full, 1};
  const auto open = [&] { return store::open(pairs, device, tiny); };
  EXPECT_PRED2(says, answer(open, right, "no space to confirm"), "is full");
  // The next one is cut off when it has begun its own.
  device.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
  EXPECT_NE(answer(open, right, "a drive that fails"), "");
  device.stop();
  EXPECT_EQ(answer(open, right, "with space"), "");
  // One without space to begin a session opens, so that volumes can be removed.
  pairs.next = failing_pairs::when::full;
  EXPECT_EQ(answer(open, right, "no space to begin"), "");
}

// A release of before there were sessions uses the store after it was closed, and a crash tears a place of the index.
TEST(ChunkSessions, a_place_that_a_release_without_them_left_torn_is_no_damage) {
  constexpr std::uint32_t size = 2 * block;
  blocks::memory device(blocks::geometry{.blocks = 200, .block_bytes = size, .atomic_bytes = 0});
  records_in<stores::records_on_blocks, void> records;
  const auto open = [&] { return records.open(device, {.chunk_bytes = 8 * size, .ring = 3}); };
  const auto write = [](auto& store) {
    auto disk = store.volume("a", {.bytes = 8 * size});
    for (int i = 1; i < 5; ++i) disk.write(0, bytes(2 * size, static_cast<std::byte>(i)));
  };
  {
    auto store = open();
    write(store);
  }
  const bytes closed = content_of(device);
  bytes used;
  {
    auto store = open();
    write(store);
    used = content_of(device);
  }
  std::copy_n(closed.begin(), size, used.begin());  // block 0: it has a session that was closed
  layout::region_header h;
  std::memcpy(static_cast<void*>(&h), used.data() + sizeof(layout::drive_header), sizeof h);
  for (const bool is_used : {false, true}) {
    restore(device, is_used ? used : closed);
    device.content()[(1 + 2 * std::size_t{h.volume_blocks}) * size + 90] ^= std::byte{4};
    const std::string error = message_of([&] { static_cast<void>(open()); });
    EXPECT_EQ(error.find("index block") == std::string::npos, is_used) << error;
  }
}

// Behind the largest number, the moments of a store in use and of a closed one still differ.
TEST(ChunkSessions, have_no_end) {
  using stores::detail::moment;
  blocks::memory device(torn_small);
  records_in<media::dram, indexes::cceh<media::dram>> records;
  content right{{"a", expected_volume(40)}};
  const auto open = [&] { return records.open(device, tiny); };
  make_and_close(open, right);
  const moment last(77, moment::largest_number - 1);
  layout::drive_session on_drive{last.word(), 0, 9, 0};
  on_drive.checksum = on_drive.right_checksum();
  std::memcpy(device.content().data() + layout::drive_session::offset_of(0), &on_drive, sizeof on_drive);
  const std::uint64_t word = layout::kept_moment{last}.word();
  session_words(records.medium).set({word, word});
  std::vector<bytes> drives{content_of(device)};
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(answer(open, right, "opening"), "");
    drives.push_back(content_of(device));
    layout::session<blocks::memory> now(device);
    now.read();
    EXPECT_TRUE(now.was_closed());
    {
      auto store = open();
      now.read();
      EXPECT_FALSE(now.was_closed());
    }
  }
  for (const bytes& older : drives) {
    const bytes newest = content_of(device);
    restore(device, older);
    EXPECT_PRED2(says, answer(open, right, "an older drive"), "moment");
    restore(device, newest);
  }
  EXPECT_EQ(answer(open, right, "the newest"), "");
}

// The newest place of the session rots while the store is in use: what the place before says is not true any more.
TEST(ChunkSessions, a_damaged_one_does_not_say_that_the_store_was_closed) {
  constexpr std::uint32_t size = 2 * block;
  blocks::memory device(blocks::geometry{.blocks = 200, .block_bytes = size, .atomic_bytes = 0});
  records_in<stores::records_on_blocks, void> records;
  const auto open = [&] { return records.open(device, {.chunk_bytes = 8 * size, .ring = 3}); };
  { auto made = open(); }
  const bytes closed = content_of(device);
  bytes in_use;
  {
    auto store = open();
    auto disk = store.volume("a", {.bytes = 8 * size});
    for (int i = 1; i < 5; ++i) disk.write(0, bytes(2 * size, static_cast<std::byte>(i)));
    in_use = content_of(device);
  }
  layout::region_header h;
  std::memcpy(static_cast<void*>(&h), in_use.data() + sizeof(layout::drive_header), sizeof h);
  unsigned changed = 0;
  for (std::size_t place = 0; place < 2; ++place) {
    const std::size_t at = layout::drive_session::offset_of(place);
    if (std::equal(in_use.begin() + static_cast<std::ptrdiff_t>(at),
                   in_use.begin() + static_cast<std::ptrdiff_t>(at + 16),
                   closed.begin() + static_cast<std::ptrdiff_t>(at)))
      continue;
    ++changed;
    restore(device, in_use);
    device.content()[at] ^= std::byte{1};
    device.content()[(1 + 2 * std::size_t{h.volume_blocks}) * size + 90] ^= std::byte{4};  // as a torn write
    EXPECT_EQ(message_of([&] { static_cast<void>(open()); }), "");
  }
  EXPECT_EQ(changed, 1U);
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
        EXPECT_PRED2(says, found, "of an older moment than");
      }
    }
}

// Drive and records are copied together, both pairs are used once, and then mixed: their moments have the same number.
TYPED_TEST(ChunkMoments, of_two_copies_that_were_both_used_are_an_error) {
  const temporary_folder folder;
  blocks::memory device(torn_small);
  restore(TypeParam::flash(), bytes(TypeParam::flash().content().size()));
  const std::string path = folder.file("pool");
  content right{{"a", expected_volume(40)}};
  splitmix64 random(3);
  std::uint64_t version = 0;
  const auto use = [&] {
    TypeParam records(path);
    auto store = records.open(device);
    make(store, right, random, version, 30);
  };
  const auto keep = [&](const std::string& name) {
    std::filesystem::copy_file(path, folder.file(name));
    return moment{folder.file(name), content_of(device), content_of(TypeParam::flash()), right};
  };
  const auto put_back = [&](const moment& of_records, const moment& of_drive) {
    std::filesystem::copy_file(of_records.pool, path, std::filesystem::copy_options::overwrite_existing);
    restore(TypeParam::flash(), of_records.flash);
    restore(device, of_drive.drive);
    right = of_records.right;
  };
  use();
  const moment first = keep("first");
  use();
  const moment one = keep("one");
  put_back(first, first);
  use();
  const moment other = keep("other");
  for (const auto& [records_of, drive_of] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    put_back(*records_of, *drive_of);
    TypeParam records(path);
    const std::string found = answer([&] { return records.open(device); }, records_of->right, "a mixed pair");
    EXPECT_PRED2(says, found, "of two copies that were both used");
  }
  put_back(one, one);
  TypeParam records(path);
  EXPECT_EQ(answer([&] { return records.open(device); }, one.right, "a pair"), "");
}

}  // namespace
}  // namespace pmlab::tests::chunk_session_test
