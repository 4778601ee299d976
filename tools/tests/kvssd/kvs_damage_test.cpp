// Bits of a device's backing file that are flipped between two openings: they cost the pairs that they are in, which
// are reported. All else goes on.
#include <pmlab/kvssd/kvs_api.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace kvs_damage_test {
namespace {

constexpr int pairs = 120;
constexpr std::uint64_t limit = 1 << 20;

std::string key_of(int n) {
  std::string digits = std::to_string(n);
  return "user:" + std::string(5 - digits.size(), '0') + digits;
}
std::string value_of(int n) {
  return "<" + std::to_string(n) + ">" + std::string(900, static_cast<char>('a' + n % 26));
}

class DamagedFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("pmlab-kvssd-damage-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "drive";
    open_device("?size=48M&memory=48M&buffer=5M");
    ASSERT_EQ(make_space("filler", 0), KVS_SUCCESS);
    ASSERT_EQ(make_space("users", limit), KVS_SUCCESS);
    utilization_without_pairs_ = utilization();
    open_space("users");
    for (int n = 0; n < pairs; ++n) ASSERT_EQ(store(key_of(n), value_of(n)), KVS_SUCCESS);
    // Until all of these have left the write buffer.
    kvs_key_space_handle users = space_;
    open_space("filler");
    for (int i = 0; i < 24; ++i)
      ASSERT_EQ(store("filler " + std::to_string(i % 6), std::string(1 << 20, 'f')), KVS_SUCCESS);
    for (int i = 0; i < 6; ++i) ASSERT_EQ(erase("filler " + std::to_string(i)), KVS_SUCCESS);
    space_ = users;
    ASSERT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    device_ = nullptr;
  }
  void TearDown() override {
    if (device_ != nullptr) {
      EXPECT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    }
    std::filesystem::remove_all(folder_);
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

  void open_device(const std::string& options = {}) {
    std::string uri = path_ + options;
    ASSERT_EQ(kvs_open_device(uri.data(), &device_), KVS_SUCCESS) << pmlab_kvssd_message();
  }
  void open_space(std::string name) {
    ASSERT_EQ(kvs_open_key_space(device_, name.data(), &space_), KVS_SUCCESS) << pmlab_kvssd_message();
  }
  kvs_result make_space(std::string name, std::uint64_t bytes) {
    kvs_key_space_name n{static_cast<std::uint32_t>(name.size()), name.data()};
    return kvs_create_key_space(device_, &n, bytes, {KVS_KEY_ORDER_NONE});
  }
  kvs_result remove_space(std::string name) {
    kvs_key_space_name n{static_cast<std::uint32_t>(name.size()), name.data()};
    return kvs_delete_key_space(device_, &n);
  }
  kvs_result store(std::string key, std::string value) {
    kvs_key k{key.data(), static_cast<std::uint16_t>(key.size())};
    kvs_value v{value.data(), static_cast<std::uint32_t>(value.size()), 0, 0};
    return kvs_store_kvp(space_, &k, &v, nullptr);
  }
  kvs_result retrieve(std::string key, std::string& value) {
    value.assign(4096, '\0');
    kvs_key k{key.data(), static_cast<std::uint16_t>(key.size())};
    kvs_value v{value.data(), 4096, 0, 0};
    const kvs_result result = kvs_retrieve_kvp(space_, &k, nullptr, &v);
    value.resize(result == KVS_SUCCESS ? v.length : 0);
    return result;
  }
  kvs_result erase(std::string key) {
    kvs_key k{key.data(), static_cast<std::uint16_t>(key.size())};
    kvs_option_delete option{true};
    return kvs_delete_kvp(space_, &k, &option);
  }
  bool exists(std::string key) {
    kvs_key k{key.data(), static_cast<std::uint16_t>(key.size())};
    std::uint8_t bits = 0;
    kvs_exist_list list{};
    list.length = 1;
    list.result_buffer = &bits;
    EXPECT_EQ(kvs_exist_kv_pairs(space_, 1, &k, &list), KVS_SUCCESS) << pmlab_kvssd_message();
    return bits != 0;
  }
  std::uint32_t utilization() {
    std::uint32_t share = 0;
    EXPECT_EQ(kvs_get_device_utilization(device_, &share), KVS_SUCCESS);
    return share;
  }
  std::uint64_t count() {
    kvs_key_space info{};
    EXPECT_EQ(kvs_get_key_space_info(space_, &info), KVS_SUCCESS) << pmlab_kvssd_message();
    return info.count;
  }
  // All pairs but those that `is_damaged(n)` are right; these are named.
  template <class IsDamaged>
  void expect_pairs(IsDamaged&& is_damaged) {
    for (int n = 0; n < pairs; ++n) {
      std::string value;
      const kvs_result result = retrieve(key_of(n), value);
      ASSERT_EQ(result, is_damaged(n) ? KVS_ERR_SYS_IO : KVS_SUCCESS) << n;
      if (result == KVS_SUCCESS) {
        ASSERT_EQ(value, value_of(n));
      } else {
        ASSERT_NE(std::string(pmlab_kvssd_message()).find(key_of(n)), std::string::npos) << pmlab_kvssd_message();
      }
    }
  }

  std::filesystem::path folder_;
  std::string path_;
  kvs_device_handle device_ = nullptr;
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
  EXPECT_EQ(store(key_of(17), value_of(17)), KVS_SUCCESS);
  EXPECT_EQ(erase(key_of(30)), KVS_SUCCESS);
  EXPECT_EQ(erase(key_of(30)), KVS_ERR_KEY_NOT_EXIST);
  EXPECT_EQ(store(key_of(30), value_of(30)), KVS_SUCCESS);
  expect_pairs([](int) { return false; });
  EXPECT_EQ(count(), static_cast<std::uint64_t>(pairs));
  // The limit is kept: the count is a bound.
  std::string rest(300000, 'r');
  int stored = 0;
  while (stored < 10 && store("rest" + std::to_string(stored), rest) == KVS_SUCCESS) ++stored;
  EXPECT_EQ(stored, 3);
}

TEST_F(DamagedFile, of_a_page_of_keys_costs_no_pair_and_no_new_key) {
  ASSERT_GT(flip_pages_with(pairs - 1), 0);
  open_device();
  open_space("users");
  EXPECT_EQ(count(), static_cast<std::uint64_t>(pairs));
  expect_pairs([](int) { return false; });
  for (int n = pairs; n < 2 * pairs; ++n) ASSERT_EQ(store(key_of(n), value_of(n)), KVS_SUCCESS) << n;
  EXPECT_EQ(erase(key_of(0)), KVS_SUCCESS);
  EXPECT_EQ(erase(key_of(pairs - 1)), KVS_SUCCESS);
  EXPECT_EQ(count(), static_cast<std::uint64_t>(2 * pairs - 2));
  kvs_key_group_filter all{};
  EXPECT_EQ(kvs_delete_key_group(space_, &all), KVS_SUCCESS) << pmlab_kvssd_message();
  EXPECT_EQ(count(), 0U);
}

TEST_F(DamagedFile, keeps_nothing_of_a_key_space_that_is_deleted) {
  ASSERT_EQ(flip(key_of(17) + value_of(17), 9), 1);
  ASSERT_EQ(flip(key_of(30) + value_of(30), 500), 1);
  ASSERT_GT(flip_pages_with(3), 0);
  ASSERT_GT(flip_pages_with(pairs - 1), 0);
  open_device();
  ASSERT_EQ(remove_space("users"), KVS_SUCCESS);
  EXPECT_LE(utilization(), utilization_without_pairs_);
  ASSERT_EQ(make_space("users", limit), KVS_SUCCESS);
  open_space("users");
  EXPECT_EQ(count(), 0U);
}

TEST_F(DamagedFile, of_a_name_costs_no_other_key_space_and_the_pairs_are_there) {
  ASSERT_GE(flip(std::string_view("\0\0\0\0users", 9), 5), 1);
  open_device();
  open_space("filler");
  EXPECT_EQ(store("other", "value"), KVS_SUCCESS);
  // It is not "not there".
  std::string name = "users";
  kvs_key_space_handle none = nullptr;
  EXPECT_EQ(kvs_open_key_space(device_, name.data(), &none), KVS_ERR_SYS_IO);
  EXPECT_NE(std::string(pmlab_kvssd_message()).find("'#damaged-1'"), std::string::npos) << pmlab_kvssd_message();
  EXPECT_EQ(make_space("users", limit), KVS_ERR_SYS_IO);
  open_space("#damaged-1");
  expect_pairs([](int) { return false; });
  ASSERT_EQ(kvs_close_key_space(space_), KVS_SUCCESS);
  ASSERT_EQ(remove_space("#damaged-1"), KVS_SUCCESS);
  ASSERT_EQ(make_space("users", limit), KVS_SUCCESS);
  EXPECT_LE(utilization(), utilization_without_pairs_ + 1);
}

}  // namespace
}  // namespace kvs_damage_test
