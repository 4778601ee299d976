// What each index for several hosts has to do: on one host, on several views of one DRAM, and on media with faults.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/host_view.hpp"
#include "support/message_of.hpp"

namespace pmlab::tests {

using model_of_index = std::map<std::uint64_t, std::uint64_t>;

template <class Index>
void expect_entries(const Index& index, const model_of_index& model) {
  EXPECT_EQ(index.size(), model.size());
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, model.size());
  model_of_index there;
  index.for_each([&](std::uint64_t key, std::uint64_t value) {
    EXPECT_TRUE(there.try_emplace(key, value).second) << "twice: " << key;
  });
  EXPECT_EQ(there, model);
}

// Random operations on `index`; returns what it then has.
template <class Index>
model_of_index expect_answers_of_a_map(Index& index) {
  using indexes::outcome;
  model_of_index model;
  splitmix64 random(1);
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    const std::uint64_t key = random.one_in(500) ? std::numeric_limits<std::uint64_t>::max() : random.below(3000);
    const auto there = model.find(key);
    const bool is_there = there != model.end();
    switch (random.below(5)) {
      case 0:
        EXPECT_EQ(index.insert(key, i), is_there ? outcome::exists : outcome::inserted);
        model.try_emplace(key, i);
        break;
      case 1:
        EXPECT_EQ(index.upsert(key, i), is_there ? outcome::updated : outcome::inserted);
        model[key] = i;
        break;
      case 2:
        EXPECT_EQ(index.update(key, i), is_there ? outcome::updated : outcome::absent);
        if (is_there) there->second = i;
        break;
      case 3:
        EXPECT_EQ(index.erase(key), is_there ? outcome::erased : outcome::absent);
        model.erase(key);
        break;
      default: EXPECT_EQ(index.find(key), is_there ? std::optional(there->second) : std::nullopt);
    }
  }
  expect_entries(index, model);
  return model;
}

// `Index` on host_view.
template <class Index>
void expect_each_host_sees_what_the_others_have_done() {
  using indexes::outcome;
  host_memory memory;
  host_view first(memory, 0, 3), second(memory, 1, 3), third(memory, 2, 3);
  Index a = Index::open(first), b = Index::open(second), c = Index::open(third);
  const std::array<Index*, 3> hosts{&a, &b, &c};
  model_of_index model;
  splitmix64 random(2);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    Index& on = *hosts[random.below(3)];
    const std::uint64_t key = random.below(2000);
    if (random.one_in(4)) {
      EXPECT_EQ(on.erase(key), model.erase(key) != 0 ? outcome::erased : outcome::absent);
    } else {
      EXPECT_EQ(on.upsert(key, i), model.contains(key) ? outcome::updated : outcome::inserted);
      model[key] = i;
    }
    const auto there = model.find(key);
    EXPECT_EQ(hosts[random.below(3)]->find(key), there == model.end() ? std::nullopt : std::optional(there->second));
  }
  for (Index* on : hosts) {
    expect_entries(*on, model);
    EXPECT_EQ(on->stats().nodes, a.stats().nodes);
  }
}

// The same.
template <class Index>
void expect_threads_of_several_hosts_add_keys_of_their_own() {
  host_memory memory;
  host_view first(memory, 0, 2), second(memory, 1, 2);
  Index a = Index::open(first), b = Index::open(second);
  constexpr std::uint64_t threads = 4, each = 4000;
  model_of_index model;
  for (std::uint64_t i = 0; i < threads * each; ++i) model[mix_bits(i)] = i % threads;
  std::vector<std::thread> running;
  for (std::uint64_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Index& on = t % 2 == 0 ? a : b;
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t key = mix_bits(i * threads + t);
        EXPECT_EQ(on.insert(key, t), indexes::outcome::inserted);
        EXPECT_EQ(on.find(key), t);
      }
    });
  for (std::thread& t : running) t.join();
  expect_entries(a, model);
  expect_entries(b, model);
}

// `Few` and `Many` on odd_dram, with 64 locks and with more.
template <class Few, class Many>
void expect_that_another_number_of_locks_is_named() {
  odd_dram memory;
  static_cast<void>(Few::open(memory).insert(1, 2));
  const auto head = memory.named_root(Few::layout_name, Few::layout_name, Few::layout_version).word->load();
  // It ends behind the head of few; of many it has a part.
  memory.bound = head + 66 * media::cache_line_bytes;
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(Many::open(memory)); }), "another number of locks");
  memory.bound = head + 2 * media::cache_line_bytes;
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(Few::open(memory)); }), "corrupt: its head");
}

// `Index` on DRAM.
template <class Index>
void expect_that_a_full_memory_changes_nothing() {
  using indexes::outcome;
  media::dram memory(media::dram_options{.capacity_bytes = std::size_t{1} << 18});
  auto index = Index::open(memory);
  model_of_index model;
  std::uint64_t count = 0;
  for (; index.insert(mix_bits(count), count) == outcome::inserted; ++count) model[mix_bits(count)] = count;
  EXPECT_GT(count, 1000U);
  EXPECT_EQ(index.insert(mix_bits(count), count), outcome::full);
  EXPECT_EQ(index.find(mix_bits(count)), std::nullopt);
  expect_entries(index, model);
}

// `Index` on odd_dram. `publications`: of the first ones, how many may throw; `keys`: are enough for all of them.
template <class Index>
void expect_that_a_publication_that_throws_leaves_no_lock_held(std::uint64_t publications, std::uint64_t keys) {
  for (std::uint64_t number = 1; number < publications; ++number) {
    odd_dram memory(number);
    auto index = Index::open(memory);
    std::uint64_t thrown = 0;
    model_of_index model;
    for (std::uint64_t key = 0; key < keys; ++key) {
      model[key] = key;
      if (!message_of([&] { static_cast<void>(index.upsert(key, key)); }).empty()) {
        ++thrown;
        static_cast<void>(index.upsert(key, key));
      }
    }
    EXPECT_EQ(thrown, 1U);
    expect_entries(index, model);
  }
}

}  // namespace pmlab::tests
