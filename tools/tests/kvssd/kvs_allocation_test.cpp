// The functions of the API in a process that runs out of memory, at each allocation of each of them: one that fails
// answers with the error of the API and has changed nothing, and the device goes on, here and behind an opening.
#include <pmlab/kvssd/kvs_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/tests/kvssd/kvs_states.hpp"
#include "support/failing_allocations.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::tests {
namespace {

class Allocations : public States {
 protected:
  void SetUp() override {
    States::SetUp();
    is_foreground = true;
  }
  void TearDown() override {
    one_in_background = 0;
    States::TearDown();
  }

  // A function of the API, whose arguments are made before.
  struct call {
    const char* name;
    std::function<void()> begin;         // the state before
    std::function<kvs_result()> run;     // allocates nothing itself
    std::function<void(bool)> is_right;  // the state behind it: it was performed, or it failed
  };

  // Each allocation of the call fails once. Returns how many calls failed.
  int fail_each_of(const call& c) {
    int failed = 0;
    for (std::int64_t n = 0;; ++n) {
      c.begin();
      if (HasFatalFailure()) return failed;
      one_has_failed = false;
      until_failure = n;
      const kvs_result result = c.run();
      until_failure = -1;
      const std::string where = std::string(c.name) + ", allocation " + std::to_string(n);
      SCOPED_TRACE(where);
      if (result != KVS_SUCCESS) {
        EXPECT_EQ(result, KVS_ERR_SYS_IO);
        EXPECT_TRUE(one_has_failed);
        EXPECT_NE(message().find("no memory"), std::string::npos) << message();
        ++failed;
      }
      c.is_right(result == KVS_SUCCESS);
      if (HasFailure() || !one_has_failed) return failed;
    }
  }
  // An opening, with a failure at each of the first allocations, and then at fewer and fewer.
  int fail_openings(const std::string& options, const std::function<void()>& is_right) {
    int failed = 0;
    std::string uri = path_ + options;
    for (std::int64_t n = 0;; n += 1 + n / 6) {
      device_ = nullptr;
      one_has_failed = false;
      until_failure = n;
      const kvs_result result = kvs_open_device(uri.data(), &device_);
      until_failure = -1;
      SCOPED_TRACE("opening with '" + options + "', allocation " + std::to_string(n));
      if (result == KVS_SUCCESS && !one_has_failed) return failed;
      if (result == KVS_SUCCESS) {
        close();
      } else {
        EXPECT_EQ(result, KVS_ERR_DEV_NOT_EXIST);
        EXPECT_TRUE(one_has_failed);
        // An index that gets no memory has no space for its tables.
        EXPECT_TRUE(message().find("no memory") != std::string::npos || message().find("no space") != std::string::npos)
            << message();
        ++failed;
      }
      is_right();
      if (HasFailure()) return failed;
    }
  }
};

TEST_F(Allocations, that_fail_in_any_function_change_nothing) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS);
  ASSERT_EQ(make_space(device_, "limited", 4 << 20), KVS_SUCCESS);
  const std::string old_value(3000, 'o');
  std::string new_value(2000, 'n'), room(8000, '\0'), key_text = "user:1007";
  std::array<kvs_key_space_handle, 2> spaces{opened_space(device_, "all"), opened_space(device_, "limited")};
  for (const kvs_key_space_handle space : spaces)
    for (int i = 0; i < 20; ++i) {
      const std::string key = "user:" + std::to_string(1000 + i);
      ASSERT_EQ(store(space, key, old_value), KVS_SUCCESS);
    }
  // The write buffer has moved records to the drive.
  for (int i = 0; i < 6; ++i) ASSERT_EQ(store(spaces[0], "large", std::string(2 << 20, 'l')), KVS_SUCCESS) << message();

  kvs_key key = key_of(key_text);
  kvs_value to_store{new_value.data(), static_cast<std::uint32_t>(new_value.size()), 0, 0};
  kvs_value to_read{};
  kvs_key_space_handle space = nullptr;
  std::string value;
  const auto reset_value = [&] {
    to_read = {room.data(), static_cast<std::uint32_t>(room.size()), 0, 0};
    ASSERT_EQ(store(space, key_text, old_value), KVS_SUCCESS) << message();
  };
  const auto expect_value = [&](bool is_there, const std::string& right) {
    ASSERT_EQ(retrieve(space, key_text, &value), is_there ? KVS_SUCCESS : KVS_ERR_KEY_NOT_EXIST);
    if (is_there) {
      ASSERT_TRUE(value == right);
    }
  };
  const auto remove = [&] { ASSERT_EQ(kvs_delete_kvp(space, &key, nullptr), KVS_SUCCESS); };
  kvs_option_store append{KVS_STORE_APPEND, nullptr}, no_overwrite{KVS_STORE_NOOVERWRITE, nullptr};
  kvs_option_retrieve and_delete{true};
  std::uint8_t there = 0;
  kvs_exist_list list{};
  kvs_kvp_info info{};
  std::string info_room(255, '\0');
  kvs_key_group_filter users{{255, 255, 255, 255}, {'u', 's', 'e', 'r'}},
      group{{255, 255, 255, 255}, {'g', 'r', 'u', 'p'}};
  std::vector<call> calls{
      {"store of a new key", remove, [&] { return kvs_store_kvp(space, &key, &to_store, nullptr); },
       [&](bool done) { expect_value(done, new_value); }},
      {"store without overwrite", remove, [&] { return kvs_store_kvp(space, &key, &to_store, &no_overwrite); },
       [&](bool done) { expect_value(done, new_value); }},
      {"overwrite", reset_value, [&] { return kvs_store_kvp(space, &key, &to_store, nullptr); },
       [&](bool done) { expect_value(true, done ? new_value : old_value); }},
      {"append", reset_value, [&] { return kvs_store_kvp(space, &key, &to_store, &append); },
       [&](bool done) { expect_value(true, done ? old_value + new_value : old_value); }},
      {"retrieve", reset_value, [&] { return kvs_retrieve_kvp(space, &key, nullptr, &to_read); },
       [&](bool done) { ASSERT_TRUE(!done || room.substr(0, to_read.length) == old_value); }},
      {"retrieve with deletion", reset_value, [&] { return kvs_retrieve_kvp(space, &key, &and_delete, &to_read); },
       [&](bool done) { expect_value(!done, old_value); }},
      {"delete", reset_value, [&] { return kvs_delete_kvp(space, &key, nullptr); },
       [&](bool done) { expect_value(!done, old_value); }},
      {"exist", reset_value,
       [&] {
         list = {};
         list.length = 1;
         list.result_buffer = &there;
         return kvs_exist_kv_pairs(space, 1, &key, &list);
       },
       [&](bool done) { ASSERT_TRUE(!done || there == 1); }},
      {"information of a pair", reset_value,
       [&] {
         info.key = reinterpret_cast<std::uint8_t*>(info_room.data());
         return kvs_get_kvp_info(space, &key, &info);
       },
       [&](bool done) { ASSERT_TRUE(!done || info.value_len == old_value.size()); }},
      {"information of a key space", [] {},
       [&] {
         kvs_key_space about{};
         return kvs_get_key_space_info(space, &about);
       },
       [](bool) {}},
  };
  int failed = 0;
  for (const kvs_key_space_handle each : spaces) {
    space = each;
    reset_value();
    for (const call& c : calls) {
      failed += fail_each_of(c);
      if (HasFailure()) return;
    }
    reset_value();
  }

  // A group: the next call deletes the pairs that are left.
  space = spaces[1];
  const call of_group{"deletion of a group",
                      [&] {
                        for (int i = 0; i < 5; ++i)
                          ASSERT_EQ(store(space, "grup:" + std::to_string(i), "v"), KVS_SUCCESS);
                      },
                      [&] { return kvs_delete_key_group(space, &group); },
                      [&](bool done) {
                        if (!done) {
                          int left = 0;
                          const std::string text = message();
                          for (int i = 0; i < 5; ++i)
                            left += retrieve(space, "grup:" + std::to_string(i)) == KVS_SUCCESS ? 1 : 0;
                          EXPECT_EQ(left == 5, text.find("changed nothing") != std::string::npos) << left << text;
                          ASSERT_EQ(kvs_delete_key_group(space, &group), KVS_SUCCESS) << message();
                        }
                        for (int i = 0; i < 5; ++i)
                          ASSERT_EQ(retrieve(space, "grup:" + std::to_string(i)), KVS_ERR_KEY_NOT_EXIST);
                      }};
  failed += fail_each_of(of_group);
  kvs_key_space about{};
  ASSERT_EQ(kvs_get_key_space_info(space, &about), KVS_SUCCESS);
  EXPECT_EQ(about.count, 20U);
  EXPECT_EQ(about.free_size, (4U << 20) - 20 * (9 + old_value.size()));

  // An iterator: each key once.
  kvs_iterator_handle iterator = 0;
  std::vector<std::uint8_t> buffer(64);
  for (const kvs_iterator_type type : {KVS_ITERATOR_KEY, KVS_ITERATOR_KEY_VALUE}) {
    kvs_option_iterator option{type};
    buffer.resize(type == KVS_ITERATOR_KEY ? 64 : 4000);
    const auto end = [&](bool done) { ASSERT_TRUE(!done || kvs_delete_iterator(space, iterator) == KVS_SUCCESS); };
    failed += fail_each_of({"creation of an iterator", [] {},
                            [&] { return kvs_create_iterator(space, &option, &users, &iterator); }, end});
    ASSERT_EQ(kvs_create_iterator(space, &option, &users, &iterator), KVS_SUCCESS);
    std::multiset<std::string> found;
    std::int64_t n = 0;
    for (bool ends = false; !ends; ++n) {
      kvs_iterator_list some{0, false, static_cast<std::uint32_t>(buffer.size()), buffer.data()};
      one_has_failed = false;
      until_failure = n % 25;
      const kvs_result result = kvs_iterate_next(space, iterator, &some);
      until_failure = -1;
      ASSERT_LT(n, 10000);
      if (result != KVS_SUCCESS) {
        ASSERT_EQ(result, KVS_ERR_SYS_IO) << message();
        ++failed;
        continue;
      }
      ends = some.end;
      std::size_t at = 0;
      const auto next = [&] {
        std::uint32_t length = 0;
        std::memcpy(&length, buffer.data() + at, sizeof length);
        at += sizeof length + length;
        return std::string(reinterpret_cast<const char*>(buffer.data()) + at - length, length);
      };
      for (std::uint32_t i = 0; i < some.num_entries; ++i) {
        found.insert(next());
        if (type == KVS_ITERATOR_KEY_VALUE) {
          ASSERT_TRUE(next() == old_value);
        }
      }
    }
    ASSERT_EQ(kvs_delete_iterator(space, iterator), KVS_SUCCESS);
    EXPECT_EQ(found.size(), 20U);
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 20U);
  }

  // Key spaces.
  std::string name = "another key space", read_name(MAX_KEYSPACE_NAME_LEN + 1, '\0');
  kvs_key_space_name of_name{static_cast<std::uint32_t>(name.size()), name.data()};
  kvs_key_space_name some_names{0, read_name.data()};
  kvs_key_space_handle other = nullptr;
  const auto is_there = [&] {
    kvs_key_space_handle h = nullptr;
    const kvs_result result = kvs_open_key_space(device_, name.data(), &h);
    if (result == KVS_SUCCESS) {
      EXPECT_EQ(kvs_close_key_space(h), KVS_SUCCESS);
    }
    return result == KVS_SUCCESS;
  };
  const auto make = [&] {
    if (!is_there()) {
      ASSERT_EQ(make_space(device_, name), KVS_SUCCESS) << message();
    }
    const kvs_key_space_handle h = opened_space(device_, name);
    ASSERT_EQ(store(h, "user1", "v"), KVS_SUCCESS);
    ASSERT_EQ(kvs_close_key_space(h), KVS_SUCCESS);
  };
  const auto unmake = [&] {
    if (!is_there()) return;
    ASSERT_EQ(remove_space(device_, name), KVS_SUCCESS) << message();
  };
  for (const call& c : std::vector<call>{
           {"creation of a key space", unmake,
            [&] { return kvs_create_key_space(device_, &of_name, 0, {KVS_KEY_ORDER_NONE}); },
            [&](bool done) { EXPECT_EQ(is_there(), done); }},
           {"opening of a key space", make, [&] { return kvs_open_key_space(device_, name.data(), &other); },
            [&](bool done) {
              if (done) {
                ASSERT_EQ(retrieve(other, "user1"), KVS_SUCCESS);
                ASSERT_EQ(kvs_close_key_space(other), KVS_SUCCESS);
              }
            }},
           {"list of key spaces", make,
            [&] {
              std::uint32_t count = 0;
              return kvs_list_key_spaces(device_, 0, sizeof some_names, &some_names, &count);
            },
            [](bool) {}},
           {"deletion of a key space", make, [&] { return kvs_delete_key_space(device_, &of_name); },
            [&](bool done) {
              ASSERT_EQ(is_there(), !done);
              // A space of the same number has none of its pairs.
              if (done) {
                ASSERT_EQ(make_space(device_, name), KVS_SUCCESS) << message();
                const kvs_key_space_handle h = opened_space(device_, name);
                ASSERT_EQ(retrieve(h, "user1"), KVS_ERR_KEY_NOT_EXIST);
                ASSERT_EQ(kvs_close_key_space(h), KVS_SUCCESS);
              }
            }}}) {
    failed += fail_each_of(c);
    if (HasFailure()) return;
  }
  EXPECT_GT(failed, 100);

  // Behind an opening, which runs out of memory, too.
  close();
  EXPECT_GT(fail_openings("", [&] { EXPECT_EQ(files(), both_); }), 12);
  for (const char* of : {"all", "limited"}) {
    const kvs_key_space_handle h = opened_space(device_, of);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(retrieve(h, "user:" + std::to_string(1000 + i), &value), KVS_SUCCESS);
      ASSERT_TRUE(value == old_value);
    }
    ASSERT_EQ(kvs_get_key_space_info(h, &about), KVS_SUCCESS);
    EXPECT_EQ(about.count, std::string(of) == "all" ? 21U : 20U);
  }
  close();
}

TEST_F(Allocations, that_fail_leave_no_file_of_a_making_and_no_part_of_a_rebuilding) {
  EXPECT_GT(fail_openings(small,
                          [&] {
                            EXPECT_TRUE(files().empty() || files() == both_)
                                << testing::PrintToString(files()) << message();
                            for (const std::string& name : both_) fs::remove(folder_ / name);
                          }),
            12);
  use();
  close();
  fs::remove(path_ + ".memory");
  EXPECT_GT(fail_openings(again,
                          [&] {
                            // One that is complete, and could not be renamed, stays.
                            const fs::path unfinished = path_ + ".unfinished";
                            EXPECT_EQ(fs::exists(unfinished), fs::exists(unfinished / "rebuilt"));
                            fs::remove_all(unfinished);
                            EXPECT_TRUE(files() == std::set<std::string>{"drive"} || files() == both_)
                                << testing::PrintToString(files());
                            fs::remove(path_ + ".memory");
                          }),
            12);
  use();
  close();
}

TEST_F(Allocations, that_fail_in_the_threads_of_the_library_end_a_request_with_an_error) {
  struct seen {
    std::atomic<int> calls{0}, right{0}, failed{0};
  } of;
  constexpr int count = 600;
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS);
  kvs_key_space_handle space = opened_space(device_, "all");
  std::vector<std::string> keys;
  std::vector<kvs_key> k;
  for (int i = 0; i < count; ++i) keys.push_back("key-" + std::to_string(i));
  for (std::string& key : keys) k.push_back(key_of(key));
  std::string text(500, 'v');
  kvs_value value{text.data(), 500, 0, 0};
  const auto note = [](kvs_postprocess_context* c) {
    auto& s = *static_cast<seen*>(c->private1);
    s.right += c->result == KVS_SUCCESS ? 1 : 0;
    s.failed += c->result == KVS_ERR_SYS_IO ? 1 : 0;
    ++s.calls;
  };
  int accepted = 0, refused = 0;
  one_in_background = 7;
  for (std::size_t i = 0; i < count; ++i) {
    until_failure = i % 3 == 0 ? static_cast<std::int64_t>(i % 5) : -1;
    const kvs_result result = kvs_store_kvp_async(space, &k[i], &value, nullptr, &of, nullptr, note);
    until_failure = -1;
    ASSERT_TRUE(result == KVS_SUCCESS || result == KVS_ERR_SYS_IO) << result;
    ++(result == KVS_SUCCESS ? accepted : refused);
  }
  ASSERT_EQ(kvs_close_key_space(space), KVS_SUCCESS);
  one_in_background = 0;
  EXPECT_EQ(of.calls, accepted);
  EXPECT_EQ(of.right + of.failed, accepted);
  EXPECT_GT(of.failed, 10);
  EXPECT_GT(refused, 10);
  for (int opening = 0; opening < 2; ++opening) {
    space = opened_space(device_, "all");
    int there = 0;
    for (const std::string& key : keys) there += retrieve(space, key) == KVS_SUCCESS ? 1 : 0;
    EXPECT_EQ(there, of.right);
    kvs_key_space about{};
    ASSERT_EQ(kvs_get_key_space_info(space, &about), KVS_SUCCESS);
    EXPECT_EQ(about.count, static_cast<std::uint32_t>(of.right));
    close();
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
  }
  close();
}

// ---- killed at an allocation

class Kills : public Allocations {
 protected:
  // A child opens the device, and is killed at allocation `n` of work(). False: it came to the end.
  template <class Work>
  [[nodiscard]] bool kills_at(std::int64_t n, Work&& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      failure_kills = true;
      const bool done = work([&] { until_failure = n; });
      until_failure = -1;
      ::_exit(done ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << status;
    return WIFSIGNALED(status);
  }
  void fill(const std::string& space) {
    if (make_space(device_, space) != KVS_SUCCESS) {
      ASSERT_EQ(make_space(device_, space), KVS_ERR_KS_EXIST);
    }
    const kvs_key_space_handle h = opened_space(device_, space);
    for (int i = 0; i < pairs; ++i) {
      ASSERT_EQ(store(h, "grup:" + std::to_string(i), space), KVS_SUCCESS);
      ASSERT_EQ(store(h, "user:" + std::to_string(i), space), KVS_SUCCESS);
    }
    ASSERT_EQ(kvs_close_key_space(h), KVS_SUCCESS);
  }
  // Pairs of a group that are there; each has its value.
  int count(kvs_key_space_handle h, const std::string& group, const std::string& space) {
    int there = 0;
    for (int i = 0; i < pairs; ++i) {
      std::string value;
      if (retrieve(h, group + std::to_string(i), &value) != KVS_SUCCESS) continue;
      EXPECT_EQ(value, space);
      ++there;
    }
    return there;
  }
  static constexpr int pairs = 12;
};

TEST_F(Kills, of_a_making_leave_what_the_next_one_ends) {
  int killed = 0;
  for (std::int64_t n = 0;; n += 1 + n / 2, ++killed) {
    const bool was_killed = kills_at(n, [&](auto&& begin) {
      begin();
      return open(small) == KVS_SUCCESS && kvs_close_device(device_) == KVS_SUCCESS;
    });
    ASSERT_EQ(open(small), KVS_SUCCESS) << "allocation " << n << ": " << message();
    use();
    close();
    ASSERT_EQ(files(), both_) << n;
    for (const std::string& name : both_) fs::remove(folder_ / name);
    if (!was_killed) break;
  }
  EXPECT_GT(killed, 8);
}

TEST_F(Kills, of_a_deletion_leave_a_key_space_or_none_and_whole_pairs_of_a_group) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  fill("kept");
  close();
  kvs_key_group_filter group{{255, 255, 255, 255}, {'g', 'r', 'u', 'p'}};
  for (const bool of_group : {false, true}) {
    int killed = 0;
    int in_part = 0;
    for (std::int64_t n = 0;; n += 1 + n / 3, ++killed) {
      const std::string where = "allocation " + std::to_string(n) + (of_group ? " of a group" : " of a key space");
      ASSERT_EQ(open(), KVS_SUCCESS) << where << message();
      fill("deleted");
      close();
      const bool was_killed = kills_at(n, [&](auto&& begin) {
        if (open() != KVS_SUCCESS) return false;
        std::string name = "deleted";
        kvs_key_space_name text{static_cast<std::uint32_t>(name.size()), name.data()};
        const kvs_key_space_handle h = of_group ? opened_space(device_, name) : nullptr;
        begin();
        return (of_group ? kvs_delete_key_group(h, &group) : kvs_delete_key_space(device_, &text)) == KVS_SUCCESS;
      });
      ASSERT_EQ(open(), KVS_SUCCESS) << where << message();
      std::string name = "deleted";
      kvs_key_space_handle h = nullptr;
      const bool is_there = kvs_open_key_space(device_, name.data(), &h) == KVS_SUCCESS;
      if (is_there) {
        const int left = count(h, "grup:", name);
        in_part += left < pairs ? 1 : 0;
        ASSERT_TRUE(of_group ? was_killed || left == 0 : left == pairs && was_killed) << where << ", " << left;
        ASSERT_EQ(count(h, "user:", name), pairs) << where;
        if (of_group) {
          ASSERT_EQ(kvs_delete_key_group(h, &group), KVS_SUCCESS) << where << message();
          ASSERT_EQ(count(h, "grup:", name), 0) << where;
        }
        ASSERT_EQ(kvs_close_key_space(h), KVS_SUCCESS);
      } else {
        ASSERT_FALSE(of_group) << where;
        ++in_part;
        // Its number is free again, and has no pair.
        ASSERT_EQ(make_space(device_, name), KVS_SUCCESS) << where << message();
        h = opened_space(device_, name);
        kvs_key_space about{};
        ASSERT_EQ(kvs_get_key_space_info(h, &about), KVS_SUCCESS);
        ASSERT_EQ(about.count, 0U) << where;
        ASSERT_EQ(kvs_close_key_space(h), KVS_SUCCESS);
      }
      h = opened_space(device_, "kept");
      ASSERT_EQ(count(h, "grup:", "kept") + count(h, "user:", "kept"), 2 * pairs) << where;
      close();
      if (HasFailure() || !was_killed) break;
    }
    EXPECT_GT(killed, 8);
    EXPECT_GT(in_part, 3);
  }
}

}  // namespace
}  // namespace pmlab::tests
