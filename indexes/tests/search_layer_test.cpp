// The ordered map in DRAM under FP-tree and skip list.
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/detail/word_counts.hpp>
#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include "support/campaign.hpp"
#include "support/history.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::detail::search_entry;
using layer = indexes::detail::search_layer<>;
using model = std::map<std::uint64_t, std::uint64_t>;

constexpr std::uint64_t first_word = 77;
constexpr std::uint64_t top = ~std::uint64_t{0};

std::uint64_t floor_in(const model& m, std::uint64_t key) {
  auto after = m.upper_bound(key);
  return after == m.begin() ? first_word : std::prev(after)->second;
}

// The difference between the layer and `m`; empty: none.
std::string compare(const layer& l, const model& m) {
  indexes::check_report report;
  model found;
  l.check(report, [&](std::uint64_t key, std::uint64_t word) { found[key] = word; });
  if (!report.ok()) return report.violations.front();
  if (found != m) return "it has " + std::to_string(found.size()) + " entries, not those " + std::to_string(m.size());
  for (const auto& [key, word] : m)
    for (const std::uint64_t near : {key - 1, key, key + 1})
      if (l.floor(near) != floor_in(m, near)) return "floor of " + std::to_string(near) + " is wrong";
  for (const std::uint64_t from : {std::uint64_t{0}, top / 2, top}) {
    std::vector<std::uint64_t> words(m.size() + 1);
    words.resize(l.words_after(from, words));
    std::vector<std::uint64_t> expected;
    for (auto i = m.upper_bound(from); i != m.end(); ++i) expected.push_back(i->second);
    if (words != expected) return "words after " + std::to_string(from) + " are wrong";
  }
  return "";
}

// Counts of one instruction set, against the words one by one.
template <class Words>
void expect_same_counts(std::uint64_t seed) {
  using one_by_one = indexes::detail::words_one_by_one;
  alignas(media::cache_line_bytes) indexes::detail::atomic_words<8> eight{};
  alignas(media::cache_line_bytes) indexes::detail::atomic_words<4> four{};
  std::mt19937_64 random(seed);
  // Near the least, the middle and the greatest word: where comparisons of signed and unsigned words differ.
  const auto word = [&] {
    constexpr std::array<std::uint64_t, 4> around = {0, top / 2, top, 1U << 31U};
    return random() % 3 == 0 ? random() : around[random() % around.size()] + random() % 5 - 2;
  };
  for (unsigned round = 0; round < 20'000; ++round) {
    for (auto& w : eight) w = word();
    for (auto& w : four) w = word();
    const std::uint64_t bound =
        round % 2 == 0 ? word() : (round % 4 == 1 ? eight[round % 8U] : four[round % 4U]).load();
    ASSERT_EQ(Words::count_up_to(eight, bound), one_by_one::count_up_to(eight, bound)) << "seed " << seed;
    ASSERT_EQ(Words::count_up_to(four, bound), one_by_one::count_up_to(four, bound)) << "seed " << seed;
  }
}

TEST(search_layer, counts_of_words_do_not_depend_on_the_cpu) {
  alignas(media::cache_line_bytes) indexes::detail::atomic_words<4> words = {top, 0, top / 2, top / 2 + 1};
  EXPECT_EQ(indexes::detail::words_one_by_one::count_up_to(words, top / 2), 2);
  if (__builtin_cpu_supports("avx2")) expect_same_counts<indexes::detail::words_by_avx2>(1);
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    expect_same_counts<indexes::detail::words_by_avx512>(2);
}

TEST(search_layer, an_empty_one_finds_the_first_word) {
  const layer l(first_word);
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{5}, top}) EXPECT_EQ(l.floor(key), first_word);
  EXPECT_EQ(compare(l, {}), "");
}

TEST(search_layer, does_what_a_map_does) {
  for (const std::uint64_t seed : seeds(6)) {
    random source(seed);
    for (const key_set kind : all_key_sets) {
      layer l(first_word);
      model m;
      const std::vector<std::uint64_t> keys = make_keys(kind, 3000, source);
      for (std::size_t i = 0; i < 12'000; ++i) {
        const std::uint64_t key = keys[source.below(keys.size())];
        // Now more of the one, now more of the other, so that blocks fill and empty.
        if (source.below(10) < (i / 3000 % 2 == 0 ? 8U : 2U)) {
          ASSERT_TRUE(l.put(key, i));
          m[key] = i;
        } else {
          const auto there = m.find(key);
          EXPECT_FALSE(l.remove(key, top));
          EXPECT_EQ(l.remove(key, there == m.end() ? 0 : there->second), there != m.end());
          if (there != m.end()) m.erase(there);
        }
      }
      ASSERT_EQ(compare(l, m), "") << to_string(kind) << ", replay: " << replay_command(seed);
      for (const auto& [key, word] : m) ASSERT_TRUE(l.remove(key, word));
      ASSERT_EQ(compare(l, {}), "") << to_string(kind) << ", replay: " << replay_command(seed);
    }
  }
}

// A window of keys that wanders: the blocks behind it go, and are used again ahead of it.
TEST(search_layer, gives_blocks_back_that_are_empty) {
  layer l(first_word);
  constexpr std::uint64_t window = 5000;
  std::uint64_t bytes_after_the_first = 0;
  for (std::uint64_t key = 0; key < 40 * window; ++key) {
    ASSERT_TRUE(l.put(key, key));
    if (key < window) continue;
    ASSERT_TRUE(l.remove(key - window, key - window));
    ASSERT_EQ(l.floor(key - window), first_word);
    if (key == 2 * window) bytes_after_the_first = l.bytes();
  }
  EXPECT_LE(l.bytes(), bytes_after_the_first * 3 / 2);
}

TEST(search_layer, built_at_once_is_as_if_put_one_by_one) {
  random source(3);
  for (const std::size_t entries : {0U, 1U, 24U, 25U, 576U, 577U, 20'000U}) {
    for (const unsigned threads : {1U, 4U}) {
      model m;
      for (const std::uint64_t key : make_keys(key_set::anywhere, entries, source)) m[key] = ~key;
      std::vector<search_entry> sorted;
      for (const auto& [key, word] : m) sorted.push_back({key, word});
      layer l(first_word);
      ASSERT_TRUE(l.build(sorted, threads));
      ASSERT_EQ(compare(l, m), "") << entries;
      for (const std::uint64_t key : make_keys(key_set::anywhere, 3000, source)) {
        ASSERT_TRUE(l.put(key, 1));
        m[key] = 1;
      }
      ASSERT_EQ(compare(l, m), "") << entries;
    }
  }
}

// Threads put and remove keys of their own, others look for keys that are always there.
TEST(search_layer, threads_do_not_disturb_each_other) {
  layer l(first_word);
  constexpr std::uint64_t keys = 20'000;
  constexpr unsigned threads = 4;
  for (std::uint64_t i = 0; i < keys; i += 50) ASSERT_TRUE(l.put(i * 10, i * 10));
  std::atomic<std::uint64_t> wrong{0};
  run_threads(threads, [&](unsigned t) {
    random source(t + 1);
    if (t + 1 == threads) {
      for (int i = 0; i < 300'000; ++i) {
        const std::uint64_t at = source.below(keys / 50) * 500;
        if (l.floor(at) != at) ++wrong;
        // The result between two of them is at or above the left one.
        const std::uint64_t between = l.floor(at + 499);
        if (between < at || between > at + 499) ++wrong;
      }
      return;
    }
    for (int round = 0; round < 4; ++round) {
      for (std::uint64_t i = t; i < keys; i += threads - 1)
        if (i % 50 != 0 && !l.put(i * 10, i * 10)) ++wrong;
      for (std::uint64_t i = t; i < keys; i += threads - 1)
        if (i % 50 != 0 && (l.floor(i * 10) != i * 10 || !l.remove(i * 10, i * 10))) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0U);
  model m;
  for (std::uint64_t i = 0; i < keys; i += 50) m[i * 10] = i * 10;
  EXPECT_EQ(compare(l, m), "");
}

// Transactions that always succeed, for one thread: the way that hardware takes where it can.
struct pretended_transactions {
  static bool available() { return true; }
  template <class Body>
  static bool attempt(Body&& body) {
    try {
      body();
    } catch (const given_up&) {
      return false;
    }
    ++successes;
    return true;
  }
  static void give_up() { throw given_up(); }

  struct given_up {};
  static inline std::uint64_t successes = 0;
};

TEST(search_layer, P9_finds_the_same_in_transactions) {
  random source(5);
  indexes::detail::search_layer<pretended_transactions> l(first_word);
  model m;
  for (const std::uint64_t key : make_keys(key_set::clustered, 5000, source)) {
    ASSERT_TRUE(l.put(key, ~key));
    m[key] = ~key;
  }
  // Emptied blocks are a detour in both ways.
  for (auto i = m.begin(); i != m.end();) {
    if (source.below(100) < 97) {
      ASSERT_TRUE(l.remove(i->first, i->second));
      i = m.erase(i);
    } else {
      ++i;
    }
  }
  pretended_transactions::successes = 0;
  std::uint64_t asked = 0;
  for (const auto& [key, word] : m)
    for (const std::uint64_t near : {key - 1, key, key + 1, key + 1000}) {
      ASSERT_EQ(l.floor(near), floor_in(m, near));
      ++asked;
    }
  EXPECT_EQ(pretended_transactions::successes, asked);
}

// Transactions among threads, as hardware has them: the others stand still wherever they are, at any instruction, while
// the body runs, which is atomic so. They stand for some transactions in a row, for it takes long until all do, and go
// on before one is given up. For one thread that has transactions.
class still_transactions {
 public:
  static bool available() { return true; }
  template <class Body>
  static bool attempt(Body&& body) {
    if (!stand_still_) stop_the_others();
    try {
      body();
    } catch (const given_up&) {
      ++aborts;
      let_the_others_go();
      return false;
    }
    if (++successes % in_a_row == 0) let_the_others_go();
    return true;
  }
  static void let_the_others_go() {
    if (!stand_still_) return;
    ++wave_;
    while (standing_.load() != 0) ::sched_yield();
    stand_still_ = false;
    one_at_a_time_.unlock();
  }
  static void give_up() { throw given_up(); }

  // A thread that transactions stop, as long as this lives.
  class disturber {
   public:
    disturber() {
      const std::scoped_lock guard(one_at_a_time_);
      struct sigaction stands {};
      stands.sa_handler = [](int) {
        const std::uint64_t wave = wave_.load();
        ++standing_;
        while (wave_.load() == wave) ::sched_yield();
        --standing_;
      };
      stands.sa_flags = SA_RESTART;
      ::sigaction(SIGUSR1, &stands, nullptr);
      others_.push_back(::pthread_self());
    }
    disturber(const disturber&) = delete;
    disturber& operator=(const disturber&) = delete;
    ~disturber() {
      const std::scoped_lock guard(one_at_a_time_);
      std::erase_if(others_, [](pthread_t other) { return ::pthread_equal(other, ::pthread_self()) != 0; });
    }
  };

  [[nodiscard]] static std::size_t disturbers() {
    const std::scoped_lock guard(one_at_a_time_);
    return others_.size();
  }

  static inline std::uint64_t successes = 0;
  static inline std::uint64_t aborts = 0;

 private:
  struct given_up {};
  static constexpr std::uint64_t in_a_row = 40;

  static void stop_the_others() {
    one_at_a_time_.lock();
    for (const pthread_t other : others_) ::pthread_kill(other, SIGUSR1);
    while (standing_.load() != others_.size()) ::sched_yield();
    stand_still_ = true;
  }

  static inline std::mutex one_at_a_time_;
  static inline std::vector<pthread_t> others_;
  static inline std::atomic<std::size_t> standing_{0};
  static inline std::atomic<std::uint64_t> wave_{0};
  static inline bool stand_still_ = false;
};

TEST(search_layer, P9_transactions_among_threads_find_what_is_there) {
  indexes::detail::search_layer<still_transactions> l(first_word);
  // Few keys, so that most transactions meet a block that is being changed.
  constexpr std::uint64_t keys = 150;
  constexpr std::uint64_t apart = 15;
  constexpr unsigned threads = 3;
  for (std::uint64_t i = 0; i < keys; i += apart) ASSERT_TRUE(l.put(i * 10, i * 10));
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<bool> stop{false};
  run_threads(threads, [&](unsigned t) {
    if (t + 1 == threads) {
      while (still_transactions::disturbers() + 1 != threads) ::sched_yield();
      random source(9);
      // On a busy machine it takes long until all others stand.
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      for (int i = 0; i < 100'000 && std::chrono::steady_clock::now() < end; ++i) {
        const std::uint64_t at = source.below(keys / apart) * apart * 10;
        if (l.floor(at) != at) ++wrong;
        const std::uint64_t between = l.floor(at + apart * 10 - 1);
        if (between < at || between >= at + apart * 10) ++wrong;
      }
      still_transactions::let_the_others_go();
      stop = true;
      return;
    }
    const still_transactions::disturber disturbs;
    while (!stop) {
      for (std::uint64_t i = t; i < keys; i += threads - 1)
        if (i % apart != 0 && !l.put(i * 10, i * 10)) ++wrong;
      for (std::uint64_t i = t; i < keys; i += threads - 1)
        if (i % apart != 0 && !l.remove(i * 10, i * 10)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(still_transactions::successes, 0U);
  std::printf("  %llu transactions, %llu given up\n", static_cast<unsigned long long>(still_transactions::successes),
              static_cast<unsigned long long>(still_transactions::aborts));
}

}  // namespace
}  // namespace pmlab::tests
