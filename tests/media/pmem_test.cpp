// Pools of persistent memory: made, opened, refused; what a publication keeps; and that tmpfs needs no msync.
#include <pmlab/base/error.hpp>
#include <pmlab/media/pmem.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace {

std::atomic<int> msync_calls{0};

}  // namespace

// Takes the place of libc's function in this program and in the libraries that it loads.
extern "C" int msync(void* start, std::size_t bytes, int flags) {
  ++msync_calls;
  using function = int (*)(void*, std::size_t, int);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "msync"));
  return real(start, bytes, flags);
}

namespace {

using namespace pmlab;
using pool = media::pmem;

constexpr std::uint64_t pool_bytes = 32 << 20;

class pmem_pool : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const char* name = "pool") const { return folder_.file(name); }

  static std::string message_of(const auto& call) {
    try {
      call();
    } catch (const error& e) {
      return e.what();
    }
    return "";
  }

  tests::temporary_folder folder_;
};

TEST_F(pmem_pool, keeps_what_was_published) {
  {
    pool medium(path(), {.create_bytes = pool_bytes});
    const media::root root = medium.named_root("a", "tree", 1);
    pool::publication change(medium);
    auto* const object = media::create<std::atomic<std::uint64_t>>(change, 42U);
    media::persist(medium, *object);
    change.store(*root.word, medium.locate(object).word());
    change.commit();
  }
  pool medium(path());
  const media::root root = medium.named_root("a", "tree", 1);
  EXPECT_EQ(medium.resolve(media::pointer<std::atomic<std::uint64_t>>(root.word->load()))->load(), 42U);
}

TEST_F(pmem_pool, names_its_roots) {
  {
    pool medium(path(), {.create_bytes = pool_bytes});
    EXPECT_TRUE(medium.roots().empty());
    const media::root root = medium.named_root("a", "tree", 3);
    static_cast<void>(medium.named_root("a name of 23 characters", "table", 1));
    root.word->store(64);
  }
  const std::vector<media::root_facts> roots = pool(path()).roots();
  ASSERT_EQ(roots.size(), 2U);
  EXPECT_EQ(roots[0].name, "a");
  EXPECT_EQ(roots[0].layout, "tree");
  EXPECT_EQ(roots[0].version, 3U);
  EXPECT_TRUE(roots[0].made);
  EXPECT_EQ(roots[1].name, "a name of 23 characters");
  EXPECT_FALSE(roots[1].made);
}

TEST_F(pmem_pool, A5_no_root_entry_straddles_a_line) {
  pool medium(path(), {.create_bytes = pool_bytes});
  const auto word = reinterpret_cast<std::uintptr_t>(medium.named_root("a", "tree", 1).word);
  EXPECT_EQ((word - offsetof(media::root_entry, word)) % media::cache_line_bytes, 0U);
}

// Of any size: also those that are no multiple of their alignment, and those larger than libpmemobj's chunks.
TEST_F(pmem_pool, A5_blocks_are_aligned_as_asked) {
  media::pmem medium(path(), {.create_bytes = std::uint64_t{256} << 20, .huge_pages = false});
  const std::uint64_t empty = medium.used().allocated_bytes;
  for (const std::size_t alignment : {8U, 32U, 64U, 128U, 256U, 4096U})
    for (const std::size_t bytes : {1U, 96U, 200U, 512U, 131'072U, 131'200U, 262'144U, 300'000U, 4'194'304U}) {
      media::pmem::publication change(medium);
      void* const block = change.allocate(bytes, alignment);
      ASSERT_NE(block, nullptr) << bytes << " bytes at " << alignment;
      EXPECT_EQ(medium.locate(static_cast<const char*>(block)).word() % alignment, 0U) << bytes << " bytes";
      change.commit();
      media::pmem::publication back(medium);
      back.release(block, bytes);
      back.commit();
      EXPECT_EQ(medium.used().allocated_bytes, empty) << bytes << " bytes at " << alignment;
    }
}

TEST_F(pmem_pool, A8_is_mapped_at_any_address) {
  // Two pools of which each takes the other's address when they are opened in turns.
  for (const char* const name : {"one", "two"}) {
    pool medium(path(name), {.create_bytes = pool_bytes});
    const media::root root = medium.named_root("a", "tree", 1);
    pool::publication change(medium);
    auto* const object = media::create<std::atomic<std::uint64_t>>(change, std::uint64_t(name[0]));
    media::persist(medium, *object);
    change.store(*root.word, medium.locate(object).word());
    change.commit();
  }
  pool first(path("two"));
  pool second(path("one"));
  for (const auto& [medium, letter] : {std::pair{&first, 't'}, std::pair{&second, 'o'}}) {
    const std::uint64_t word = medium->named_root("a", "tree", 1).word->load();
    EXPECT_EQ(medium->resolve(media::pointer<std::atomic<std::uint64_t>>(word))->load(), std::uint64_t(letter));
  }
}

TEST_F(pmem_pool, C14_what_is_not_published_leaks_nothing_when_the_process_dies) {
  std::uint64_t before = 0;
  {
    pool medium(path(), {.create_bytes = pool_bytes});
    before = medium.used().allocated_bytes;
  }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pool medium(path());
    for (int i = 0; i < 20; ++i) {
      auto* const change = new pool::publication(medium);
      (void)change->allocate(16384, 256);
    }
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  pool medium(path());
  EXPECT_EQ(medium.used().allocated_bytes, before);
  // All of the space is there: what the dead process reserved can be had again, to the same total.
  std::uint64_t blocks = 0;
  const media::root root = medium.named_root("a", "tree", 1);
  for (;; ++blocks) {
    pool::publication change(medium);
    void* const block = change.allocate(16384, 256);
    if (block == nullptr) break;
    change.store(*root.word, 1);
    change.commit();
  }
  EXPECT_GT(blocks * 16384, pool_bytes * 3 / 4);
}

TEST_F(pmem_pool, usage_counts_live_blocks_across_a_restart) {
  std::uint64_t before = 0;
  {
    pool medium(path(), {.create_bytes = pool_bytes});
    before = medium.used().allocated_bytes;
    const media::root root = medium.named_root("a", "tree", 1);
    for (int i = 0; i < 10; ++i) {
      pool::publication change(medium);
      (void)change.allocate(512, 64);
      change.store(*root.word, 1);
      change.commit();
    }
    EXPECT_EQ(medium.used().allocated_bytes - before, 5120U);
  }
  EXPECT_EQ(pool(path()).used().allocated_bytes - before, 5120U);
}

TEST_F(pmem_pool, a_full_pool_gives_no_block_and_stays_usable) {
  pool medium(path(), {.create_bytes = pool::least_pool_bytes});
  const media::root root = medium.named_root("a", "tree", 1);
  void* last = nullptr;
  for (;;) {
    pool::publication change(medium);
    void* const block = change.allocate(16384, 256);
    if (block == nullptr) break;
    last = block;
    change.store(*root.word, 1);
    change.commit();
  }
  ASSERT_NE(last, nullptr);
  pool::publication give_back(medium);
  give_back.release(last, 16384);
  give_back.commit();
  pool::publication again(medium);
  EXPECT_NE(again.allocate(16384, 256), nullptr);
}

// Many sizes, and many restarts: each finds the space that the one before it left.
TEST_F(pmem_pool, uses_the_space_of_small_blocks_again_after_a_restart) {
  pool(path(), {.create_bytes = pool_bytes});
  for (int restart = 0; restart < 40; ++restart) {
    pool medium(path());
    // In another order each time, so that whoever counts classes by their use gets others.
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t bytes = 64 * (1 + (i * 5 + static_cast<std::size_t>(restart)) % 12);
      pool::publication change(medium);
      void* const block = change.allocate(bytes, 64);
      ASSERT_NE(block, nullptr) << "restart " << restart << ", " << bytes << " bytes";
      change.commit();
    }
  }
}

TEST_F(pmem_pool, does_not_fall_back_to_msync_on_tmpfs) {
  pool medium(path(), {.create_bytes = pool_bytes});
  if (medium.backed_by() != media::backing::tmpfs) GTEST_SKIP() << "no tmpfs here";
  const media::root root = medium.named_root("a", "tree", 1);
  const int before = msync_calls;
  for (int i = 0; i < 100; ++i) {
    pool::publication change(medium);
    auto* const object = media::create<std::array<std::uint64_t, 8>>(change);
    media::persist(medium, *object);
    change.store(*root.word, medium.locate(object).word());
    change.commit();
  }
  EXPECT_EQ(msync_calls, before);
}

TEST_F(pmem_pool, A1_a_pool_that_was_not_finished_does_not_stand_in_the_way) {
  std::ofstream(path("pool.unfinished")) << "what a crash left";
  { pool medium(path(), {.create_bytes = pool_bytes}); }
  EXPECT_FALSE(std::filesystem::exists(path("pool.unfinished")));
  EXPECT_NO_THROW(pool{path()});
}

TEST_F(pmem_pool, refuses_what_is_no_pool_and_leaves_it_alone) {
  EXPECT_NE(message_of([&] { pool{path("missing")}; }).find("there is no pool at"), std::string::npos);
  EXPECT_NE(message_of([&] { pool{path(".")}; }).find("is a directory"), std::string::npos);
  std::ofstream(path("short")) << "short";
  EXPECT_NE(message_of([&] { pool{path("short")}; }).find("5 bytes"), std::string::npos);
  std::ofstream(path("text")) << std::string(pool_bytes, 'x');
  EXPECT_NE(message_of([&] { pool{path("text")}; }).find(path("text")), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path("text")), pool_bytes);
  EXPECT_NE(message_of([&] { pool{path("tiny"), {.create_bytes = 4096}}; }).find("too small"), std::string::npos);
  EXPECT_NE(message_of([&] {
              pool{path("vast"), {.create_bytes = std::uint64_t{1} << 50}};
            }).find("free space"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("vast")));
  EXPECT_FALSE(std::filesystem::exists(path("vast.unfinished")));
  EXPECT_NE(message_of([&] {
              pool{path("no/such/folder"), {.create_bytes = pool_bytes}};
            }).find("folder"),
            std::string::npos);
}

TEST_F(pmem_pool, refuses_a_truncated_pool) {
  { pool medium(path(), {.create_bytes = pool_bytes}); }
  std::filesystem::resize_file(path(), pool_bytes / 2);
  EXPECT_NE(message_of([&] { pool{path()}; }).find(path()), std::string::npos);
}

// The pool's own layout is libpmemobj's; each index has one besides, and a version of it.
TEST_F(pmem_pool, of_another_release_says_why_it_is_not_opened) {
  PMEMobjpool* const older = pmemobj_create(path().c_str(), "pmlab-pool-0", pool_bytes, 0600);
  ASSERT_NE(older, nullptr) << pmemobj_errormsg();
  pmemobj_close(older);
  EXPECT_EQ(
      message_of([&] { pool{path()}; }),
      "pool " + path() +
          " has layout 'pmlab-pool-0', and this program reads 'pmlab-pool-1'; open it with what made it (of pmlab, "
          "another release), and copy the entries over");
  pool medium(path("new"), {.create_bytes = pool_bytes});
  static_cast<void>(medium.named_root("mine", "cceh", 1));
  EXPECT_EQ(message_of([&] { static_cast<void>(medium.named_root("mine", "cceh", 2)); }),
            "'mine' has version 1 of layout cceh, and this program reads version 2; open it with the release of pmlab "
            "that wrote it and copy the entries over");
  EXPECT_EQ(message_of([&] { static_cast<void>(medium.named_root("mine", "fast_fair", 1)); }),
            "'mine' is an index of layout cceh, not fast_fair; open it as cceh, or take another name or pool");
}

TEST_F(pmem_pool, is_open_once_at_a_time) {
  pool medium(path(), {.create_bytes = pool_bytes});
  EXPECT_NE(message_of([&] { pool{path()}; }).find("open nowhere else"), std::string::npos);
}

TEST_F(pmem_pool, says_what_its_content_survives) {
  pool medium(path(), {.create_bytes = pool_bytes});
  EXPECT_EQ(medium.survives().find("power failure") != std::string_view::npos,
            medium.backed_by() == media::backing::fs_dax || medium.backed_by() == media::backing::device_dax);
}

}  // namespace
