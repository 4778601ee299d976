// What a device is after a failure, a kill, a fork, a misuse: through libpmlab_kvssd.so and its C header alone.
#include <pmlab/base/durable_name.hpp>
#include <pmlab/kvssd/kvs_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tools/tests/kvssd/kvs_states.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::tests {
namespace {

// ---- a failed operation changes nothing

TEST_F(States, sixteen_iterators_keep_no_other_function_from_its_work) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  for (const char* name : {"A", "B", "C"}) ASSERT_EQ(make_space(device_, name), KVS_SUCCESS);
  ASSERT_EQ(make_space(device_, "limited", 1000), KVS_SUCCESS);
  const kvs_key_space_handle a = opened_space(device_, "A");
  const kvs_key_space_handle b = opened_space(device_, "B");
  for (int i = 0; i < 600; ++i) ASSERT_EQ(store(b, "user" + std::to_string(i), "v"), KVS_SUCCESS);
  ASSERT_EQ(store(a, "user1", "v"), KVS_SUCCESS);
  open_all_iterators(a);

  kvs_key_space info{};
  EXPECT_EQ(kvs_get_key_space_info(b, &info), KVS_SUCCESS) << message();
  EXPECT_EQ(info.count, 600U);
  kvs_key_group_filter tens{{255, 255, 255, 255}, {'u', 's', 'e', 'r'}};
  EXPECT_EQ(kvs_delete_key_group(b, &tens), KVS_SUCCESS) << message();
  EXPECT_EQ(kvs_get_key_space_info(b, &info), KVS_SUCCESS);
  EXPECT_EQ(info.count, 0U);
  EXPECT_EQ(kvs_close_key_space(opened_space(device_, "limited")), KVS_SUCCESS);
  ASSERT_EQ(kvs_close_key_space(b), KVS_SUCCESS);
  EXPECT_EQ(remove_space(device_, "B"), KVS_SUCCESS) << message();
  kvs_key_space_handle none = nullptr;
  EXPECT_EQ(kvs_open_key_space(device_, std::string("B").data(), &none), KVS_ERR_KS_NOT_EXIST);
  close();
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  EXPECT_EQ(kvs_open_key_space(device_, std::string("B").data(), &none), KVS_ERR_KS_NOT_EXIST);
  std::string value;
  EXPECT_EQ(retrieve(opened_space(device_, "A"), "user1", &value), KVS_SUCCESS);
  close();
}

// ---- closing

struct called {
  kvs_device_handle device = nullptr;
  std::atomic<int> calls{0}, right{0};
  std::atomic<int> closing{-1}, closing_space{-1};
};

TEST_F(States, closing_performs_what_was_accepted) {
  constexpr std::size_t count = 2000;
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS);
  std::vector<std::string> keys;
  std::vector<kvs_key> k;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("key-" + std::to_string(i));
  for (std::string& key : keys) k.push_back(key_of(key));
  std::string text = "value";
  kvs_value value{text.data(), 5, 0, 0};
  for (const bool of_device : {true, false}) {
    called stores;
    const kvs_key_space_handle space = opened_space(device_, "all");
    for (kvs_key& key : k)
      ASSERT_EQ(kvs_store_kvp_async(space, &key, &value, nullptr, &stores, nullptr,
                                    [](kvs_postprocess_context* c) {
                                      auto& of = *static_cast<called*>(c->private1);
                                      of.right += c->result == KVS_SUCCESS ? 1 : 0;
                                      ++of.calls;
                                    }),
                KVS_SUCCESS);
    ASSERT_EQ(of_device ? kvs_close_device(device_) : kvs_close_key_space(space), KVS_SUCCESS);
    EXPECT_EQ(stores.calls, static_cast<int>(count));
    EXPECT_EQ(stores.right, static_cast<int>(count));
    EXPECT_EQ(kvs_store_kvp_async(space, k.data(), &value, nullptr, &stores, nullptr,
                                  [](kvs_postprocess_context*) { FAIL() << "it was refused"; }),
              of_device ? KVS_ERR_KS_NOT_EXIST : KVS_ERR_KS_NOT_OPEN);
    if (!of_device) continue;
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
    const kvs_key_space_handle reopened = opened_space(device_, "all");
    for (const std::string& key : keys) ASSERT_EQ(retrieve(reopened, key), KVS_SUCCESS) << key;
    ASSERT_EQ(kvs_close_key_space(reopened), KVS_SUCCESS);
  }
  close();
}

TEST_F(States, a_callback_that_closes_gets_an_error) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS);
  const kvs_key_space_handle space = opened_space(device_, "all");
  called of;
  of.device = device_;
  std::string key = "key-1", text = "value";
  kvs_key k = key_of(key);
  kvs_value value{text.data(), 5, 0, 0};
  ASSERT_EQ(kvs_store_kvp_async(space, &k, &value, nullptr, &of, nullptr,
                                [](kvs_postprocess_context* c) {
                                  auto& f = *static_cast<called*>(c->private1);
                                  f.closing = kvs_close_device(f.device);
                                  f.closing_space = kvs_close_key_space(c->ks_hd);
                                  f.right = message().find("callback") != std::string::npos ? 1 : 0;
                                  f.calls = 1;
                                }),
            KVS_SUCCESS);
  while (of.calls == 0) std::this_thread::yield();
  EXPECT_EQ(of.closing, KVS_ERR_SYS_IO);
  EXPECT_EQ(of.closing_space, KVS_ERR_SYS_IO);
  EXPECT_EQ(of.right, 1);
  EXPECT_EQ(retrieve(space, key), KVS_SUCCESS);
  close();
}

// Calls of other threads are a misuse: each answers, or is refused.
TEST_F(States, closing_beside_calls_of_other_threads_refuses_these) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  for (int round = 0; round < 5; ++round) {
    if (make_space(device_, "all") != KVS_SUCCESS) {
      ASSERT_EQ(make_space(device_, "all"), KVS_ERR_KS_EXIST);
    }
    const kvs_key_space_handle space = opened_space(device_, "all");
    std::atomic<int> stored{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0;; ++i) {
          const kvs_result r = store(space, "key-" + std::to_string(t) + "-" + std::to_string(i % 50), "v");
          if (r == KVS_ERR_KS_NOT_EXIST) return;
          wrong += r == KVS_SUCCESS ? 0 : 1;
          ++stored;
        }
      });
    while (stored < 200) std::this_thread::yield();
    ASSERT_EQ(kvs_close_device(device_), KVS_SUCCESS);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
  }
  close();
}

TEST_F(States, handles_that_were_closed_are_errors) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS);
  const kvs_key_space_handle space = opened_space(device_, "all");
  kvs_key_group_filter every{};
  kvs_iterator_handle iterator = 0;
  ASSERT_EQ(kvs_create_iterator(space, nullptr, &every, &iterator), KVS_SUCCESS);
  std::array<std::uint8_t, 100> buffer{};
  kvs_iterator_list list{0, false, 100, buffer.data()};
  EXPECT_EQ(kvs_iterate_next(space, 0, &list), KVS_ERR_ITERATOR_NOT_EXIST);
  EXPECT_EQ(kvs_iterate_next(space, 17, &list), KVS_ERR_ITERATOR_NOT_EXIST);
  EXPECT_EQ(remove_space(device_, "all"), KVS_ERR_KS_OPEN);
  ASSERT_EQ(kvs_close_key_space(space), KVS_SUCCESS);
  EXPECT_EQ(kvs_iterate_next(space, iterator, &list), KVS_ERR_KS_NOT_OPEN);
  const kvs_key_space_handle second = opened_space(device_, "all");
  EXPECT_EQ(kvs_iterate_next(second, iterator, &list), KVS_ERR_ITERATOR_NOT_EXIST);
  EXPECT_EQ(store(space, "user:1", "v"), KVS_ERR_KS_NOT_OPEN);
  EXPECT_EQ(kvs_close_key_space(space), KVS_ERR_KS_NOT_OPEN);
  ASSERT_EQ(kvs_close_key_space(second), KVS_SUCCESS);
  ASSERT_EQ(remove_space(device_, "all"), KVS_SUCCESS);
  EXPECT_EQ(store(second, "user:1", "v"), KVS_ERR_KS_NOT_OPEN);
  EXPECT_EQ(remove_space(device_, "all"), KVS_ERR_KS_NOT_EXIST);
  close();
  EXPECT_EQ(kvs_close_device(device_), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_EQ(kvs_close_device(nullptr), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_EQ(kvs_close_key_space(second), KVS_ERR_KS_NOT_EXIST);
  EXPECT_EQ(make_space(device_, "new"), KVS_ERR_DEV_NOT_EXIST);
  kvs_device info{};
  EXPECT_EQ(kvs_get_device_info(device_, &info), KVS_ERR_DEV_NOT_EXIST);
}

// ---- fork

TEST_F(States, a_forked_child_neither_uses_the_device_nor_keeps_it_locked) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS);
  const kvs_key_space_handle space = opened_space(device_, "all");
  std::array<int, 2> to_child{}, from_child{};
  ASSERT_EQ(::pipe(to_child.data()) + ::pipe(from_child.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool right = store(space, "user:1", "of the child") == KVS_ERR_KS_NOT_EXIST;
    right = right && kvs_close_key_space(space) == KVS_ERR_KS_NOT_EXIST;
    right = right && make_space(device_, "new") == KVS_ERR_DEV_NOT_EXIST;
    right = right && kvs_close_device(device_) == KVS_ERR_DEV_NOT_EXIST;
    if (::write(from_child[1], &right, 1) != 1) ::_exit(1);
    char any = 0;
    const bool told = ::read(to_child[0], &any, 1) == 1;
    ::_exit(told && right ? 0 : 1);
  }
  bool right = false;
  EXPECT_EQ(::read(from_child[0], &right, 1), 1);
  EXPECT_TRUE(right);
  EXPECT_EQ(store(space, "user:1", "of the parent"), KVS_SUCCESS);
  close();
  // The child lives, and has the descriptors.
  const kvs_result opened = open();
  EXPECT_EQ(opened, KVS_SUCCESS) << message();
  if (opened == KVS_SUCCESS) {
    std::string value;
    EXPECT_EQ(retrieve(opened_space(device_, "all"), "user:1", &value), KVS_SUCCESS);
    EXPECT_EQ(value, "of the parent");
    close();
  }
  EXPECT_EQ(::write(to_child[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int file : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(file);
}

// ---- making a device

TEST_F(States, a_making_that_fails_leaves_no_file_and_names_the_options) {
  for (const char* wrong : {"?size=4M", "?size=33554433", "?size=32M&memory=1M", "?size=32M&memory=16M&buffer=15M",
                            "?size=32M&memory=32M&buffer=1M", "?size=999999G&memory=32M&buffer=5M"}) {
    EXPECT_EQ(open(wrong), KVS_ERR_DEV_NOT_EXIST) << wrong;
    EXPECT_NE(message().find("="), std::string::npos) << message();
    expect_for_c_programs(message());
    EXPECT_TRUE(files().empty()) << wrong;
  }
  path_ = folder_ / "none" / "drive";
  EXPECT_EQ(open(small), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("the folder of"), std::string::npos) << message();
}

// A write beyond the limit of a process for files would end it.
TEST_F(States, a_limit_for_files_is_an_error_and_no_signal) {
  const auto is_refused = [&](rlim_t bytes, const char* options) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit limit{bytes, bytes};
      const bool right = ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && open(options) != KVS_SUCCESS &&
                         message().find("ulimit -f") != std::string::npos;
      if (!right) std::cerr << message() << "\n";
      ::_exit(right ? 0 : 1);
    }
    int status = 1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status == 0;
  };
  constexpr rlim_t mib = 1 << 20;
  EXPECT_TRUE(is_refused(31 * mib, small));                             // the drive
  EXPECT_TRUE(is_refused(33 * mib, "?size=32M&memory=34M&buffer=5M"));  // the memory
  EXPECT_TRUE(files().empty());
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  use();
  close();
  EXPECT_TRUE(is_refused(31 * mib, ""));
  fs::remove(path_ + ".memory");
  EXPECT_TRUE(is_refused(33 * mib, "?rebuild=yes&memory=34M&buffer=5M"));
  EXPECT_EQ(files(), (std::set<std::string>{"drive"}));
  ASSERT_EQ(open(again), KVS_SUCCESS) << message();
  use();
  close();
}

// Mounts are of a child that has its own.
TEST_F(States, a_read_only_file_system_is_named_as_the_cause) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  use();
  close();
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int can_have_no_mounts = 2;
    const char* const at = folder_.c_str();
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(at, at, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(at, at, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      ::_exit(can_have_no_mounts);
    bool right = true;
    const auto expect_remedy = [&](const char* options) {
      const bool is_named = open(options) != KVS_SUCCESS &&
                            message().find("ead-only file system") != std::string::npos &&
                            message().find("for writing") != std::string::npos;
      if (!is_named) std::cerr << path_ << options << ": " << message() << "\n";
      right = right && is_named;
    };
    for (const char* options : {"", small, again}) expect_remedy(options);
    path_ = folder_ / "new";
    expect_remedy(small);
    ::_exit(right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this user can mount nothing";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(States, a_making_that_was_killed_is_begun_again_or_ended) {
  int killed = 0;
  for (int delay = 0; delay < 30; ++delay) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(open(small) == KVS_SUCCESS && kvs_close_device(device_) == KVS_SUCCESS ? 0 : 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay < 20 ? delay : 20 + 10 * (delay - 20)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    ASSERT_EQ(open(small), KVS_SUCCESS) << delay << " ms: " << message();
    use();
    close();
    ASSERT_EQ(files(), both_);
    for (const std::string& name : files()) fs::remove_all(folder_ / name);
  }
  EXPECT_GT(killed, 0);
}

// The states in which a kill may leave a making, and those in which releases before left it.
TEST_F(States, each_state_of_a_making_is_begun_again_or_ended) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  use();
  close();
  const fs::path whole = folder_ / "whole", whole_memory = folder_ / "whole.memory";
  fs::rename(folder_ / "drive", whole);
  fs::rename(folder_ / "drive.memory", whole_memory);
  const auto blank = [&](const fs::path& path, std::uint64_t bytes) {
    std::ofstream(path) << std::string(bytes / 2, '\0');
    fs::resize_file(path, bytes);
  };
  const fs::path unfinished = folder_ / "drive.unfinished";
  struct state {
    const char* name;
    std::function<void()> begin;
  };
  const std::vector<state> states{
      {"an empty folder", [&] { fs::create_directory(unfinished); }},
      {"a part of the drive", [&] { fs::create_directory(unfinished), blank(unfinished / "drive", 1 << 20); }},
      {"a drive and a part of the memory",
       [&] {
         fs::create_directory(unfinished);
         fs::copy_file(whole, unfinished / "drive");
         blank(unfinished / "memory.unfinished", 1 << 20);
       }},
      {"both, without names",
       [&] {
         fs::create_directory(unfinished);
         fs::copy_file(whole, unfinished / "drive");
         fs::copy_file(whole_memory, unfinished / "memory");
       }},
      {"the memory has its name",
       [&] {
         fs::create_directory(unfinished);
         fs::copy_file(whole, unfinished / "drive");
         fs::copy_file(whole_memory, folder_ / "drive.memory");
       }},
      {"both have their names",
       [&] {
         fs::create_directory(unfinished);
         std::ofstream(unfinished / "lock");
         fs::copy_file(whole, folder_ / "drive");
         fs::copy_file(whole_memory, folder_ / "drive.memory");
       }},
      {"of releases before: a part of the drive", [&] { blank(folder_ / "drive", 1 << 20); }},
      {"of releases before: the drive", [&] { blank(folder_ / "drive", 32 << 20); }},
      {"of releases before: an empty file", [&] { std::ofstream(folder_ / "drive"); }},
  };
  for (const state& s : states) {
    s.begin();
    ASSERT_EQ(open(small), KVS_SUCCESS) << s.name << ": " << message();
    use();
    close();
    ASSERT_EQ(files(), (std::set<std::string>{"drive", "drive.memory", "whole", "whole.memory"})) << s.name;
    ASSERT_EQ(open(), KVS_SUCCESS) << s.name << ": " << message();
    use();
    close();
    fs::remove(folder_ / "drive");
    fs::remove(folder_ / "drive.memory");
  }
}

// The memory of a device is restored from a copy, before the drive, beside the files of a making that was killed.
TEST_F(States, a_restored_memory_gets_no_drive_of_a_making) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  use();
  close();
  const fs::path unfinished = folder_ / "drive.unfinished", whole = folder_ / "whole";
  fs::rename(path_, whole);
  for (const bool has_header : {false, true})
    for (const char* options : {"", small, again}) {
      SCOPED_TRACE(options);
      const fs::path made = folder_ / "made";
      if (has_header) {
        path_ = made;
        ASSERT_EQ(open(small), KVS_SUCCESS) << message();
        close();
        fs::remove(path_ + ".memory");
        path_ = folder_ / "drive";
      } else {
        std::ofstream(made) << std::string(32 << 20, '\0');
      }
      fs::create_directory(unfinished);
      fs::rename(made, unfinished / "drive");
      EXPECT_EQ(open(options), KVS_ERR_DEV_NOT_EXIST);
      EXPECT_FALSE(fs::exists(path_));
      fs::rename(whole, path_);
      ASSERT_EQ(open(), KVS_SUCCESS) << message();
      use();
      close();
      EXPECT_EQ(files(), both_);
      fs::rename(path_, whole);
    }
}

// A block device in a file, if this system and this user may have one.
class loop_device {
 public:
  loop_device(const fs::path& file, std::uint64_t bytes) {
    std::ofstream(file).close();
    fs::resize_file(file, bytes);
    const descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    const int number = control.is_open() ? ::ioctl(control.get(), LOOP_CTL_GET_FREE) : -1;
    if (number < 0) return;
    path_ = "/dev/loop" + std::to_string(number);
    device_ = descriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const descriptor backing(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    is_there_ = device_.is_open() && ::ioctl(device_.get(), LOOP_SET_FD, backing.get()) == 0;
  }
  loop_device(const loop_device&) = delete;
  loop_device& operator=(const loop_device&) = delete;
  ~loop_device() {
    if (is_there_) ::ioctl(device_.get(), LOOP_CLR_FD, 0);
  }
  [[nodiscard]] bool is_there() const noexcept { return is_there_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  descriptor device_;
  bool is_there_ = false;
};

TEST_F(States, a_making_on_a_block_device_that_was_killed_is_begun_again_or_ended) {
  const loop_device drive(folder_ / "backing", 32 << 20);
  if (!drive.is_there()) GTEST_SKIP() << "this user can have no loop device";
  // Its memory lies beside a name that leads to it.
  fs::create_symlink(drive.path(), path_);
  const std::string made = "?size=32M&memory=32M&buffer=5M";
  const fs::path memory = path_ + ".memory", unfinished = path_ + ".unfinished";
  for (int delay = 0; delay < 12; ++delay) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(open(made.c_str()) == KVS_SUCCESS && kvs_close_device(device_) == KVS_SUCCESS ? 0 : 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(4 * delay));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(open(made.c_str()), KVS_SUCCESS) << delay << " ms: " << message();
    use();
    close();
    ASSERT_FALSE(fs::exists(unfinished));
    fs::remove(memory);
    const std::string zeros(1 << 12, '\0');
    std::fstream(drive.path(), std::ios::in | std::ios::out | std::ios::binary) << zeros;
  }
  // The memory was complete, and had no name.
  ASSERT_EQ(open(made.c_str()), KVS_SUCCESS) << message();
  close();
  fs::create_directory(unfinished);
  fs::rename(memory, unfinished / "memory");
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  use();
  close();
  // It is lost.
  fs::remove(memory);
  ASSERT_EQ(open(made.c_str()), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("open it once with rebuild=yes"), std::string::npos) << message();
  ASSERT_EQ(open(again), KVS_SUCCESS) << message();
  use();
  close();
}

// The requests of a process that was killed hold a block device for a while.
TEST_F(States, a_block_device_is_waited_for_while_an_owner_ends) {
  const loop_device drive(folder_ / "backing", 32 << 20);
  if (!drive.is_there()) GTEST_SKIP() << "this user can have no loop device";
  fs::create_symlink(drive.path(), path_);
  descriptor owner(::open(drive.path().c_str(), O_RDWR | O_EXCL | O_CLOEXEC));
  ASSERT_TRUE(owner.is_open());
  ASSERT_EQ(open("?size=32M&memory=32M&buffer=5M"), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("is in use"), std::string::npos) << message();
  std::thread end([&owner] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    owner = descriptor();
  });
  const kvs_result result = open("?size=32M&memory=32M&buffer=5M");
  end.join();
  ASSERT_EQ(result, KVS_SUCCESS) << message();
  use();
  close();
}

TEST_F(States, a_lost_memory_is_rebuilt_in_each_state) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  use();
  close();
  fs::remove(path_ + ".memory");
  const std::set<std::string> drive{"drive"};
  // A new device would lose the data of this one.
  EXPECT_EQ(open(small), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("open it once with rebuild=yes"), std::string::npos) << message();
  EXPECT_EQ(files(), drive);
  EXPECT_EQ(open(), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("open it once with rebuild=yes"), std::string::npos) << message();
  // It fails, and leaves nothing.
  EXPECT_EQ(open("?rebuild=yes&memory=1M"), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("memory="), std::string::npos) << message();
  expect_for_c_programs(message());
  EXPECT_EQ(files(), drive);
  ASSERT_EQ(open(again), KVS_SUCCESS) << message();
  use();
  close();
  EXPECT_EQ(files(), both_);
  EXPECT_EQ(open(again), KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("the device has its memory"), std::string::npos) << message();
  EXPECT_EQ(files(), both_);

  // Killed while it is rebuilt.
  for (int delay = 0; delay < 20; ++delay) {
    fs::remove(path_ + ".memory");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(open(again) == KVS_SUCCESS && kvs_close_device(device_) == KVS_SUCCESS ? 0 : 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * delay));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (!fs::exists(path_ + ".memory")) {
      ASSERT_EQ(open(again), KVS_SUCCESS) << delay << ": " << message();
    } else {
      ASSERT_EQ(open(), KVS_SUCCESS) << delay << ": " << message();
    }
    use();
    close();
    ASSERT_EQ(files(), both_);
  }
}

TEST_F(States, a_file_that_is_no_device_stays_as_it_is) {
  std::ofstream(path_) << "letters";
  for (const char* options : {"", small, again}) {
    EXPECT_EQ(open(options), KVS_ERR_DEV_NOT_EXIST);
    EXPECT_NE(message().find("no device"), std::string::npos) << message();
    expect_for_c_programs(message());
    EXPECT_EQ(files(), (std::set<std::string>{"drive"}));
    EXPECT_EQ(fs::file_size(path_), 7U);
  }
}

TEST_F(States, a_node_that_is_neither_file_nor_block_device_is_never_replaced) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const std::string fifo = path_;
  const std::string null = fifo + "-null";
  const bool has_null = ::mknod(null.c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0;  // root may do that
  for (const std::string& node : {fifo, null}) {
    if (node == null && !has_null) continue;
    path_ = node;
    struct stat before {};
    struct stat after {};
    ASSERT_EQ(::stat(node.c_str(), &before), 0);
    EXPECT_NE(open(small), KVS_SUCCESS);
    EXPECT_NE(message().find(node), std::string::npos) << message();
    ASSERT_EQ(::stat(node.c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
    EXPECT_EQ(after.st_mode, before.st_mode);
  }
  path_ = fifo;
}

}  // namespace
}  // namespace pmlab::tests
