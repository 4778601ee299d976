// Version locks: writers exclude each other, readers never accept half of a change.
#include <pmlab/sync/version_lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using pmlab::sync::version_lock;
using pmlab::sync::version_lock_table;

TEST(version_lock, a_reader_notices_a_writer_that_came_and_went) {
  version_lock lock;
  const std::uint64_t before = lock.read_begin();
  EXPECT_TRUE(lock.read_validate(before));
  lock.lock();
  EXPECT_FALSE(lock.read_validate(before)) << "while the writer is inside";
  lock.unlock();
  EXPECT_FALSE(lock.read_validate(before)) << "after the writer has left";
  EXPECT_TRUE(lock.read_validate(lock.read_begin()));
}

TEST(version_lock, read_begin_waits_for_the_writer) {
  version_lock lock;
  std::atomic<bool> released{false};
  lock.lock();
  std::thread reader([&] {
    (void)lock.read_begin();
    EXPECT_TRUE(released.load());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  released = true;
  lock.unlock();
  reader.join();
}

TEST(version_lock, writers_exclude_each_other_and_readers_see_whole_changes) {
  constexpr int writers = 3;
  constexpr int rounds = 20000;
  version_lock lock;
  std::atomic<std::uint64_t> first{0};
  std::atomic<std::uint64_t> second{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w)
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        lock.lock();
        // Not an atomic increment: without exclusion some are lost.
        first.store(first.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        second.store(second.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        lock.unlock();
      }
    });
  std::uint64_t accepted = 0;
  std::thread reader([&] {
    while (!stop || accepted == 0) {
      const std::uint64_t version = lock.read_begin();
      const std::uint64_t a = first.load(std::memory_order_acquire);
      const std::uint64_t b = second.load(std::memory_order_acquire);
      if (!lock.read_validate(version)) continue;
      ASSERT_EQ(a, b);
      ++accepted;
    }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  reader.join();
  EXPECT_EQ(first.load(), std::uint64_t{writers} * rounds);
  EXPECT_GT(accepted, 0U);
}

TEST(version_lock_table, neighbours_have_locks_of_their_own_and_positions_wrap) {
  const version_lock_table table(8);
  EXPECT_NE(&table[0], &table[1]);
  EXPECT_EQ(&table[3], &table[11]);
  EXPECT_EQ(table.bytes(), 8 * sizeof(version_lock));
}

}  // namespace
