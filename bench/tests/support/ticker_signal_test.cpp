// Ticks by a signal, as the program that has the simulated machine gets them.
#include "bench/support/ticker.hpp"

#include <atomic>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

namespace pmlab::bench {
namespace {

void count(void* ticks) { static_cast<std::atomic<int>*>(ticks)->fetch_add(1); }

sigset_t only_alarm() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGALRM);
  return set;
}

TEST(TickerBySignal, ticks_while_it_lives) {
  std::atomic<int> ticks{0};
  {
    const ticker t(count, &ticks);
    const double end = real_seconds() + 60;
    while (ticks < 2 && real_seconds() < end) std::this_thread::yield();
  }
  EXPECT_GE(ticks, 2);
}

// On a busy machine a signal waits for its thread. The action of before would end the process.
TEST(TickerBySignal, a_ring_that_waits_is_gone_when_it_ends) {
  std::atomic<int> ticks{0};
  const sigset_t alarm = only_alarm();
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &alarm, nullptr), 0);
  sigset_t waiting;
  {
    const ticker t(count, &ticks);
    const double end = real_seconds() + 60;
    do ::sigpending(&waiting);
    while (::sigismember(&waiting, SIGALRM) == 0 && real_seconds() < end);
    ASSERT_EQ(::sigismember(&waiting, SIGALRM), 1);
  }
  ::sigpending(&waiting);
  EXPECT_EQ(::sigismember(&waiting, SIGALRM), 0);
  ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr), 0);
}

struct slow_tick {
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
};

// Long enough for the destructor to return, if it does not wait.
void tick_slowly(void* context) {
  auto* const tick = static_cast<slow_tick*>(context);
  if (tick->begun.exchange(true)) return;
  const double end = real_seconds() + 0.3;
  while (real_seconds() < end) continue;
  tick->ended = true;
}

TEST(TickerBySignal, a_tick_in_another_thread_has_ended_when_it_ends) {
  slow_tick tick;
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) std::this_thread::yield();
  });
  const sigset_t alarm = only_alarm();
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &alarm, nullptr), 0);  // the other thread takes it
  {
    const ticker t(tick_slowly, &tick);
    const double end = real_seconds() + 60;
    while (!tick.begun && real_seconds() < end) std::this_thread::yield();
  }
  EXPECT_TRUE(tick.begun);
  EXPECT_TRUE(tick.ended);
  ends = true;
  other.join();
  ASSERT_EQ(::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr), 0);
}

}  // namespace
}  // namespace pmlab::bench
