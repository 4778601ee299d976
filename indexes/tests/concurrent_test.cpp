// Many threads on one index: linearizable per key, nothing lost, scans that make sense, no thread waits for ever.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/history.hpp"
#include "support/linearizability.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

template <class Setting>
class concurrent : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  index_type open() { return index_type::open(*under_.medium); }

  medium_under_test<typename Setting::medium> under_;
  watchdog hang_{std::chrono::seconds(240), replay_command(1)};
};

TYPED_TEST_SUITE(concurrent, concurrent_settings, setting_name);

// F11: with the preset's optimisation. A few keys under all threads, among others that are inserted and erased around
// them, so that they are shifted and moved.
TYPED_TEST(concurrent, F11_C16_F19_every_key_is_linearizable) {
  for (const std::uint64_t seed : seeds(6)) {
    medium_under_test<typename TypeParam::medium> under;
    auto index = TypeParam::index::open(*under.medium);
    history_options options;
    options.seed = seed;
    options.threads = static_cast<unsigned>(2 + seed % 7);
    options.operations_per_thread = 8000 / options.threads;
    for (std::uint64_t i = 0; i < 1 + seed % 5; ++i) options.contended.push_back(1000 * i + 7);
    for (std::uint64_t i = 0; i < 400; ++i) options.filler.push_back(10 * i);
    ASSERT_EQ(check_concurrent_history(index, options), "") << "replay: " << replay_command(seed);
    const indexes::check_report report = index.check();
    ASSERT_TRUE(report.ok()) << report.violations.front() << "; replay: " << replay_command(seed);
  }
}

// F16, F5, C6, C8, C11: threads insert, all of their keys are there, and the structure is sound: no separator is in
// the wrong node, no key into a segment that was split meanwhile, no directory doubled twice.
TYPED_TEST(concurrent, F16_F5_C6_C8_C11_no_insert_is_lost_while_nodes_split) {
  for (const key_set kind : {key_set::anywhere, key_set::dense, key_set::sequential, key_set::clustered}) {
    medium_under_test<typename TypeParam::medium> under;
    auto index = TypeParam::index::open(*under.medium);
    random source(1);
    const std::vector<std::uint64_t> keys = make_keys(kind, 40'000, source);
    constexpr unsigned threads = 4;
    std::atomic<std::uint64_t> wrong{0};
    run_threads(threads, [&](unsigned t) {
      for (std::size_t i = t; i < keys.size(); i += threads)
        if (index.insert(keys[i], ~keys[i]) != outcome::inserted || index.find(keys[i]) != ~keys[i]) ++wrong;
    });
    EXPECT_EQ(wrong, 0U) << to_string(kind);
    contents model;
    for (const std::uint64_t key : keys) model[key] = ~key;
    ASSERT_EQ(compare_all(index, model), "") << to_string(kind);
  }
}

// Every key is inserted by all threads at once: exactly one of them succeeds.
TYPED_TEST(concurrent, C15_one_of_many_inserts_of_a_key_succeeds) {
  auto index = this->open();
  constexpr unsigned threads = 4;
  constexpr std::uint64_t keys = 20'000;
  std::vector<std::vector<bool>> mine(threads, std::vector<bool>(keys));
  run_threads(threads, [&](unsigned t) {
    for (std::uint64_t key = 0; key < keys; ++key) mine[t][key] = index.insert(key, t) == outcome::inserted;
  });
  contents model;
  for (std::uint64_t key = 0; key < keys; ++key) {
    int winners = 0;
    for (unsigned t = 0; t < threads; ++t)
      if (mine[t][key]) {
        ++winners;
        model[key] = t;
      }
    ASSERT_EQ(winners, 1) << key;
  }
  EXPECT_EQ(compare_all(index, model), "");
}

// F19, F16: a thread finds the results of its own operations on its own keys, whatever others do next to them.
TYPED_TEST(concurrent, F19_every_thread_finds_what_it_just_did) {
  auto index = this->open();
  constexpr unsigned threads = 4;
  std::vector<contents> models(threads);
  std::vector<std::string> wrong(threads);
  run_threads(threads, [&](unsigned t) {
    random source(t + 1);
    for (std::size_t i = 0; i < 30'000 && wrong[t].empty(); ++i) {
      const std::uint64_t key = source.below(600) * threads + t;
      const step change{random_action(source, {}), key, source.next()};
      const answer expected = expect(change, models[t]);
      const answer got = perform(change, index);
      if (got != expected)
        wrong[t] = to_string(change) + " answered " + to_string(got) + ", not " + to_string(expected);
      const auto now = index.find(key);
      if (now != state_in(models[t], key)) wrong[t] += " find after " + to_string(change) + " is wrong";
    }
  });
  contents model;
  for (unsigned t = 0; t < threads; ++t) {
    EXPECT_EQ(wrong[t], "");
    model.insert(models[t].begin(), models[t].end());
  }
  EXPECT_EQ(compare_all(index, model), "");
}

// F7, F15: untouched keys are found at every moment, while their neighbours are shifted to and fro (so
// often that a counter of 8 bits wraps between two looks of a reader) and split.
TYPED_TEST(concurrent, F7_F15_untouched_keys_are_always_found) {
  auto index = this->open();
  for (std::uint64_t key = 0; key < 2000; key += 8) ASSERT_EQ(index.insert(key, key + 1), outcome::inserted);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> found{0};
  run_threads(4, [&](unsigned t) {
    random source(t + 1);
    if (t < 2) {
      // Readers, with find and with find_batch.
      std::vector<std::uint64_t> keys(16);
      std::vector<std::optional<std::uint64_t>> values(16);
      for (std::uint64_t i = 0; !stop; ++i) {
        for (std::uint64_t& key : keys) key = source.below(250) * 8;
        if (t == 0)
          for (std::size_t k = 0; k < keys.size(); ++k) values[k] = index.find(keys[k]);
        else
          index.find_batch(keys, values);
        for (std::size_t k = 0; k < keys.size(); ++k)
          if (values[k] != keys[k] + 1) ++wrong;
        ++found;
      }
      return;
    }
    for (int i = 0; i < 60'000 || found < 100; ++i) {
      const std::uint64_t near = source.one_in(2) ? 3 : source.below(2000);
      const std::uint64_t key = near / 8 * 8 + t;
      index.insert(key, key);
      if (!source.one_in(50)) index.erase(key);
    }
    stop = true;
  });
  EXPECT_EQ(wrong, 0U);
  const auto report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
}

// A5: readers see whole values, never a half of one and a half of another; nor a value that belongs to another key.
TYPED_TEST(concurrent, A5_values_are_never_torn_or_swapped) {
  auto index = this->open();
  constexpr std::uint64_t keys = 50;
  const auto value_for = [](std::uint64_t key, std::uint64_t n) {
    const std::uint64_t half = (key << 20 | n) & 0xffffffffU;
    return half << 32 | half;
  };
  for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(index.insert(key, value_for(key, 0)), outcome::inserted);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> reads{0};
  run_threads(4, [&](unsigned t) {
    random source(t);
    if (t == 0) {
      for (std::uint64_t n = 0; !stop; ++n) {
        const std::uint64_t key = n % keys;
        if (const auto value = index.find(key);
            value && ((*value >> 32) != (*value & 0xffffffffU) || (*value >> 52) != key))
          ++wrong;
        ++reads;
      }
      return;
    }
    for (std::uint64_t n = 0; n < 60'000 || reads < 1000; ++n) {
      const std::uint64_t key = source.below(keys);
      if (source.one_in(8))
        index.erase(key);
      else
        index.upsert(key, value_for(key, n % (1 << 20)));
    }
    stop = true;
  });
  EXPECT_EQ(wrong, 0U);
}

// C16: threads that insert and erase the same keys all terminate, and leave a sound index.
TYPED_TEST(concurrent, C16_inserts_and_deletes_of_the_same_keys_do_not_hang) {
  auto index = this->open();
  run_threads(8, [&](unsigned t) {
    random source(t + 1);
    for (int i = 0; i < 15'000; ++i) {
      const std::uint64_t key = source.below(64);
      source.one_in(2) ? index.insert(key, static_cast<std::uint64_t>(i)) : index.erase(key);
    }
  });
  const auto report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  for (std::uint64_t key = 0; key < 64; ++key) index.erase(key);
  EXPECT_EQ(compare_all(index, {}), "");
}

template <class Setting>
class concurrent_scans : public concurrent<Setting> {};
TYPED_TEST_SUITE(concurrent_scans, ordered_concurrent_settings, setting_name);

// F6: scans during writes are ascending, without duplicates, complete for untouched keys, and hold nothing
// that was never there.
TYPED_TEST(concurrent_scans, F6_scans_under_writers_are_sorted_unique_and_complete) {
  auto index = this->open();
  constexpr std::uint64_t span_of_keys = 3000;
  for (std::uint64_t key = 0; key < span_of_keys; key += 5) ASSERT_EQ(index.insert(key, ~key), outcome::inserted);
  std::atomic<unsigned> writing{2};
  std::string wrong;
  std::atomic<std::uint64_t> scans{0};
  run_threads(3, [&](unsigned t) {
    random source(t + 1);
    if (t != 0) {
      for (int i = 0; i < 60'000 || scans < 200; ++i) {
        const std::uint64_t key = source.below(span_of_keys / 5) * 5 + 1 + source.below(4);
        source.one_in(2) ? index.insert(key, ~key) : index.erase(key);
      }
      --writing;
      return;
    }
    std::vector<indexes::entry> got(400);
    for (; writing > 0; ++scans) {
      if (!wrong.empty()) continue;
      const std::uint64_t from = source.below(span_of_keys);
      std::size_t count = 0;
      std::uint64_t last = ~std::uint64_t{0};
      if (source.one_in(2)) {
        const std::size_t length = 1 + source.below(got.size());
        count = index.scan(from, std::span(got.data(), length));
        if (count == length) last = got[count - 1].key;
      } else {
        last = from + source.below(300);
        index.for_each_in(from, last, [&](std::uint64_t key, std::uint64_t value) {
          if (count < got.size()) got[count++] = {key, value};
        });
      }
      std::uint64_t untouched = (from + 4) / 5 * 5;
      for (std::size_t i = 0; i < count && wrong.empty(); ++i) {
        const std::uint64_t key = got[i].key;
        if (i > 0 && key <= got[i - 1].key)
          wrong = "key " + std::to_string(key) + " after " + std::to_string(got[i - 1].key);
        if (key < from || key > last || key >= span_of_keys) wrong = "key out of range: " + std::to_string(key);
        if (got[i].value != ~key) wrong = "wrong value of key " + std::to_string(key);
        if (key > untouched) wrong = "misses key " + std::to_string(untouched);
        if (key == untouched) untouched += 5;
      }
      if (wrong.empty() && untouched <= last && untouched < span_of_keys)
        wrong = "ends before key " + std::to_string(untouched);
    }
  });
  EXPECT_EQ(wrong, "");
}

// A walk over a table that grows: segments are split before it and behind it. Keys that no writer touches are met once.
TEST(WalkBesideWriters, meets_each_untouched_key_once_while_segments_are_split) {
  constexpr std::uint64_t untouched = 20'000;
  media::dram medium;
  auto table = indexes::cceh<media::dram>::open(medium);
  for (std::uint64_t key = 0; key < untouched; ++key) ASSERT_EQ(table.insert(key, ~key), outcome::inserted);
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    for (std::uint64_t key = untouched; !ends; ++key) {
      table.insert(key, ~key);
      if (key % 3 == 0) table.erase(key - untouched / 2 > untouched ? key - untouched / 2 : key);
    }
  });
  std::uint64_t most = 0;
  for (int walks = 0; walks < 30 || most <= 2 * untouched; ++walks) {
    std::vector<bool> met(untouched);
    std::uint64_t wrong = 0, count = 0;
    table.for_each_beside_writers([&](std::uint64_t key, std::uint64_t value) {
      wrong += value == ~key && (key >= untouched || !met[key]) ? 0 : 1;
      if (key < untouched) met[key] = true;
      ++count;
    });
    most = std::max(most, count);
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(std::count(met.begin(), met.end(), false), 0);
  }
  ends = true;
  writer.join();
  EXPECT_TRUE(table.check().ok());
}

}  // namespace
}  // namespace pmlab::tests
