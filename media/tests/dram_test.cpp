// DRAM as a medium, on each source of blocks.
#include <pmlab/base/error.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/jemalloc_dram.hpp>
#include <pmlab/media/mapped_blocks.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace pmlab;

template <class Medium>
class dram_medium : public testing::Test {};

using dram_media = testing::Types<media::basic_dram<media::mapped_blocks>, media::basic_dram<media::standard_blocks>,
                                  media::jemalloc_dram>;
TYPED_TEST_SUITE(dram_medium, dram_media);

TYPED_TEST(dram_medium, a_publication_that_is_not_committed_changes_nothing) {
  TypeParam medium;
  std::atomic<std::uint64_t> word{7};
  {
    typename TypeParam::publication change(medium);
    ASSERT_NE(change.allocate(4096, 64), nullptr);
    change.store(word, 8);
    EXPECT_GE(medium.used().allocated_bytes, 4096U);
  }
  EXPECT_EQ(word.load(), 7U);
  EXPECT_EQ(medium.used().allocated_bytes, 0U);
}

TYPED_TEST(dram_medium, a_committed_publication_stores_and_releases) {
  TypeParam medium;
  std::atomic<std::uint64_t> word{0};
  void* block = nullptr;
  {
    typename TypeParam::publication change(medium);
    block = change.allocate(4096, 64);
    change.store(word, 8);
    EXPECT_EQ(word.load(), 0U) << "stored before commit";
    change.commit();
  }
  EXPECT_EQ(word.load(), 8U);
  EXPECT_GE(medium.used().allocated_bytes, 4096U);
  typename TypeParam::publication change(medium);
  change.release(block, 4096);
  EXPECT_GE(medium.used().allocated_bytes, 4096U) << "released before commit";
  change.commit();
  EXPECT_EQ(medium.used().allocated_bytes, 0U);
}

TYPED_TEST(dram_medium, blocks_are_aligned_as_asked) {
  TypeParam medium;
  for (const std::size_t alignment : {8U, 64U, 256U, 4096U}) {
    typename TypeParam::publication change(medium);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(change.allocate(alignment * 3, alignment)) % alignment, 0U);
  }
}

TYPED_TEST(dram_medium, capacity_is_a_limit_and_released_blocks_count_again) {
  TypeParam medium({.capacity_bytes = 64 * 1024});
  typename TypeParam::publication first(medium);
  void* const block = first.allocate(48 * 1024, 64);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(first.allocate(32 * 1024, 64), nullptr);
  first.commit();
  typename TypeParam::publication second(medium);
  second.release(block, 48 * 1024);
  second.commit();
  typename TypeParam::publication third(medium);
  EXPECT_NE(third.allocate(48 * 1024, 64), nullptr);
}

TYPED_TEST(dram_medium, roots_are_found_by_name_and_guarded_by_layout_and_version) {
  TypeParam medium;
  const media::root a = medium.named_root("a", "tree", 1);
  const media::root b = medium.named_root("b", "tree", 1);
  a.word->store(5);
  EXPECT_NE(a.word, b.word);
  EXPECT_EQ(medium.named_root("a", "tree", 1).word->load(), 5U);
  EXPECT_THROW((void)medium.named_root("a", "hash", 1), error);
  EXPECT_THROW((void)medium.named_root("a", "tree", 2), error);
  EXPECT_THROW((void)medium.named_root("", "tree", 1), error);
  // Never found again, it would take another root at each opening.
  EXPECT_THROW((void)medium.named_root(std::string("a\0", 2), "tree", 1), error);
  EXPECT_THROW((void)medium.named_root("a name that is too long for it", "tree", 1), error);
  for (std::size_t i = 2; i < media::root_limit; ++i) (void)medium.named_root(std::to_string(i), "tree", 1);
  EXPECT_THROW((void)medium.named_root("one too many", "tree", 1), error);
}

// Blocks of many sizes, on small and on large mappings, freed by other threads than those that allocated them.
TEST(mapped_blocks, blocks_do_not_overlap_whichever_threads_take_and_give_back) {
  media::mapped_blocks blocks(media::dram_options{});
  struct taken {
    unsigned char* block;
    std::size_t bytes;
    unsigned char mark;
  };
  constexpr std::size_t threads = 4;
  std::array<std::vector<taken>, threads> of_thread;
  std::atomic<std::uint64_t> wrong{0};
  const auto give_back = [&](std::vector<taken>& list) {
    for (const taken& t : list) {
      for (const std::size_t at : {std::size_t{0}, t.bytes / 2, t.bytes - 1})
        if (t.block[at] != t.mark) ++wrong;
      blocks.deallocate(t.block);
    }
    list.clear();
  };
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> running;
    for (std::size_t n = 0; n < threads; ++n)
      running.emplace_back([&, n, seed = static_cast<std::uint32_t>(round * 4) + n]() mutable {
        std::mt19937 random(static_cast<std::uint32_t>(seed));
        for (int i = 0; i < 400; ++i) {
          const std::size_t bytes = i % 50 == 0 ? 200'000 + random() % 3'000'000 : 1 + random() % 20'000;
          auto* const block = static_cast<unsigned char*>(blocks.allocate(bytes, std::size_t{8} << random() % 6));
          ASSERT_NE(block, nullptr);
          EXPECT_GE(blocks.room_of(block), bytes);
          const auto mark = static_cast<unsigned char>(random());
          for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) block[at] = mark;
          of_thread[n].push_back({block, bytes, mark});
        }
      });
    for (std::thread& t : running) t.join();
    running.clear();
    for (std::size_t n = 0; n < threads; ++n) running.emplace_back([&, n] { give_back(of_thread[(n + 1) % threads]); });
    for (std::thread& t : running) t.join();
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(mapped_blocks, rounding_adds_at_most_an_eighth_and_nothing_to_the_nodes_of_the_indexes) {
  media::mapped_blocks blocks(media::dram_options{});
  for (std::size_t bytes = 64; bytes <= media::mapped_blocks::largest_small_bytes; bytes += bytes / 7 + 1) {
    void* const block = blocks.allocate(bytes, 8);
    EXPECT_LE(blocks.room_of(block), bytes + bytes / 8 + 16) << bytes;
  }
  for (const std::size_t bytes : {64U, 128U, 256U, 512U, 1024U, 16384U, 65536U})
    EXPECT_EQ(blocks.room_of(blocks.allocate(bytes, 64)), bytes);
}

TEST(mapped_blocks, what_was_given_back_is_no_longer_resident) {
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    std::uint64_t all = 0;
    std::uint64_t pages = 0;
    file >> all >> pages;
    return pages * 4096;
  };
  media::mapped_blocks blocks(media::dram_options{});
  const std::uint64_t before = resident();
  std::vector<void*> taken;
  for (int i = 0; i < 8192; ++i) {
    taken.push_back(blocks.allocate(16384, 256));
    ASSERT_NE(taken.back(), nullptr);
    std::memset(taken.back(), 1, 16384);
  }
  EXPECT_GE(resident() - before, std::uint64_t{120} << 20);
  for (void* const block : taken) blocks.deallocate(block);
  EXPECT_LE(resident(), before + (std::uint64_t{16} << 20));
}

TEST(mapped_blocks, an_alignment_beyond_a_page_is_refused) {
  media::mapped_blocks blocks(media::dram_options{});
  EXPECT_EQ(blocks.allocate(64, 8192), nullptr);
}

TEST(jemalloc_dram, a_node_that_is_not_there_is_an_error) {
  EXPECT_THROW(media::jemalloc_dram({.numa_node = 4711}), error);
}

}  // namespace
