// A cache of pairs in front of a store: its answers while changes and reads overlap, its bytes, its hits.
#include <pmlab/base/random.hpp>
#include <pmlab/stores/kv_cache.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pmlab::tests::kv_cache_test {
namespace {

using stores::kv_mode;
using stores::kv_outcome;

// A store of pairs that calls back after its work and before its return: there another operation overlaps.
class store {
 public:
  std::function<void()> before_return{};
  std::uint64_t reads = 0;

  kv_outcome put(std::string_view key, std::span<const std::byte> value, kv_mode mode = kv_mode::post,
                 std::uint8_t space = 0) {
    kv_outcome done = kv_outcome::added;
    {
      const std::scoped_lock lock(mutex_);
      std::vector<std::byte>* const there = find(key, space);
      if (there != nullptr && mode == kv_mode::no_overwrite) return kv_outcome::exists;
      if (there == nullptr && mode == kv_mode::update_only) return kv_outcome::absent;
      if (there != nullptr) done = kv_outcome::replaced;
      std::vector<std::byte>& now = pairs_[{space, std::string(key)}];
      if (mode != kv_mode::append) now.clear();
      now.insert(now.end(), value.begin(), value.end());
    }
    call_back();
    return done;
  }
  std::optional<std::vector<std::byte>> get(std::string_view key, std::uint8_t space = 0) {
    std::optional<std::vector<std::byte>> value;
    {
      const std::scoped_lock lock(mutex_);
      ++reads;
      if (const auto* const there = find(key, space)) value = *there;
    }
    call_back();
    return value;
  }
  std::optional<std::size_t> get(std::string_view key, std::size_t /*offset*/, std::span<std::byte> /*out*/,
                                 std::uint8_t space = 0) {
    const auto value = get(key, space);
    return value ? std::optional(value->size()) : std::nullopt;
  }
  bool erase(std::string_view key, std::uint8_t space = 0) { return retrieve_and_erase(key, space).has_value(); }
  std::optional<std::vector<std::byte>> retrieve_and_erase(std::string_view key, std::uint8_t space = 0) {
    std::optional<std::vector<std::byte>> value;
    {
      const std::scoped_lock lock(mutex_);
      if (const auto* const there = find(key, space)) value = *there;
      pairs_.erase({space, std::string(key)});
    }
    call_back();
    return value;
  }
  std::vector<bool> exist(std::span<const std::string_view> keys, std::uint8_t space = 0) {
    std::vector<bool> there;
    for (const std::string_view key : keys) there.push_back(find(key, space) != nullptr);
    return there;
  }

 private:
  [[nodiscard]] std::vector<std::byte>* find(std::string_view key, std::uint8_t space) {
    const auto there = pairs_.find({space, std::string(key)});
    return there == pairs_.end() ? nullptr : &there->second;
  }
  void call_back() {
    if (!before_return) return;
    const auto once = std::move(before_return);
    before_return = nullptr;
    once();
  }

  std::mutex mutex_;
  std::map<std::pair<std::uint8_t, std::string>, std::vector<std::byte>> pairs_;
};

using cached = stores::kv_cache<store>;
constexpr stores::kv_cache_options one_megabyte{.bytes = 1 << 20};

[[nodiscard]] std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }
[[nodiscard]] std::optional<std::string> get(cached& c, const std::string& key, std::uint8_t space = 0) {
  const auto v = c.get(key, space);
  return v ? std::optional(std::string(reinterpret_cast<const char*>(v->data()), v->size())) : std::nullopt;
}

TEST(KvCache, is_off_by_default) {
  store s;
  cached c(s);
  c.put("key1", bytes_of("a"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(c, "key1"), "a");
  EXPECT_EQ(s.reads, 3U);
  EXPECT_EQ(c.stats().hits + c.stats().misses + c.stats().bytes, 0U);
}

TEST(KvCache, answers_from_memory_as_the_store_would) {
  store s;
  cached c(s, one_megabyte);
  EXPECT_EQ(get(c, "key1"), std::nullopt);
  EXPECT_EQ(c.put("key1", bytes_of("abc")), kv_outcome::added);
  EXPECT_EQ(get(c, "key1"), "abc");
  const auto reads = s.reads;
  EXPECT_EQ(get(c, "key1"), "abc");
  std::array<std::byte, 2> part{};
  EXPECT_EQ(c.get("key1", 1, part), 3U);
  EXPECT_EQ(std::memcmp(part.data(), "bc", 2), 0);
  EXPECT_EQ(s.reads, reads) << "two hits";
  EXPECT_EQ(get(c, "key1", 3), std::nullopt) << "of another key space";
  EXPECT_EQ(c.put("key1", bytes_of("de")), kv_outcome::replaced);
  EXPECT_EQ(get(c, "key1"), "de");
  EXPECT_EQ(s.reads, reads + 1) << "a put leaves its value";
  EXPECT_EQ(c.put("key1", bytes_of("x"), kv_mode::no_overwrite), kv_outcome::exists);
  EXPECT_EQ(get(c, "key1"), "de");
  EXPECT_EQ(s.reads, reads + 1);
  EXPECT_EQ(c.put("key1", bytes_of("f"), kv_mode::append), kv_outcome::replaced);
  EXPECT_EQ(get(c, "key1"), "def");
  EXPECT_TRUE(c.erase("key1"));
  EXPECT_EQ(get(c, "key1"), std::nullopt);
  EXPECT_EQ(c.put("key1", bytes_of("g"), kv_mode::update_only), kv_outcome::absent);
  EXPECT_EQ(get(c, "key1"), std::nullopt);
  c.put("key1", bytes_of("h"));
  EXPECT_EQ(get(c, "key1"), "h");
  ASSERT_TRUE(c.retrieve_and_erase("key1"));
  EXPECT_EQ(get(c, "key1"), std::nullopt);
}

// ---- overlapping operations, at the worst moment

TEST(KvCache, counts_new_values_as_updates_not_those_that_stay) {
  store s;
  cached c(s, one_megabyte);
  c.put("key1", bytes_of("abc"));
  EXPECT_EQ(get(c, "key1"), "abc");
  EXPECT_EQ(c.put("key1", bytes_of("x"), kv_mode::no_overwrite), kv_outcome::exists);
  EXPECT_EQ(c.stats().updates, 0U) << "the pair was kept";
  EXPECT_EQ(c.put("key1", bytes_of("x")), kv_outcome::replaced);
  EXPECT_EQ(c.stats().updates, 1U);
}

TEST(KvCache, does_not_keep_the_answer_of_a_read_that_a_put_overtook) {
  store s;
  cached c(s, one_megabyte);
  c.put("key1", bytes_of("old"));
  s.before_return = [&] { c.put("key1", bytes_of("new")); };
  EXPECT_EQ(get(c, "key1"), "old") << "read before the put";
  EXPECT_EQ(get(c, "key1"), "new");
  EXPECT_EQ(c.stats().stale, 1U);
  s.before_return = nullptr;
  c.erase("key1");
  c.put("key1", bytes_of("old"));
  s.before_return = [&] { c.erase("key1"); };
  EXPECT_EQ(get(c, "key1"), "old");
  EXPECT_EQ(get(c, "key1"), std::nullopt);
}

TEST(KvCache, does_not_keep_the_answer_of_a_read_during_a_put) {
  store s;
  cached c(s, one_megabyte);
  c.put("key1", bytes_of("old"));
  // The put has changed the store, and another one replaces its value before the reader's answer arrives.
  s.before_return = [&] { EXPECT_EQ(get(c, "key1"), "1"); };
  c.put("key1", bytes_of("1"));
  EXPECT_EQ(c.stats().fills, 0U);
  EXPECT_EQ(get(c, "key1"), "1");
}

TEST(KvCache, keeps_no_value_of_puts_that_overlap) {
  store s;
  cached c(s, one_megabyte);
  c.put("key1", bytes_of("0"));
  EXPECT_EQ(get(c, "key1"), "0");
  s.before_return = [&] { c.put("key1", bytes_of("2")); };
  c.put("key1", bytes_of("1"));
  EXPECT_EQ(get(c, "key1"), "2") << "the store has the second one";
  s.before_return = [&] { c.erase("key1"); };
  c.put("key1", bytes_of("3"));
  EXPECT_EQ(get(c, "key1"), std::nullopt);
}

// The first put ends while the second one is under way: a reader may have got the second value from the store.
TEST(KvCache, shows_no_value_while_another_put_is_under_way) {
  stores::pair_cache c(one_megabyte);
  const auto seen = c.find(0, "key1");
  c.fill(0, "key1", bytes_of("0"), seen.gate);
  ASSERT_TRUE(c.find(0, "key1").value);
  {
    stores::pair_cache::write first(c, 0, "key1");
    EXPECT_FALSE(c.find(0, "key1").value);
    {
      stores::pair_cache::write second(c, 0, "key1");
      first.end(bytes_of("1"));
      EXPECT_FALSE(c.find(0, "key1").value);
      second.end(bytes_of("2"));
    }
  }
  EXPECT_FALSE(c.find(0, "key1").value) << "the order of the two in the store is not known";
}

TEST(KvCache, forgets_a_pair_whose_put_failed) {
  store s;
  cached c(s, one_megabyte);
  c.put("key1", bytes_of("0"));
  EXPECT_EQ(get(c, "key1"), "0");
  s.before_return = [] { throw error("the device failed", "replace it"); };
  EXPECT_EQ(message_of([&] { c.put("key1", bytes_of("1")); }), "the device failed; replace it");
  EXPECT_EQ(get(c, "key1"), "1") << "as the store says";
}

// Each key's versions grow; a reader never gets an older one than the last that was acknowledged before it began.
TEST(KvCache, serves_no_stale_value_to_threads) {
  const char* const given = std::getenv("PMLAB_KV_SEED");
  const std::uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  SCOPED_TRACE("replay with PMLAB_KV_SEED=" + std::to_string(seed));
  for (const auto policy : {cache::eviction::lru, cache::eviction::clock, cache::eviction::s3_fifo}) {
    store s;
    cached c(s, {.bytes = 64 << 10, .evict = policy});
    constexpr std::size_t keys = 20;
    std::array<std::mutex, keys> writing;
    std::array<std::atomic<std::uint64_t>, keys> acknowledged{};
    std::array<std::uint64_t, keys> next{};
    std::atomic<bool> is_wrong{false};
    const auto name = [](std::size_t k) { return "key" + std::to_string(k); };
    std::vector<std::thread> running;
    for (std::uint64_t t = 0; t < 4; ++t)
      running.emplace_back([&, t] {
        splitmix64 random(seed + t);
        for (int i = 0; i < 20000 && !is_wrong; ++i) {
          const std::size_t k = random.below(keys);
          if (random.one_in(4)) {
            const std::scoped_lock lock(writing[k]);
            const std::uint64_t version = ++next[k];
            const std::vector<std::uint64_t> value(1 + random.below(500), version);
            c.put(name(k), std::as_bytes(std::span(value)));
            acknowledged[k].store(version);
          } else {
            const std::uint64_t least = acknowledged[k].load();
            const auto got = c.get(name(k));
            std::uint64_t version = 0;
            if (got) std::memcpy(&version, got->data(), sizeof version);
            if (version < least) is_wrong = true;
          }
        }
      });
    for (std::thread& t : running) t.join();
    EXPECT_FALSE(is_wrong) << "a value that a put had replaced was served; policy "
                           << cache::eviction_names[static_cast<std::size_t>(policy)];
    EXPECT_GT(c.stats().hits, 1000U);
    EXPECT_LE(c.stats().bytes, 64U << 10);
  }
}

// ---- bytes and hits

TEST(KvCache, holds_at_most_its_bytes_and_fills_them) {
  for (const std::size_t value : {std::size_t{10}, std::size_t{1000}, std::size_t{20000}}) {
    store s;
    cached c(s, {.bytes = 4 << 20, .shards = 4});
    for (int i = 0; i < 60000; ++i) {
      const std::string key = "key " + std::to_string(i);
      if (value * static_cast<std::size_t>(i) > 12 << 20) break;
      c.put(key, bytes_of(std::string(value, 'v')));
      static_cast<void>(c.get(key));
      ASSERT_LE(c.stats().bytes, 4U << 20);
    }
    EXPECT_GT(c.stats().bytes, (4U << 20) * 9 / 10) << "values of " << value << " bytes";
    EXPECT_GT(c.stats().evictions, 0U);
  }
  store s;
  cached c(s, {.bytes = 64 << 10});
  c.put("large", bytes_of(std::string(100000, 'v')));
  static_cast<void>(c.get("large"));
  EXPECT_EQ(c.stats().pairs, 0U) << "larger than the cache";
  // A pair that grows beyond the cache leaves it.
  c.put("grows", bytes_of("v"));
  static_cast<void>(c.get("grows"));
  c.put("grows", bytes_of(std::string(100000, 'v')));
  EXPECT_LE(c.stats().bytes, 64U << 10);
  EXPECT_EQ(get(c, "grows"), std::string(100000, 'v'));
}

// 20 keys are read again and again, among 20,000 that are read once.
TEST(KvCache, keeps_the_keys_that_are_read_often) {
  for (const auto policy : {cache::eviction::lru, cache::eviction::clock, cache::eviction::s3_fifo}) {
    store s;
    cached c(s, {.bytes = 1 << 20, .evict = policy, .shards = 1});
    for (int i = 0; i < 20000; ++i) s.put("key " + std::to_string(i), bytes_of(std::string(1000, 'v')));
    for (int i = 0; i < 20000; ++i) {
      static_cast<void>(c.get("key " + std::to_string(i)));
      if (i % 10 == 0) static_cast<void>(c.get("key " + std::to_string(i / 10 % 20)));
    }
    const auto often = c.stats().hits;
    RecordProperty(std::string(cache::eviction_names[static_cast<std::size_t>(policy)]), static_cast<int>(often));
    EXPECT_GE(often, 1900U) << cache::eviction_names[static_cast<std::size_t>(policy)];
  }
}

TEST(KvCache, refuses_impossible_options_by_name) {
  store s;
  const auto message = [&](stores::kv_cache_options o) { return message_of([&] { cached c(s, o); }); };
  EXPECT_EQ(message({.bytes = 1000}), "a cache of pairs of 1000 bytes; choose at least 65536, or 0 for none");
  EXPECT_EQ(message({.bytes = 1 << 20, .shards = 0}), "a cache of pairs with 0 shards; choose 1 to 1024");
}

}  // namespace
}  // namespace pmlab::tests::kv_cache_test
