// Bits of a device's backing file that are flipped between two openings: they cost the pairs that they are in, which
// are reported. All else goes on.
#include <pmlab/kvssd/kvs_api.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tests/kvssd/kvs_states.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvs_damage_test {
namespace {

using pmlab::tests::erase;
using pmlab::tests::make_space;
using pmlab::tests::message;
using pmlab::tests::opened_space;
using pmlab::tests::remove_space;
using pmlab::tests::retrieve;
using pmlab::tests::store;

constexpr int pairs = 120;
constexpr std::uint64_t limit = 1 << 20;

std::string key_of(int n) {
  std::string digits = std::to_string(n);
  return "user:" + std::string(5 - digits.size(), '0') + digits;
}
std::string value_of(int n) {
  return "<" + std::to_string(n) + ">" + std::string(900, static_cast<char>('a' + n % 26));
}

class DamagedFile : public pmlab::tests::States {
 protected:
  void SetUp() override {
    States::SetUp();
    open_device("?size=48M&memory=48M&buffer=5M");
    ASSERT_EQ(make_space(device_, "filler", 0), KVS_SUCCESS);
    ASSERT_EQ(make_space(device_, "users", limit), KVS_SUCCESS);
    utilization_without_pairs_ = utilization();
    open_space("users");
    for (int n = 0; n < pairs; ++n) ASSERT_EQ(store(space_, key_of(n), value_of(n)), KVS_SUCCESS);
    // Until all of these have left the write buffer.
    kvs_key_space_handle users = space_;
    open_space("filler");
    for (int i = 0; i < 24; ++i)
      ASSERT_EQ(store(space_, "filler " + std::to_string(i % 6), std::string(1 << 20, 'f')), KVS_SUCCESS);
    for (int i = 0; i < 6; ++i) ASSERT_EQ(erase(space_, "filler " + std::to_string(i)), KVS_SUCCESS);
    space_ = users;
    ASSERT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    device_ = nullptr;
  }
  void TearDown() override {
    if (device_ != nullptr) {
      EXPECT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    }
    States::TearDown();
  }

  // Flips the lowest bit of the byte at `offset` of each place in the file that has `text`. Returns how many have.
  int flip(std::string_view text, std::size_t offset) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    int places = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1), ++places) {
      file.clear();
      file.seekp(static_cast<std::streamoff>(at + offset));
      file.put(static_cast<char>(all[at + offset] ^ 1));
    }
    return places;
  }
  // Pages list a key behind its length; a record has it behind a head that ends with zeros or a lap.
  int flip_pages_with(int n) { return flip(std::string(1, '\x0a') + key_of(n), 1); }

  void open_device(const std::string& options = {}) { ASSERT_EQ(open(options), KVS_SUCCESS) << message(); }
  void open_space(const std::string& name) {
    space_ = opened_space(device_, name);
    ASSERT_NE(space_, nullptr) << message();
  }
  bool exists(std::string key) {
    kvs_key k = pmlab::tests::key_of(key);
    std::uint8_t bits = 0;
    kvs_exist_list list{};
    list.length = 1;
    list.result_buffer = &bits;
    EXPECT_EQ(kvs_exist_kv_pairs(space_, 1, &k, &list), KVS_SUCCESS) << message();
    return bits != 0;
  }
  std::uint32_t utilization() {
    std::uint32_t share = 0;
    EXPECT_EQ(kvs_get_device_utilization(device_, &share), KVS_SUCCESS);
    return share;
  }
  std::uint64_t count() {
    kvs_key_space info{};
    EXPECT_EQ(kvs_get_key_space_info(space_, &info), KVS_SUCCESS) << message();
    return info.count;
  }
  // All pairs but those that `is_damaged(n)` are right; these are named.
  template <class IsDamaged>
  void expect_pairs(IsDamaged&& is_damaged) {
    for (int n = 0; n < pairs; ++n) {
      std::string value;
      const kvs_result result = retrieve(space_, key_of(n), &value);
      ASSERT_EQ(result, is_damaged(n) ? KVS_ERR_SYS_IO : KVS_SUCCESS) << n;
      if (result == KVS_SUCCESS) {
        ASSERT_EQ(value, value_of(n));
      } else {
        ASSERT_NE(message().find(key_of(n)), std::string::npos) << message();
      }
    }
  }

  kvs_key_space_handle space_ = nullptr;
  std::uint32_t utilization_without_pairs_ = 0;
};

TEST_F(DamagedFile, costs_the_damaged_pair_alone_in_its_key_and_in_its_value) {
  ASSERT_EQ(flip(key_of(17) + value_of(17), 9), 1);
  ASSERT_EQ(flip(key_of(30) + value_of(30), 500), 1);
  open_device();
  open_space("users");  // which has a limit: it is counted
  EXPECT_EQ(count(), static_cast<std::uint64_t>(pairs));
  expect_pairs([](int n) { return n == 17 || n == 30; });
  for (const int n : {17, 30}) EXPECT_TRUE(exists(key_of(n)));
  // One is put again, the other deleted; each may be.
  EXPECT_EQ(store(space_, key_of(17), value_of(17)), KVS_SUCCESS);
  EXPECT_EQ(erase(space_, key_of(30)), KVS_SUCCESS);
  EXPECT_EQ(erase(space_, key_of(30)), KVS_ERR_KEY_NOT_EXIST);
  EXPECT_EQ(store(space_, key_of(30), value_of(30)), KVS_SUCCESS);
  expect_pairs([](int) { return false; });
  EXPECT_EQ(count(), static_cast<std::uint64_t>(pairs));
  // The limit is kept: the count is a bound.
  std::string rest(300000, 'r');
  int stored = 0;
  while (stored < 10 && store(space_, "rest" + std::to_string(stored), rest) == KVS_SUCCESS) ++stored;
  EXPECT_EQ(stored, 3);
}

TEST_F(DamagedFile, of_a_page_of_keys_costs_no_pair_and_no_new_key) {
  ASSERT_GT(flip_pages_with(pairs - 1), 0);
  open_device();
  open_space("users");
  EXPECT_EQ(count(), static_cast<std::uint64_t>(pairs));
  expect_pairs([](int) { return false; });
  for (int n = pairs; n < 2 * pairs; ++n) ASSERT_EQ(store(space_, key_of(n), value_of(n)), KVS_SUCCESS) << n;
  EXPECT_EQ(erase(space_, key_of(0)), KVS_SUCCESS);
  EXPECT_EQ(erase(space_, key_of(pairs - 1)), KVS_SUCCESS);
  EXPECT_EQ(count(), static_cast<std::uint64_t>(2 * pairs - 2));
  kvs_key_group_filter all{};
  EXPECT_EQ(kvs_delete_key_group(space_, &all), KVS_SUCCESS) << message();
  EXPECT_EQ(count(), 0U);
}

// No page that can be read lists it, and its record does not name it: but it is there.
TEST_F(DamagedFile, of_a_record_and_of_its_page_is_counted) {
  ASSERT_GT(flip_pages_with(17), 0);
  ASSERT_EQ(flip(key_of(17) + value_of(17), 9), 1);
  open_device();
  open_space("users");
  EXPECT_EQ(count(), static_cast<std::uint64_t>(pairs));
  kvs_key_group_filter all{};
  EXPECT_EQ(kvs_delete_key_group(space_, &all), KVS_SUCCESS) << message();
  EXPECT_EQ(count(), 1U);
  EXPECT_EQ(erase(space_, key_of(17)), KVS_SUCCESS);
  EXPECT_EQ(count(), 0U);
}

TEST_F(DamagedFile, keeps_nothing_of_a_key_space_that_is_deleted) {
  ASSERT_EQ(flip(key_of(17) + value_of(17), 9), 1);
  ASSERT_EQ(flip(key_of(30) + value_of(30), 500), 1);
  ASSERT_GT(flip_pages_with(3), 0);
  ASSERT_GT(flip_pages_with(pairs - 1), 0);
  open_device();
  ASSERT_EQ(remove_space(device_, "users"), KVS_SUCCESS);
  EXPECT_LE(utilization(), utilization_without_pairs_);
  ASSERT_EQ(make_space(device_, "users", limit), KVS_SUCCESS);
  open_space("users");
  EXPECT_EQ(count(), 0U);
}

TEST_F(DamagedFile, of_a_name_costs_no_other_key_space_and_the_pairs_are_there) {
  ASSERT_GE(flip(std::string_view("\0\0\0\0users", 9), 5), 1);
  open_device();
  open_space("filler");
  EXPECT_EQ(store(space_, "other", "value"), KVS_SUCCESS);
  // It is not "not there".
  std::string name = "users";
  kvs_key_space_handle none = nullptr;
  EXPECT_EQ(kvs_open_key_space(device_, name.data(), &none), KVS_ERR_SYS_IO);
  EXPECT_NE(message().find("'#damaged-1'"), std::string::npos) << message();
  EXPECT_EQ(make_space(device_, "users", limit), KVS_ERR_SYS_IO);
  open_space("#damaged-1");
  expect_pairs([](int) { return false; });
  ASSERT_EQ(kvs_close_key_space(space_), KVS_SUCCESS);
  ASSERT_EQ(remove_space(device_, "#damaged-1"), KVS_SUCCESS);
  ASSERT_EQ(make_space(device_, "users", limit), KVS_SUCCESS);
  EXPECT_LE(utilization(), utilization_without_pairs_ + 1);
}

// Bits of the memory's file: each opening is a process of its own. It is refused by name, or answers right, or names
// the damaged pair; that can be stored again and deleted then, as all others can.
class DamagedMemory : public pmlab::tests::States {
 protected:
  static constexpr int some = 100;

  static std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Keeps the file, which may be linked.
  static void restore(const std::string& path, const std::string& content) {
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  // Opens the device and uses all pairs. 0: refused; 1: right; 2: a pair is damaged; others: the number of the step
  // that went wrong.
  int use_all() {
    if (open() != KVS_SUCCESS) return message().empty() ? 10 : 0;
    std::string name = "users";
    kvs_key_space_handle space = nullptr;
    if (kvs_open_key_space(device_, name.data(), &space) != KVS_SUCCESS) return message().empty() ? 11 : 0;
    int damaged = 0;
    for (int n = 0; n < some; ++n) {
      std::string value;
      const kvs_result result = retrieve(space, key_of(n), &value);
      if (result == KVS_ERR_SYS_IO && message().find("is damaged") != std::string::npos)
        ++damaged;
      else if (result != KVS_SUCCESS || value != value_of(n))
        return 12;
    }
    for (int n = 0; n < some; ++n)
      if (store(space, key_of(n), value_of(n)) != KVS_SUCCESS) return 13;
    for (int n = 0; n < some; ++n)
      if (erase(space, key_of(n)) != KVS_SUCCESS) return 14;
    return kvs_close_device(device_) != KVS_SUCCESS ? 15 : damaged == 0 ? 1 : 2;
  }
};

TEST_F(DamagedMemory, is_refused_by_name_or_costs_its_pair) {
  ASSERT_EQ(open(pmlab::tests::small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "users", limit), KVS_SUCCESS);
  const kvs_key_space_handle space = opened_space(device_, "users");
  for (int n = 0; n < some; ++n) ASSERT_EQ(store(space, key_of(n), value_of(n)), KVS_SUCCESS);
  close();
  const std::string memory_path = path_ + ".memory";
  const std::string drive = content_of(path_), memory = content_of(memory_path);
  std::vector<std::size_t> used;  // words of different bytes: no zeros, and no part of a value
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    const std::string_view word = std::string_view(memory).substr(at, 8);
    if (word.find_first_not_of(word.front()) != std::string_view::npos) used.push_back(at);
  }
  ASSERT_GT(used.size(), 1000U);
  std::mt19937_64 random(1);
  std::map<int, int> ends;
  for (int round = 0; round < 16; ++round) {
    const std::size_t at = used[random() % used.size()] + random() % 8;
    std::string damaged = memory;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
    restore(memory_path, damaged);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(use_all());
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "byte " << at << ", signal " << WTERMSIG(status);
    ASSERT_LE(WEXITSTATUS(status), 2) << "byte " << at;
    ++ends[WEXITSTATUS(status)];
    restore(path_, drive);
    restore(memory_path, memory);
  }
  EXPECT_GT(ends[1] + ends[2], 0);
}

}  // namespace
}  // namespace kvs_damage_test
