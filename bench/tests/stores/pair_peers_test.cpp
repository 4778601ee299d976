// The peers among the stores of pairs, through the interface of the benchmark: answers against std::map, over
// reopening; bytes on the drives against the store's own statistics; what they refuse.
#include "bench/stores/pair_peers.hpp"
#include "bench/stores/cached_pair_subject.hpp"

#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace pmlab::tests {
namespace {

using namespace std::string_literals;
using store_bench::pair_answer;
using store_bench::pair_drives;
using store_bench::pair_queue;
using store_bench::pair_setup;
using store_bench::pair_subject;
using counted_drive = blocks::counted<blocks::memory>;
using pairs = std::map<std::string, std::string>;

constexpr blocks::geometry of_drive{.blocks = 16384, .block_bytes = 4096, .atomic_bytes = 4096, .volatile_cache = true};

struct drive_set {
  explicit drive_set(std::size_t main_drives, bool has_staging = false) {
    for (std::size_t i = 0; i < main_drives; ++i)
      given.main.push_back(&all.emplace_back(std::in_place_type<counted_drive>, of_drive));
    if (has_staging) given.staging = &all.emplace_back(std::in_place_type<counted_drive>, of_drive);
  }
  [[nodiscard]] static blocks::counts written(const blocks::any_device& drive, blocks::stream of) {
    return const_cast<blocks::any_device&>(drive).get<counted_drive>()->of(of);
  }
  std::deque<blocks::any_device> all;
  pair_drives given;
};

struct kind {
  std::string store;
  std::size_t drives = 1;
  bool staging = false;
  double loss_ms = 5;
  bool log = true;
  std::uint64_t cache = 0;  // cache of the host, in front of it

  friend void PrintTo(const kind& k, std::ostream* out) {
    *out << k.store << (k.log ? "" : "_without_log") << "_" << k.drives << (k.staging ? "_staged" : "") << "_loss_"
         << k.loss_ms << (k.cache != 0 ? "_cached" : "");
  }
};

[[nodiscard]] pair_setup setup_of(const kind& k) {
  return {.store = k.store,
          .records = 2000,
          .value_bytes = 1000,
          .memory_bytes = k.store == "lmdb" ? 0 : 2U << 20,  // write buffers and cache: levels are made and read
          .loss_ms = k.loss_ms,
          .log = k.log};
}

[[nodiscard]] bool is_there(const std::string& store) {
  return std::ranges::any_of(store_bench::pair_peers(), [&](const auto& peer) { return peer.described.name == store; });
}

// Without a cache of the host. REQUIRES: is_there.
[[nodiscard]] std::unique_ptr<pair_subject> make_peer(const pair_setup& setup, const pair_drives& drives) {
  const auto is_it = [&](const auto& peer) { return peer.described.name == setup.store; };
  return std::ranges::find_if(store_bench::pair_peers(), is_it)->make(setup, drives);
}

[[nodiscard]] std::unique_ptr<pair_subject> make(const kind& k, const pair_drives& drives) {
  auto made = make_peer(setup_of(k), drives);
  return k.cache == 0 ? std::move(made) : store_bench::with_host_cache(std::move(made), k.cache);
}

[[nodiscard]] std::string text(std::span<const std::byte> s) {
  return {reinterpret_cast<const char*>(s.data()), s.size()};
}
[[nodiscard]] std::span<const std::byte> bytes(const std::string& s) { return std::as_bytes(std::span(s)); }

[[nodiscard]] pair_answer only(pair_queue& queue) {
  std::array<pair_answer, 4> answers;
  EXPECT_EQ(queue.reap(answers, 1), 1U);
  return answers[0];
}

[[nodiscard]] std::string key_of(std::uint64_t n) { return "key" + std::to_string(100000 + n); }

// Random changes and reads; half of the gets wait beside another one.
void work(pair_queue& queue, pairs& right, splitmix64& random, int operations) {
  for (int i = 0; i < operations; ++i) {
    const std::string key = key_of(random.below(2000));
    const std::uint64_t what = random.below(10);
    if (what < 5) {
      const std::string value(random.below(2000), static_cast<char>('a' + random.below(26)));
      queue.put(key, bytes(value), 7);
      const pair_answer a = only(queue);
      ASSERT_EQ(a.error, std::errc{});
      ASSERT_EQ(a.tag, 7U);
      right[key] = value;
    } else if (what < 6) {
      queue.erase(key, 8);
      ASSERT_EQ(only(queue).error, std::errc{}) << "an absent key, too";
      right.erase(key);
    } else if (what < 9) {
      const std::array<std::string, 2> keys{key, key_of(random.below(2000))};
      queue.get(keys[0], 0);
      queue.get(keys[1], 1);
      std::array<pair_answer, 4> answers;
      ASSERT_EQ(queue.reap(answers, 2), 2U);
      for (const pair_answer& a : std::span(answers).first(2)) {
        const auto expected = right.find(keys[a.tag]);
        ASSERT_EQ(a.error, std::errc{});
        ASSERT_EQ(a.found, expected != right.end()) << keys[a.tag];
        if (a.found) {
          ASSERT_EQ(text(a.value), expected->second);
        }
      }
    } else {
      queue.scan(key, 20, 9);
      const pair_answer a = only(queue);
      ASSERT_EQ(a.error, std::errc{});
      auto expected = right.lower_bound(key);
      for (const store_bench::pair& p : a.pairs) {
        ASSERT_NE(expected, right.end());
        ASSERT_EQ(p.key, expected->first);
        ASSERT_EQ(text(p.value), expected->second);
        ++expected;
      }
      ASSERT_TRUE(a.pairs.size() == 20 || expected == right.end());
    }
  }
}

[[nodiscard]] std::uint64_t statistic(pair_subject& subject, const std::string& name) {
  for (const auto& [found, value] : subject.statistics())
    if (found == name) return value;
  ADD_FAILURE() << "no statistic " << name;
  return 0;
}

class PairPeers : public testing::TestWithParam<kind> {
 protected:
  void SetUp() override {
    if (!is_there(GetParam().store)) GTEST_SKIP() << "this build has no " << GetParam().store;
  }
};

TEST_P(PairPeers, answer_as_a_map_does_over_reopening) {
  const std::uint64_t seed = 21;
  SCOPED_TRACE("seed " + std::to_string(seed));
  splitmix64 random(seed);
  drive_set drives(GetParam().drives, GetParam().staging);
  const std::unique_ptr<pair_subject> subject = make(GetParam(), drives.given);
  EXPECT_TRUE(subject->promises().is_ordered);
  ASSERT_TRUE(subject->can_reopen());
  pairs right;
  for (int round = 0; round < 3; ++round) {
    {
      const auto queue = subject->make_queue(4, 0);
      work(*queue, right, random, 2500);
      if (HasFatalFailure()) return;
    }
    subject->settle();
    subject->close();
    subject->open();
  }
  const auto queue = subject->make_queue(1, 0);
  for (std::uint64_t n = 0; n < 2000; ++n) {
    // Twice: a cache is cold after an opening.
    for (int times = 0; times < 2; ++times) {
      queue->get(key_of(n), n);
      const pair_answer a = only(*queue);
      const auto expected = right.find(key_of(n));
      ASSERT_EQ(a.found, expected != right.end());
      if (a.found) {
        ASSERT_EQ(text(a.value), expected->second);
      }
    }
  }
  EXPECT_GT(subject->space().used_bytes.value(), right.size() * 900);
  if (GetParam().cache == 0) return;
  const std::uint64_t memory = subject->space().memory_bytes.value();
  EXPECT_GT(memory, GetParam().cache / 2);
  EXPECT_LT(memory, GetParam().cache + 20'000) << "and the pairs of the operations under way";
  EXPECT_GT(statistic(*subject, "cache_hits"), 100U);
  EXPECT_GT(statistic(*subject, "cache_misses"), 100U);
}

INSTANTIATE_TEST_SUITE_P(, PairPeers,
                         testing::Values(kind{"rocksdb"}, kind{"rocksdb", 3}, kind{"rocksdb", 1, true},
                                         kind{"rocksdb", 2, true}, kind{"rocksdb", 1, false, 0},
                                         kind{"rocksdb", 1, false, 5, false}, kind{"leveldb"}, kind{"leveldb", 2},
                                         kind{"leveldb", 1, false, 0}, kind{"lmdb"}, kind{"lmdb", 2},
                                         kind{"lmdb", 1, false, 5, true, 512U << 10}),
                         [](const auto& of) { return testing::PrintToString(of.param); });

void load(pair_subject& subject, unsigned records, std::size_t value_bytes, std::uint64_t seed = 5) {
  const auto queue = subject.make_queue(1, 0);
  splitmix64 random(seed);
  for (unsigned i = 0; i < records; ++i) {
    queue->put(key_of(random.below(100000)), bytes(std::string(value_bytes, 'v')), i);
    ASSERT_EQ(only(*queue).error, std::errc{});
  }
}

// Tables are written whole, in blocks of the drive; the log's last block again with each sync.
TEST(PairPeersOnDrives, rocksdb_counts_the_bytes_that_its_drive_counts) {
  if (!is_there("rocksdb")) GTEST_SKIP();
  drive_set drives(1);
  const auto subject = make({"rocksdb", 1, false, 50}, drives.given);
  load(*subject, 20000, 500);
  subject->settle();
  const double tables =
      static_cast<double>(statistic(*subject, "flush_bytes") + statistic(*subject, "compaction_bytes"));
  const double on_drive = static_cast<double>(drive_set::written(drives.all[0], blocks::stream::data).bytes_written);
  EXPECT_GT(tables, 20e6) << "compactions ran";
  EXPECT_NEAR(on_drive / tables, 1.0, 0.02);
  subject->close();
  const double log = static_cast<double>(drive_set::written(drives.all[0], blocks::stream::log).bytes_written);
  EXPECT_GT(log, 20000 * 500.0 * 0.8) << "the end of a log that is removed early is never written";
  EXPECT_LT(log, 20000 * 540.0 + 4096 * 200);
}

TEST(PairPeersOnDrives, rocksdb_without_a_log_writes_none) {
  if (!is_there("rocksdb")) GTEST_SKIP();
  drive_set drives(1);
  const auto subject = make({"rocksdb", 1, false, 5, false}, drives.given);
  load(*subject, 2000, 500);
  subject->settle();
  EXPECT_EQ(drive_set::written(drives.all[0], blocks::stream::log).bytes_written, 0U);
  EXPECT_GT(drive_set::written(drives.all[0], blocks::stream::data).bytes_written, 500'000U);
}

TEST(PairPeersOnDrives, rocksdb_has_its_log_and_upper_levels_on_staging) {
  if (!is_there("rocksdb")) GTEST_SKIP();
  drive_set drives(1, true);
  pair_setup setup = setup_of({"rocksdb", 1, true});
  setup.memory_bytes = 1 << 20;
  drives.all.pop_back();  // a smaller one
  drives.given.staging = &drives.all.emplace_back(
      std::in_place_type<counted_drive>, blocks::geometry{.blocks = 8192, .block_bytes = 4096, .volatile_cache = true});
  const auto subject = make_peer(setup, drives.given);
  for (std::uint64_t part = 0; part < 10; ++part) {
    load(*subject, 5000, 500, part);
    subject->settle();
  }
  const auto of = [&](std::size_t drive, blocks::stream s) {
    return drive_set::written(drives.all[drive], s).bytes_written;
  };
  EXPECT_EQ(of(0, blocks::stream::log), 0U);
  EXPECT_GT(of(1, blocks::stream::log), 10'000'000U);
  EXPECT_GT(of(1, blocks::stream::data), 20'000'000U);
  EXPECT_GT(of(0, blocks::stream::data), 10'000'000U) << "the lower levels";
}

// A load of ten times as many pairs has no more of them under way.
TEST(PairPeersOnDrives, memory_of_the_host_is_that_of_the_operations_under_way) {
  if (!is_there("lmdb")) GTEST_SKIP();
  std::array<std::uint64_t, 2> memory{};
  for (std::size_t i = 0; i < 2; ++i) {
    drive_set drives(1);
    const auto subject = store_bench::with_host_cache(make({"lmdb"}, drives.given), 0);
    load(*subject, i == 0 ? 100 : 1000, 500);
    memory[i] = subject->space().memory_bytes.value();
    EXPECT_EQ(subject->statistics().size(), make({"lmdb"}, drives.given)->statistics().size()) << "no cache";
  }
  EXPECT_EQ(memory[0], key_of(0).size() + 500);
  EXPECT_EQ(memory[1], memory[0]);
}

TEST(PairPeersOnDrives, a_timer_syncs_the_log) {
  for (const char* const store : {"rocksdb", "leveldb"}) {
    if (!is_there(store)) continue;
    drive_set drives(1);
    const auto subject = make({store, 1, false, 5}, drives.given);
    const auto queue = subject->make_queue(1, 0);
    const std::uint64_t before = drive_set::written(drives.all[0], blocks::stream::log).bytes_written;
    queue->put("key", bytes("value"s), 0);
    ASSERT_EQ(only(*queue).error, std::errc{});
    for (int i = 0; i < 2000 && drive_set::written(drives.all[0], blocks::stream::log).bytes_written == before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::uint64_t after = drive_set::written(drives.all[0], blocks::stream::log).bytes_written;
    EXPECT_GT(after, before) << store;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_LE(drive_set::written(drives.all[0], blocks::stream::log).bytes_written, after + 4096)
        << store << ": a log that does not change is not synced again";
  }
}

TEST(PairPeersOnDrives, a_full_drive_is_an_answer) {
  for (const char* const store : {"rocksdb", "leveldb", "lmdb"}) {
    if (!is_there(store)) continue;
    drive_set drives(1);
    const auto subject = make({store}, drives.given);
    const auto queue = subject->make_queue(1, 0);
    std::errc failed{};
    const std::string value(4000, 'v');
    for (unsigned i = 0; i < 100'000 && failed == std::errc{}; ++i) {
      queue->put(key_of(i), bytes(value), i);
      failed = only(*queue).error;
    }
    EXPECT_EQ(failed, std::errc::no_space_on_device) << store;
  }
}

TEST(PairPeersOnDrives, lmdb_knows_the_bytes_that_it_writes) {
  if (!is_there("lmdb")) GTEST_SKIP();
  drive_set drives(1);
  const auto subject = make({"lmdb"}, drives.given);
  const auto queue = subject->make_queue(1, 0);
  const std::optional<std::uint64_t> before = subject->host_bytes();
  if (!before) GTEST_SKIP() << "the kernel does not count";
  EXPECT_EQ(*before, 0U);
  for (unsigned i = 0; i < 100; ++i) {
    queue->put(key_of(i), bytes(std::string(1000, 'v')), i);
    ASSERT_EQ(only(*queue).error, std::errc{});
  }
  // A leaf and a meta page for each transaction, at least; a path of few pages, at most.
  EXPECT_GT(*subject->host_bytes(), 100U * 4096);
  EXPECT_LT(*subject->host_bytes(), 100U * 8 * 4096);
}

void expect_refusal(const pair_setup& setup, const pair_drives& drives, const std::string& with) {
  try {
    static_cast<void>(make_peer(setup, drives));
    FAIL() << "not refused";
  } catch (const error& refused) {
    EXPECT_THAT(refused.what(), testing::HasSubstr(with));
  }
}

struct modelled : blocks::memory {
  using memory::memory;
  [[nodiscard]] std::string name() const { return "emulated:p4610"; }
};

TEST(PairPeersOnDrives, refuse_what_they_cannot_be) {
  const drive_set one(1);
  const drive_set two(1, true);
  if (is_there("leveldb")) {
    pair_setup without = setup_of({"leveldb"});
    without.log = false;
    expect_refusal(without, one.given, "cannot be without its log");
  }
  if (is_there("rocksdb")) {
    pair_setup placed = setup_of({"rocksdb"});
    placed.place = "staging_only";
    expect_refusal(placed, one.given, "without a staging drive");
    placed.place = "pmem_only";
    expect_refusal(placed, two.given, "no placement pmem_only");
    placed = setup_of({"rocksdb"});
    placed.cache_bytes = placed.memory_bytes;
    expect_refusal(placed, one.given, "more --memory");
  }
  if (is_there("lmdb")) {
    blocks::any_device drive(std::in_place_type<modelled>, of_drive);
    expect_refusal(setup_of({"lmdb"}), {.main = {&drive}}, "cannot be on emulated:p4610");
    expect_refusal(setup_of({"lmdb"}), two.given, "has one drive only");
  }
}

}  // namespace
}  // namespace pmlab::tests
