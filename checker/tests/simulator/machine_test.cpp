// The simulated machine runs the parts of programs: threads, locks, waits, thread-local storage; it replays; and it
// detects errors. This program is simulated itself.
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/pages.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "checker/tests/simulator/on_machine.hpp"
#include "checker/tests/simulator/uninstrumented.hpp"

namespace pmlab::simulator {
namespace {

// A clock that stands still and records prefetches. The machine calls it, and must not observe its accesses.
class prefetch_notes final : public timing {
 public:
  bool is_private(unsigned, std::uintptr_t, std::size_t, access_kind) override { return true; }
  std::uint64_t access(unsigned, std::uintptr_t, std::size_t, access_kind, std::uint64_t now) override { return now; }
  std::uint64_t flush(unsigned, std::uintptr_t, bool, std::uint64_t now) override { return now; }
  std::uint64_t write_around(unsigned, std::uintptr_t, std::size_t, std::uint64_t now) override { return now; }
  __attribute__((no_sanitize("thread"))) std::uint64_t prefetch(unsigned, std::uintptr_t address, std::size_t,
                                                                std::uint64_t now) override {
    ++count;
    last = address;
    return now;
  }
  std::uint64_t fence(unsigned, std::uint64_t now) override { return now; }
  std::uint64_t publication(unsigned, std::span<const std::uintptr_t>, std::size_t, std::uint64_t now) override {
    return now;
  }

  unsigned count = 0;
  std::uintptr_t last = 0;
};

TEST(machine, a_prefetch_is_heard_wherever_its_line_lies) {
  prefetch_notes notes;
  std::vector<std::uint64_t> words(100);
  machine_options options;
  options.cost = &notes;
  the_machine().begin(options);
  the_machine().watch(true);
  the_machine().begin_timing();
  __builtin_prefetch(words.data());
  __builtin_prefetch(&words[50], 1);
  __builtin_prefetch(&words[99], 0, 3);
  the_machine().end_timing();
  the_machine().watch(false);
  the_machine().end();
  EXPECT_EQ(notes.count, 3U);
  EXPECT_EQ(notes.last, reinterpret_cast<std::uintptr_t>(&words[99]));
}

// A vector load is one access of its width, as the indexes have it where they read words by vectors.
#if defined(__GNUC__) && !defined(__clang__)  // clang reports none of more than 16 bytes
class load_notes final : public timing {
 public:
  bool is_private(unsigned, std::uintptr_t, std::size_t, access_kind) override { return true; }
  __attribute__((no_sanitize("thread"))) std::uint64_t access(unsigned, std::uintptr_t address, std::size_t bytes,
                                                              access_kind kind, std::uint64_t now) override {
    if (kind == access_kind::read && address == watched) last = bytes;
    return now;
  }
  std::uint64_t flush(unsigned, std::uintptr_t, bool, std::uint64_t now) override { return now; }
  std::uint64_t write_around(unsigned, std::uintptr_t, std::size_t, std::uint64_t now) override { return now; }
  std::uint64_t prefetch(unsigned, std::uintptr_t, std::size_t, std::uint64_t now) override { return now; }
  std::uint64_t fence(unsigned, std::uint64_t now) override { return now; }
  std::uint64_t publication(unsigned, std::span<const std::uintptr_t>, std::size_t, std::uint64_t now) override {
    return now;
  }

  std::uintptr_t watched = 0;
  std::size_t last = 0;
};

using vector_16 [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;
using vector_32 [[gnu::vector_size(32), gnu::may_alias]] = std::uint64_t;
using vector_64 [[gnu::vector_size(64), gnu::may_alias]] = std::uint64_t;

[[gnu::noinline]] std::uint64_t sum_of_16(const std::uint64_t* words) {
  const vector_16 v = *reinterpret_cast<const vector_16*>(words);
  return v[0] + v[1];
}
[[gnu::noinline, gnu::target("avx2")]] std::uint64_t sum_of_32(const std::uint64_t* words) {
  const vector_32 v = *reinterpret_cast<const vector_32*>(words);
  return v[0] + v[1] + v[2] + v[3];
}
[[gnu::noinline, gnu::target("avx512f")]] std::uint64_t sum_of_64(const std::uint64_t* words) {
  const vector_64 v = *reinterpret_cast<const vector_64*>(words);
  return v[0] + v[7];
}

TEST(machine, a_vector_load_is_one_access_of_its_width) {
  load_notes notes;
  auto* const words = static_cast<std::uint64_t*>(::operator new (64, std::align_val_t{64}));
  std::fill_n(words, 8, 1);
  notes.watched = reinterpret_cast<std::uintptr_t>(words);
  volatile std::uint64_t sum = 0;  // the loads are needed
  const auto bytes_of = [&](std::uint64_t (*load)(const std::uint64_t*)) {
    machine_options options;
    options.cost = &notes;
    the_machine().begin(options);
    the_machine().watch(true);
    the_machine().begin_timing();
    sum = load(words);
    the_machine().end_timing();
    the_machine().watch(false);
    the_machine().end();
    return notes.last;
  };
  EXPECT_EQ(bytes_of(sum_of_16), 16U);
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(bytes_of(sum_of_32), 32U);
  }
  if (__builtin_cpu_supports("avx512f")) {
    EXPECT_EQ(bytes_of(sum_of_64), 64U);
  }
  ::operator delete (words, std::align_val_t{64});
}
#endif

// Its id is not given to another one before it is joined, or that one would be joined in its place.
TEST(machine, a_thread_that_has_ended_is_still_the_one_to_join) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    run(seed, [] {
      std::atomic<bool> first_done{false};
      std::thread first([&] { first_done = true; });
      while (!first_done) std::this_thread::yield();
      for (int i = 0; i < 20; ++i) std::this_thread::yield();
      std::atomic<int> steps{0};
      std::thread second([&] {
        for (int i = 0; i < 100; ++i) ++steps;
      });
      second.join();
      EXPECT_EQ(steps, 100);
      first.join();
    });
}

TEST(machine, a_mutex_excludes) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    volatile std::uint64_t sum = 0;
    run(seed, [&] {
      std::mutex mutex;
      in_threads(4, [&](unsigned) {
        for (int i = 0; i < 50; ++i) {
          const std::scoped_lock lock(mutex);
          sum = sum + 1;
        }
      });
    });
    ASSERT_EQ(sum, 200U) << "seed " << seed;
  }
}

TEST(machine, without_a_mutex_updates_are_lost_and_the_seed_says_which) {
  const auto sum_of = [](std::uint64_t seed) {
    volatile std::uint64_t sum = 0;
    run(seed, [&] {
      in_threads(4, [&](unsigned) {
        for (int i = 0; i < 50; ++i) sum = sum + 1;
      });
    });
    return sum + 0;
  };
  std::set<std::uint64_t> sums;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sums.insert(sum_of(seed));
    ASSERT_EQ(sum_of(seed), sum_of(seed)) << "seed " << seed;
  }
  EXPECT_LT(*sums.begin(), 200U);
  EXPECT_GT(sums.size(), 3U);
}

TEST(machine, condition_variables_and_shared_locks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t taken = 0;
    run(seed, [&] {
      std::mutex mutex;
      std::condition_variable changed;
      std::deque<std::uint64_t> queue;
      std::shared_mutex shared;
      in_threads(4, [&](unsigned t) {
        for (std::uint64_t i = 1; i <= 20; ++i) {
          if (t % 2 == 0) {
            const std::scoped_lock lock(mutex);
            queue.push_back(i);
            changed.notify_one();
          } else {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return !queue.empty(); });
            taken += queue.front();
            queue.pop_front();
          }
          if (t == 0) {
            const std::scoped_lock lock(shared);
          } else {
            const std::shared_lock lock(shared);
          }
        }
      });
    });
    ASSERT_EQ(taken, 2 * 210U) << "seed " << seed;
  }
}

TEST(machine, sleeps_and_timed_waits_end) {
  run(1, [] {
    std::mutex mutex;
    std::condition_variable never;
    in_threads(2, [&](unsigned t) {
      if (t == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return;
      }
      std::unique_lock lock(mutex);
      EXPECT_EQ(never.wait_for(lock, std::chrono::milliseconds(1)), std::cv_status::timeout);
    });
  });
}

TEST(machine, atomic_wait_is_woken) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    run(seed, [] {
      std::atomic<int> word{0};
      in_threads(2, [&](unsigned t) {
        if (t == 0) {
          word.wait(0);
          EXPECT_EQ(word.load(), 1);
        } else {
          word.store(1);
          word.notify_all();
        }
      });
    });
}

int initialisations = 0;

struct counted_object {
  counted_object() { ++initialisations; }
  int value = 7;
};

TEST(machine, once_and_contended_statics_are_initialised_once) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    initialisations = 0;
    int called = 0;
    run(seed, [&] {
      std::once_flag flag;
      in_threads(4, [&](unsigned) {
        std::call_once(flag, [&] { ++called; });
        EXPECT_EQ(called, 1);
        static counted_object once;
        EXPECT_EQ(once.value, 7);
      });
    });
    EXPECT_EQ(called, 1);
    EXPECT_LE(initialisations, 1);
  }
}

std::mutex ended_mutex;
std::vector<int> ended;  // by destructors of thread-local objects

struct local_object {
  int number = 0;
  // Locks, and yields with the lock held: the thread's end is a part of the thread like any other.
  ~local_object() {
    const std::scoped_lock guard(ended_mutex);
    std::this_thread::yield();
    ended.push_back(number);
  }
};

TEST(machine, every_thread_has_its_thread_local_storage_and_gives_it_back) {
  ended.clear();
  run(3, [] {
    in_threads(3, [](unsigned t) {
      thread_local local_object mine;
      EXPECT_EQ(mine.number, 0);
      mine.number = static_cast<int>(t) + 1;
      std::this_thread::yield();
      errno = static_cast<int>(t) + 100;
      std::this_thread::yield();
      EXPECT_EQ(mine.number, static_cast<int>(t) + 1);
      EXPECT_EQ(errno, static_cast<int>(t) + 100);
    });
  });
  EXPECT_EQ(std::multiset<int>(ended.begin(), ended.end()), (std::multiset<int>{1, 2, 3}));
}

constexpr timespec a_millisecond{0, 1'000'000};
std::atomic<pid_t> heard_signal{0};

// The machine has a kernel thread for the storage of each fiber. None of them hears a signal while the thread that runs
// the fibers blocks it.
TEST(machine, a_signal_of_the_process_is_for_the_thread_that_runs_the_fibers) {
  struct sigaction before {};
  struct sigaction note {};
  note.sa_handler = [](int) { heard_signal = static_cast<pid_t>(::syscall(SYS_gettid)); };
  ASSERT_EQ(::sigaction(SIGUSR1, &note, &before), 0);
  run(1, [] {
    in_threads(3, [](unsigned thread) {
      if (thread != 2) return std::this_thread::yield();
      the_machine().quietly([] {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGUSR1);
        ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
        ::kill(::getpid(), SIGUSR1);
        for (int i = 0; i < 100 && heard_signal == 0; ++i) ::syscall(SYS_nanosleep, &a_millisecond, nullptr);
        EXPECT_EQ(heard_signal, 0);
        ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
        EXPECT_EQ(heard_signal, ::syscall(SYS_gettid));
      });
    });
  });
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(machine, exceptions_stay_with_their_threads) {
  run(5, [] {
    in_threads(4, [](unsigned t) {
      try {
        std::this_thread::yield();
        throw static_cast<int>(t);
      } catch (int caught) {
        std::this_thread::yield();
        EXPECT_EQ(caught, static_cast<int>(t));
      }
    });
  });
}

TEST(machine, the_same_seed_makes_the_same_accesses) {
  const auto accesses_of = [](std::uint64_t seed) {
    return run(seed, [] {
      std::atomic<std::uint64_t> word{0};
      in_threads(3, [&](unsigned) {
        for (int i = 0; i < 30; ++i)
          for (std::uint64_t old = word.load(); !word.compare_exchange_weak(old, old * 3 + 1);) {
          }
      });
    });
  };
  EXPECT_EQ(accesses_of(11), accesses_of(11));
  std::set<std::uint64_t> different;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) different.insert(accesses_of(seed));
  EXPECT_GT(different.size(), 1U);
}

// Tests that end the process run in a child process.
TEST(machine_death, a_deadlock_is_reported_with_the_place_of_each_thread) {
  const auto deadlock = [] {
    for (std::uint64_t seed = 1; seed < 200; ++seed)
      run(seed, [] {
        std::mutex first;
        std::mutex second;
        in_threads(2, [&](unsigned t) {
          const std::scoped_lock one(t == 0 ? first : second);
          const std::scoped_lock other(t == 0 ? second : first);
        });
      });
  };
  EXPECT_DEATH(deadlock(), "deadlock: every thread waits(.|\n)*thread 1 at .*waits for a mutex(.|\n)*thread 2 at");
}

TEST(machine_death, a_livelock_is_reported) {
  const auto livelock = [] {
    run(
        1,
        [] {
          std::atomic<bool> never{false};
          in_threads(2, [&](unsigned) {
            while (!never.load()) {
            }
          });
        },
        100'000);
  };
  EXPECT_DEATH(livelock(), "livelock");
}

TEST(machine_death, a_use_of_freed_memory_is_reported) {
  const auto use = [] {
    run(1, [] {
      auto* const word = new std::atomic<std::uint64_t>(5);
      auto* volatile kept = word;
      delete word;
      kept->store(6);
    });
  };
  EXPECT_DEATH(use(), "use of freed memory");
}

TEST(machine, a_block_of_no_bytes_can_be_given_back) {
  run(1, [] {
    void* const volatile block = ::operator new (0, std::align_val_t{64});
    void* const volatile other = ::operator new(0);
    EXPECT_NE(block, other);
    ::operator delete (block, std::align_val_t{64});
    ::operator delete(other);
  });
}

TEST(machine_death, a_second_free_is_reported) {
  const auto free_twice = [] {
    run(1, [] {
      auto* const word = new std::uint64_t(5);
      void* const volatile kept = word;
      ::operator delete(kept);
      ::operator delete(kept);
    });
  };
  EXPECT_DEATH(free_twice(), "freed twice");
}

TEST(persistence, stores_are_durable_when_flushed_and_fenced) {
  persistent_memory memory(1 << 20);
  memory.cover_all();
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.start() + 8192);
  const auto* const durable = reinterpret_cast<const std::uint64_t*>(memory.durable() + 8192);
  run(1, [&] {
    the_machine().use(&memory);
    words[0].store(1, std::memory_order_release);
    words[1].store(2, std::memory_order_release);
    words[0].store(3, std::memory_order_release);
    the_machine().flush(words, nullptr);
    words[2].store(4, std::memory_order_release);
    EXPECT_EQ(durable[0], 0U);
    the_machine().fence(nullptr);
    EXPECT_EQ(durable[0], 3U);
    EXPECT_EQ(durable[1], 2U);
    EXPECT_EQ(durable[2], 0U) << "stored after the flush";
    ASSERT_EQ(memory.unpersisted().size(), 1U);
    EXPECT_EQ(memory.log(memory.unpersisted()[0]).stores.size(), 1U);
    EXPECT_EQ(memory.audit(), "");
  });
}

TEST(persistence, plain_stores_and_copies_are_seen) {
  persistent_memory memory(1 << 20);
  memory.cover_all();
  struct wide {
    std::uint64_t words[24];
  };
  auto* const target = reinterpret_cast<wide*>(memory.start() + 8192);
  auto source = std::make_unique<wide>();
  for (std::size_t i = 0; i < 24; ++i) source->words[i] = i + 1;
  run(1, [&] {
    the_machine().use(&memory);
    *target = *source;
    std::memset(target + 1, 0x7f, sizeof(wide));
    target[2].words[5] = 9;
    reinterpret_cast<volatile char*>(target + 3)[3] = 1;
    the_machine().settle();
    EXPECT_EQ(memory.audit(), "");
  });
  EXPECT_EQ(memory.unpersisted().size(), 3 + 3 + 1 + 1U);
}

TEST(persistence, the_audit_finds_a_store_that_went_around_the_instrument) {
  persistent_memory memory(1 << 20);
  memory.cover_all();
  auto* const word = reinterpret_cast<std::uint64_t*>(memory.start() + 8192);
  run(1, [&] {
    the_machine().use(&memory);
    reinterpret_cast<std::atomic<std::uint64_t>*>(word)->store(1);
    EXPECT_EQ(memory.audit(), "");
    tests::store_unseen(word, 2);
    EXPECT_TRUE(
        memory.audit().starts_with("a store bypassed the instrument: offset 8192 holds a value that no logged store "
                                   "wrote; the last store to its line that was logged is at {0x"))
        << memory.audit();
  });
}

TEST(persistence, small_blocks_begin_in_the_middle_of_a_line_and_a_line_apart) {
  persistent_memory memory(1 << 20);
  memory.place_small_blocks_at(16);
  memory.reset();
  std::byte* end = memory.start();
  for (const std::size_t alignment : {8, 64, 16, 1, 256, 8}) {
    auto* const block = static_cast<std::byte*>(memory.reserve(72, alignment));
    const auto offset = static_cast<std::size_t>(block - memory.start());
    EXPECT_EQ(offset % 64, alignment <= 16 ? 16U : 0U);
    EXPECT_EQ(offset % std::min<std::size_t>(alignment, 16), 0U);
    EXPECT_GE(block - end, 64);
    end = block + 72;
  }
}

TEST(persistence, a_memory_that_was_restored_uses_small_blocks_again_for_small_ones_only) {
  persistent_memory memory(1 << 20);
  memory.place_small_blocks_at(16);
  memory.reset();
  auto* const small = static_cast<std::byte*>(memory.reserve(64, 8));
  const auto offset = static_cast<std::size_t>(small - memory.start());
  memory.restore_blocks({{offset, 64}}, memory.blocks().top());
  const pmlab_change gone{2, small, 64};
  EXPECT_EQ(memory.publish({&gone, 1}), "");
  EXPECT_EQ((static_cast<std::byte*>(memory.reserve(64, 64)) - memory.start()) % 64, 0);
  EXPECT_EQ(memory.reserve(64, 8), small);
}

TEST(persistence, a_limit_refuses_blocks_for_a_while_or_beyond_a_size) {
  persistent_memory memory(1 << 20);
  memory.limit(space_limit({.spare = 2, .refused = 3}));
  std::string room;
  for (int i = 0; i < 7; ++i) room += memory.reserve(64, 64) != nullptr ? '+' : '-';
  EXPECT_EQ(room, "++---++");
  EXPECT_EQ(memory.limit().refusals(), 3U);
  memory.limit(space_limit({.most_bytes = 100}));
  void* const fits = memory.reserve(64, 64);
  const pmlab_change kept{0, fits, 0};
  EXPECT_EQ(memory.publish({&kept, 1}), "");
  EXPECT_EQ(memory.reserve(64, 64), nullptr);
  EXPECT_NE(memory.reserve(32, 64), nullptr);
}

TEST(persistence, a_new_block_holds_garbage_and_of_a_large_one_the_first_16_MiB_do) {
  constexpr std::size_t garbage = std::size_t{16} << 20;
  constexpr std::size_t bytes = 4 * garbage;
  constexpr std::size_t words = garbage / sizeof(std::uint64_t);
  persistent_memory memory(2 * bytes);
  memory.keep_log(false);
  const auto* const block = static_cast<const std::uint64_t*>(memory.reserve(bytes, page_bytes));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(std::count(block, block + words, 0U), 0);
  std::vector<unsigned char> resident((bytes - garbage) / page_bytes);
  ASSERT_EQ(::mincore(const_cast<std::uint64_t*>(block + words), bytes - garbage, resident.data()), 0);
  EXPECT_EQ(std::ranges::count_if(resident, [](unsigned char page) { return (page & 1) != 0; }), 0);
}

TEST(persistence, an_image_is_any_prefix_of_each_line) {
  persistent_memory memory(1 << 20);
  memory.cover_all();
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.start() + 8192);
  run(1, [&] {
    the_machine().use(&memory);
    words[0].store(1);
    words[1].store(2);
    words[8].store(3);  // the next line
    ASSERT_EQ(memory.unpersisted().size(), 2U);
    std::set<std::string> images;
    for (std::uint32_t first = 0; first <= 2; ++first)
      for (std::uint32_t second = 0; second <= 1; ++second) {
        std::vector<std::byte> image(memory.used_bytes());
        const std::uint32_t choice[] = {first, second};
        memory.write_image(image.data(), choice);
        const auto* const w = reinterpret_cast<const std::uint64_t*>(image.data() + 8192);
        images.insert(std::to_string(w[0]) + std::to_string(w[1]) + std::to_string(w[8]));
      }
    EXPECT_EQ(images, (std::set<std::string>{"000", "100", "120", "003", "103", "123"}));
  });
}

}  // namespace
}  // namespace pmlab::simulator
