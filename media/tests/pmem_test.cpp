// Pools of persistent memory: made, opened, refused; the atomicity of publications; and that tmpfs needs no msync.
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/pool_heap.hpp>
#include <pmlab/media/pool_seal.hpp>
#include <pmlab/media/probe_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child_process.hpp"
#include "support/message_of.hpp"
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

// Called once, by the next pmemobj_open.
std::function<void()> at_opening;
// Called once, behind the next pmemobj_create.
std::function<void()> behind_creation;
// What flock shall answer for a folder, as errno, and getpid. 0: the real ones answer.
std::atomic<int> folder_lock_failure{0};
std::atomic<pid_t> process_number{0};
// The bytes of the ranges that this program has unmapped itself.
std::atomic<std::uint64_t> unmapped_bytes{0};

// What libpmem's functions of these names shall return and were given. Nothing: the real ones answer.
std::atomic<int> auto_flush{-1};
struct {
  std::atomic<const void*> start{nullptr};
  std::atomic<std::size_t> bytes{0};
} flushed_deeply;

}  // namespace

// As msync above.
extern "C" int pmem_has_auto_flush() {
  static const auto real = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "pmem_has_auto_flush"));
  return auto_flush >= 0 ? auto_flush.load() : real();
}
extern "C" void pmem_deep_flush(const void* start, std::size_t bytes) {
  flushed_deeply.start = start;
  flushed_deeply.bytes = bytes;
  using function = void (*)(const void*, std::size_t);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pmem_deep_flush"));
  real(start, bytes);
}
extern "C" PMEMobjpool* pmemobj_open(const char* path, const char* layout) {
  if (const auto act = std::exchange(at_opening, {})) act();
  using function = PMEMobjpool* (*)(const char*, const char*);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pmemobj_open"));
  return real(path, layout);
}
extern "C" PMEMobjpool* pmemobj_create(const char* path, const char* layout, std::size_t bytes, mode_t mode) {
  using function = PMEMobjpool* (*)(const char*, const char*, std::size_t, mode_t);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pmemobj_create"));
  PMEMobjpool* const made = real(path, layout, bytes, mode);
  if (const auto act = std::exchange(behind_creation, {})) act();
  return made;
}
extern "C" int flock(int file, int operation) noexcept {
  struct stat status {};
  if (folder_lock_failure != 0 && ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
    errno = folder_lock_failure;
    return -1;
  }
  static const auto real = reinterpret_cast<int (*)(int, int)>(dlsym(RTLD_NEXT, "flock"));
  return real(file, operation);
}
extern "C" pid_t getpid() noexcept {
  static const auto real = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "getpid"));
  return process_number != 0 ? process_number.load() : real();
}
extern "C" int munmap(void* start, std::size_t bytes) noexcept {
  unmapped_bytes += bytes;
  using function = int (*)(void*, std::size_t);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "munmap"));
  return real(start, bytes);
}

namespace {

using namespace pmlab;
using tests::message_of;
using tests::says;
using pool = media::pmem;

constexpr std::uint64_t pool_bytes = 32 << 20;

class pmem_pool : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "pool") const { return folder_.file(name); }

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

// Blocks have any size: also one that is no multiple of their alignment, and one larger than libpmemobj's chunks.
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
  child_process child = child_process::forked([&] {
    pool medium(path());
    for (int i = 0; i < 20; ++i) {
      auto* const change = new pool::publication(medium);
      (void)change->allocate(16384, 256);
    }
    _exit(0);
  });
  ASSERT_TRUE(child.wait().is_success());
  pool medium(path());
  EXPECT_EQ(medium.used().allocated_bytes, before);
  // All of the space is there: reservations of the dead process are free again, to the same total.
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
    // In another order each time, so that classes in the order of use would differ.
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t bytes = 64 * (1 + (i * 5 + static_cast<std::size_t>(restart)) % 12);
      pool::publication change(medium);
      void* const block = change.allocate(bytes, 64);
      ASSERT_NE(block, nullptr) << "restart " << restart << ", " << bytes << " bytes";
      change.commit();
    }
  }
}

// A full pool: the blocks of one kind are half freed, and as many fit again. Freed before or after a restart, and with
// blocks of another kind allocated first.
TEST_F(pmem_pool, that_is_full_has_space_again_for_blocks_that_are_freed_after_a_restart) {
  struct kind {
    std::size_t bytes, alignment;
  };
  // The last two have one size for libpmemobj: the second of them gets larger blocks.
  for (const auto& kinds :
       {std::array<kind, 2>{{{65536, 64}, {64, 64}}}, std::array<kind, 2>{{{2304, 256}, {512, 64}}},
        std::array<kind, 2>{{{300'000, 64}, {4096, 4096}}}, std::array<kind, 2>{{{16384, 256}, {16384, 64}}}}) {
    const std::string file = path(("full" + std::to_string(kinds[0].bytes)).c_str());
    std::array<std::vector<std::uint64_t>, 2> blocks;
    const auto allocate = [&](pool& medium, std::size_t of, std::size_t most) {
      std::size_t count = 0;
      for (; count < most; ++count) {
        pool::publication change(medium);
        void* const block = change.allocate(kinds[of].bytes, kinds[of].alignment);
        if (block == nullptr) break;
        change.commit();
        blocks[of].push_back(medium.locate(static_cast<char*>(block)).word());
      }
      return count;
    };
    const auto free_half = [&](pool& medium, std::size_t of) {
      std::vector<std::uint64_t> kept;
      for (std::size_t i = 0; i < blocks[of].size(); ++i) {
        if (i % 2 == 0) {
          kept.push_back(blocks[of][i]);
          continue;
        }
        pool::publication change(medium);
        change.release(medium.resolve(media::pointer<char>(blocks[of][i])), kinds[of].bytes);
        change.commit();
      }
      const std::size_t freed = blocks[of].size() - kept.size();
      blocks[of] = kept;
      return freed;
    };
    std::size_t freed = 0;
    {
      pool medium(file, {.create_bytes = 16 << 20});
      ASSERT_EQ(allocate(medium, 1, 8), 8U);
      ASSERT_GT(allocate(medium, 0, 1'000'000), 8U);
    }
    {
      pool medium(file);
      freed = free_half(medium, 0);
      EXPECT_EQ(allocate(medium, 0, 1'000'000), freed) << kinds[0].bytes << " bytes, freed after a restart";
      free_half(medium, 1);
      EXPECT_EQ(allocate(medium, 1, 4), 4U) << kinds[1].bytes << " bytes, freed after a restart";
      freed = free_half(medium, 0);
    }
    {
      pool medium(file);
      allocate(medium, 1, 1);
      EXPECT_EQ(allocate(medium, 0, 1'000'000), freed) << kinds[0].bytes << " bytes, freed before a restart";
    }
  }
}

// Calls of msync while libpmemobj makes words of this pool durable.
int msync_calls_of(PMEMobjpool* other) {
  const PMEMoid root = pmemobj_root(other, 64);
  const int before = msync_calls;
  for (int i = 0; i < 10; ++i) pmemobj_persist(other, pmemobj_direct(root), 64);
  return msync_calls - before;
}

// libpmem decides once for a process whether to call msync. So each of these runs in a new process.
class pmem_msync : public pmem_pool {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) GTEST_SKIP() << "PMEM_IS_PMEM_FORCE is set";
    const descriptor folder(::open(path(".").c_str(), O_RDONLY | O_CLOEXEC));
    if (media::backing_of(folder.get()) != media::backing::tmpfs) GTEST_SKIP() << "no tmpfs here";
  }

  // Publishes some blocks in a pool that is opened with these options. Returns how often msync was called meanwhile;
  // opening and closing sync the pool's header in any case.
  static int publish_some(const std::string& path, const media::pmem_options& options) {
    pool medium(path, options);
    const media::root root = medium.named_root("a", "tree", 1);
    const int before = msync_calls;
    for (int i = 0; i < 100; ++i) {
      pool::publication change(medium);
      auto* const object = media::create<std::array<std::uint64_t, 8>>(change);
      media::persist(medium, *object);
      change.store(*root.word, medium.locate(object).word());
      change.commit();
    }
    return msync_calls - before;
  }
};

TEST_F(pmem_msync, is_bypassed_if_the_user_says_so) {
  EXPECT_EXIT(
      {
        const int calls = publish_some(path(), {.create_bytes = pool_bytes, .bypass_msync = true});
        // Child processes must not inherit the choice.
        std::exit(calls == 0 && std::getenv("PMEM_IS_PMEM_FORCE") == nullptr ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(pmem_msync, of_other_pools_in_the_process_stays) {
  EXPECT_EXIT(
      {
        static_cast<void>(publish_some(path(), {.create_bytes = pool_bytes}));
        PMEMobjpool* const other = pmemobj_create(path("other").c_str(), "database", pool_bytes, 0600);
        const int calls = msync_calls_of(other);
        pmemobj_close(other);
        std::exit(calls > 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(pmem_pool, A1_a_pool_that_was_not_finished_does_not_stand_in_the_way) {
  std::ofstream(path("pool.unfinished")) << "what a crash left";
  { pool medium(path(), {.create_bytes = pool_bytes}); }
  EXPECT_FALSE(std::filesystem::exists(path("pool.unfinished")));
  EXPECT_NO_THROW(pool{path()});
}

// Its file system may not be mounted: a new pool in place of the link would hide the data.
TEST_F(pmem_pool, A1_a_link_that_leads_nowhere_is_no_place_for_a_new_pool) {
  std::filesystem::create_symlink(path("not_mounted/pool"), path());
  for (const std::uint64_t create_bytes : {std::uint64_t{0}, pool_bytes})
    EXPECT_PRED2(says, message_of([&] { pool(path(), {.create_bytes = create_bytes}); }), "a link that leads nowhere");
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  std::filesystem::create_directory(path("not_mounted"));
  { pool medium(path("not_mounted/pool"), {.create_bytes = pool_bytes}); }
  EXPECT_NO_THROW(pool{path()});
}

TEST_F(pmem_pool, A1_a_pool_that_lost_its_name_gets_it_back_with_its_data) {
  for (const std::uint64_t create_bytes : {std::uint64_t{0}, pool_bytes}) {
    std::filesystem::remove(path());
    {
      pool medium(path(), {.create_bytes = pool_bytes});
      medium.named_root("a", "tree", 1).word->store(42);
    }
    std::filesystem::rename(path(), path("pool.unfinished"));
    {
      pool medium(path(), {.create_bytes = create_bytes});
      EXPECT_EQ(medium.named_root("a", "tree", 1).word->load(), 42U);
    }
    EXPECT_FALSE(std::filesystem::exists(path("pool.unfinished")));
  }
}

TEST_F(pmem_pool, A1_a_pool_that_was_cut_off_while_it_was_made_is_made_anew) {
  PMEMobjpool* const half = pmemobj_create(path("pool.unfinished").c_str(), pool::pool_layout, pool_bytes, 0600);
  ASSERT_NE(half, nullptr) << pmemobj_errormsg();
  pmemobj_close(half);
  EXPECT_PRED2(says, message_of([&] { pool{path()}; }), "there is no pool at");
  EXPECT_TRUE(std::filesystem::exists(path("pool.unfinished")));
  { pool medium(path(), {.create_bytes = pool_bytes}); }
  EXPECT_FALSE(std::filesystem::exists(path("pool.unfinished")));
  EXPECT_NO_THROW(pool{path()});
}

TEST_F(pmem_pool, A1_a_pool_that_is_being_made_is_left_to_its_maker) {
  pool medium(path(), {.create_bytes = pool_bytes});
  std::filesystem::rename(path(), path("pool.unfinished"));
  EXPECT_PRED2(says, message_of([&] { pool{path(), {.create_bytes = pool_bytes}}; }), "is being made");
  EXPECT_TRUE(std::filesystem::exists(path("pool.unfinished")));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

// A pool at `path` with a root of this word.
void make_with_word(const std::string& path, std::uint64_t word) {
  pool medium(path, {.create_bytes = pool_bytes});
  medium.named_root("a", "tree", 1).word->store(word);
}

std::uint64_t word_of(const std::string& path) { return pool(path).named_root("a", "tree", 1).word->load(); }

// By `mv`, or by `pmlab pool load`.
TEST_F(pmem_pool, A1_that_comes_while_another_one_is_made_is_the_one_that_is_opened) {
  make_with_word(path("ready"), 42);
  behind_creation = [&] { std::filesystem::rename(path("ready"), path()); };
  EXPECT_EQ(pool(path(), {.create_bytes = pool_bytes}).named_root("a", "tree", 1).word->load(), 42U);
  EXPECT_EQ(word_of(path()), 42U);
  EXPECT_FALSE(std::filesystem::exists(path("pool.unfinished")));
}

TEST_F(pmem_pool, A1_that_comes_while_another_one_gets_its_name_back_is_not_replaced) {
  make_with_word(path("ready"), 42);
  make_with_word(path("pool.unfinished"), 43);
  EXPECT_TRUE(media::adopt_unfinished(path(), [&](int) {
    std::filesystem::rename(path("ready"), path());
    return true;
  }));
  EXPECT_EQ(word_of(path()), 42U);
  EXPECT_EQ(word_of(path("pool.unfinished")), 43U);
}

TEST_F(pmem_pool, A1_is_not_made_where_the_folder_cannot_be_locked) {
  folder_lock_failure = ENOLCK;
  const std::string said = message_of([&] { pool(path(), {.create_bytes = pool_bytes}); });
  folder_lock_failure = 0;
  EXPECT_PRED2(says, said, "cannot lock folder");
  EXPECT_TRUE(std::filesystem::is_empty(path("")));
}

TEST_F(pmem_pool, A1_gives_its_name_to_no_file_of_another_program) {
  make_with_word(path("ready"), 42);
  behind_creation = [&] { std::filesystem::rename(path("ready"), path("pool.unfinished")); };
  EXPECT_PRED2(says, message_of([&] { pool(path(), {.create_bytes = pool_bytes}); }), "another program has replaced");
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(word_of(path("pool.unfinished")), 42U);
}

TEST_F(pmem_pool, has_a_name_that_libpmemobj_can_make_longer) {
  const std::string longest(235, 'n');
  make_with_word(path(longest), 42);
  EXPECT_EQ(word_of(path(longest)), 42U);
  const std::string said = message_of([&] { pool(path(longest + 'n'), {.create_bytes = pool_bytes}); });
  EXPECT_PRED2(says, said, "236 bytes; use a name of at most 235 bytes");
}

TEST_F(pmem_pool, A1_made_by_many_processes_at_once_is_one_pool) {
  constexpr int processes = 6;
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove(path());
    // Each is to count once: it tries again while another one has the pool open.
    const auto count = [&] {
      for (int tries = 0; tries < 10'000; ++tries) {
        try {
          pool medium(path(), {.create_bytes = pool_bytes});
          medium.named_root("a", "tree", 1).word->fetch_add(1);
          _exit(0);
        } catch (const error& e) {
          if (std::string(e.what()).find("not open in another process") == std::string::npos) _exit(1);
          usleep(1000);
        }
      }
      _exit(2);
    };
    std::vector<child_process> children;
    for (int i = 0; i < processes; ++i) children.push_back(child_process::forked(count));
    for (child_process& child : children) EXPECT_EQ(child.wait().text(), "status 0");
    EXPECT_EQ(pool(path()).named_root("a", "tree", 1).word->load(), std::uint64_t{processes});
  }
}

TEST_F(pmem_pool, a_publication_of_too_many_changes_is_an_error_and_changes_nothing) {
  pool medium(path(), {.create_bytes = pool_bytes});
  const media::root root = medium.named_root("a", "tree", 1);
  const std::uint64_t before = medium.used().allocated_bytes;
  const auto overfill = [&](auto&& one_more) {
    pool::publication change(medium);
    void* const block = change.allocate(512, 64);
    for (std::size_t i = 1; i < media::publication_limit; ++i) change.store(*root.word, i);
    one_more(change, block);
  };
  const auto said = [&](auto&& one_more) { return message_of([&] { overfill(one_more); }); };
  constexpr const char* too_many = "a publication of more than 16 changes";
  EXPECT_PRED2(says, said([&](auto& change, void*) { change.store(*root.word, 99); }), too_many);
  EXPECT_PRED2(says, said([&](auto& change, void*) { (void)change.allocate(512, 64); }), too_many);
  EXPECT_PRED2(says, said([&](auto& change, void* block) { change.release(block, 512); }), too_many);
  EXPECT_EQ(root.word->load(), 0U);
  EXPECT_EQ(medium.used().allocated_bytes, before);
  // As many as that are fine.
  overfill([](auto& change, void*) { change.commit(); });
  EXPECT_EQ(root.word->load(), media::publication_limit - 1);
}

TEST_F(pmem_pool, a_pool_that_cannot_be_opened_is_closed_and_unlocked) {
  PMEMobjpool* const half = pmemobj_create(path().c_str(), pool::pool_layout, pool_bytes, 0600);
  ASSERT_NE(half, nullptr) << pmemobj_errormsg();
  pmemobj_close(half);
  for (int i = 0; i < 2; ++i) EXPECT_PRED2(says, message_of([&] { pool{path()}; }), "was never completed");
  PMEMobjpool* const again = pmemobj_open(path().c_str(), pool::pool_layout);
  ASSERT_NE(again, nullptr) << pmemobj_errormsg();
  pmemobj_close(again);
}

TEST_F(pmem_pool, a_fifo_is_an_error_at_once) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const child_end end = tests::run_in_child([&] { return message_of([&] { pool{path()}; }); }, std::chrono::seconds(5));
  EXPECT_EQ(end.describe(),
            "returned: " + path() +
                " is not a pool: it is neither a file nor a device; name another file, or remove this one");
}

TEST_F(pmem_pool, that_is_tried_in_a_child_process_first_stays_as_it_is_whatever_happens_there) {
  {
    pool medium(path(), {.create_bytes = pool_bytes});
    medium.named_root("a", "tree", 1).word->store(42);
  }
  const auto content = [&] {
    std::ifstream in(path(), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const std::string before = content();
  const auto said = [&](const std::function<void(pool&)>& look) {
    return message_of([&] { media::probe_pool(path(), std::chrono::milliseconds(1000), look); });
  };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(said([](pool& medium) { medium.named_root("a", "tree", 1).word->store(43); }), "");
  EXPECT_PRED2(says, said([](pool&) { raise(SIGSEGV); }), "was killed by 'Segmentation fault'");
  EXPECT_PRED2(says, said([](pool&) { abort(); }), "is damaged");
  EXPECT_PRED2(says, said([](pool&) { _exit(0); }), "exited");
  EXPECT_PRED2(says, said([](pool&) { pause(); }), "did not end in 1 s");
  EXPECT_EQ(said([](pool& medium) { static_cast<void>(medium.named_root("a", "list", 1)); }),
            "'a' is an index of layout tree, not list; open it as tree, or take another name or pool");
  EXPECT_TRUE(content() == before) << "the file was changed";
  EXPECT_EQ(pool(path()).named_root("a", "tree", 1).word->load(), 42U);
}

// Gives the pages of the file that hold zeros back to the file system.
void make_sparse(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR);
  std::array<char, 4096> page;
  for (off_t at = 0; pread(file, page.data(), page.size(), at) == static_cast<ssize_t>(page.size());
       at += static_cast<off_t>(page.size()))
    if (std::all_of(page.begin(), page.end(), [](char c) { return c == 0; }))
      fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, static_cast<off_t>(page.size()));
  ::close(file);
}

TEST_F(pmem_pool, a_sparse_pool_gets_its_space_when_it_is_opened_or_says_that_there_is_none) {
  const child_end end = tests::run_in_child(
      [&]() -> std::string {
        // A small file system that only this process sees.
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", path(".").c_str(), "tmpfs", 0, "size=12m") != 0)
          return "cannot mount a file system here";
        { pool medium(path(), {.create_bytes = pool::least_pool_bytes}); }
        make_sparse(path());
        const std::string others = path("others");
        { std::ofstream(others) << std::string(16 << 20, 'x'); }
        const std::string said = message_of([&] { pool{path()}; });
        if (said.find("has holes, and its file system has no space for them") == std::string::npos)
          return "full: " + said;
        std::filesystem::remove(others);
        pool medium(path());
        struct stat status {};
        if (stat(path().c_str(), &status) != 0 || status.st_blocks * 512 < status.st_size) return "still sparse";
        return "as it should be";
      },
      std::chrono::seconds(20));
  if (end.text == "cannot mount a file system here") GTEST_SKIP() << end.text;
  EXPECT_EQ(end.describe(), "returned: as it should be");
}

std::uint64_t bytes_in_blocks(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST_F(pmem_pool, that_is_sparse_gets_no_space_from_an_opening_that_is_refused) {
  pool{path(), {.create_bytes = pool_bytes}};
  make_sparse(path());
  const pool medium(path(), {.huge_pages = false, .reserve_space = false});
  const std::uint64_t before = bytes_in_blocks(path());
  ASSERT_LT(before, pool_bytes / 2);
  EXPECT_PRED2(says, message_of([&] { pool{path()}; }), "it is open already");
  EXPECT_EQ(bytes_in_blocks(path()), before);
}

TEST_F(pmem_pool, gives_no_space_to_a_sparse_file_that_is_no_pool) {
  std::ofstream(path()) << "an image of a disk";
  std::filesystem::resize_file(path(), pool_bytes);
  EXPECT_NE(message_of([&] { pool{path()}; }), "");
  EXPECT_LT(bytes_in_blocks(path()), pool_bytes / 2);
}

TEST_F(pmem_pool, refuses_what_is_no_pool_and_leaves_it_alone) {
  EXPECT_PRED2(says, message_of([&] { pool{path("missing")}; }), "there is no pool at");
  EXPECT_PRED2(says, message_of([&] { pool{path(".")}; }), "is a directory");
  std::ofstream(path("short")) << "short";
  EXPECT_PRED2(says, message_of([&] { pool{path("short")}; }), "5 bytes");
  std::ofstream(path("text")) << std::string(pool_bytes, 'x');
  EXPECT_PRED2(says, message_of([&] { pool{path("text")}; }), path("text"));
  EXPECT_EQ(std::filesystem::file_size(path("text")), pool_bytes);
  EXPECT_PRED2(says, message_of([&] { pool{path("tiny"), {.create_bytes = 4096}}; }), "too small");
  EXPECT_PRED2(says, message_of([&] { pool{path("vast"), {.create_bytes = std::uint64_t{1} << 50}}; }), "free space");
  EXPECT_FALSE(std::filesystem::exists(path("vast")));
  EXPECT_FALSE(std::filesystem::exists(path("vast.unfinished")));
  EXPECT_PRED2(says, message_of([&] { pool{path("no/such/folder"), {.create_bytes = pool_bytes}}; }), "folder");
}

TEST_F(pmem_pool, refuses_a_truncated_pool) {
  { pool medium(path(), {.create_bytes = pool_bytes}); }
  std::filesystem::resize_file(path(), pool_bytes / 2);
  EXPECT_PRED2(says, message_of([&] { pool{path()}; }), path());
}

// The pool's own layout is libpmemobj's; each index has one besides, and a version of it.
TEST_F(pmem_pool, of_another_release_says_why_it_is_not_opened) {
  PMEMobjpool* const older = pmemobj_create(path().c_str(), "pmlab-pool-0", pool_bytes, 0600);
  ASSERT_NE(older, nullptr) << pmemobj_errormsg();
  pmemobj_close(older);
  EXPECT_EQ(message_of([&] { pool{path()}; }), "pool " + path() +
                                                   " has layout 'pmlab-pool-0', and this program reads 'pmlab-pool-1'; "
                                                   "open it with the program that made it (if pmlab: "
                                                   "another release), and copy the entries over");
  pool medium(path("new"), {.create_bytes = pool_bytes});
  static_cast<void>(medium.named_root("mine", "cceh", 1));
  EXPECT_EQ(message_of([&] { static_cast<void>(medium.named_root("mine", "cceh", 2)); }),
            "'mine' has version 1 of layout cceh, and this program reads version 2; open it with the release of pmlab "
            "that wrote it and copy the entries over");
  EXPECT_EQ(message_of([&] { static_cast<void>(medium.named_root("mine", "fast_fair", 1)); }),
            "'mine' is an index of layout cceh, not fast_fair; open it as cceh, or take another name or pool");
}

TEST_F(pmem_pool, has_no_root_of_version_0) {
  pool medium(path(), {.create_bytes = pool_bytes});
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(medium.named_root("mine", "cceh", 0)); }),
               "count versions from 1");
  EXPECT_TRUE(medium.roots().empty());
}

TEST_F(pmem_pool, is_open_once_at_a_time) {
  pool medium(path(), {.create_bytes = pool_bytes});
  EXPECT_PRED2(says, message_of([&] { pool{path()}; }), "not open in another process");
}

TEST_F(pmem_pool, leaves_flushes_out_where_the_platform_saves_the_caches) {
  using media::persistence_domain;
  const auto found = pmem_has_auto_flush() == 1 ? persistence_domain::eadr : persistence_domain::adr;
  {
    const pool made(path(), {.create_bytes = pool_bytes});
    EXPECT_EQ(made.persistence(), found);
  }
  // Said otherwise: also of a pool that was written under another domain.
  for (const auto domain : {persistence_domain::gpf, persistence_domain::gpf_may_fail}) {
    const pool opened(path(), {.persistence = domain});
    EXPECT_EQ(media::persistence_of(opened), domain);
  }
}

TEST_F(pmem_pool, writes_all_lines_back_when_it_is_closed_after_flushes_were_left_out) {
  using media::persistence_domain;
  pool{path(), {.create_bytes = pool_bytes}};
  for (const int saved : {0, 1})
    for (const auto domain : {persistence_domain::adr, persistence_domain::eadr, persistence_domain::gpf,
                              persistence_domain::gpf_may_fail}) {
      auto_flush = saved;
      const void* begin = nullptr;
      {
        pool opened(path(), {.persistence = domain});
        begin = opened.resolve(media::pointer<char>(0));
        flushed_deeply.bytes = 0;
      }
      const bool needed = saved == 0 && media::keeps_caches(domain);
      EXPECT_EQ(flushed_deeply.bytes, needed ? pool_bytes : 0) << to_string(domain) << ", " << saved;
      if (needed) {
        EXPECT_EQ(flushed_deeply.start, begin);
      }
    }
  auto_flush = -1;
}

// Another process opens the pool, and is killed with it.
void kill_a_process_with(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    pool opened(path);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

// True if the pool file has the mark of an opening: "open", and four bytes before it.
bool is_marked_as_open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint64_t> words(pool_bytes / sizeof(std::uint64_t));
  file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(pool_bytes));
  return std::any_of(words.begin(), words.end(), [](std::uint64_t word) { return word >> 32 == 0x6e65'706fU; });
}

TEST_F(pmem_pool, writes_back_what_a_killed_process_has_left_in_the_caches) {
  pool{path(), {.create_bytes = pool_bytes}};
  EXPECT_EQ(pool(path()).written_back_bytes(), 0U);
  EXPECT_FALSE(is_marked_as_open(path())) << "closed, and marked as open";
  for (const int killed : {1, 2}) {
    kill_a_process_with(path());
    if (killed == 2) kill_a_process_with(path());
    EXPECT_TRUE(is_marked_as_open(path()));
    at_opening = [before = unmapped_bytes.load()] {
      EXPECT_EQ(unmapped_bytes - before, pool_bytes) << "libpmemobj recovers from lines that were not written back";
    };
    const pool next(path());
    EXPECT_GT(next.written_back_bytes(), 0U);
    EXPECT_LE(next.written_back_bytes(), pool_bytes);
  }
  EXPECT_EQ(pool(path()).written_back_bytes(), 0U) << "closed, and written back again";
}

TEST_F(pmem_pool, is_as_closed_behind_an_orderly_end_alone) {
  EXPECT_FALSE(pool::is_as_closed(path())) << "there is none";
  {
    pool medium(path(), {.create_bytes = pool_bytes});
    pool::publication change(medium);
    const media::root root = medium.named_root("a", "tree", 1);
    root.word->store(medium.locate(static_cast<char*>(change.allocate(4096, 256))).word());
    change.commit();
    EXPECT_FALSE(pool::is_as_closed(path())) << "it is open";
  }
  EXPECT_TRUE(pool::is_as_closed(path())) << "new";
  pool{path()};
  EXPECT_TRUE(pool::is_as_closed(path())) << "opened again";
  kill_a_process_with(path());
  EXPECT_FALSE(pool::is_as_closed(path())) << "left open";
  pool{path()};
  EXPECT_TRUE(pool::is_as_closed(path())) << "recovered";
  // A release that knows no seal.
  PMEMobjpool* const other = pmemobj_open(path().c_str(), pool::pool_layout);
  ASSERT_NE(other, nullptr) << pmemobj_errormsg();
  pmemobj_close(other);
  EXPECT_FALSE(pool::is_as_closed(path())) << "opened without pmlab";
}

TEST_F(pmem_pool, is_as_closed_by_a_release_before) {
  pool{path(), {.create_bytes = pool_bytes}};
  const descriptor file(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  std::vector<char> content(pool_bytes);
  ASSERT_EQ(::pread(file.get(), content.data(), pool_bytes, 0), static_cast<ssize_t>(pool_bytes));
  const std::uint64_t seal = media::seal_of_pool(content.data(), pool_bytes).value();
  const std::uint64_t earlier = media::seal_of_pool(content.data(), pool_bytes, hash_of_bytes).value();
  int places = 0;
  for (std::size_t at = 0; at < pool_bytes; at += sizeof seal)
    if (std::memcmp(&content[at], &seal, sizeof seal) == 0) {
      ++places;
      for (const auto& [written, opens] : {std::pair(earlier, true), std::pair(earlier + 1, false)}) {
        ASSERT_EQ(::pwrite(file.get(), &written, sizeof written, static_cast<off_t>(at)), ssize_t{sizeof written});
        EXPECT_EQ(pool::is_as_closed(path()), opens);
      }
    }
  EXPECT_EQ(places, 1);
}

// Every word that libpmemobj follows at an opening, and not those of blocks.
TEST_F(pmem_pool, is_not_as_closed_when_a_word_of_libpmemobj_has_changed) {
  pool{path(), {.create_bytes = pool_bytes}};
  const descriptor file(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  std::vector<char> content(pool_bytes);
  ASSERT_EQ(::pread(file.get(), content.data(), pool_bytes, 0), static_cast<ssize_t>(pool_bytes));
  std::uint64_t zone = 0;
  std::uint64_t last_block = 0;
  media::for_each_zone(content.data(), pool_bytes, [&](const media::pool_zone& z) {
    zone = z.begin;
    last_block = z.first_chunk + z.chunks * media::pool_zone::chunk_bytes - 8;
  });
  ASSERT_NE(zone, 0U);
  const std::uint64_t chunk_header = zone + media::pool_zone::header_bytes;
  const std::pair<const char*, std::uint64_t> places[] = {
      {"signature", 0},
      {"layout", 4096},
      {"place of the heap", 4096 + 1040},
      {"place of the root", 6144},
      {"lanes", 8192 + 3072},
      {"heap's header", zone - 1024},
      {"zone", zone},
      {"chunk", chunk_header},
  };
  for (const auto& [name, place] : places) {
    const auto flip = [&, at = place] {
      char byte = content[at] = static_cast<char>(content[at] ^ 1);
      ASSERT_EQ(::pwrite(file.get(), &byte, 1, static_cast<off_t>(at)), 1);
    };
    flip();
    EXPECT_FALSE(pool::is_as_closed(path())) << name;
    flip();
    EXPECT_TRUE(pool::is_as_closed(path())) << name;
  }
  const char other = 1;
  ASSERT_EQ(::pwrite(file.get(), &other, 1, static_cast<off_t>(last_block)), 1);
  EXPECT_TRUE(pool::is_as_closed(path())) << "a block";
}

TEST_F(pmem_pool, has_nothing_to_write_back_where_the_platform_saves_the_caches) {
  pool{path(), {.create_bytes = pool_bytes}};
  kill_a_process_with(path());
  auto_flush = 1;
  EXPECT_EQ(pool(path()).written_back_bytes(), 0U);
  auto_flush = -1;
}

TEST_F(pmem_pool, writes_back_what_a_process_has_left_that_was_killed_just_before_the_pool_was_locked) {
  pool{path(), {.create_bytes = pool_bytes}};
  at_opening = [&] { kill_a_process_with(path()); };
  EXPECT_GT(pool(path()).written_back_bytes(), 0U);
}

// Between the opening of the file and libpmemobj's: of the same size and of another one.
TEST_F(pmem_pool, that_is_replaced_while_it_is_opened_is_refused_and_the_new_one_keeps_its_mark) {
  for (const std::uint64_t bytes : {pool_bytes, 2 * pool_bytes, pool_bytes / 2}) {
    pool{path(), {.create_bytes = pool_bytes}};
    pool{path("new"), {.create_bytes = bytes}};
    kill_a_process_with(path("new"));
    at_opening = [&] { std::filesystem::rename(path("new"), path()); };
    EXPECT_PRED2(says, message_of([&] { pool{path()}; }), "was replaced or removed while it was opened");
    const pool opened(path());
    EXPECT_EQ(opened.used().capacity_bytes, bytes);
    EXPECT_GT(opened.written_back_bytes(), 0U);
    std::filesystem::remove(path());
  }
}

// A child process closes its copy of the pool. Returns the status of its end; -1: there was no child.
int closed_by_child(std::unique_ptr<pool>& medium) {
  const pid_t child = ::fork();
  if (child == 0) {
    medium.reset();
    ::_exit(0);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child ? status : -1;
}

// A child in another PID namespace may have the number of its parent.
TEST_F(pmem_pool, is_not_that_of_a_child_with_the_same_process_number) {
  process_number = 1;
  auto medium = std::make_unique<pool>(path(), media::pmem_options{.create_bytes = pool_bytes});
  ASSERT_NE(closed_by_child(medium), -1);
  EXPECT_TRUE(is_marked_as_open(path()));
  medium.reset();
  process_number = 0;
  EXPECT_FALSE(is_marked_as_open(path()));
}

// libpmemobj finds pools by their addresses, too, and a child has its parent's table of them.
TEST_F(pmem_pool, leaves_its_addresses_to_no_other_pool_of_a_child) {
  pool{path("other"), {.create_bytes = pool_bytes}};
  for (const bool kept : {false, true}) {
    auto medium = std::make_unique<pool>(path(kept ? "kept" : "shared"),
                                         media::pmem_options{.create_bytes = pool_bytes, .keep_from_children = kept});
    const child_end end = tests::run_in_child(
        [&] {
          if (!kept) medium.reset();
          return message_of([&] { pool{path("other")}; });
        },
        std::chrono::seconds(20));
    EXPECT_EQ(end.text, "") << "kept: " << kept;
    EXPECT_EQ(end.end, child_end::how::returned);
  }
}

TEST_F(pmem_pool, that_is_a_copy_of_an_open_one_is_refused_for_that_reason) {
  pool{path(), {.create_bytes = pool_bytes}};
  std::filesystem::copy_file(path(), path("copy"));
  const pool medium(path());
  EXPECT_PRED2(says, message_of([&] { pool{path("copy")}; }), "this process has a copy of it open");
}

TEST_F(pmem_pool, stays_that_of_the_process_that_opened_it_when_a_child_closes_it) {
  pool{path(), {.create_bytes = pool_bytes}};
  const pid_t killed = ::fork();
  if (killed == 0) {
    auto opened = std::make_unique<pool>(path());
    if (closed_by_child(opened) == 0) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(is_marked_as_open(path()));
  EXPECT_GT(pool(path()).written_back_bytes(), 0U);
}

// A child has none of the threads of its parent. To join several of them damages the list of the stacks.
TEST_F(pmem_pool, is_closed_by_a_child_that_goes_on_with_threads_of_its_own) {
  constexpr int pools = 4;
  std::vector<std::unique_ptr<pool>> opened;
  for (int i = 0; i < pools; ++i) {
    pool{path(std::to_string(i)), {.create_bytes = pool_bytes}};
    opened.push_back(std::make_unique<pool>(path(std::to_string(i))));
  }
  const child_end end = tests::run_in_child(
      [&] {
        opened.clear();
        std::vector<std::thread> threads;
        for (int i = 0; i < pools; ++i) threads.emplace_back([] { std::this_thread::yield(); });
        for (std::thread& t : threads) t.join();
        return std::string();
      },
      std::chrono::seconds(20));
  EXPECT_EQ(end.end, child_end::how::returned);
}

// It is opened for writing, whatever is done with it.
TEST_F(pmem_pool, that_may_only_be_read_is_refused_for_that_reason) {
  pool{path(), {.create_bytes = pool_bytes}};
  namespace fs = std::filesystem;
  fs::permissions(fs::path(path()).parent_path(), fs::perms{0755});
  fs::permissions(path(), fs::perms{0444});
  const child_end end = tests::run_in_child(
      [&] {
        constexpr uid_t nobody = 65534;
        if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) return std::string("cannot be another user");
        return message_of([&] { pool{path()}; });
      },
      std::chrono::seconds(20));
  EXPECT_PRED2(says, end.text, "Permission denied; a pool is opened for writing") << end.text;
}

// libpmemobj keeps locks and lists of the running process in the pool.
TEST_F(pmem_pool, works_on_in_the_parent_when_a_child_closes_it) {
  for (const bool kept : {false, true}) {
    auto medium = std::make_unique<pool>(path(kept ? "kept" : "shared"),
                                         media::pmem_options{.create_bytes = pool_bytes, .keep_from_children = kept});
    const auto add = [&] {
      pool::publication change(*medium);
      return media::create<std::atomic<std::uint64_t>>(change, 42U) != nullptr && (change.commit(), true);
    };
    EXPECT_TRUE(add());
    const int status = closed_by_child(medium);
    ASSERT_NE(status, -1);
    EXPECT_TRUE(WIFEXITED(status));
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(add());
    medium.reset();
    EXPECT_EQ(pool(path(kept ? "kept" : "shared")).written_back_bytes(), 0U);
  }
}

TEST_F(pmem_pool, is_not_written_back_while_it_is_open) {
  const pool medium(path(), {.create_bytes = pool_bytes});
  const std::uint64_t before = unmapped_bytes;
  EXPECT_PRED2(says, message_of([&] { pool{path()}; }), "not open in another process");
  EXPECT_EQ(unmapped_bytes, before) << "the lines that were written back went on being stored to";
}

// A word of libpmemobj's that leads to the root object.
TEST_F(pmem_pool, without_a_root_object_is_an_error) {
  pool{path(), {.create_bytes = pool_bytes}};
  const descriptor file(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  constexpr off_t place_of_root = 4096 + 2048;
  for (const std::uint64_t word : {std::uint64_t{0x123456789}, std::uint64_t{1} << 62 | 1, pool_bytes - 64}) {
    ASSERT_EQ(::pwrite(file.get(), &word, sizeof word, place_of_root), static_cast<ssize_t>(sizeof word));
    EXPECT_EQ(message_of([&] { media::probe_pool(path(), media::time_to_probe(path())); }),
              "pool " + path() + " is damaged: its root object is not in it; restore it from a copy");
  }
}

TEST_F(pmem_pool, writes_nothing_back_in_a_private_mapping_and_keeps_its_mark) {
  pool{path(), {.create_bytes = pool_bytes}};
  kill_a_process_with(path());
  media::probe_pool(path(), media::time_to_probe(path()), [](pool& opened) {
    if (opened.written_back_bytes() != 0) throw error("a private mapping was written back", {});
  });
  EXPECT_TRUE(is_marked_as_open(path()));
  EXPECT_GT(pool(path()).written_back_bytes(), 0U);
}

TEST_F(pmem_pool, fills_no_hole_when_it_writes_back) {
  pool{path(), {.create_bytes = pool_bytes}};
  kill_a_process_with(path());
  const pmlab::descriptor file(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  constexpr off_t hole = 1 << 20;
  if (::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(pool_bytes) - 2 * hole,
                  hole) != 0)
    GTEST_SKIP() << "no holes here";
  const auto blocks = [&] {
    struct stat status {};
    EXPECT_EQ(::fstat(file.get(), &status), 0);
    return status.st_blocks;
  };
  const auto before = blocks();
  const pool next(path(), {.huge_pages = false, .reserve_space = false});
  EXPECT_GT(next.written_back_bytes(), 0U);
  EXPECT_EQ(blocks(), before);
}

TEST_F(pmem_pool, flushes_where_libpmem_is_made_to) {
  using media::persistence_domain;
  pool{path(), {.create_bytes = pool_bytes}};
  auto_flush = 1;
  EXPECT_EQ(pool(path()).persistence(), persistence_domain::eadr);
  ASSERT_EQ(::setenv("PMEM_NO_FLUSH", "0", 1), 0);
  EXPECT_EQ(pool(path()).persistence(), persistence_domain::adr);
  EXPECT_EQ(pool(path(), {.persistence = persistence_domain::gpf}).persistence(), persistence_domain::gpf);
  ASSERT_EQ(::setenv("PMEM_NO_FLUSH", "1", 1), 0);
  auto_flush = 0;
  EXPECT_EQ(pool(path()).persistence(), persistence_domain::adr);
  ::unsetenv("PMEM_NO_FLUSH");
  auto_flush = -1;
}

TEST_F(pmem_pool, says_what_its_content_survives) {
  pool medium(path(), {.create_bytes = pool_bytes});
  EXPECT_EQ(medium.survives().find("power failure") != std::string_view::npos,
            medium.backed_by() == media::backing::fs_dax || medium.backed_by() == media::backing::device_dax);
}

}  // namespace
