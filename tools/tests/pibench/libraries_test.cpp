// Each library for PiBench: every operation, in DRAM and in a pool, by many threads, after a restart; its messages for
// bad options.
#include <pmlab/pibench/library.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tools/tests/pibench/loaded.hpp"
#include "tools/tests/pibench/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests {
namespace {

constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

class libraries : public testing::TestWithParam<std::string> {
 protected:
  // Every operation at random, beside a map that does the same.
  static void agree_with_a_map(tree& t, std::map<std::uint64_t, std::uint64_t>& expected, unsigned seed) {
    std::mt19937_64 random(seed);
    // Keys whose order as integers is another one than that of their bytes; the least and the greatest are among them.
    std::vector<std::uint64_t> keys = {0, 1, 255, 256, greatest, greatest - 1};
    while (keys.size() < 2000) keys.push_back(random() >> (random() % 64));
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t key = keys[random() % keys.size()];
      const std::uint64_t value = random();
      const bool there = expected.contains(key);
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(t.insert(key, value), !there) << key;
          expected.try_emplace(key, value);
          break;
        case 1:
          ASSERT_EQ(t.update(key, value), there) << key;
          if (there) expected[key] = value;
          break;
        case 2:
          if (i % 3 != 0) break;
          ASSERT_EQ(t.remove(key), there) << key;
          expected.erase(key);
          break;
        default: ASSERT_EQ(t.find(key), there ? std::optional(expected[key]) : std::nullopt) << key;
      }
    }
    ASSERT_GT(expected.size(), 500U);
  }

  static void hold_the_same(tree& t, const std::map<std::uint64_t, std::uint64_t>& expected) {
    for (const auto& [key, value] : expected) ASSERT_EQ(t.find(key), value) << key;
    if (!has_order(GetParam())) return;
    ASSERT_EQ(t.scan(0, 1 << 20), tree::records(expected.begin(), expected.end()));
  }

  temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(pibench, libraries, testing::ValuesIn(library_names()),
                         [](const auto& library) { return library.param; });

TEST_P(libraries, answer_every_operation_in_dram) {
  tree t(GetParam(), {});
  std::map<std::uint64_t, std::uint64_t> expected;
  ASSERT_NO_FATAL_FAILURE(agree_with_a_map(t, expected, 1));
  hold_the_same(t, expected);
}

TEST_P(libraries, keep_a_pool_from_one_run_to_the_next) {
  tree_options_t options = pool_at(folder_.file("pool"));
  std::map<std::uint64_t, std::uint64_t> expected;
  for (unsigned run = 0; run < 3; ++run) {
    tree t(GetParam(), options);
    ASSERT_NO_FATAL_FAILURE(hold_the_same(t, expected)) << "run " << run;
    ASSERT_NO_FATAL_FAILURE(agree_with_a_map(t, expected, run)) << "run " << run;
    options.pool_size = 0;  // it is there
  }
}

// Each child process that has ended has had page faults.
long page_faults_of_children() {
  rusage used{};
  EXPECT_EQ(::getrusage(RUSAGE_CHILDREN, &used), 0);
  return used.ru_minflt;
}

TEST_P(libraries, open_a_pool_once_that_is_as_it_was_closed) {
  const tree_options_t options = pool_at(folder_.file("pool"));
  { ASSERT_TRUE(tree(GetParam(), options).insert(1, 10)); }
  const long before = page_faults_of_children();
  { ASSERT_EQ(tree(GetParam(), options).find(1), 10U); }
  EXPECT_EQ(page_faults_of_children(), before) << "a child process has opened it, too";
  std::fstream file(options.pool_path, std::ios::in | std::ios::out | std::ios::binary);
  constexpr std::streamoff inside_a_lane = 8192 + 3072;
  file.seekp(inside_a_lane).put(1);
  file.close();
  // libpmemobj gets along with this byte, which a child has found out.
  { ASSERT_EQ(tree(GetParam(), options).find(1), 10U); }
  EXPECT_GT(page_faults_of_children(), before) << "no child process has tried what may be damaged";
}

TEST_P(libraries, scan_in_the_order_of_integers_or_not_at_all) {
  tree t(GetParam(), {});
  for (std::uint64_t key = 0; key < 10'000; ++key) ASSERT_TRUE(t.insert(3 * key, key));
  if (!has_order(GetParam())) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(t.scan(0, 10).empty());
    EXPECT_TRUE(t.scan(0, 10).empty());
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_NE(said.find("libpmlab_" + GetParam() + ": a hash table has no order"), std::string::npos) << said;
    return;
  }
  const tree::records some = {{300, 100}, {303, 101}, {306, 102}};
  EXPECT_EQ(t.scan(300, 3), some);
  EXPECT_EQ(t.scan(298, 3), some);
  EXPECT_EQ(t.scan(0, 9'999).size(), 9'999U);
  EXPECT_EQ(t.scan(0, std::numeric_limits<int>::max()).size(), 10'000U);
  EXPECT_EQ(t.scan(29'994, 100).size(), 2U);
  EXPECT_TRUE(t.scan(greatest, 100).empty());
  EXPECT_TRUE(t.scan(0, 0).empty());
  EXPECT_TRUE(t.scan(0, -1).empty());
}

TEST_P(libraries, serve_many_threads) {
  constexpr std::uint64_t threads = 4;
  constexpr std::uint64_t each = 5'000;
  tree_options_t options = pool_at(folder_.file("pool"));
  options.num_threads = threads;
  tree t(GetParam(), options);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> running;
  for (std::uint64_t number = 0; number < threads; ++number)
    running.emplace_back([&, number] {
      for (std::uint64_t i = 0; i < each; ++i) {
        const std::uint64_t key = i * threads + number;
        wrong += !t.insert(key, key + 1) || t.insert(key, 0) || t.find(key) != key + 1;
        wrong += i % 2 == 0 && !t.update(key, key + 2);
        wrong += i % 5 == 0 && !t.remove(key);
      }
    });
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(wrong, 0U);
  for (std::uint64_t key = 0; key < threads * each; ++key) {
    const std::uint64_t i = key / threads;
    ASSERT_EQ(t.find(key), i % 5 == 0 ? std::nullopt : std::optional(key + (i % 2 == 0 ? 2 : 1))) << key;
  }
}

TEST_P(libraries, give_each_thread_scanned_records_of_its_own) {
  if (!has_order(GetParam())) GTEST_SKIP() << "it scans nothing";
  tree t(GetParam(), {});
  for (std::uint64_t key = 0; key < 1'000; ++key) ASSERT_TRUE(t.insert(key, key));
  const std::uint64_t from = 100;
  char* mine = nullptr;
  ASSERT_EQ(t.api().scan(reinterpret_cast<const char*>(&from), sizeof from, 50, mine), 50);
  const tree::records before = tree::copied(mine, 50);
  std::thread([&] { EXPECT_EQ(t.scan(700, 200).size(), 200U); }).join();
  EXPECT_EQ(tree::copied(mine, 50), before);
  EXPECT_EQ(before.front().first, 100U);
}

TEST_P(libraries, refuse_what_they_cannot_open) {
  const auto refusal = [&](const tree_options_t& options) { return message_of([&] { tree(GetParam(), options); }); };
  const std::string none = folder_.file("none");
  tree_options_t options;
  options.pool_path = none;
  EXPECT_EQ(refusal(options), "there is no pool at " + none + "; give --pool_size in bytes to make one");
  EXPECT_NE(refusal(pool_at(folder_.file("no/folder"))).find("check that the folder exists"), std::string::npos);
  const std::string long_name = folder_.file(std::string(300, 'a'));
  EXPECT_EQ(refusal(pool_at(long_name)),
            "cannot reach pool " + long_name + ": File name too long; give a shorter name");
  options.pool_size = 4096;
  EXPECT_NE(refusal(options).find("use at least"), std::string::npos);
  options.pool_path = folder_.file("text");
  std::ofstream(options.pool_path) << "no pool";
  EXPECT_NE(refusal(options).find("is not a pool"), std::string::npos);
  const tree open(GetParam(), pool_at(folder_.file("pool")));
  EXPECT_NE(refusal(pool_at(folder_.file("pool"))).find("not open in another process"), std::string::npos);
}

TEST_P(libraries, refuse_keys_and_values_of_a_size_that_was_not_announced) {
  tree t(GetParam(), {});
  const std::array<char, 16> bytes{};
  std::array<char, 16> out{};
  EXPECT_NE(message_of([&] { static_cast<void>(t.api().find(bytes.data(), 4, out.data())); }).find("a key of 4 bytes"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] { static_cast<void>(t.api().insert(bytes.data(), 8, bytes.data(), 16)); }).find("a value of 16"),
      std::string::npos);
  EXPECT_NE(
      message_of([&] { static_cast<void>(t.api().update(bytes.data(), 16, bytes.data(), 8)); }).find("a key of 16"),
      std::string::npos);
  EXPECT_NE(message_of([&] { static_cast<void>(t.api().remove(bytes.data(), 0)); }).find("a key of 0"),
            std::string::npos);
}

// `false` would say that the key was there.
TEST_P(libraries, say_that_a_pool_is_full_and_go_on_serving) {
  tree_options_t options = pool_at(folder_.file("pool"));
  options.pool_size = std::size_t{10} << 20;
  tree t(GetParam(), options);
  std::uint64_t key = 0;
  const std::string said = message_of([&] {
    for (; key < 10'000'000; ++key) static_cast<void>(t.insert(key, key));
  });
  EXPECT_EQ(said, "there is no space left in pmem:" + options.pool_path +
                      "; use fewer records, or a new pool with more --pool_size");
  ASSERT_GT(key, 10'000U);
  for (std::uint64_t k = 0; k < key; ++k) ASSERT_EQ(t.find(k), k);
  EXPECT_EQ(t.find(key), std::nullopt);
}

// A variable of the environment, put back afterwards.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(pibench_options, of_the_cache_come_from_the_environment) {
  {
    const variable set("PMLAB_CACHE", "mode=adaptive,capacity=1k,eviction=s3_fifo,fillers=2");
    tree t("cache_fast_fair", {});
    for (std::uint64_t key = 0; key < 10'000; ++key) ASSERT_TRUE(t.insert(key, key));
    for (std::uint64_t i = 0; i < 50'000; ++i) ASSERT_EQ(t.find(i % 10'000), i % 10'000);
  }
  const variable set("PMLAB_CACHE", "mode=serail");
  EXPECT_NE(message_of([] { tree("cache_fast_fair", {}); }).find("PMLAB_CACHE 'mode=serail': "), std::string::npos);
  const variable share("PMLAB_CACHE", "capacity=10%");
  EXPECT_NE(message_of([] { tree("cache_fast_fair", {}); }).find("no share"), std::string::npos);
}

TEST(pibench_options, of_the_hybrids_come_from_the_environment) {
  {
    const variable set("PMLAB_HYBRID", "update=adaptive,updaters=2");
    tree t("hybrid_index_plus", {});
    for (std::uint64_t key = 0; key < 10'000; ++key) ASSERT_TRUE(t.insert(key, key));
    ASSERT_EQ(t.scan(0, 20'000).size(), 10'000U);
  }
  const variable set("PMLAB_HYBRID", "hash=level_hashing@pmem");
  EXPECT_NE(message_of([] { tree("hybrid_index_plus", {}); }).find("PMLAB_HYBRID"), std::string::npos);
}

TEST(pibench_options, name_the_interface_of_later_versions) {
  const variable set("PMLAB_PIBENCH", "bulk_load");
  std::unique_ptr<tree_api> made = load("fast_fair").create({});
  const std::unique_ptr<later_api> t(reinterpret_cast<later_api*>(made.release()));
  const std::array<std::uint64_t, 2> record = {7, 70};
  const std::array<std::uint64_t, 2> changed = {7, 71};
  const auto* const key = reinterpret_cast<const char*>(record.data());
  EXPECT_FALSE(t->bulk_load(key, 1, 8, 8));
  EXPECT_TRUE(t->insert(key, 8, key + 8, 8));
  EXPECT_FALSE(t->insert(key, 8, key + 8, 8));
  EXPECT_TRUE(t->update(key, 8, reinterpret_cast<const char*>(&changed[1]), 8));
  std::uint64_t value = 0;
  EXPECT_TRUE(t->find(key, 8, reinterpret_cast<char*>(&value)));
  EXPECT_EQ(value, 71U);
  char* found = nullptr;
  ASSERT_EQ(t->scan(key, 8, 10, found), 1);
  EXPECT_EQ(tree::copied(found, 1), (tree::records{{7, 71}}));
  EXPECT_TRUE(t->remove(key, 8));
  EXPECT_FALSE(t->remove(key, 8));
  const variable other("PMLAB_PIBENCH", "bulk");
  EXPECT_NE(message_of([] { tree("fast_fair", {}); }).find("PMLAB_PIBENCH 'bulk'"), std::string::npos);
}

// A cache is in front of the same pool as its index; a hybrid's primary is an index.
TEST(pibench_pools, are_those_of_the_index_itself) {
  const temporary_folder folder;
  const tree_options_t options = pool_at(folder.file("pool"));
  { ASSERT_TRUE(tree("cache_fast_fair", options).insert(1, 10)); }
  { ASSERT_EQ(tree("fast_fair", options).find(1), 10U); }
  { ASSERT_EQ(tree("hybrid_index_plus", options).find(1), 10U); }
}

TEST(pibench_libraries, stand_side_by_side_in_one_process) {
  const temporary_folder folder;
  tree first("fast_fair", pool_at(folder.file("first")));
  tree second("cceh", pool_at(folder.file("second")));
  tree third("fast_fair", pool_at(folder.file("third")));
  for (std::uint64_t key = 0; key < 1'000; ++key) {
    ASSERT_TRUE(first.insert(key, key) && second.insert(key, key + 1) && third.insert(key, key + 2));
  }
  EXPECT_EQ(first.find(999), 999U);
  EXPECT_EQ(second.find(999), 1000U);
  EXPECT_EQ(third.find(999), 1001U);
}

}  // namespace
}  // namespace pmlab::tests
