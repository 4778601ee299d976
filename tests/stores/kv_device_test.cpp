// A key-value device against pairs in a map: on DRAM and in a pool, with hashes that collide, reopened, full, with a flash
// that fails, with threads; its iterators; its amplification.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/flash/page_ftl.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "blocks/small_drive.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace pmlab::tests {
namespace {

using stores::kv_mode;
using stores::kv_outcome;

// The tests share two instantiations: a device whose flash counts and fails, with the right hash and with 97 hashes.
using flash = blocks::faulty<blocks::counted<blocks::memory>>;
struct few_hashes {
  std::uint64_t operator()(std::uint8_t space, std::string_view key) const noexcept {
    return (stores::detail::kv_ssd::default_hash{}(space, key) % 97 + 1) * golden_ratio;
  }
};
using device = stores::kv_device<media::dram, flash>;
using colliding = stores::kv_device<media::dram, flash, few_hashes>;

constexpr blocks::geometry small_flash{.blocks = 2000, .block_bytes = 512};
constexpr stores::kv_options small{
    .unit_bytes = 64, .superblock_bytes = 16384, .buffer_bytes = 8192, .largest_value = 1500, .bucket_bytes = 512};

[[nodiscard]] std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }
[[nodiscard]] std::string text_of(const std::vector<std::byte>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size()};
}
[[nodiscard]] std::string random_value(splitmix64& random, std::size_t bytes) {
  std::string v(bytes, '\0');
  for (char& c : v) c = static_cast<char>(random.next());
  return v;
}
template <class Device>
[[nodiscard]] std::optional<std::string> get(Device& d, const std::string& key, std::uint8_t space = 0) {
  const auto v = d.get(key, space);
  return v ? std::optional(text_of(*v)) : std::nullopt;
}
template <class Device>
void expect_sound(Device& d) {
  const auto report = d.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
}
template <class Device>
[[nodiscard]] std::vector<std::string> keys_of(Device& d, stores::kv_prefix prefix = {}, std::uint8_t space = 0) {
  auto walk = d.iterate(prefix, space);
  std::vector<std::string> all;
  for (;;) {
    auto some = walk.next(7);
    const bool last = some.size() < 7;
    for (std::string& k : some) all.push_back(std::move(k));
    if (last) break;
  }
  std::sort(all.begin(), all.end());
  return all;
}
[[nodiscard]] stores::kv_prefix prefix_of(const std::string& four, std::uint32_t mask = 0xffffffff) {
  std::uint32_t pattern = 0;
  for (const char c : four) pattern = pattern << 8 | static_cast<std::uint8_t>(c);
  return {.mask = mask, .pattern = pattern & mask};
}

// ---- commands

TEST(KvDevice, does_as_the_modes_of_a_put_say) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  EXPECT_EQ(d.put("key1", bytes_of("a"), kv_mode::update_only), kv_outcome::absent);
  EXPECT_EQ(get(d, "key1"), std::nullopt);
  EXPECT_EQ(d.put("key1", bytes_of("a"), kv_mode::no_overwrite), kv_outcome::added);
  EXPECT_EQ(d.put("key1", bytes_of("b"), kv_mode::no_overwrite), kv_outcome::exists);
  EXPECT_EQ(get(d, "key1"), "a");
  EXPECT_EQ(d.put("key1", bytes_of("bc"), kv_mode::update_only), kv_outcome::replaced);
  EXPECT_EQ(d.put("key1", bytes_of("de"), kv_mode::append), kv_outcome::replaced);
  EXPECT_EQ(d.put("key2", bytes_of("x"), kv_mode::append), kv_outcome::added);
  EXPECT_EQ(get(d, "key1"), "bcde");
  EXPECT_EQ(d.put("key1", {}, kv_mode::post), kv_outcome::replaced);
  EXPECT_EQ(get(d, "key1"), "");
  // Appended to what lies on flash.
  EXPECT_EQ(d.put("key1", bytes_of(std::string(1000, 'y'))), kv_outcome::replaced);
  EXPECT_TRUE(d.empty_buffer());
  EXPECT_EQ(d.put("key1", bytes_of("z"), kv_mode::append), kv_outcome::replaced);
  EXPECT_EQ(get(d, "key1"), std::string(1000, 'y') + "z");
  EXPECT_NE(message_of([&] { d.put("key1", bytes_of(std::string(600, 'y')), kv_mode::append); }).find("1601 bytes"),
            std::string::npos);
  EXPECT_EQ(get(d, "key1"), std::string(1000, 'y') + "z");
  expect_sound(d);
}

TEST(KvDevice, reads_parts_deletes_and_asks_for_many) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  for (const bool flushed : {false, true}) {
    d.put("key1", bytes_of("0123456789"));
    d.put("key1", bytes_of("other"), kv_mode::post, 3);
    if (flushed) d.empty_buffer();
    std::array<std::byte, 4> some{};
    EXPECT_EQ(d.get("key1", 3, some), 10U);
    EXPECT_EQ(std::memcmp(some.data(), "3456", 4), 0);
    EXPECT_EQ(d.get("key1", 8, some), 10U);
    EXPECT_EQ(std::memcmp(some.data(), "8956", 4), 0);
    EXPECT_EQ(d.get("key1", 99, some), 10U);
    EXPECT_EQ(d.get("none", 0, some), std::nullopt);
    const std::string_view many[] = {"none", "key1",
                                     "key"
                                     "2"};
    EXPECT_EQ(d.exist(many), (std::vector<bool>{false, true, false}));
    EXPECT_EQ(d.exist(many, 3), (std::vector<bool>{false, true, false}));
    EXPECT_EQ(text_of(*d.retrieve_and_erase("key1")), "0123456789");
    EXPECT_EQ(d.retrieve_and_erase("key1"), std::nullopt);
    EXPECT_FALSE(d.erase("key1"));
    EXPECT_EQ(get(d, "key1", 3), "other");
    EXPECT_TRUE(d.erase("key1", 3));
    EXPECT_EQ(d.stats().used_bytes, 0U);
    expect_sound(d);
  }
}

TEST(KvDevice, has_short_keys_as_nvme) {
  media::dram memory;
  flash on(1, small_flash);
  auto options = small;
  options.short_keys = true;
  auto d = device::open(memory, on, options);
  const std::string longest(16, 'k');
  for (const std::string& key : {std::string("a"), std::string("a\0", 2), longest}) d.put(key, bytes_of(key));
  EXPECT_EQ(keys_of(d), (std::vector<std::string>{"a", std::string("a\0", 2), longest}));
  EXPECT_EQ(get(d, std::string("a\0", 2)), std::string("a\0", 2));
  EXPECT_NE(message_of([&] { d.put(longest + "k", {}); }), "");
  EXPECT_NE(message_of([&] { d.put("", {}); }), "");
}

TEST(KvDevice, keeps_the_largest_value_in_all_its_units) {
  media::dram memory;
  flash on(1, blocks::geometry{.blocks = 16 * 1024, .block_bytes = 4096});
  for (const std::size_t unit : {std::size_t{64}, std::size_t{1024}}) {
    stores::kv_options options{.unit_bytes = unit};
    options.format = true;
    auto d = device::open(memory, on, options, "unit" + std::to_string(unit));
    splitmix64 random(7);
    const std::string value = random_value(random, std::size_t{2} << 20);
    ASSERT_EQ(d.put("large", bytes_of(value)), kv_outcome::added);
    EXPECT_TRUE(get(d, "large") == value);
    ASSERT_TRUE(d.empty_buffer());
    EXPECT_TRUE(get(d, "large") == value);
    EXPECT_NE(message_of([&] { d.put("large", bytes_of(value + "x")); }).find("at most 2097152 bytes"),
              std::string::npos);
  }
}

// ---- against a map

[[nodiscard]] std::string random_key(splitmix64& random) {
  std::string key = random.one_in(2) ? "aaaa" : "b" + std::string(1, static_cast<char>('a' + random.below(20))) + "00";
  key += std::to_string(random.below(300));
  if (random.one_in(20)) key.resize(255, 'x');
  return key;
}

template <class Device>
void operate(Device& d, std::map<std::string, std::string>& right, splitmix64& random, int steps) {
  for (int step = 0; step < steps; ++step) {
    const std::string key = random_key(random);
    const auto there = right.find(key);
    switch (random.below(8)) {
      case 0:
      case 1: ASSERT_EQ(d.erase(key), right.erase(key) == 1) << "step " << step; break;
      case 2: {
        const auto value = get(d, key);
        ASSERT_EQ(value.has_value(), there != right.end()) << "step " << step;
        if (value) {
          ASSERT_TRUE(*value == there->second) << "step " << step;
        }
        break;
      }
      default: {
        const auto mode = static_cast<kv_mode>(random.below(4));
        const std::string value = random_value(random, random.below(random.one_in(4) ? 1400 : 100));
        if (mode == kv_mode::append && there != right.end() && there->second.size() + value.size() > 1500) break;
        const kv_outcome got = d.put(key, bytes_of(value), mode);
        if (got == kv_outcome::full) break;
        const bool is_there = there != right.end();
        if (mode == kv_mode::no_overwrite && is_there) {
          ASSERT_EQ(got, kv_outcome::exists);
        } else if (mode == kv_mode::update_only && !is_there) {
          ASSERT_EQ(got, kv_outcome::absent);
        } else {
          ASSERT_EQ(got, is_there ? kv_outcome::replaced : kv_outcome::added) << "step " << step;
          if (mode == kv_mode::append)
            right[key] += value;
          else
            right[key] = value;
        }
      }
    }
  }
}

template <class Device>
void expect_equal(Device& d, const std::map<std::string, std::string>& right) {
  expect_sound(d);
  std::vector<std::string> keys;
  for (const auto& [key, value] : right) {
    keys.push_back(key);
    ASSERT_TRUE(get(d, key) == value) << key;
  }
  ASSERT_EQ(keys_of(d), keys);
  std::erase_if(keys, [](const std::string& k) { return !k.starts_with("bc00"); });
  ASSERT_EQ(keys_of(d, prefix_of("bc00")), keys);
}

// PMLAB_KV_SEED replays a failure.
[[nodiscard]] std::uint64_t seed_or(std::uint64_t usual) {
  const char* const given = std::getenv("PMLAB_KV_SEED");
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

template <class Device>
void agrees_with_a_map(std::uint64_t seed) {
  SCOPED_TRACE("replay with PMLAB_KV_SEED=" + std::to_string(seed));
  splitmix64 random(seed);
  media::dram memory;
  flash on(1, small_flash);
  std::map<std::string, std::string> right;
  for (int round = 0; round < 6; ++round) {
    auto d = Device::open(memory, on, small);
    expect_equal(d, right);
    operate(d, right, random, 1500);
    expect_equal(d, right);
  }
}
TEST(KvDevice, agrees_with_a_map) {
  const std::uint64_t first = seed_or(1);
  for (std::uint64_t seed = first; seed < first + 3; ++seed) agrees_with_a_map<device>(seed);
}
TEST(KvDevice, agrees_with_a_map_when_hashes_collide) { agrees_with_a_map<colliding>(seed_or(4)); }

// A slot behind a deleted one is found, and a slot that is free again is used.
TEST(KvDevice, finds_keys_behind_a_deleted_one_with_the_same_hash) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = colliding::open(memory, on, small);
  std::vector<std::string> same;
  for (int i = 0; same.size() < 5; ++i)
    if (std::string key = "key" + std::to_string(1000 + i); few_hashes{}(0, key) == few_hashes{}(0, "key1000"))
      same.push_back(key);
  for (const std::string& k : same) ASSERT_EQ(d.put(k, bytes_of("of " + k)), kv_outcome::added);
  d.empty_buffer();
  for (const std::size_t gone : {std::size_t{0}, std::size_t{2}, std::size_t{4}}) EXPECT_TRUE(d.erase(same[gone]));
  for (std::size_t i = 0; i < same.size(); ++i)
    EXPECT_EQ(get(d, same[i]), i % 2 == 0 ? std::nullopt : std::optional("of " + same[i]));
  expect_sound(d);
  for (const std::string& k : same)
    if (!get(d, k)) {
      EXPECT_EQ(d.put(k, bytes_of("again")), kv_outcome::added);
    }
  for (std::size_t i = 0; i < same.size(); ++i) EXPECT_EQ(get(d, same[i]), i % 2 == 0 ? "again" : "of " + same[i]);
  expect_sound(d);
}

TEST(KvDevice, opens_again_in_a_pool_without_reading_the_flash) {
  const temporary_folder folder;
  blocks::counted<blocks::memory> on(blocks::geometry{.blocks = 8192, .block_bytes = 4096});
  using in_pool = stores::kv_device<media::pmem, blocks::counted<blocks::memory>>;
  const stores::kv_options options{.superblock_bytes = 1 << 20, .buffer_bytes = 1 << 20, .largest_value = 4096};
  constexpr int count = 10000;
  const auto value_of = [](int i) { return std::to_string(i) + std::string(static_cast<std::size_t>(i % 700), 'v'); };
  {
    media::pmem pool(folder.file("pool"), {.create_bytes = std::uint64_t{64} << 20});
    auto d = in_pool::open(pool, on, options);
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(d.put("key " + std::to_string(i), bytes_of(value_of(i))), kv_outcome::added);
  }
  media::pmem pool(folder.file("pool"), {});
  on.reset();
  const auto before = std::chrono::steady_clock::now();
  auto d = in_pool::open(pool, on);
  const auto took = std::chrono::steady_clock::now() - before;
  RecordProperty("opened_us", static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
  EXPECT_EQ(on.total().bytes_read, 4096U) << "the header, and nothing else";
  EXPECT_EQ(on.total().bytes_written, 0U);
  for (int i = 0; i < count; i += 7) ASSERT_EQ(get(d, "key " + std::to_string(i)), value_of(i));
  EXPECT_EQ(keys_of(d).size(), static_cast<std::size_t>(count));
  expect_sound(d);
}

// ---- iterators

TEST(KvIterator, returns_the_keys_of_a_mask) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  for (const char* const key : {"aaaa1", "aaab1", "abab1", "abab2", "bbab1", "zzzz"}) d.put(key, bytes_of("x"));
  d.put("aaaa9", bytes_of("y"), kv_mode::post, 1);
  using keys = std::vector<std::string>;
  EXPECT_EQ(keys_of(d, prefix_of("abab")), (keys{"abab1", "abab2"}));
  EXPECT_EQ(keys_of(d, prefix_of("aaaa", 0xff000000)), (keys{"aaaa1", "aaab1", "abab1", "abab2"}));
  EXPECT_EQ(keys_of(d, prefix_of("aaab", 0x0000ffff)), (keys{"aaab1", "abab1", "abab2", "bbab1"}));
  EXPECT_EQ(keys_of(d, prefix_of("xbxb", 0x00ff00ff)), (keys{"abab1", "abab2", "bbab1"}));
  EXPECT_EQ(keys_of(d, {}, 1), (keys{"aaaa9"}));
  EXPECT_EQ(keys_of(d, {}, 2), keys{});
  EXPECT_EQ(keys_of(d, prefix_of("none")), keys{});
}

// Keys are deleted, added and replaced while iterators walk: in many pages, and across garbage collection.
TEST(KvIterator, misses_no_key_and_returns_none_twice_while_keys_change) {
  for (std::uint64_t seed = seed_or(1), last = seed + 5; seed < last; ++seed) {
    SCOPED_TRACE("replay with PMLAB_KV_SEED=" + std::to_string(seed));
    splitmix64 random(seed);
    media::dram memory;
    flash on(1, small_flash);
    auto d = device::open(memory, on, small);
    std::map<std::string, std::string> right;
    operate(d, right, random, 1000);
    auto walk = d.iterate();
    std::map<std::string, std::string> throughout = right;
    std::vector<std::string> got;
    for (;;) {
      const auto some = walk.next(3);
      for (const std::string& k : some) {
        EXPECT_TRUE(right.contains(k)) << k << " is deleted";
        got.push_back(k);
      }
      if (some.size() < 3) break;
      for (int i = 0; i < 6; ++i) {
        const std::string key = random_key(random);
        if (random.one_in(2)) {
          right.erase(key);
          throughout.erase(key);
          d.erase(key);
        }
        // Also the key that was just deleted.
        if (random.one_in(2)) {
          if (d.put(key, bytes_of("new")) == kv_outcome::full) continue;
          right[key] = "new";
        }
      }
    }
    std::sort(got.begin(), got.end());
    EXPECT_EQ(std::adjacent_find(got.begin(), got.end()), got.end()) << "a key twice";
    for (const auto& [key, value] : throughout)
      EXPECT_TRUE(std::binary_search(got.begin(), got.end(), key)) << key << " is missed";
    expect_equal(d, right);
  }
}

TEST(KvIterator, is_refused_beyond_sixteen_and_does_not_outlive_the_device) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  std::vector<device::iterator> open;
  for (int i = 0; i < 16; ++i) open.push_back(d.iterate());
  EXPECT_NE(message_of([&] { static_cast<void>(d.iterate()); }).find("16 open iterators"), std::string::npos);
  open.pop_back();
  EXPECT_EQ(message_of([&] { open.push_back(d.iterate()); }), "");
  EXPECT_EQ(d.open_iterators(), 16U);
  // As after a crash of the host (KVSSD issue 14): the next opening has none.
  auto again = device::open(memory, on, small);
  EXPECT_EQ(again.open_iterators(), 0U);
}

// ---- a full device

TEST(KvDevice, changes_nothing_when_it_is_full_and_deletes_make_room) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  splitmix64 random(9);
  std::map<std::string, std::string> right;
  const auto fill = [&] {
    for (int i = 0;; ++i) {
      const std::string key = "key " + std::to_string(i);
      const std::string value = random_value(random, 400 + random.below(800));
      const kv_outcome got = d.put(key, bytes_of(value));
      if (got == kv_outcome::full) return;
      ASSERT_TRUE(got == kv_outcome::added || got == kv_outcome::replaced);
      right[key] = value;
    }
  };
  fill();
  expect_equal(d, right);
  EXPECT_GT(d.stats().utilisation(), 0.98);
  EXPECT_LE(d.stats().utilisation(), 1.0);
  for (int i = 0; i < 20; ++i) {
    const auto before = d.stats();
    EXPECT_EQ(d.put("new key " + std::to_string(i), bytes_of(std::string(1400, 'n'))), kv_outcome::full);
    EXPECT_EQ(d.stats().used_bytes, before.used_bytes);
  }
  expect_equal(d, right);
  // An overwrite of the same size needs no room: any number of times, with garbage collection between.
  for (int i = 0; i < 3000; ++i) {
    const auto at = std::next(right.begin(), static_cast<std::ptrdiff_t>(random.below(right.size())));
    at->second = random_value(random, at->second.size());
    ASSERT_EQ(d.put(at->first, bytes_of(at->second)), kv_outcome::replaced) << i;
  }
  expect_equal(d, right);
  const double full = d.stats().utilisation();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(d.erase("key " + std::to_string(2 * i)));
    right.erase("key " + std::to_string(2 * i));
  }
  EXPECT_LT(d.stats().utilisation(), full - 0.05);
  fill();
  expect_equal(d, right);
  while (!right.empty()) {
    ASSERT_TRUE(d.erase(right.begin()->first));
    right.erase(right.begin());
  }
  EXPECT_EQ(d.stats().used_bytes, 0U);
  expect_equal(d, right);
}

TEST(KvDevice, changes_nothing_when_its_memory_is_full) {
  media::dram memory({.capacity_bytes = 200000});
  flash on(1, blocks::geometry{.blocks = 8000, .block_bytes = 512});
  auto d = device::open(memory, on, small);
  std::map<std::string, std::string> right;
  for (int i = 0;; ++i) {
    const std::string key = std::to_string(1000000 + i * 37);
    const kv_outcome got = d.put(key, bytes_of(key));
    if (got == kv_outcome::full) break;
    right[key] = key;
    ASSERT_LT(i, 20000) << "the memory is never full";
  }
  EXPECT_LT(d.stats().utilisation(), 0.9);
  expect_equal(d, right);
  // The key that had no room can be put when others are gone.
  for (int i = 0; i < 100; ++i) {
    d.erase(right.begin()->first);
    right.erase(right.begin());
  }
  expect_equal(d, right);
}

// ---- garbage collection

// Writes of random keys to a device of which a share is live; then the bytes on flash for each byte of a record.
struct amplified {
  double amplification;
  double utilisation;
};
[[nodiscard]] amplified amplify(std::size_t unit, std::size_t value_bytes, double live_share, std::uint64_t turns) {
  constexpr std::uint64_t mb = std::uint64_t{1} << 20;
  constexpr std::uint64_t bytes = 512 * mb;  // 512 superblocks: the few that are open or free hardly matter
  constexpr std::size_t superblock = 1 << 20;
  media::dram memory;
  flash on(1, blocks::geometry{.blocks = bytes / 4096 + 1, .block_bytes = 4096});
  auto d = device::open(memory, on,
                        {.unit_bytes = unit,
                         .superblock_bytes = superblock,
                         .over_provisioning = 0,
                         .buffer_bytes = mb / 2,
                         .largest_value = 4096});
  const std::uint64_t record = (stores::detail::kv_ssd::record_bytes(16, value_bytes) + unit - 1) / unit * unit;
  const auto keys = static_cast<std::uint64_t>(live_share * bytes) / record;
  std::string value(value_bytes, 'v');
  const auto put = [&](std::uint64_t i) {
    const std::string key = "user" + std::to_string(100000000000 + i);
    std::memcpy(value.data(), key.data(), key.size());
    ASSERT_NE(d.put(key, bytes_of(value)), kv_outcome::full);
  };
  for (std::uint64_t i = 0; i < keys; ++i) put(i);
  splitmix64 random(11);
  stores::kv_stats from;
  for (std::uint64_t i = 0; i < turns * keys; ++i) {
    if (i == (turns - 1) * keys) from = d.stats();
    put(random.below(keys));
  }
  const auto to = d.stats();
  expect_sound(d);
  const auto user = static_cast<double>(to.written_user - from.written_user);
  const auto others =
      static_cast<double>(to.written_moved - from.written_moved + to.written_buckets - from.written_buckets);
  return {(user + others) / user, static_cast<double>(to.used_bytes) / static_cast<double>(bytes)};
}

TEST(KvDevice, amplifies_as_a_block_drive_at_the_same_utilisation) {
  constexpr std::uint64_t bytes = std::uint64_t{400} << 20;
  const amplified kv = amplify(64, 4096, 0.78, 3);
  blocks::drive_profile profile = small_drive(1 / kv.utilisation - 1);
  profile.capacity_bytes = bytes;
  profile.pages_per_block = 4;  // superblocks of 256 mapping units: 1 MB
  blocks::page_ftl model(profile, {.blocks = bytes / 4096, .block_bytes = 4096, .volatile_cache = false});
  model.precondition();
  splitmix64 random(12);
  const std::uint64_t units = bytes / 4096;
  for (std::uint64_t i = 0; i < 2 * units; ++i)
    static_cast<void>(
        model.perform({blocks::operation::write, blocks::stream::data, 1, random.below(units), nullptr, 0}, 0));
  const double block = model.counts().amplification();
  std::printf("amplification at utilisation %.3f: pairs %.4f, blocks %.4f\n", kv.utilisation, kv.amplification, block);
  EXPECT_NEAR(kv.amplification / block, 1.0, 0.05);
}

TEST(KvDevice, collects_under_load_at_nine_tenths_of_its_capacity) {
  media::dram memory;
  flash on(1, blocks::geometry{.blocks = 8000, .block_bytes = 512});
  auto d = device::open(memory, on, small);
  splitmix64 random(seed_or(3));
  std::map<std::string, std::string> right;
  while (d.stats().utilisation() < 0.9) {
    const std::string key = "key " + std::to_string(random.below(100000));
    ASSERT_NE(d.put(key, bytes_of(right[key] = random_value(random, random.below(1500)))), kv_outcome::full);
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : right) keys.push_back(key);
  for (int i = 0; i < 20000; ++i) {
    const std::string& key = keys[random.below(keys.size())];
    std::string& value = right[key];
    if (random.one_in(2)) {
      ASSERT_TRUE(get(d, key) == value);
    } else {
      value = random_value(random, value.size());
      ASSERT_EQ(d.put(key, bytes_of(value)), kv_outcome::replaced);
    }
  }
  EXPECT_GT(d.stats().collected, 1000U);
  expect_equal(d, right);
}

TEST(KvDevice, sends_nothing_but_keys_and_values) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  std::uint64_t user = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string key = "key " + std::to_string(i % 50);
    const std::string value(static_cast<std::size_t>(i), 'v');
    if (d.put(key, bytes_of(value), i % 3 == 0 ? kv_mode::no_overwrite : kv_mode::post) != kv_outcome::exists)
      user += key.size() + value.size();
  }
  EXPECT_EQ(d.stats().user_bytes, user) << "host write amplification 1.000";
  const auto written = on.inner().total().bytes_written;
  const auto s = d.stats();
  // All that reached the flash is accounted for: records, moved records, bucket pages, and the header.
  EXPECT_EQ(written, s.written_user + s.written_moved + s.written_buckets + 512);
}

// ---- faults

TEST(KvDevice, never_serves_a_damaged_byte) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  splitmix64 random(seed_or(21));
  std::map<std::string, std::string> right;
  for (int i = 0; i < 150; ++i) {
    const std::string key = "key " + std::to_string(i);
    ASSERT_EQ(d.put(key, bytes_of(right[key] = random_value(random, random.below(1400)))), kv_outcome::added);
  }
  ASSERT_TRUE(d.empty_buffer());
  std::size_t found = 0;
  const auto content = on.inner().inner().content();
  for (int i = 0; i < 3000; ++i) {
    std::byte& at = content[512 + random.below(d.stats().written_user)];
    const std::byte right_byte = at;
    at ^= static_cast<std::byte>(1U << random.below(8));
    const std::string key = "key " + std::to_string(random.below(150));
    try {
      const auto value = get(d, key);
      ASSERT_TRUE(value == right[key]) << key;
    } catch (const stores::kv_damaged&) {
      ++found;
    }
    at = right_byte;
  }
  EXPECT_GT(found, 0U);
  expect_equal(d, right);
  // A record that stays damaged is found by its own key, and others are served; its superblock is not used again.
  content[512 + 50] ^= std::byte{1};
  std::size_t damaged = 0;
  std::string lost;
  for (const auto& [key, value] : right) try {
      ASSERT_TRUE(get(d, key) == value);
    } catch (const stores::kv_damaged&) {
      ++damaged;
      lost = key;
    }
  EXPECT_EQ(damaged, 1U);
  EXPECT_EQ(d.check().violations.size(), 1U);
  for (int i = 0; i < 9000; ++i) {
    const std::string key = "key " + std::to_string(random.below(700));
    if (key == lost) continue;
    const std::string value = random_value(random, 1000);
    if (d.put(key, bytes_of(value)) != kv_outcome::full) right[key] = value;
  }
  EXPECT_GT(d.stats().lost_bytes, 0U);
  damaged = 0;
  for (const auto& [key, value] : right) try {
      ASSERT_TRUE(get(d, key) == value) << key;
    } catch (const stores::kv_damaged&) {
      ++damaged;
    }
  EXPECT_EQ(damaged, 1U) << "a damaged record was overwritten, and its key reads as another's or as absent";
}

TEST(KvDevice, an_error_of_the_flash_is_one_failed_operation) {
  for (std::uint64_t seed = seed_or(31), last = seed + 3; seed < last; ++seed) {
    SCOPED_TRACE("replay with PMLAB_KV_SEED=" + std::to_string(seed));
    splitmix64 random(seed);
    media::dram memory;
    flash on(seed, small_flash);
    auto d = device::open(memory, on, small);
    std::map<std::string, std::string> right;
    operate(d, right, random, 500);
    on.inject_at_random(
        {blocks::fault::io_error, blocks::fault::no_space, blocks::fault::short_transfer, blocks::fault::bit_flip}, 60);
    std::size_t failed = 0;
    for (int i = 0; i < 3000; ++i) {
      const std::string key = random_key(random);
      const std::string value = random_value(random, random.below(1000));
      try {
        if (random.one_in(4)) {
          const bool erased = d.erase(key);
          EXPECT_EQ(erased, right.erase(key) == 1);
        } else if (random.one_in(3)) {
          const auto got = get(d, key);
          const auto there = right.find(key);
          ASSERT_EQ(got.has_value(), there != right.end());
          if (got) {
            ASSERT_TRUE(*got == there->second);
          }
        } else if (d.put(key, bytes_of(value)) != kv_outcome::full) {
          right[key] = value;
        }
      } catch (const error& e) {
        ++failed;
        // A failed deletion may have taken effect; a failed put must not have.
        on.stop();
        std::optional<std::string> now;
        try {
          now = get(d, key);
        } catch (const stores::kv_damaged&) {
          // A bit flipped on its way to the flash.
          return;
        }
        if (now)
          ASSERT_TRUE(right.contains(key) && *now == right[key]) << e.what();
        else
          right.erase(key);
        on.inject_at_random(
            {blocks::fault::io_error, blocks::fault::no_space, blocks::fault::short_transfer, blocks::fault::bit_flip},
            60);
      }
    }
    EXPECT_GT(failed, 10U);
  }
}

// ---- threads

TEST(KvDevice, serves_threads_while_it_collects) {
  media::dram memory;
  flash on(1, blocks::geometry{.blocks = 6000, .block_bytes = 512});
  auto d = device::open(memory, on, small);
  constexpr int threads = 4;
  std::vector<std::map<std::string, std::string>> rights(threads);
  std::atomic<bool> is_wrong{false};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      splitmix64 random(static_cast<std::uint64_t>(t) + 1);
      auto& right = rights[static_cast<std::size_t>(t)];
      for (int i = 0; i < 4000 && !is_wrong; ++i) {
        // All threads share the buckets; each has its own keys.
        const std::string key = random_key(random).substr(0, 100) + "of" + std::to_string(t);
        const auto there = right.find(key);
        if (random.one_in(4)) {
          if (d.erase(key) != (right.erase(key) == 1)) is_wrong = true;
        } else if (random.one_in(2)) {
          const auto got = get(d, key);
          if (got.has_value() != (there != right.end()) || (got && *got != there->second)) is_wrong = true;
        } else {
          const std::string value = random_value(random, random.below(600));
          if (d.put(key, bytes_of(value)) != kv_outcome::full) right[key] = value;
        }
        if (random.one_in(500)) static_cast<void>(keys_of(d, prefix_of("aaaa")));
      }
    });
  for (std::thread& t : running) t.join();
  EXPECT_FALSE(is_wrong);
  EXPECT_GT(d.stats().collected, 0U);
  std::map<std::string, std::string> right;
  for (auto& r : rights) right.insert(r.begin(), r.end());
  expect_equal(d, right);
}

// ---- bad input

TEST(KvDevice, refuses_bad_input_by_name) {
  media::dram memory;
  flash on(1, small_flash);
  auto d = device::open(memory, on, small);
  const auto says = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, std::size_t{256}}) {
    const std::string key(bytes, 'k');
    const std::string part = "a key of " + std::to_string(bytes) + " bytes; this device has keys of 4 to 255 bytes";
    says(message_of([&] { d.put(key, {}); }), part.c_str());
    says(message_of([&] { static_cast<void>(d.get(key)); }), part.c_str());
    says(message_of([&] { d.erase(key); }), part.c_str());
    const std::string_view keys[] = {"good", key};
    says(message_of([&] { static_cast<void>(d.exist(keys)); }), part.c_str());
  }
  says(message_of([&] { d.put("key1", bytes_of(std::string(1501, 'v'))); }), "a value of 1501 bytes");
  says(message_of([&] { d.put("key1", {}, kv_mode::post, 255); }), "key space 255 is the device's own");
  says(message_of([&] { static_cast<void>(d.iterate({.mask = 0xff000000, .pattern = 1})); }),
       "bits that its mask does not have");
  says(message_of([&] { static_cast<void>(d.iterate({.mask = 0, .pattern = 1})); }),
       "bits that its mask does not have");

  const auto opened = [&](const stores::kv_options& options, const blocks::geometry& shape = small_flash) {
    media::dram other;
    flash device_of(1, shape);
    return message_of([&] { static_cast<void>(device::open(other, device_of, options)); });
  };
  const auto with = [](auto change) {
    stores::kv_options o = small;
    change(o);
    return o;
  };
  says(opened(with([](auto& o) { o.unit_bytes = 100; })), "an allocation unit of 100 bytes");
  says(opened(with([](auto& o) { o.unit_bytes = 8192; })), "choose a power of two from 64 to 4096");
  says(opened(with([](auto& o) { o.largest_value = (2 << 20) + 1; })), "values of 2097153 bytes");
  says(opened(with([](auto& o) { o.superblock_bytes = 1024; })), "superblocks of 1024 bytes");
  says(opened(with([](auto& o) { o.superblock_bytes = 20000; })), "superblocks of 20000 bytes");
  says(opened(with([](auto& o) { o.bucket_bytes = 100; })), "bucket pages of 100 bytes");
  says(opened(with([](auto& o) { o.buffer_bytes = 2048; })), "a write buffer of 2048 bytes");
  says(opened(with([](auto& o) { o.over_provisioning = -1; })), "over-provisioning");
  says(opened(small, {.blocks = 100, .block_bytes = 512}), "has room for 3 superblocks");
  says(message_of([&] { static_cast<void>(device::open(memory, on, small, std::string(22, 'n'))); }),
       "cannot name a key-value device");
}

TEST(KvDevice, refuses_a_flash_that_is_not_its_own) {
  media::dram memory;
  flash on(1, small_flash);
  { auto d = device::open(memory, on, small); }
  const auto message = [&](media::dram& with, flash& of, const stores::kv_options& options = small) {
    return message_of([&] { static_cast<void>(device::open(with, of, options)); });
  };
  const auto says = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  flash empty(1, small_flash);
  says(message(memory, empty), "it has no header");
  flash truncated(1, blocks::geometry{.blocks = 1999, .block_bytes = 512});
  says(message(memory, truncated), "was made for a flash of 2000 blocks");
  media::dram other;
  says(message(other, on), "belongs to another key-value device");
  flash others(1, small_flash);
  media::dram third;
  { auto d = device::open(third, others, small); }
  says(message(memory, others), "is the flash of another key-value device");
  const auto content = on.inner().inner().content();
  content[20] ^= std::byte{4};
  says(message(memory, on), "block 0");
  content[20] ^= std::byte{4};
  // Another version, with a right checksum.
  stores::detail::kv_ssd::flash_header header;
  std::memcpy(static_cast<void*>(&header), content.data(), sizeof header);
  header.version = 2;
  header.checksum = checksum(&header, offsetof(stores::detail::kv_ssd::flash_header, checksum));
  std::memcpy(content.data(), &header, sizeof header);
  says(message(memory, on), "has version 2 of the layout, and this program reads version 1");
  // `format` takes it over.
  auto options = small;
  options.format = true;
  EXPECT_EQ(message(other, on, options), "");
}

}  // namespace
}  // namespace pmlab::tests
