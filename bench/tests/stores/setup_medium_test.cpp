// The medium of a store's setup: it behaves as the medium behind it, and its pool file goes with it.
#include "bench/stores/setup_medium.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/lines.hpp>
#include "bench/stores/pair_stores.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace pmlab::store_bench {
namespace {

// A block of `bytes`, published into a root of the medium.
std::byte* published_block(bench::chosen_medium& medium, std::size_t bytes) {
  const media::root root = medium.named_root("block", "test", 1);
  bench::chosen_medium::publication change(medium);
  void* const published = change.allocate(bytes, media::cache_line_bytes);
  change.store(*root.word, medium.locate(static_cast<std::byte*>(published)).word());
  change.commit();
  return medium.resolve(media::pointer<std::byte>(root.word->load()));
}

TEST(SetupMedium, DramIsNotDurableAndCountsNothing) {
  const auto medium = make_medium(pair_setup{});
  EXPECT_EQ(medium->name(), "dram");
  EXPECT_FALSE(medium->is_durable());
  std::byte* const published = published_block(*medium, 4096);
  EXPECT_GE(medium->used().allocated_bytes, 4096U);
  medium->flush(published, 4096);
  medium->fence();
  EXPECT_FALSE(medium->accesses().has_value());
  EXPECT_FALSE(medium->emulation().has_value());
  EXPECT_FALSE(medium->media_bytes().has_value());
}

TEST(SetupMedium, ACountedMediumHearsOfEachAccess) {
  const auto medium = make_medium(pair_setup{.medium = bench::parse_medium("counted:dram")});
  std::byte* const published = published_block(*medium, 4096);
  medium->reset_accesses();
  medium->begin_operation();
  medium->annotate_read(published, 3 * media::cache_line_bytes);
  medium->prefetch(published + 1024, 1);
  medium->flush(published, 2 * media::cache_line_bytes);
  medium->fence();
  alignas(media::cache_line_bytes) const std::array<std::byte, 4 * media::cache_line_bytes> source{};
  medium->copy(published + 2048, source.data(), source.size());
  medium->fence();
  medium->end_operation();
  const auto sums = medium->accesses();
  ASSERT_TRUE(sums.has_value());
  EXPECT_EQ(sums->operations, 1U);
  EXPECT_EQ(sums->lines_read, 4U);
  EXPECT_EQ(sums->lines_flushed, 2U);
  EXPECT_EQ(sums->fences, 2U);
  EXPECT_EQ(sums->lines_copied, 4U);
}

TEST(SetupMedium, APoolIsDurableHasABoundAndGoesWithItsFile) {
  const tests::temporary_folder folder;
  const std::string path = folder.file("pool");
  {
    pair_setup setup{.medium = bench::parse_medium("pmem:" + path), .medium_bytes = std::uint64_t{32} << 20};
    const auto medium = make_medium(setup);
    EXPECT_TRUE(medium->is_durable());
    EXPECT_EQ(medium->pointer_bound(), setup.medium_bytes);
    const std::byte* const published = published_block(*medium, 4096);
    EXPECT_LT(medium->locate(published).word(), setup.medium_bytes);
    ASSERT_EQ(medium->roots().size(), 1U);
    EXPECT_FALSE(medium->accesses().has_value());
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_THROW(static_cast<void>(make_medium(setup)), error);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace pmlab::store_bench
