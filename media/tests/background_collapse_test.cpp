// Opening a pool does not wait for huge pages.
#include <pmlab/media/background_collapse.hpp>
#include <pmlab/media/pmem.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace {

constexpr int madv_collapse = 25;
std::atomic<std::uint64_t> collapsed_by_opener{0};
std::atomic<std::uint64_t> collapsed_by_others{0};
thread_local bool is_opener = false;

}  // namespace

// Takes the place of libc's function in this program.
extern "C" int madvise(void* start, std::size_t bytes, int advice) noexcept {
  if (advice == madv_collapse) (is_opener ? collapsed_by_opener : collapsed_by_others) += bytes;
  using function = int (*)(void*, std::size_t, int);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "madvise"));
  return real(start, bytes, advice);
}

namespace {

using namespace pmlab;

class background_collapse : public testing::Test {
 protected:
  void SetUp() override {
    is_opener = true;
    collapsed_by_opener = collapsed_by_others = 0;
  }
  void TearDown() override { is_opener = false; }

  // Waits, ten seconds at most, until other threads have collapsed `bytes` bytes.
  static bool others_collapse(std::uint64_t bytes) {
    for (int i = 0; i < 1000 && collapsed_by_others < bytes; ++i) ::usleep(10'000);
    return collapsed_by_others >= bytes;
  }
};

TEST_F(background_collapse, every_huge_page_of_the_range_and_none_twice) {
  constexpr std::size_t pages = 21;
  constexpr std::size_t bytes = pages * media::huge_page_bytes;
  void* const area =
      ::mmap(nullptr, bytes + media::huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  const auto first = (reinterpret_cast<std::uintptr_t>(area) + media::huge_page_bytes) & ~(media::huge_page_bytes - 1);
  {
    // It begins within a huge page, as the mapping of a pool may.
    constexpr std::size_t offset = 4096;
    const media::background_collapse running(reinterpret_cast<void*>(first - offset), bytes - media::huge_page_bytes);
    EXPECT_TRUE(others_collapse((pages - 2) * media::huge_page_bytes));
  }
  EXPECT_EQ(collapsed_by_others, (pages - 2) * media::huge_page_bytes);
  EXPECT_EQ(collapsed_by_opener, 0U);
  ::munmap(area, bytes + media::huge_page_bytes);
}

TEST_F(background_collapse, a_pool_that_exists_opens_without_waiting_for_huge_pages) {
  const tests::temporary_folder folder;
  const std::string path = folder.file("pool");
  constexpr std::uint64_t pool_bytes = std::uint64_t{64} << 20;
  {
    const media::pmem made(path, {.create_bytes = pool_bytes});
    if (made.backed_by() != media::backing::tmpfs) GTEST_SKIP() << path << " is not on tmpfs";
  }
  collapsed_by_opener = 0;
  {
    const media::pmem opened(path);
    EXPECT_EQ(collapsed_by_opener, 0U) << "bytes that the opening thread waited for";
    EXPECT_TRUE(others_collapse(pool_bytes / 2));
  }
  const std::uint64_t before = collapsed_by_others;
  const media::pmem small_pages(path, {.huge_pages = false});
  EXPECT_EQ(collapsed_by_others, before);
}

}  // namespace
