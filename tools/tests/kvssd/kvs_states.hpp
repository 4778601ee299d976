// A device in a folder of its own, through libpmlab_kvssd.so and its C header alone.
#pragma once

#include <pmlab/kvssd/kvs_api.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace pmlab::tests {

namespace fs = std::filesystem;

// Small, and as fast to make as a device can be.
inline constexpr const char* small = "?size=32M&memory=32M&buffer=5M";
inline constexpr const char* again = "?rebuild=yes&memory=32M&buffer=5M";

inline std::string message() { return pmlab_kvssd_message(); }
inline kvs_key key_of(std::string& text) { return {text.data(), static_cast<std::uint16_t>(text.size())}; }

inline kvs_result make_space(kvs_device_handle device, std::string name, std::uint64_t bytes = 0) {
  kvs_key_space_name n{static_cast<std::uint32_t>(name.size()), name.data()};
  return kvs_create_key_space(device, &n, bytes, {KVS_KEY_ORDER_NONE});
}
inline kvs_result remove_space(kvs_device_handle device, std::string name) {
  kvs_key_space_name n{static_cast<std::uint32_t>(name.size()), name.data()};
  return kvs_delete_key_space(device, &n);
}
inline kvs_key_space_handle opened_space(kvs_device_handle device, std::string name) {
  kvs_key_space_handle space = nullptr;
  EXPECT_EQ(kvs_open_key_space(device, name.data(), &space), KVS_SUCCESS) << name;
  return space;
}
inline kvs_result store(kvs_key_space_handle space, std::string key, std::string value) {
  kvs_key k = key_of(key);
  kvs_value v{value.data(), static_cast<std::uint32_t>(value.size()), 0, 0};
  return kvs_store_kvp(space, &k, &v, nullptr);
}
inline kvs_result retrieve(kvs_key_space_handle space, std::string key, std::string* value = nullptr) {
  kvs_key k = key_of(key);
  std::string room(1 << 16, '\0');
  kvs_value v{room.data(), static_cast<std::uint32_t>(room.size()), 0, 0};
  const kvs_result result = kvs_retrieve_kvp(space, &k, nullptr, &v);
  if (value != nullptr) *value = room.substr(0, v.length);
  return result;
}
inline kvs_result erase(kvs_key_space_handle space, std::string key) {
  kvs_key k = key_of(key);
  kvs_option_delete option{true};
  return kvs_delete_kvp(space, &k, &option);
}
// Iterators over a space: as many as a device has.
inline void open_all_iterators(kvs_key_space_handle space) {
  for (std::uint8_t i = 0; i < KVS_MAX_ITERATE_HANDLE; ++i) {
    kvs_key_group_filter filter{{255, 0, 0, 0}, {i, 0, 0, 0}};
    kvs_iterator_handle iterator = 0;
    ASSERT_EQ(kvs_create_iterator(space, nullptr, &filter, &iterator), KVS_SUCCESS);
  }
}

class States : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::exists("/dev/shm") ? "/dev/shm/pmlab-kvssd-XXXXXX" : "/tmp/pmlab-kvssd-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "drive";
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] kvs_result open(const std::string& options = {}) {
    std::string uri = path_ + options;
    device_ = nullptr;
    return kvs_open_device(uri.data(), &device_);
  }
  void close() { EXPECT_EQ(kvs_close_device(device_), KVS_SUCCESS); }
  // The names in the folder.
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_)) all.insert(entry.path().filename());
    return all;
  }
  // The device is open, and works.
  void use() {
    if (make_space(device_, "all") != KVS_SUCCESS) {
      ASSERT_EQ(make_space(device_, "all"), KVS_ERR_KS_EXIST);
    }
    const kvs_key_space_handle space = opened_space(device_, "all");
    ASSERT_EQ(store(space, "user:1", "value"), KVS_SUCCESS);
    std::string value;
    ASSERT_EQ(retrieve(space, "user:1", &value), KVS_SUCCESS);
    ASSERT_EQ(value, "value");
    ASSERT_EQ(kvs_close_key_space(space), KVS_SUCCESS);
  }
  // Messages are for programs of the C API.
  static void expect_for_c_programs(const std::string& text) {
    for (const char* word : {"create_file", "the option format", "file_options", "kv_options", "superblock"})
      EXPECT_EQ(text.find(word), std::string::npos) << text;
  }

  const std::set<std::string> both_{"drive", "drive.memory"};
  fs::path folder_;
  std::string path_;
  kvs_device_handle device_ = nullptr;
};

}  // namespace pmlab::tests
