// A key-value device whose process runs out of memory, at each allocation of each operation: what was answered is
// there, what failed has changed nothing, and everything works again when there is memory, in this process and behind
// an opening.
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/stores/kv_cache/shard.hpp>
#include <pmlab/stores/kv_ssd/queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "stores/tests/kv_devices.hpp"
#include "support/failing_allocations.hpp"

#include <gtest/gtest.h>

namespace pmlab::tests::kv_allocation_test {
namespace {

using stores::kv_mode;
using stores::kv_outcome;

// Calls work() with allocation number `n` failing. True: it threw.
template <class Work>
bool throws_at(std::int64_t n, Work&& work) {
  one_has_failed = false;
  until_failure = n;
  try {
    work();
    until_failure = -1;
    return false;
  } catch (const std::bad_alloc&) {
  } catch (const error&) {
  }
  until_failure = -1;
  return true;
}

template <class Device>
class Memory : public testing::Test {
 protected:
  void open() { device_.emplace(medium_, flash_); }
  Device& device() { return device_->of; }
  void expect_all(const std::string& where) {
    for (int i = 0; i < keys; ++i) expect_one(key_of(i), where);
    auto walk = device().iterate();
    std::vector<std::string> found = walk.next(10000), expected;
    for (const auto& [key, value] : model_) expected.push_back(key);
    std::sort(found.begin(), found.end());
    ASSERT_EQ(found, expected) << where;
    const auto report = device().check();
    ASSERT_TRUE(report.ok()) << report.violations.front() << where;
  }
  void expect_one(const std::string& key, const std::string& where) {
    const auto found = device().get(key);
    const auto expected = model_.find(key);
    ASSERT_EQ(found.has_value(), expected != model_.end()) << key << where;
    if (found) {
      ASSERT_EQ(text_of(*found), expected->second) << key << where;
    }
  }
  static std::string key_of(int i) { return "key" + std::to_string(i % 3) + "-" + std::to_string(i); }

  // A random operation, and its effect on the model if it is done.
  void operate(splitmix64& random, std::int64_t n, const std::string& where) {
    const std::string key = key_of(static_cast<int>(random.next() % keys));
    const std::string value = random_value(random, random.next() % 1400);
    const auto what = random.next() % 10;
    auto after = model_;
    bool threw = false;
    if (what < 6) {
      const bool appends = what == 0 && after[key].size() + value.size() <= 1500;
      kv_outcome done{};
      threw =
          throws_at(n, [&] { done = device().put(key, bytes_of(value), appends ? kv_mode::append : kv_mode::post); });
      if (!threw) {
        ASSERT_NE(done, kv_outcome::full) << where;
      }
      after[key] = appends ? after[key] + value : value;
    } else if (what < 8) {
      threw = throws_at(n, [&] { device().erase(key); });
      after.erase(key);
    } else if (what == 8) {
      std::optional<std::vector<std::byte>> gone;
      threw = throws_at(n, [&] { gone = device().retrieve_and_erase(key); });
      after.erase(key);
    } else {
      std::optional<std::vector<std::byte>> found;
      threw = throws_at(n, [&] { found = device().get(key); });
    }
    threw_ += threw ? 1 : 0;
    if (!threw) model_ = std::move(after);
    expect_one(key, where + (threw ? " (it threw)" : ""));
  }

  static constexpr int keys = 150;
  struct held {
    held(media::dram& m, flash& f) : of(Device::open(m, f, small)) {}
    Device of;
  };
  media::dram medium_;
  flash flash_{1U, blocks::geometry{.blocks = 1000, .block_bytes = 512}};
  std::optional<held> device_;
  std::map<std::string, std::string> model_;
  int threw_ = 0;
};
using devices = testing::Types<device, colliding>;
TYPED_TEST_SUITE(Memory, devices);

TYPED_TEST(Memory, that_runs_out_at_any_allocation_changes_nothing) {
  this->open();
  splitmix64 random(seed_or(33));
  for (int i = 0; i < 2500; ++i) {
    const auto n = static_cast<std::int64_t>(random.next() % (i % 3 == 0 ? 60 : 12));
    const std::string where = ", step " + std::to_string(i) + ", allocation " + std::to_string(n);
    this->operate(random, n, where);
    if (this->HasFatalFailure()) return;
    if (i % 100 != 99) continue;
    this->expect_all(where);
    if (this->HasFatalFailure()) return;
    this->device_.reset();
    // Opening, too: each of its allocations fails once.
    std::int64_t failing = i < 500 ? 0 : static_cast<std::int64_t>(random.next() % 150);
    while (throws_at(failing, [&] { this->open(); })) failing += i < 500 ? 1 : 97;
    this->expect_all(where + ", opened");
    if (this->HasFatalFailure()) return;
  }
  EXPECT_GT(this->threw_, 500);
}

// A call of an iterator that fails returns nothing, and the next one goes on where it was.
TYPED_TEST(Memory, that_runs_out_loses_no_key_of_an_iterator) {
  this->open();
  for (int i = 0; i < this->keys; ++i) {
    const std::string key = this->key_of(i);
    ASSERT_EQ(this->device().put(key, bytes_of(key)), kv_outcome::added);
  }
  for (const std::size_t most : {1U, 7U, 500U}) {
    auto walk = this->device().iterate();
    std::vector<std::string> all;
    std::int64_t n = 0;
    for (bool ends = false; !ends;) {
      std::vector<std::string> some;
      if (throws_at(n++ % 40, [&] { some = walk.next(most); })) continue;
      ends = some.size() < most;
      std::ranges::move(some, std::back_inserter(all));
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
    EXPECT_EQ(all.size(), static_cast<std::size_t>(this->keys));
  }
}

TYPED_TEST(Memory, that_runs_out_ends_an_operation_of_a_queue_with_an_error) {
  this->open();
  splitmix64 random(seed_or(34));
  stores::kv_queue<TypeParam> queue(this->device(), 1);
  int failed = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = this->key_of(static_cast<int>(random.next() % this->keys));
    const std::string value = random_value(random, random.next() % 1400);
    std::vector<stores::kv_completion> done(1);
    bool is_started = false;
    const bool threw = throws_at(static_cast<std::int64_t>(random.next() % 12), [&] {
      is_started = queue.put(key, bytes_of(value), 7);
      static_cast<void>(queue.reap(done, 1));
    });
    if (threw && is_started) {
      ASSERT_EQ(queue.reap(done, 1), 1U) << i;
    }
    failed += threw || done.front().error != std::errc{} ? 1 : 0;
    if (!threw && done.front().error == std::errc{}) this->model_[key] = value;
    ASSERT_EQ(queue.in_flight(), 0U) << i;
    this->expect_one(key, ", step " + std::to_string(i));
    if (this->HasFatalFailure()) return;
  }
  EXPECT_GT(failed, 50);
  this->expect_all("");
}

// A shard of a cache of pairs counts those that it has, whichever allocation of an addition fails.
TEST(KvAllocations, ACacheCountsThePairsThatItHas) {
  using stores::detail::kv_caching::name;
  bool any_failed = true;
  for (std::int64_t n = 0; any_failed; ++n) {
    SCOPED_TRACE(n);
    any_failed = false;
    stores::detail::kv_caching::shard pairs(std::uint64_t{1} << 20, cache::eviction::lru);
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < 100; ++i) {
      keys.push_back("a key that is longer than a string keeps in itself " + std::to_string(i));
      const auto value = std::make_shared<const std::vector<std::byte>>(100);
      const bool threw = throws_at(n, [&] { pairs.add({mix_bits(i), 0, keys.back()}, value); });
      any_failed = any_failed || one_has_failed;
      EXPECT_TRUE(one_has_failed || !threw);
    }
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < keys.size(); ++i) {
      const name of{mix_bits(i), 0, keys[i]};
      found += pairs.find(of) != nullptr ? 1 : 0;
      pairs.remove(of);
    }
    EXPECT_EQ(pairs.pairs(), 0U) << found << " of " << keys.size() << " were found";
    EXPECT_EQ(found > 0, n > 0);
  }
}

}  // namespace
}  // namespace pmlab::tests::kv_allocation_test
