// Chunk stores on drives that are full: half of the data is erased, and two fifths of the first capacity can be written
// again, for every size that `open` accepts; in bounded time. A merge that would free blocks and fails ends the write.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>

#include "stores/tests/chunk_stores.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace pmlab::tests::chunk_full_test {
namespace {

template <class Records>
class ChunkFull : public ::testing::Test {};
using kinds = ::testing::Types<records_in<media::dram, indexes::cceh<media::dram>>,
                               records_in<media::dram, indexes::cceh<media::dram>, by_copy>,
                               records_in<stores::records_on_blocks, void>, records_in_pairs<2100>>;
TYPED_TEST_SUITE(ChunkFull, kinds);

struct sizes {
  std::uint64_t blocks = 0;  // blocks of the drive
  std::uint32_t chunk = 0;   // blocks
  std::uint32_t ring = 0;
};
// How half of the data goes, and where the new data goes.
enum class erasing { whole_chunks, whole_chunks_for_others, half_of_each_chunk, every_second_block, a_volume };

[[nodiscard]] std::string text_of(const sizes& s, erasing how) {
  return std::to_string(s.blocks) + " blocks, chunks of " + std::to_string(s.chunk) + ", ring " +
         std::to_string(s.ring) + ", erasing " + std::to_string(static_cast<int>(how));
}

// A store on a drive of some size, with two volumes that are larger than the drive.
template <class Store>
struct filled {
  Store& store;
  std::uint64_t blocks_of;
  std::uint64_t version = 0;
  std::map<std::string, expected_volume> right{
      {"a", expected_volume(blocks_of)}, {"b", expected_volume(blocks_of)}, {"c", expected_volume(blocks_of)}};

  void open_volumes() {
    for (const auto& [name, volume] : right) static_cast<void>(store.volume(name, {.bytes = blocks_of * block}));
  }
  // False: the drive is full.
  [[nodiscard]] bool write(const std::string& name, std::uint64_t first, std::uint64_t count) {
    try {
      store.volume(name).write(first * block, data_of(first, count, ++version));
    } catch (const stores::chunk_store_full&) {
      return false;
    }
    right.at(name).write(first, count, version);
    return true;
  }
  void discard(const std::string& name, std::uint64_t first, std::uint64_t count) {
    store.volume(name).discard(first * block, count * block);
    right.at(name).write(first, count, 0);
  }
};

template <class Records>
void fill_and_erase(const sizes& s, erasing how, splitmix64& random, std::uint64_t& accepted) {
  SCOPED_TRACE(text_of(s, how));
  Records records;
  blocks::memory device(blocks::geometry{.blocks = s.blocks, .block_bytes = block});
  const stores::chunk_store_options options{.chunk_bytes = s.chunk * block, .ring = s.ring};
  const std::string refusal = message_of([&] { static_cast<void>(records.open(device, options)); });
  if (!refusal.empty()) {
    ASSERT_PRED2(says, refusal, "chunk store");
    return;
  }
  ++accepted;
  auto store = records.open(device, options);
  filled<decltype(store)> f{.store = store, .blocks_of = (s.blocks / s.chunk + 2) * s.chunk};
  f.open_volumes();
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t unit = std::max(1U, s.chunk / 2);
  // One volume after the other, each a piece, and now and then an older piece.
  std::vector<std::pair<std::string, std::uint64_t>> pieces;
  for (std::uint64_t at = 0; at + unit <= f.blocks_of; at += unit) {
    const std::string name = at / s.chunk % 2 == 0 ? "a" : "b";
    if (!f.write(name, at, unit)) break;
    pieces.emplace_back(name, at);
    const auto& [older, first] = pieces[random.below(pieces.size())];
    static_cast<void>(f.write(older, first + random.below(unit), 1));
  }
  const std::uint64_t first_capacity = pieces.size() * unit;
  ASSERT_GT(first_capacity, 0U);
  ASSERT_NO_FATAL_FAILURE(expect_equal(store, f.right));

  // Half of the data goes.
  std::vector<std::pair<std::string, std::uint64_t>> again;  // where blocks may be written
  const auto free_again = [&](const std::string& name, std::uint64_t first, std::uint64_t count) {
    f.discard(name, first, count);
    for (std::uint64_t b = first; b < first + count; ++b) again.emplace_back(name, b);
  };
  std::uint64_t erased = 0;
  if (how == erasing::a_volume) {
    store.remove_volume("a");
    f.right.at("a") = expected_volume(f.blocks_of);
    f.open_volumes();
    for (const auto& [name, first] : pieces)
      if (name == "a") {
        erased += unit;
        for (std::uint64_t b = first; b < first + unit; ++b) again.emplace_back(name, b);
      }
  } else {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto& [name, first] = pieces[i];
      if (how == erasing::every_second_block) {
        for (std::uint64_t b = first; b < first + unit; b += 2) free_again(name, b, 1);
      } else if (how == erasing::half_of_each_chunk ? first % s.chunk == 0 : first / s.chunk % 4 < 2) {
        free_again(name, first, unit);
      }
    }
    erased = again.size();
  }
  ASSERT_NO_FATAL_FAILURE(expect_equal(store, f.right));
  if (2 * erased < first_capacity) return;  // it is one chunk or two

  std::uint64_t written = 0;
  for (const auto& [name, b] : again) {
    const bool elsewhere = how == erasing::whole_chunks_for_others;
    if (!f.write(elsewhere ? "c" : name, elsewhere ? written : b, 1)) break;
    ++written;
  }
  EXPECT_GE(written, 2 * first_capacity / 5) << erased << " of " << first_capacity << " were erased";
  ASSERT_NO_FATAL_FAILURE(expect_equal(store, f.right));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

TYPED_TEST(ChunkFull, takes_two_fifths_again_when_half_is_erased) {
  splitmix64 random(4);
  std::uint64_t accepted = 0;
  for (const std::uint64_t blocks_of : {2U, 3U, 5U, 9U, 20U, 40U, 100U, 257U, 700U})
    for (const std::uint32_t chunk : {1U, 2U, 8U, 32U, 256U})
      for (const std::uint32_t ring : {1U, 3U, 16U})
        for (const auto how : {erasing::whole_chunks, erasing::whole_chunks_for_others, erasing::half_of_each_chunk,
                               erasing::every_second_block, erasing::a_volume}) {
          fill_and_erase<TypeParam>({blocks_of, chunk, ring}, how, random, accepted);
          if (this->HasFatalFailure()) return;
        }
  EXPECT_GT(accepted, 150U);
}

// ---- removals

// The last operation on a removed volume ends while another thread has the lock of volumes: its blocks are found.
TEST(ChunkFullAndRemoved, blocks_of_a_removed_volume_are_used_though_its_last_operation_could_not_free_them) {
  using store_type = stores::chunk_store<stores::records_on_kv<failing_pairs>, blocks::memory>;
  for (const bool removes : {true, false}) {
    SCOPED_TRACE(removes);
    blocks::memory device(torn);
    records_in_pairs<2100> records;
    { auto made = records.open(device, tiny); }
    failing_pairs pairs{*records.pairs};
    auto store = store_type::open(pairs, device, tiny);
    auto first = store.volume("first", {.bytes = 8 * block});
    first.write(0, data_of(0, 8, 1));
    filled<store_type> all{.store = store, .blocks_of = 1024};
    all.open_volumes();
    std::uint64_t chunks = 0;
    while (all.write("a", chunks * 8, 8)) ++chunks;
    stores::chunk_queue queue(store, 4);
    blocks::buffer data(block);
    ASSERT_TRUE(queue.write(first, 0, data.bytes(), 1));
    ASSERT_TRUE(store.remove_volume("first"));
    pairs.meanwhile = [&] {
      std::thread([&] {
        stores::chunk_completion done;
        EXPECT_EQ(queue.reap({&done, 1}, 1), 1U);
      }).join();
    };
    if (removes)
      ASSERT_TRUE(store.remove_volume("c"));
    else
      static_cast<void>(store.volume("d", {.bytes = block}));
    ASSERT_EQ(queue.in_flight(), 0U);
    EXPECT_TRUE(all.write("a", chunks * 8, 8));
    const auto report = store.check();
    EXPECT_TRUE(report.ok()) << report.violations.front();
  }
}

// A drive whose next durable write of an index block waits, once.
struct held_drive : blocks::memory {
  using blocks::memory::memory;
  std::atomic<bool> holds_next{false};
  std::binary_semaphore is_held{0};
  std::binary_semaphore may_go_on{0};

  struct queue {
    queue(held_drive& of, unsigned depth) : of_(of), inner_(of, depth) {}
    std::size_t submit(std::span<const blocks::request> all) {
      if (all.front().of == blocks::stream::index && of_.holds_next.exchange(false)) {
        of_.is_held.release();
        of_.may_go_on.acquire();
      }
      return inner_.submit(all);
    }
    std::size_t reap(std::span<blocks::completion> done, std::size_t least) { return inner_.reap(done, least); }
    [[nodiscard]] std::size_t in_flight() const noexcept { return inner_.in_flight(); }
    [[nodiscard]] unsigned depth() const noexcept { return inner_.depth(); }

   private:
    held_drive& of_;
    blocks::memory::queue inner_;
  };

  // A thread that makes a volume, and holds the lock of volumes until `may_go_on`.
  template <class Store>
  [[nodiscard]] std::thread make_volume(Store& store, const std::string& name) {
    holds_next = true;
    std::thread maker([&store, name] { static_cast<void>(store.volume(name, {.bytes = block})); });
    is_held.acquire();
    return maker;
  }
};

// The same, and the other thread has it still: the write waits for it.
TEST(ChunkFullAndRemoved, a_write_finds_blocks_of_a_removed_volume_while_a_volume_is_made) {
  held_drive device(torn);
  auto store = stores::chunk_store<stores::records_on_blocks, held_drive>::open(device, tiny);
  auto first = store.volume("first", {.bytes = 8 * block});
  first.write(0, data_of(0, 8, 1));
  filled<decltype(store)> all{.store = store, .blocks_of = 1024};
  all.open_volumes();
  std::uint64_t chunks = 0;
  while (all.write("a", chunks * 8, 8)) ++chunks;
  stores::chunk_queue queue(store, 4);
  blocks::buffer data(block);
  auto disk = store.volume("a");
  ASSERT_TRUE(queue.write(first, 0, data.bytes(), 1));
  ASSERT_TRUE(store.remove_volume("first"));
  std::thread maker = device.make_volume(store, "other");
  stores::chunk_completion done;
  ASSERT_EQ(queue.reap({&done, 1}, 1), 1U);
  // Longer than a write waits for space that may never come.
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    device.may_go_on.release();
  });
  EXPECT_EQ(message_of([&] { disk.write(chunks * 8 * block, data_of(chunks * 8, 8, 1)); }), "");
  later.join();
  maker.join();
  const auto report = store.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
}

// A volume that is made beside another one takes the number of the removed one. What was removed is gone when the maker
// has returned, though no operation comes after it.
TEST(ChunkFullAndRemoved, a_number_that_is_free_is_found_while_another_volume_is_made) {
  for (const bool makes : {true, false}) {
    SCOPED_TRACE(makes);
    held_drive device(torn);
    auto store = stores::chunk_store<stores::records_on_blocks, held_drive>::open(device, tiny);
    auto first = store.volume("first", {.bytes = 8 * block});
    unsigned made = 0;
    while (message_of([&] { static_cast<void>(store.volume(std::to_string(made), {.bytes = block})); }).empty()) ++made;
    ASSERT_TRUE(store.remove_volume("0"));
    stores::chunk_queue queue(store, 4);
    blocks::buffer data(block);
    ASSERT_TRUE(queue.write(first, 0, data.bytes(), 1));
    ASSERT_TRUE(store.remove_volume("first"));
    std::thread maker = device.make_volume(store, "other");
    stores::chunk_completion done;
    ASSERT_EQ(queue.reap({&done, 1}, 1), 1U);
    std::string error;
    std::thread second;
    if (makes) {
      second =
          std::thread([&] { error = message_of([&] { static_cast<void>(store.volume("new", {.bytes = block})); }); });
      // It waits for the lock by now, or looks later for what is free.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    device.may_go_on.release();
    maker.join();
    if (makes) second.join();
    EXPECT_EQ(error, "");
    EXPECT_EQ(store.stats().volumes, makes ? made + 1 : made);
    EXPECT_EQ(store.stats().chunks, 0U);
  }
}

// ---- a queue that another thread moves on

// The thread holds the queue meanwhile, and with it all operations of its owner: it does not wait for space.
TEST(ChunkFullAndHelped, a_thread_that_helps_does_not_wait_for_space) {
  blocks::memory device(torn);
  records_in<media::dram, indexes::cceh<media::dram>> records;
  auto store = records.open(device, tiny);
  filled<decltype(store)> all{.store = store, .blocks_of = 1024};
  all.open_volumes();
  std::uint64_t chunks = 0;
  while (all.write("a", chunks * 8, 8)) ++chunks;
  auto disk = store.volume("a");
  // A read that has not ended keeps the blocks of its chunk that are replaced.
  const auto keeper = store.begin_read(store.number_of(disk), 0, {0, 1});
  stores::chunk_queue queue(store, 4);
  blocks::buffer read(block);
  blocks::buffer data(block);
  for (std::uint64_t i = 0; i < 64 && store.stats().free_bytes > 0; ++i) ASSERT_TRUE(all.write("a", i % 8, 1));
  ASSERT_EQ(store.stats().free_bytes, 0U);
  ASSERT_TRUE(queue.read(disk, 0, read.bytes(), 1));
  ASSERT_TRUE(queue.write(disk, 8 * block, data.bytes(), 2));
  const auto began = std::chrono::steady_clock::now();
  while (queue.go_on_for_another()) continue;
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  std::array<stores::chunk_completion, 2> done;
  store.end_read(keeper);
  ASSERT_EQ(queue.reap(done, 2), 2U);
  for (const stores::chunk_completion& c : done) EXPECT_EQ(c.error, std::errc{}) << c.tag;
}

template <class Records>
class ChunkFullByCopy : public ::testing::Test {};
using kinds_by_copy = ::testing::Types<records_in<media::dram, indexes::cceh<media::dram>, by_copy>,
                                       records_in<stores::records_on_blocks, void>, records_in_pairs<2100>>;
TYPED_TEST_SUITE(ChunkFullByCopy, kinds_by_copy);

// A read of a chunk, under way on a queue that its thread does not reap, and a merge of the chunk that waits for it: on
// the queue of the store's own, whose write filled the ring.
template <class Store>
struct merge_behind_a_reader {
  stores::chunk_queue<Store> reader;
  blocks::buffer read{8 * block};

  merge_behind_a_reader(Store& store, std::string_view volume) : reader(store, 1) {
    auto disk = store.volume(volume);
    EXPECT_TRUE(reader.read(disk, 0, read.bytes(), 1));
    // One entry below a full ring, its merge begins.
    for (std::uint32_t i = 0; i + 1 < tiny.ring; ++i) disk.write(i * block, data_of(i, 1, 1000));
  }
  void expect_it_was_read() {
    std::array<stores::chunk_completion, 1> done;
    ASSERT_EQ(reader.reap(done, 1), 1U);
    EXPECT_EQ(done[0].error, std::errc{});
    EXPECT_TRUE(std::ranges::equal(read.bytes(), data_of(0, 8, 1)));
  }
};

TYPED_TEST(ChunkFullByCopy, a_write_that_waits_for_room_moves_on_what_the_merge_of_an_idle_queue_waits_for) {
  TypeParam records;
  blocks::memory device(torn);
  auto store = records.open(device, tiny);
  auto disk = store.volume("a", {.bytes = 8 * block});
  disk.write(0, data_of(0, 8, 1));
  merge_behind_a_reader behind(store, "a");
  // Who helps and changes nothing has counted nothing, so that waiting threads do not wake each other for ever.
  const std::uint64_t changes = store.changes();
  static_cast<void>(store.help_merges());
  EXPECT_EQ(store.changes(), changes);
  stores::chunk_queue queue(store, 4);
  std::array<stores::chunk_completion, 1> done;
  std::map<std::string, expected_volume> right{{"a", expected_volume(8)}};
  right.at("a").write(0, 8, 1);
  right.at("a").write(0, tiny.ring - 1, 1000);
  std::array<blocks::buffer, 4> data;
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    const std::uint64_t at = 2 + i;
    data[i] = blocks::buffer(block);
    std::ranges::copy(data_of(at, 1, 7), data[i].data());
    ASSERT_TRUE(queue.write(disk, at * block, data[i].bytes(), 2));
    ASSERT_EQ(queue.reap(done, 1), 1U);
    ASSERT_EQ(done[0].error, std::errc{});
    right.at("a").write(at, 1, 7);
  }
  // The ring was emptied by its merge, and not into a map when nothing had changed for a while.
  EXPECT_EQ(store.stats().remaps, 0U);
  EXPECT_GT(store.stats().merges, 0U);
  behind.expect_it_was_read();
  expect_equal(store, right);
}

TYPED_TEST(ChunkFullByCopy, a_write_that_waits_for_space_moves_on_what_the_merge_of_an_idle_queue_waits_for) {
  TypeParam records;
  blocks::memory device(torn);
  auto store = records.open(device, tiny);
  filled<decltype(store)> all{.store = store, .blocks_of = 1024};
  all.open_volumes();
  std::uint64_t chunks = 0;
  while (all.write("a", chunks * 8, 8)) ++chunks;
  // Room for the ring of the chunk that is merged.
  all.discard("a", (chunks - 1) * 8, 8);
  merge_behind_a_reader behind(store, "a");
  all.right.at("a").write(0, tiny.ring - 1, 1000);
  // One in a ring, which is no merge.
  for (std::uint64_t i = 1; store.stats().free_bytes > 0; ++i) ASSERT_TRUE(all.write("a", i * 8, 1));
  auto disk = store.volume("a");
  stores::chunk_queue queue(store, 4);
  blocks::buffer data(block);
  const std::uint64_t at = (chunks - 2) * 8;
  std::ranges::copy(data_of(at, 1, 7), data.data());
  ASSERT_TRUE(queue.write(disk, at * block, data.bytes(), 2));
  std::array<stores::chunk_completion, 1> done;
  ASSERT_EQ(queue.reap(done, 1), 1U);
  EXPECT_EQ(done[0].error, std::errc{});
  all.right.at("a").write(at, 1, 7);
  behind.expect_it_was_read();
  expect_equal(store, all.right);
}

// ---- merges that fail while the drive is full

TYPED_TEST(ChunkFullByCopy, a_merge_that_fails_is_not_begun_again_for_the_same_write) {
  using drive = blocks::faulty<blocks::memory>;
  struct failing {
    blocks::operation what;
    blocks::stream only;
  };
  for (const failing& f : {failing{blocks::operation::read, blocks::stream::merge},
                           failing{blocks::operation::write_durable, blocks::stream::merge},
                           failing{blocks::operation::write_durable, blocks::stream::index}}) {
    SCOPED_TRACE(std::string(blocks::name_of(f.only)) + " " + std::to_string(static_cast<int>(f.what)));
    const bool has_index = std::is_same_v<TypeParam, records_in<stores::records_on_blocks, void>>;
    if (f.only == blocks::stream::index && !has_index) continue;
    TypeParam records;
    drive device(std::uint64_t{5}, torn);
    auto store = records.open(device, tiny);
    filled<decltype(store)> all{.store = store, .blocks_of = 1024};
    all.open_volumes();
    std::uint64_t chunks = 0;
    while (all.write("a", chunks * 8, 8)) ++chunks;
    // Each overwrite takes a block; the last of them are in rings, which only a merge empties.
    const std::uint64_t left = store.stats().free_bytes / block;
    for (std::uint64_t i = 0; i < left; ++i) ASSERT_TRUE(all.write("a", i * 8, 1));
    ASSERT_EQ(store.stats().free_bytes, 0U);
    const std::size_t before = device.injected().size();
    device.inject({.times = 1000, .what = f.what, .only = f.only});
    auto disk = store.volume("a");
    const std::string error = message_of([&] { disk.write(block, data_of(1, 1, 5000)); });
    EXPECT_PRED2(says, error, "failed (");
    EXPECT_LE(device.injected().size(), before + 2);
    // A later write may try again.
    device.stop();
    ASSERT_NO_FATAL_FAILURE(expect_equal(store, all.right));
    ASSERT_TRUE(all.write("a", 1, 1));
    ASSERT_NO_FATAL_FAILURE(expect_equal(store, all.right));
  }
}

}  // namespace
}  // namespace pmlab::tests::chunk_full_test
