// Epochs: nothing runs while a guard exists that is older, everything runs in the end, memory stays bounded.
#include <pmlab/sync/epoch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using pmlab::sync::epochs;

// Retires functions that do nothing, until the domain had every occasion to run the others.
void make_time_pass(epochs& domain) {
  for (int i = 0; i < 8; ++i) domain.retire([] {});
}

TEST(epochs, a_function_runs_once_and_without_guards_soon) {
  epochs domain(1);
  int runs = 0;
  domain.retire([&runs] { ++runs; });
  make_time_pass(domain);
  EXPECT_EQ(runs, 1);
  domain.drain();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(domain.waiting(), 0U);
}

TEST(epochs, a_function_waits_for_the_guard_of_the_thread_that_retired_it) {
  epochs domain(1);
  bool ran = false;
  {
    const auto guard = domain.pin();
    domain.retire([&ran] { ran = true; });
    make_time_pass(domain);
    EXPECT_FALSE(ran);
  }
  make_time_pass(domain);
  EXPECT_TRUE(ran);
}

TEST(epochs, a_function_waits_until_the_last_nested_guard_is_gone) {
  epochs domain(1);
  bool ran = false;
  {
    const auto outer = domain.pin();
    {
      const auto inner = domain.pin();
      domain.retire([&ran] { ran = true; });
    }
    make_time_pass(domain);
    EXPECT_FALSE(ran);
  }
  make_time_pass(domain);
  EXPECT_TRUE(ran);
}

TEST(epochs, a_function_waits_for_the_guard_of_another_thread) {
  epochs domain(1);
  std::atomic<int> stage{0};
  bool ran = false;
  std::thread reader([&] {
    {
      const auto guard = domain.pin();
      stage = 1;
      while (stage != 2) std::this_thread::yield();
    }
    stage = 3;
  });
  while (stage != 1) std::this_thread::yield();
  domain.retire([&ran] { ran = true; });
  make_time_pass(domain);
  EXPECT_FALSE(ran);
  stage = 2;
  while (stage != 3) std::this_thread::yield();
  make_time_pass(domain);
  EXPECT_TRUE(ran);
  reader.join();
}

TEST(epochs, a_guard_that_began_later_holds_nothing_up) {
  epochs domain(1);
  bool ran = false;
  domain.retire([&ran] { ran = true; });
  for (int i = 0; i < 8; ++i) {
    const auto guard = domain.pin();
    domain.retire([] {});
  }
  EXPECT_TRUE(ran);
}

TEST(epochs, functions_run_in_the_order_in_which_a_thread_retired_them_and_may_retire_others) {
  struct state {
    epochs domain{1};
    std::vector<int> order;
  } s;
  s.domain.retire([&s] {
    s.order.push_back(1);
    s.domain.retire([&s] { s.order.push_back(3); });
  });
  s.domain.retire([&s] { s.order.push_back(2); });
  s.domain.drain();
  EXPECT_EQ(s.order, (std::vector<int>{1, 2, 3}));
}

TEST(epochs, the_destructor_runs_what_waits) {
  int runs = 0;
  {
    epochs domain;
    for (int i = 0; i < 10; ++i) domain.retire([&runs] { ++runs; });
    EXPECT_EQ(domain.waiting(), 10U);
  }
  EXPECT_EQ(runs, 10);
}

// A function may retire others: these run after it, not within it, though each is a batch of its own here.
TEST(epochs, drain_runs_no_function_within_another) {
  epochs domain(1);
  struct counts {
    int ran = 0;
    int running = 0;
    int most = 0;
  } seen;
  std::thread([&] {
    const auto guard = domain.pin();
    domain.retire([&domain, &seen] {
      seen.most = std::max(seen.most, ++seen.running);
      for (int i = 0; i < 8; ++i)
        domain.retire([&seen] {
          seen.most = std::max(seen.most, ++seen.running);
          ++seen.ran;
          --seen.running;
        });
      --seen.running;
    });
    for (int i = 0; i < 4; ++i) domain.retire([&seen] { ++seen.ran; });
  }).join();
  domain.drain();
  EXPECT_EQ(seen.ran, 12);
  EXPECT_EQ(seen.most, 1);
}

TEST(epochs, what_an_ended_thread_retired_runs_too) {
  epochs domain(1);
  std::atomic<int> runs{0};
  for (int i = 0; i < 20; ++i) std::thread([&] { domain.retire([&runs] { ++runs; }); }).join();
  domain.drain();
  EXPECT_EQ(runs, 20);
}

TEST(epochs, guards_of_two_domains_have_nothing_to_do_with_each_other) {
  epochs one(1);
  epochs other(1);
  bool ran = false;
  const auto guard = one.pin();
  other.retire([&ran] { ran = true; });
  make_time_pass(other);
  EXPECT_TRUE(ran);
}

TEST(epochs, few_functions_wait_if_guards_are_short) {
  epochs domain;
  for (int i = 0; i < 100000; ++i) {
    const auto guard = domain.pin();
    domain.retire([] {});
  }
  EXPECT_LE(domain.waiting(), 4 * epochs::usual_batch);
}

// A thread that retires `count` functions, each of which adds one to `runs`, and then stays idle until it is asked to
// end.
class idle_thread {
 public:
  idle_thread(epochs& domain, std::atomic<int>& runs, int count)
      : thread_([this, &domain, &runs, count] {
          for (int i = 0; i < count; ++i) domain.retire([&runs] { ++runs; });
          idle_ = true;
          while (!end_) std::this_thread::yield();
        }) {
    while (!idle_) std::this_thread::yield();
  }
  idle_thread(const idle_thread&) = delete;
  idle_thread& operator=(const idle_thread&) = delete;
  ~idle_thread() {
    end_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> idle_{false};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

TEST(epochs, reclaim_runs_what_idle_and_ended_threads_retired) {
  epochs domain;
  std::atomic<int> runs{0};
  std::thread([&] {
    for (int i = 0; i < 3; ++i) domain.retire([&runs] { ++runs; });
  }).join();
  const idle_thread idle(domain, runs, 40);
  domain.retire([&runs] { ++runs; });
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(domain.reclaim(), 44U);
  EXPECT_EQ(runs, 44);
  EXPECT_EQ(domain.waiting(), 0U);
  EXPECT_EQ(domain.reclaim(), 0U);
}

TEST(epochs, reclaim_runs_nothing_that_a_reader_may_be_reading) {
  epochs domain;
  std::atomic<int> runs{0};
  std::atomic<int> stage{0};
  std::thread reader([&] {
    {
      const auto guard = domain.pin();
      stage = 1;
      while (stage != 2) std::this_thread::yield();
    }
    stage = 3;
  });
  while (stage != 1) std::this_thread::yield();
  const idle_thread idle(domain, runs, 5);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(domain.reclaim(), 0U);
  EXPECT_EQ(runs, 0);
  stage = 2;
  while (stage != 3) std::this_thread::yield();
  EXPECT_EQ(domain.reclaim(), 5U);
  EXPECT_EQ(runs, 5);
  reader.join();
}

// Owners retire while others reclaim from them: each function runs once. Under ThreadSanitizer the lists are the test.
TEST(epochs, threads_that_retire_and_reclaim_at_once_run_each_function_once) {
  constexpr int each = 20000;
  epochs domain(8);
  std::vector<std::atomic<int>> runs(std::size_t{3} * each);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        std::atomic<int>* const mine = &runs[static_cast<std::size_t>(t * each + i)];
        {
          const auto guard = domain.pin();
          domain.retire([&domain, mine] {
            if (++*mine == 1) domain.retire([mine] { ++*mine; });
          });
        }
        if (i % 16 == t) domain.reclaim();
      }
    });
  for (auto& t : threads) t.join();
  domain.drain();
  for (const auto& r : runs) ASSERT_EQ(r, 2);
}

// Cells that are replaced and reused as soon as possible: a reader must never see one change under its
// guard. Under ThreadSanitizer the plain words are the test.
TEST(epochs, no_reader_sees_memory_that_is_used_again) {
  struct cell {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
  };
  constexpr std::uint64_t rounds = 100000;
  constexpr std::size_t shared_cells = 4;
  epochs domain(4);
  std::array<std::atomic<cell*>, shared_cells> shared;
  for (auto& s : shared) s = new cell;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      while (!stop) {
        const auto guard = domain.pin();
        for (auto& s : shared) {
          const cell* const c = s.load(std::memory_order_acquire);
          const std::uint64_t a = c->a;
          std::this_thread::yield();
          if (a != c->b) ++torn;
        }
      }
    });
  std::vector<std::thread> writers;
  for (std::uint64_t w = 1; w <= 2; ++w)
    writers.emplace_back([&, w] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        cell* const made = new cell{i * w, i * w};
        const auto guard = domain.pin();
        cell* const old = shared[i % shared_cells].exchange(made, std::memory_order_acq_rel);
        domain.retire([old] {
          old->a = ~old->a;
          delete old;
        });
      }
    });
  for (auto& t : writers) t.join();
  stop = true;
  for (auto& t : readers) t.join();
  EXPECT_EQ(torn, 0U);
  domain.drain();
  for (auto& s : shared) delete s.load();
}

}  // namespace
