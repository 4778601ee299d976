// The SNIA Key Value Storage API as programs use it: through libpmlab_kvssd.so and its C header alone.
#include <pmlab/kvssd/kvs_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

kvs_key key_of(std::string& text) { return {text.data(), static_cast<std::uint16_t>(text.size())}; }

class Api : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("pmlab-kvssd-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "drive";
    open("?size=48M&memory=48M&buffer=5M");
    make_space("orders");
    space_ = opened("orders");
  }
  void TearDown() override {
    if (device_ != nullptr) {
      EXPECT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    }
    std::filesystem::remove_all(folder_);
  }

  void open(const std::string& options = {}) {
    std::string uri = path_ + options;
    ASSERT_EQ(kvs_open_device(uri.data(), &device_), KVS_SUCCESS) << pmlab_kvssd_message();
  }
  void reopen() {
    ASSERT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    open();
    space_ = opened("orders");
  }
  kvs_result make_space(std::string name, std::uint64_t bytes = 0, kvs_key_order order = KVS_KEY_ORDER_NONE) {
    kvs_key_space_name n{static_cast<std::uint32_t>(name.size()), name.data()};
    return kvs_create_key_space(device_, &n, bytes, {order});
  }
  kvs_result remove_space(std::string name) {
    kvs_key_space_name n{static_cast<std::uint32_t>(name.size()), name.data()};
    return kvs_delete_key_space(device_, &n);
  }
  kvs_key_space_handle opened(std::string name) {
    kvs_key_space_handle handle = nullptr;
    EXPECT_EQ(kvs_open_key_space(device_, name.data(), &handle), KVS_SUCCESS);
    return handle;
  }

  kvs_result store(std::string key, std::string value, kvs_store_type type = KVS_STORE_POST) {
    kvs_key k = key_of(key);
    kvs_value v{value.data(), static_cast<std::uint32_t>(value.size()), 0, 0};
    kvs_option_store option{type, nullptr};
    return kvs_store_kvp(space_, &k, &v, &option);
  }
  kvs_result retrieve(std::string key, std::string& value, bool and_delete = false, std::uint32_t offset = 0,
                      std::uint32_t room = 1 << 16) {
    value.assign(room, '\0');
    kvs_key k = key_of(key);
    kvs_value v{value.data(), room, 0, offset};
    kvs_option_retrieve option{and_delete};
    const kvs_result result = kvs_retrieve_kvp(space_, &k, &option, &v);
    size_ = v.actual_value_size;
    value.resize(result == KVS_SUCCESS || result == KVS_ERR_BUFFER_SMALL ? v.length : 0);
    return result;
  }
  kvs_result erase(std::string key, bool absent_is_error = false) {
    kvs_key k = key_of(key);
    kvs_option_delete option{absent_is_error};
    return kvs_delete_kvp(space_, &k, &option);
  }
  static kvs_key_group_filter filter(std::array<std::uint8_t, 4> mask, std::array<std::uint8_t, 4> pattern) {
    kvs_key_group_filter f{};
    std::copy(mask.begin(), mask.end(), f.bitmask);
    std::copy(pattern.begin(), pattern.end(), f.bit_pattern);
    return f;
  }
  // All entries of an iterator, with `room` bytes a call.
  std::map<std::string, std::string> all_of(kvs_iterator_handle iterator, bool with_values, std::uint32_t room) {
    std::map<std::string, std::string> found;
    for (bool end = false; !end;) {
      std::vector<std::uint8_t> buffer(room);
      kvs_iterator_list list{0, false, room, buffer.data()};
      EXPECT_EQ(kvs_iterate_next(space_, iterator, &list), KVS_SUCCESS);
      const std::uint8_t* at = buffer.data();
      const auto next = [&] {
        std::uint32_t length = 0;
        std::memcpy(&length, at, sizeof length);
        std::string text(reinterpret_cast<const char*>(at) + sizeof length, length);
        at += sizeof length + length;
        return text;
      };
      for (std::uint32_t i = 0; i < list.num_entries; ++i) {
        const std::string key = next();
        EXPECT_TRUE(found.emplace(key, with_values ? next() : "").second) << key << " came twice";
      }
      EXPECT_EQ(at, buffer.data() + list.size);
      end = list.end;
    }
    return found;
  }

  std::filesystem::path folder_;
  std::string path_;
  kvs_device_handle device_ = nullptr;
  kvs_key_space_handle space_ = nullptr;
  std::uint32_t size_ = 0;
};

TEST_F(Api, answers_questions_about_the_device) {
  kvs_device info{};
  ASSERT_EQ(kvs_get_device_info(device_, &info), KVS_SUCCESS);
  EXPECT_EQ(info.max_key_len, 255U);
  EXPECT_EQ(info.max_value_len, 2U << 20);
  std::uint64_t capacity = 0;
  EXPECT_EQ(kvs_get_device_capacity(device_, &capacity), KVS_SUCCESS);
  EXPECT_EQ(capacity, info.capacity);
  EXPECT_GT(capacity, 16U << 20);
  EXPECT_LT(capacity, 48U << 20);
  std::uint32_t n = 0;
  EXPECT_EQ(kvs_get_min_key_length(device_, &n), KVS_SUCCESS);
  EXPECT_EQ(n, 4U);
  EXPECT_EQ(kvs_get_max_key_length(device_, &n), KVS_SUCCESS);
  EXPECT_EQ(n, 255U);
  EXPECT_EQ(kvs_get_min_value_length(device_, &n), KVS_SUCCESS);
  EXPECT_EQ(n, 0U);
  EXPECT_EQ(kvs_get_max_value_length(device_, &n), KVS_SUCCESS);
  EXPECT_EQ(n, 2U << 20);
  EXPECT_EQ(kvs_get_optimal_value_length(device_, &n), KVS_SUCCESS);
  EXPECT_EQ(n, 4096U);
  EXPECT_EQ(kvs_get_device_capacity(device_, nullptr), KVS_ERR_PARAM_INVALID);
  EXPECT_EQ(kvs_get_device_capacity(nullptr, &capacity), KVS_ERR_DEV_NOT_EXIST);
}

TEST_F(Api, utilisation_rises_with_pairs_and_falls_when_they_are_deleted) {
  std::uint32_t before = 0, full = 0, after = 0;
  EXPECT_EQ(kvs_get_device_utilization(device_, &before), KVS_SUCCESS);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(store("key-" + std::to_string(i), std::string(4096, 'x')), KVS_SUCCESS);
  EXPECT_EQ(kvs_get_device_utilization(device_, &full), KVS_SUCCESS);
  EXPECT_GT(full, before + 500);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(erase("key-" + std::to_string(i)), KVS_SUCCESS);
  EXPECT_EQ(kvs_get_device_utilization(device_, &after), KVS_SUCCESS);
  EXPECT_LT(after, before + 50);
}

TEST_F(Api, stores_in_four_ways) {
  std::string value;
  EXPECT_EQ(store("user:1", "a", KVS_STORE_UPDATE_ONLY), KVS_ERR_KEY_NOT_EXIST);
  EXPECT_EQ(store("user:1", "a", KVS_STORE_NOOVERWRITE), KVS_SUCCESS);
  EXPECT_EQ(store("user:1", "b", KVS_STORE_NOOVERWRITE), KVS_ERR_VALUE_UPDATE_NOT_ALLOWED);
  EXPECT_EQ(retrieve("user:1", value), KVS_SUCCESS);
  EXPECT_EQ(value, "a");
  EXPECT_EQ(store("user:1", "bc", KVS_STORE_UPDATE_ONLY), KVS_SUCCESS);
  EXPECT_EQ(store("user:1", "def", KVS_STORE_APPEND), KVS_SUCCESS);
  EXPECT_EQ(store("user:2", "new", KVS_STORE_APPEND), KVS_SUCCESS);
  EXPECT_EQ(retrieve("user:1", value), KVS_SUCCESS);
  EXPECT_EQ(value, "bcdef");
  EXPECT_EQ(store("user:1", "", KVS_STORE_POST), KVS_SUCCESS);
  EXPECT_EQ(retrieve("user:1", value), KVS_SUCCESS);
  EXPECT_EQ(value, "");
}

TEST_F(Api, retrieves_parts_and_says_the_whole_size) {
  std::string long_value(3000, 'a'), value;
  std::fill(long_value.begin() + 512, long_value.end(), 'b');
  ASSERT_EQ(store("user:1", long_value), KVS_SUCCESS);
  EXPECT_EQ(retrieve("user:1", value, false, 512), KVS_SUCCESS);
  EXPECT_EQ(value, long_value.substr(512));
  EXPECT_EQ(size_, 3000U);
  EXPECT_EQ(retrieve("user:1", value, false, 0, 100), KVS_ERR_BUFFER_SMALL);
  EXPECT_EQ(value, std::string(100, 'a'));
  EXPECT_EQ(size_, 3000U);
  EXPECT_EQ(retrieve("user:1", value, false, 100), KVS_ERR_VALUE_OFFSET_MISALIGNED);
  EXPECT_EQ(retrieve("user:1", value, false, 4096), KVS_ERR_VALUE_OFFSET_INVALID);
  std::string key = "user:1";
  kvs_key k = key_of(key);
  std::vector<std::uint8_t> name(KVS_MAX_KEY_LENGTH);
  kvs_kvp_info info{0, name.data(), 0};
  EXPECT_EQ(kvs_get_kvp_info(space_, &k, &info), KVS_SUCCESS);
  EXPECT_EQ(info.value_len, 3000U);
  EXPECT_EQ(std::string(name.begin(), name.begin() + info.key_len), key);
}

TEST_F(Api, a_retrieve_that_deletes_keeps_a_pair_that_does_not_fit) {
  std::string value;
  ASSERT_EQ(store("user:1", std::string(100, 'x')), KVS_SUCCESS);
  EXPECT_EQ(retrieve("user:1", value, true, 0, 10), KVS_ERR_BUFFER_SMALL);
  EXPECT_EQ(retrieve("user:1", value, true), KVS_SUCCESS);
  EXPECT_EQ(value.size(), 100U);
  EXPECT_EQ(retrieve("user:1", value), KVS_ERR_KEY_NOT_EXIST);
}

TEST_F(Api, deletes) {
  ASSERT_EQ(store("user:1", "x"), KVS_SUCCESS);
  EXPECT_EQ(erase("user:1", true), KVS_SUCCESS);
  EXPECT_EQ(erase("user:1"), KVS_SUCCESS);
  EXPECT_EQ(erase("user:1", true), KVS_ERR_KEY_NOT_EXIST);
}

TEST_F(Api, refuses_bad_input_by_name) {
  std::string value;
  EXPECT_EQ(store("", "x"), KVS_ERR_KEY_LENGTH_INVALID);
  EXPECT_EQ(store("abc", "x"), KVS_ERR_KEY_LENGTH_INVALID);
  EXPECT_EQ(store(std::string(255, 'k'), "x"), KVS_SUCCESS);
  EXPECT_EQ(store(std::string(256, 'k'), "x"), KVS_ERR_KEY_LENGTH_INVALID);
  EXPECT_EQ(store("large", std::string(2 << 20, 'x')), KVS_SUCCESS);
  EXPECT_EQ(store("large", std::string((2 << 20) + 1, 'x')), KVS_ERR_VALUE_LENGTH_INVALID);
  EXPECT_EQ(store("large", "x", KVS_STORE_APPEND), KVS_ERR_VALUE_LENGTH_INVALID);
  kvs_value v{nullptr, 5, 0, 0};
  std::string key = "user:1";
  kvs_key k = key_of(key);
  EXPECT_EQ(kvs_store_kvp(space_, &k, &v, nullptr), KVS_ERR_PARAM_INVALID);
  EXPECT_EQ(kvs_store_kvp(space_, nullptr, &v, nullptr), KVS_ERR_PARAM_INVALID);
  EXPECT_EQ(kvs_store_kvp(nullptr, &k, &v, nullptr), KVS_ERR_KS_NOT_EXIST);
  EXPECT_EQ(make_space("orders"), KVS_ERR_KS_EXIST);
  EXPECT_EQ(make_space(""), KVS_ERR_KS_NAME);
  EXPECT_EQ(make_space(std::string("a\0b", 3)), KVS_ERR_KS_NAME);
  EXPECT_EQ(make_space(std::string("\0", 1)), KVS_ERR_KS_NAME);
  EXPECT_EQ(make_space(std::string(256, 'n')), KVS_ERR_KS_NAME);
  EXPECT_EQ(make_space("huge", std::uint64_t{1} << 40), KVS_ERR_DEV_CAPAPCITY);
  EXPECT_EQ(make_space("sorted", 0, KVS_KEY_ORDER_ASCEND), KVS_ERR_OPTION_INVALID);
  EXPECT_EQ(remove_space("none"), KVS_ERR_KS_NOT_EXIST);
  EXPECT_EQ(remove_space("orders"), KVS_ERR_KS_OPEN);
  kvs_device_handle other = nullptr;
  EXPECT_EQ(kvs_open_device((folder_ / "none").string().data(), &other), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(std::string(pmlab_kvssd_message()).find("there is no device"), std::string::npos);
  EXPECT_EQ(kvs_open_device((path_ + "?colour=red").data(), &other), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(std::string(pmlab_kvssd_message()).find("colour"), std::string::npos);
  kvs_option_iterator seven{};
  const int no_type = 7;
  std::memcpy(&seven.iter_type, &no_type, sizeof no_type);
  kvs_key_group_filter all{};
  kvs_iterator_handle iterator = 0;
  EXPECT_EQ(kvs_create_iterator(space_, &seven, &all, &iterator), KVS_ERR_OPTION_INVALID);
}

// Behind another failure its message would be that one's.
TEST_F(Api, the_message_is_that_of_the_last_failure) {
  const auto fail_to_open = [&] {
    kvs_device_handle other = nullptr;
    EXPECT_EQ(kvs_open_device((path_ + "?colour=red").data(), &other), KVS_ERR_DEV_NOT_EXIST);
  };
  const auto names_the_handle = [] { return std::string(pmlab_kvssd_message()).find("the handle") == 0; };
  std::uint64_t capacity = 0;
  fail_to_open();
  EXPECT_EQ(kvs_get_device_capacity(nullptr, &capacity), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_TRUE(names_the_handle()) << pmlab_kvssd_message();
  fail_to_open();
  EXPECT_EQ(kvs_close_device(nullptr), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_TRUE(names_the_handle()) << pmlab_kvssd_message();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    fail_to_open();
    const bool is_refused = kvs_get_device_capacity(device_, &capacity) == KVS_ERR_DEV_NOT_EXIST;
    ::_exit(is_refused && names_the_handle() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const kvs_device_handle closed = device_;
  EXPECT_EQ(kvs_close_device(std::exchange(device_, nullptr)), KVS_SUCCESS);
  fail_to_open();
  EXPECT_EQ(kvs_close_device(closed), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_TRUE(names_the_handle()) << pmlab_kvssd_message();
}

TEST_F(Api, another_process_is_refused_while_the_device_is_open) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    kvs_device_handle other = nullptr;
    ::_exit(kvs_open_device(path_.data(), &other) == KVS_ERR_DEV_NOT_EXIST ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Api, a_full_device_changes_nothing_and_deletes_make_room) {
  std::string value;
  int stored = 0;
  while (store("key-" + std::to_string(stored), std::string(60000, 'x')) == KVS_SUCCESS) ++stored;
  EXPECT_GT(stored, 400);
  EXPECT_EQ(store("key-" + std::to_string(stored), std::string(60000, 'x')), KVS_ERR_KS_CAPACITY);
  EXPECT_EQ(retrieve("key-" + std::to_string(stored), value), KVS_ERR_KEY_NOT_EXIST);
  for (int i = 0; i < stored; i += 7) {
    ASSERT_EQ(retrieve("key-" + std::to_string(i), value), KVS_SUCCESS);
    ASSERT_EQ(value, std::string(60000, 'x'));
  }
  ASSERT_EQ(erase("key-0", true), KVS_SUCCESS);
  ASSERT_EQ(erase("key-1", true), KVS_SUCCESS);
  EXPECT_EQ(store("key-new", std::string(60000, 'y')), KVS_SUCCESS);
}

TEST_F(Api, key_spaces_are_apart_and_keep_their_limits) {
  ASSERT_EQ(make_space("limited", 1000), KVS_SUCCESS);
  ASSERT_EQ(store("user:1", "of orders"), KVS_SUCCESS);
  const kvs_key_space_handle orders = space_;
  space_ = opened("limited");
  std::string value;
  EXPECT_EQ(retrieve("user:1", value), KVS_ERR_KEY_NOT_EXIST);
  EXPECT_EQ(store("user:1", std::string(900, 'x')), KVS_SUCCESS);
  EXPECT_EQ(store("user:2", std::string(100, 'x')), KVS_ERR_KS_CAPACITY);
  EXPECT_EQ(store("user:1", std::string(600, 'x')), KVS_SUCCESS);
  EXPECT_EQ(store("user:2", std::string(300, 'x')), KVS_SUCCESS);
  EXPECT_EQ(store("user:1", std::string(200, 'x'), KVS_STORE_APPEND), KVS_ERR_KS_CAPACITY);
  EXPECT_EQ(erase("user:2"), KVS_SUCCESS);
  EXPECT_EQ(store("user:1", std::string(200, 'x'), KVS_STORE_APPEND), KVS_SUCCESS);
  kvs_key_space info{};
  ASSERT_EQ(kvs_get_key_space_info(space_, &info), KVS_SUCCESS);
  EXPECT_EQ(info.capacity, 1000U);
  EXPECT_EQ(info.count, 1U);
  EXPECT_EQ(info.free_size, 1000U - 806U);
  EXPECT_EQ(kvs_close_key_space(space_), KVS_SUCCESS);
  EXPECT_EQ(kvs_close_key_space(space_), KVS_ERR_KS_NOT_OPEN);
  EXPECT_EQ(store("user:1", "x"), KVS_ERR_KS_NOT_OPEN);
  EXPECT_EQ(remove_space("limited"), KVS_SUCCESS);
  ASSERT_EQ(make_space("limited"), KVS_SUCCESS);
  space_ = opened("limited");
  EXPECT_EQ(retrieve("user:1", value), KVS_ERR_KEY_NOT_EXIST);
  space_ = orders;
  EXPECT_EQ(retrieve("user:1", value), KVS_SUCCESS);

  std::array<std::array<char, 256>, 4> texts{};
  std::array<kvs_key_space_name, 4> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i].name = texts[i].data();
  std::uint32_t count = 0;
  ASSERT_EQ(kvs_list_key_spaces(device_, 0, sizeof names, names.data(), &count), KVS_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ((std::set<std::string>{names[0].name, names[1].name}), (std::set<std::string>{"limited", "orders"}));
  EXPECT_EQ(kvs_list_key_spaces(device_, 2, sizeof names, names.data(), &count), KVS_ERR_KS_INDEX);
  EXPECT_EQ(kvs_list_key_spaces(device_, 0, 2 * sizeof names[0] - 1, names.data(), &count), KVS_SUCCESS);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(kvs_list_key_spaces(device_, 0, sizeof names[0] - 1, names.data(), &count), KVS_ERR_BUFFER_SMALL);
  EXPECT_EQ(count, 0U);
}

TEST_F(Api, exist_answers_for_many_keys_in_one_command) {
  std::vector<std::string> texts;
  std::vector<kvs_key> keys;
  for (int i = 0; i < 20; ++i) {
    texts.push_back("key-" + std::to_string(i));
    if (i % 3 == 0) {
      ASSERT_EQ(store(texts.back(), "x"), KVS_SUCCESS);
    }
  }
  for (std::string& t : texts) keys.push_back(key_of(t));
  std::array<std::uint8_t, 3> bits{};
  kvs_exist_list list{0, nullptr, 2, bits.data()};
  EXPECT_EQ(kvs_exist_kv_pairs(space_, 20, keys.data(), &list), KVS_ERR_BUFFER_SMALL);
  list.length = 3;
  ASSERT_EQ(kvs_exist_kv_pairs(space_, 20, keys.data(), &list), KVS_SUCCESS);
  for (int i = 0; i < 20; ++i) EXPECT_EQ((bits[static_cast<std::size_t>(i / 8)] >> (i % 8) & 1) != 0, i % 3 == 0) << i;
}

TEST_F(Api, iterators_return_the_keys_of_a_prefix_once) {
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 500; ++i) {
    const std::string value(static_cast<std::size_t>(i % 50), 'v');
    ASSERT_EQ(store("user" + std::to_string(i), value), KVS_SUCCESS);
    ASSERT_EQ(store("item" + std::to_string(i), value), KVS_SUCCESS);
    expected["user" + std::to_string(i)] = value;
  }
  for (int i = 0; i < 500; i += 5) {
    ASSERT_EQ(erase("user" + std::to_string(i)), KVS_SUCCESS);
    expected.erase("user" + std::to_string(i));
  }
  kvs_key_group_filter users = filter({255, 255, 255, 255}, {'u', 's', 'e', 'r'});
  kvs_option_iterator with_values{KVS_ITERATOR_KEY_VALUE};
  kvs_iterator_handle iterator = 0;
  ASSERT_EQ(kvs_create_iterator(space_, &with_values, &users, &iterator), KVS_SUCCESS);
  kvs_iterator_handle second = 0;
  EXPECT_EQ(kvs_create_iterator(space_, &with_values, &users, &second), KVS_ERR_ITERATOR_OPEN);
  EXPECT_EQ(all_of(iterator, true, 300), expected);
  EXPECT_EQ(kvs_delete_iterator(space_, iterator), KVS_SUCCESS);
  EXPECT_EQ(kvs_delete_iterator(space_, iterator), KVS_ERR_ITERATOR_NOT_EXIST);

  ASSERT_EQ(kvs_create_iterator(space_, nullptr, &users, &iterator), KVS_SUCCESS);
  std::uint8_t little = 0;
  kvs_iterator_list list{0, false, 1, &little};
  EXPECT_EQ(kvs_iterate_next(space_, iterator, &list), KVS_ERR_BUFFER_SMALL);
  const auto keys = all_of(iterator, false, KVS_ITERATOR_BUFFER_SIZE);
  EXPECT_EQ(keys.size(), expected.size());

  kvs_key_group_filter wrong = filter({255, 0, 0, 0}, {'u', 's', 0, 0});
  EXPECT_EQ(kvs_create_iterator(space_, nullptr, &wrong, &second), KVS_ERR_ITERATOR_FILTER_INVALID);
  std::vector<kvs_iterator_handle> more;
  for (std::uint8_t i = 0; i < 15; ++i) {
    kvs_key_group_filter f = filter({255, 0, 0, 0}, {i, 0, 0, 0});
    ASSERT_EQ(kvs_create_iterator(space_, nullptr, &f, &second), KVS_SUCCESS);
    more.push_back(second);
  }
  kvs_key_group_filter f = filter({255, 0, 0, 0}, {'z', 0, 0, 0});
  EXPECT_EQ(kvs_create_iterator(space_, nullptr, &f, &second), KVS_ERR_ITERATOR_MAX);
  EXPECT_EQ(kvs_delete_iterator(space_, more.front()), KVS_SUCCESS);
  EXPECT_EQ(kvs_create_iterator(space_, nullptr, &f, &second), KVS_SUCCESS);
}

TEST_F(Api, deletes_a_group_of_keys) {
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(store("user" + std::to_string(i), "u"), KVS_SUCCESS);
    ASSERT_EQ(store("item" + std::to_string(i), "i"), KVS_SUCCESS);
  }
  kvs_key_group_filter users = filter({255, 255, 255, 255}, {'u', 's', 'e', 'r'});
  ASSERT_EQ(kvs_delete_key_group(space_, &users), KVS_SUCCESS);
  kvs_key_space info{};
  ASSERT_EQ(kvs_get_key_space_info(space_, &info), KVS_SUCCESS);
  EXPECT_EQ(info.count, 300U);
}

struct called_back {
  std::atomic<int> calls{0}, right{0};
};

TEST_F(Api, asynchronous_calls_call_back_once_with_their_result) {
  constexpr int count = 500;
  called_back stored, retrieved;
  std::vector<std::string> keys, values(count), found(count, std::string(16, '\0'));
  std::vector<kvs_key> k;
  std::vector<kvs_value> v(count), out(count);
  for (int i = 0; i < count; ++i) keys.push_back("key-" + std::to_string(i));
  for (std::string& key : keys) k.push_back(key_of(key));
  const auto count_calls = [](kvs_postprocess_context* c) {
    auto& of = *static_cast<called_back*>(c->private1);
    of.right += c->result == KVS_SUCCESS && c->key == c->private2 ? 1 : 0;
    ++of.calls;
  };
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::to_string(i);
    v[i] = {values[i].data(), static_cast<std::uint32_t>(values[i].size()), 0, 0};
    ASSERT_EQ(kvs_store_kvp_async(space_, &k[i], &v[i], nullptr, &stored, &k[i], count_calls), KVS_SUCCESS);
  }
  while (stored.calls < count) std::this_thread::yield();
  EXPECT_EQ(stored.right, count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = {found[i].data(), 16, 0, 0};
    ASSERT_EQ(kvs_retrieve_kvp_async(space_, &k[i], nullptr, &retrieved, &k[i], &out[i], count_calls), KVS_SUCCESS);
  }
  while (retrieved.calls < count) std::this_thread::yield();
  EXPECT_EQ(retrieved.right, count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(found[i].substr(0, out[i].length), values[i]);

  called_back others;
  std::array<std::uint8_t, 1> bits{};
  kvs_exist_list list{0, nullptr, 1, bits.data()};
  kvs_key_group_filter all = filter({}, {});
  kvs_iterator_handle iterator = 0;
  ASSERT_EQ(kvs_create_iterator(space_, nullptr, &all, &iterator), KVS_SUCCESS);
  std::vector<std::uint8_t> buffer(KVS_ITERATOR_BUFFER_SIZE);
  kvs_iterator_list entries{0, false, KVS_ITERATOR_BUFFER_SIZE, buffer.data()};
  const auto count_right = [](kvs_postprocess_context* c) {
    auto& of = *static_cast<called_back*>(c->private1);
    of.right += c->result == KVS_SUCCESS ? 1 : 0;
    ++of.calls;
  };
  ASSERT_EQ(kvs_exist_kv_pairs_async(space_, 8, k.data(), &list, &others, nullptr, count_right), KVS_SUCCESS);
  ASSERT_EQ(kvs_iterate_next_async(space_, iterator, &entries, &others, nullptr, count_right), KVS_SUCCESS);
  while (others.calls < 2) std::this_thread::yield();
  EXPECT_EQ(bits[0], 255);
  EXPECT_EQ(entries.num_entries, static_cast<std::uint32_t>(count));
  ASSERT_EQ(kvs_delete_kvp_async(space_, k.data(), nullptr, &others, nullptr, count_right), KVS_SUCCESS);
  ASSERT_EQ(kvs_delete_key_group_async(space_, &all, &others, nullptr, count_right), KVS_SUCCESS);
  while (others.calls < 4) std::this_thread::yield();
  EXPECT_EQ(others.right, 4);
  kvs_key_space info{};
  ASSERT_EQ(kvs_get_key_space_info(space_, &info), KVS_SUCCESS);
  EXPECT_EQ(info.count, 0U);
  EXPECT_EQ(kvs_store_kvp_async(space_, k.data(), v.data(), nullptr, nullptr, nullptr, nullptr), KVS_ERR_PARAM_INVALID);
}

TEST_F(Api, a_closed_device_keeps_pairs_and_key_spaces) {
  ASSERT_EQ(make_space("other", 5000), KVS_SUCCESS);
  for (int i = 0; i < 300; ++i)
    ASSERT_EQ(store("key-" + std::to_string(i), std::string("v").append(std::to_string(i))), KVS_SUCCESS);
  const kvs_key_space_handle before = space_;
  reopen();
  std::string value;
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(retrieve("key-" + std::to_string(i), value), KVS_SUCCESS);
    ASSERT_EQ(value, "v" + std::to_string(i));
  }
  EXPECT_EQ(make_space("other"), KVS_ERR_KS_EXIST);
  space_ = before;
  EXPECT_EQ(store("key-0", "x"), KVS_ERR_KS_NOT_EXIST);
}

TEST_F(Api, a_killed_process_loses_nothing_that_was_acknowledged) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    device_ = nullptr;
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      kvs_key_space_handle orders = nullptr;
      std::string name = "orders";
      if (kvs_open_device(path_.data(), &device_) != KVS_SUCCESS) ::_exit(1);
      if (kvs_open_key_space(device_, name.data(), &orders) != KVS_SUCCESS) ::_exit(1);
      space_ = orders;
      for (int i = 0;; ++i) {
        if (store("key-" + std::to_string(i % 997), std::to_string(i) + std::string(5000, 'x')) != KVS_SUCCESS)
          ::_exit(1);
        if (::write(pipe[1], &i, sizeof i) != sizeof i) ::_exit(1);
      }
    }
    ::close(pipe[1]);
    int last = -1;
    while (last < 1500 + 300 * round && ::read(pipe[0], &last, sizeof last) == sizeof last) continue;
    ::kill(child, SIGKILL);
    while (::read(pipe[0], &last, sizeof last) == sizeof last) continue;
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    open();
    space_ = opened("orders");
    std::string value;
    for (int i = std::max(0, last - 996); i <= last; ++i) {
      ASSERT_EQ(retrieve("key-" + std::to_string(i % 997), value), KVS_SUCCESS);
      // The store after the last acknowledged one may be there.
      const bool is_next = (last + 1) % 997 == i % 997 && value.starts_with(std::to_string(last + 1) + "x");
      ASSERT_TRUE(is_next || value == std::to_string(i) + std::string(5000, 'x')) << "round " << round << ", key " << i;
    }
  }
}

// A command waits for the firmware of the modelled drive: at least 6.75 us for each.
TEST_F(Api, takes_the_time_of_a_profile) {
  ASSERT_EQ(kvs_close_device(device_), KVS_SUCCESS);
  open("?profile=pm983-kv");
  space_ = opened("orders");
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(store("key " + std::to_string(i), "value"), KVS_SUCCESS);
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::microseconds(200 * 6));
  std::string value;
  EXPECT_EQ(retrieve("key 7", value), KVS_SUCCESS);
}

// The memory file is lost: the pairs that reached the backing file are there again, in their key space.
TEST(Rebuild, makes_a_lost_memory_again_from_the_backing_file) {
  const auto folder = std::filesystem::temp_directory_path() / ("pmlab-kvssd-rebuild-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::string plain = (folder / "drive").string(), name = "all";
  std::string made = plain + "?size=64M&memory=32M&buffer=5M", rebuilt = plain + "?rebuild=yes&memory=32M&buffer=5M";
  kvs_device_handle device = nullptr;
  kvs_key_space_handle space = nullptr;
  ASSERT_EQ(kvs_open_device(made.data(), &device), KVS_SUCCESS) << pmlab_kvssd_message();
  kvs_key_space_name n{3, name.data()};
  ASSERT_EQ(kvs_create_key_space(device, &n, 0, {KVS_KEY_ORDER_NONE}), KVS_SUCCESS);
  ASSERT_EQ(kvs_open_key_space(device, name.data(), &space), KVS_SUCCESS);
  constexpr int pairs = 5000;
  std::vector<char> value(2000);
  const auto key_of = [](int i) { return std::to_string(100000 + i) + " key"; };
  for (int i = 0; i < pairs; ++i) {
    std::string key = key_of(i);
    std::fill(value.begin(), value.end(), static_cast<char>(i % 251));
    kvs_key k{key.data(), static_cast<std::uint16_t>(key.size())};
    kvs_value v{value.data(), 2000, 0, 0};
    kvs_option_store post{KVS_STORE_POST, nullptr};
    ASSERT_EQ(kvs_store_kvp(space, &k, &v, &post), KVS_SUCCESS);
  }
  ASSERT_EQ(kvs_close_device(device), KVS_SUCCESS);
  EXPECT_NE(kvs_open_device(rebuilt.data(), &device), KVS_SUCCESS);
  EXPECT_NE(std::string(pmlab_kvssd_message()).find("the device has its memory"), std::string::npos);
  std::filesystem::remove(plain + ".memory");
  EXPECT_NE(kvs_open_device(plain.data(), &device), KVS_SUCCESS);
  EXPECT_NE(std::string(pmlab_kvssd_message()).find("open it once with rebuild=yes"), std::string::npos);
  ASSERT_EQ(kvs_open_device(rebuilt.data(), &device), KVS_SUCCESS) << pmlab_kvssd_message();
  ASSERT_EQ(kvs_open_key_space(device, name.data(), &space), KVS_SUCCESS);
  int found = 0;
  for (int i = 0; i < pairs; ++i) {
    std::string key = key_of(i);
    kvs_key k{key.data(), static_cast<std::uint16_t>(key.size())};
    kvs_value v{value.data(), 2000, 0, 0};
    kvs_option_retrieve keep{false};
    if (kvs_retrieve_kvp(space, &k, &keep, &v) != KVS_SUCCESS) continue;
    ++found;
    ASSERT_EQ(value[1999], static_cast<char>(i % 251)) << key;
  }
  // All but those of the write buffer.
  EXPECT_GT(found, pairs / 3);
  EXPECT_LT(found, pairs);
  ASSERT_EQ(kvs_close_device(device), KVS_SUCCESS);
  ASSERT_EQ(kvs_open_device(plain.data(), &device), KVS_SUCCESS) << pmlab_kvssd_message();
  ASSERT_EQ(kvs_close_device(device), KVS_SUCCESS);
  std::filesystem::remove_all(folder);
}

// No room for the name of a key space: the device is full, and did not fail.
TEST_F(Api, a_full_device_has_no_room_for_a_key_space) {
  std::size_t bytes = 60000;
  for (int i = 0; bytes >= 1; ++i)
    if (store("key-" + std::to_string(i), std::string(bytes, 'x')) != KVS_SUCCESS) bytes /= 2;
  EXPECT_EQ(make_space("one more"), KVS_ERR_DEV_CAPAPCITY) << pmlab_kvssd_message();
  kvs_key_space_name n{8, nullptr};
  std::string name = "one more";
  n.name = name.data();
  EXPECT_EQ(kvs_delete_key_space(device_, &n), KVS_ERR_KS_NOT_EXIST);
}

TEST(NvmeMode, has_short_keys_that_the_device_remembers) {
  const auto folder = std::filesystem::temp_directory_path() / ("pmlab-kvssd-nvme-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::string uri = (folder / "drive").string() + "?size=32M&memory=32M&buffer=5M&mode=nvme";
  std::string plain = (folder / "drive").string(), name = "all";
  kvs_device_handle device = nullptr;
  ASSERT_EQ(kvs_open_device(uri.data(), &device), KVS_SUCCESS) << pmlab_kvssd_message();
  kvs_key_space_name n{3, name.data()};
  ASSERT_EQ(kvs_create_key_space(device, &n, 0, {KVS_KEY_ORDER_NONE}), KVS_SUCCESS);
  ASSERT_EQ(kvs_close_device(device), KVS_SUCCESS);
  ASSERT_EQ(kvs_open_device(plain.data(), &device), KVS_SUCCESS) << pmlab_kvssd_message();
  kvs_key_space_handle space = nullptr;
  ASSERT_EQ(kvs_open_key_space(device, name.data(), &space), KVS_SUCCESS);
  std::uint32_t most = 0;
  EXPECT_EQ(kvs_get_max_key_length(device, &most), KVS_SUCCESS);
  EXPECT_EQ(most, 16U);
  for (const std::size_t length : {0U, 1U, 16U, 17U}) {
    std::string key(length, 'k');
    kvs_key k = key_of(key);
    kvs_value v{key.data(), 0, 0, 0};
    EXPECT_EQ(kvs_store_kvp(space, &k, &v, nullptr),
              length >= 1 && length <= 16 ? KVS_SUCCESS : KVS_ERR_KEY_LENGTH_INVALID)
        << length;
  }
  EXPECT_EQ(kvs_close_device(device), KVS_SUCCESS);
  std::filesystem::remove_all(folder);
}

}  // namespace
