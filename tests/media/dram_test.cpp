// DRAM as a medium, on either source of blocks.
#include <pmlab/base/error.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/jemalloc_dram.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

namespace {

using namespace pmlab;

template <class Medium>
class dram_medium : public testing::Test {};

using dram_media = testing::Types<media::dram, media::jemalloc_dram>;
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
  EXPECT_THROW((void)medium.named_root("a name that is too long for it", "tree", 1), error);
  for (std::size_t i = 2; i < media::root_limit; ++i) (void)medium.named_root(std::to_string(i), "tree", 1);
  EXPECT_THROW((void)medium.named_root("one too many", "tree", 1), error);
}

TEST(jemalloc_dram, a_node_that_is_not_there_is_an_error) {
  EXPECT_THROW(media::jemalloc_dram({.numa_node = 4711}), error);
}

}  // namespace
