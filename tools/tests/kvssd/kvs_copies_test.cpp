// The two files of a device as a kill leaves them, as copies of different moments, behind links, and as rebuild=yes
// makes them.
#include <pmlab/kvssd/kvs_api.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>

#include "tools/tests/kvssd/kvs_states.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::tests {
namespace {

class Copies : public States {
 protected:
  static constexpr std::size_t moments = 3;

  // Stores a value of its own for each moment.
  void change(std::size_t moment) {
    if (moment == 0) {
      ASSERT_EQ(make_space(device_, "all"), KVS_SUCCESS) << message();
    }
    const kvs_key_space_handle space = opened_space(device_, "all");
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(store(space, "user" + std::to_string(i), value_of(moment) + std::string(20000, 'v')), KVS_SUCCESS);
  }
  void expect(std::size_t moment) {
    const kvs_key_space_handle space = opened_space(device_, "all");
    for (int i = 0; i < 20; ++i) {
      std::string value;
      ASSERT_EQ(retrieve(space, "user" + std::to_string(i), &value), KVS_SUCCESS);
      ASSERT_EQ(value.substr(0, 9), value_of(moment)) << i;
    }
    ASSERT_EQ(kvs_close_key_space(space), KVS_SUCCESS);
  }
  static std::string value_of(std::size_t moment) { return "moment " + std::to_string(moment) + "."; }

  void keep(std::size_t moment) {
    fs::create_directory(kept(moment));
    for (const std::string& name : both_) fs::copy_file(folder_ / name, kept(moment) / name);
  }
  void restore(std::size_t of_drive, std::size_t of_memory) {
    const auto replace = fs::copy_options::overwrite_existing;
    fs::copy_file(kept(of_drive) / "drive", path_, replace);
    fs::copy_file(kept(of_memory) / "drive.memory", path_ + ".memory", replace);
  }
  [[nodiscard]] fs::path kept(std::size_t moment) const { return folder_ / ("moment-" + std::to_string(moment)); }

  // No option opens or makes the device, changes a name, or advises a rebuilding: a file that cannot be reached is not
  // lost. Free of assertions, for forked children.
  [[nodiscard]] bool is_refused_as_unreachable(const std::string& cause) {
    const auto before = files();
    bool right = true;
    for (const char* options : {"", small, again}) {
      const bool is_open = open(options) == KVS_SUCCESS;
      if (is_open) static_cast<void>(kvs_close_device(device_));
      const bool says_why = !is_open && message().find("cannot reach") != std::string::npos &&
                            message().find(cause) != std::string::npos &&
                            message().find("rebuild") == std::string::npos;
      if (!says_why) std::cerr << path_ << options << ": " << (is_open ? "is open" : message()) << "\n";
      right = right && says_why;
    }
    return right && files() == before;
  }
  // Calls `body` in a child without the rights of root.
  template <class Body>
  [[nodiscard]] static bool holds_for_another_user(Body&& body) {
    constexpr unsigned other = 65534;
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_other =
          ::geteuid() != 0 || (::setgroups(0, nullptr) == 0 && ::setresgid(other, other, other) == 0 &&
                               ::setresuid(other, other, other) == 0);
      ::_exit(is_other && body() ? 0 : 1);
    }
    int status = 1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }
  void make_device_of_moment_0() {
    ASSERT_EQ(open(small), KVS_SUCCESS) << message();
    change(0);
    close();
  }
};

TEST_F(Copies, of_different_moments_are_refused_until_the_memory_is_rebuilt) {
  for (std::size_t moment = 0; moment < moments; ++moment) {
    // The last one is killed.
    const bool is_killed = moment + 1 == moments;
    const pid_t child = is_killed ? ::fork() : 0;
    if (child == 0) {
      ASSERT_EQ(open(moment == 0 ? small : ""), KVS_SUCCESS) << message();
      change(moment);
      if (is_killed) ::kill(::getpid(), SIGKILL);
      close();
    } else {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status));
    }
    keep(moment);
  }
  for (std::size_t drive = 0; drive < moments; ++drive)
    for (std::size_t memory = 0; memory < moments; ++memory) {
      restore(drive, memory);
      const std::string where = "drive of " + std::to_string(drive) + ", memory of " + std::to_string(memory);
      const auto before = files();
      if (drive == memory) {
        ASSERT_EQ(open(), KVS_SUCCESS) << where << ": " << message();
        expect(drive);
        close();
        continue;
      }
      ASSERT_EQ(open(), KVS_ERR_DEV_NOT_EXIST) << where;
      EXPECT_NE(message().find("is of an older moment than"), std::string::npos) << message();
      EXPECT_NE(message().find("open it once with rebuild=yes"), std::string::npos) << message();
      expect_for_c_programs(message());
      EXPECT_EQ(files(), before);
      if (drive + memory != 1) continue;
      // The files are as they were.
      ASSERT_EQ(open(), KVS_ERR_DEV_NOT_EXIST) << where;
      ASSERT_EQ(open(again), KVS_SUCCESS) << where << ": " << message();
      use();
      close();
      ASSERT_EQ(open(), KVS_SUCCESS) << message();
      use();
      close();
      EXPECT_EQ(files(), before);
      // Neither of the memories from before belongs to it now.
      for (const std::size_t old : {drive, memory}) {
        fs::copy_file(kept(old) / "drive.memory", path_ + ".memory", fs::copy_options::overwrite_existing);
        ASSERT_EQ(open(), KVS_ERR_DEV_NOT_EXIST) << where;
        EXPECT_NE(message().find("moment"), std::string::npos) << message();
      }
    }
}

// A rebuilding that was killed between its end and the renaming; its drive goes on with no other memory.
TEST_F(Copies, that_a_rebuilding_has_completed_get_their_name) {
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  change(0);
  close();
  keep(0);
  fs::remove(path_ + ".memory");
  ASSERT_EQ(open(again), KVS_SUCCESS) << message();
  close();
  keep(1);
  const fs::path unfinished = folder_ / "drive.unfinished";
  for (const bool has_old : {false, true})
    for (const char* options : {"", small, again}) {
      restore(1, has_old ? 0 : 1);
      if (!has_old) fs::remove(path_ + ".memory");
      fs::create_directory(unfinished);
      fs::copy_file(kept(1) / "drive.memory", unfinished / "rebuilt");
      ASSERT_EQ(open(options), KVS_SUCCESS) << options << message();
      close();
      EXPECT_FALSE(fs::exists(unfinished));
    }
  // One that is not the drive's: both files were restored since.
  restore(0, 0);
  fs::create_directory(unfinished);
  fs::copy_file(kept(1) / "drive.memory", unfinished / "rebuilt");
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  expect(0);
  close();
  EXPECT_FALSE(fs::exists(unfinished));
}

// A memory that cannot be opened now may be the drive's only one.
TEST_F(Copies, that_cannot_be_judged_are_kept) {
  ASSERT_NO_FATAL_FAILURE(make_device_of_moment_0());
  const fs::path unfinished = folder_ / "drive.unfinished", rebuilt = unfinished / "rebuilt";
  fs::create_directory(unfinished);
  fs::rename(path_ + ".memory", rebuilt);
  int refused = 0;
  // An opening fails in each of its steps: of the calls that open a file, the first to the last one.
  for (rlim_t most_files = 3; most_files < 100 && fs::exists(rebuilt); ++most_files) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit limit{most_files, most_files};
      ::_exit(::setrlimit(RLIMIT_NOFILE, &limit) == 0 && open() == KVS_SUCCESS ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << most_files;
    refused += status == 0 ? 0 : 1;
  }
  EXPECT_GT(refused, 2);
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  expect(0);
  close();
}

// A symbolic link names the device of its file, with the memory there: it is not one that lost its memory.
TEST_F(Copies, that_are_links_are_the_device_itself) {
  const std::string file = path_;
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  change(0);
  close();
  fs::create_symlink("drive", folder_ / "link");
  fs::create_symlink(folder_ / "link", folder_ / "other");
  for (const char* name : {"link", "other"})
    for (const char* options : {"", small}) {
      path_ = folder_ / name;
      ASSERT_EQ(open(options), KVS_SUCCESS) << message();
      expect(0);
      close();
    }
  EXPECT_NE(open(again), KVS_SUCCESS);  // the memory is there
  // A link to nothing: the device is made where it leads.
  fs::create_directory(folder_ / "far");
  fs::create_symlink(folder_ / "far" / "new", folder_ / "dangling");
  path_ = folder_ / "dangling";
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  close();
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::exists(folder_ / "far" / "new") && fs::exists(folder_ / "far" / "new.memory"));
  path_ = file;
}

// Releases before made the memory beside the link: there may be one beside the file, too.
TEST_F(Copies, of_the_memory_beside_a_link_and_beside_its_file_leave_the_one_that_fits) {
  const std::string file = path_, link = folder_ / "link";
  ASSERT_NO_FATAL_FAILURE(make_device_of_moment_0());
  keep(0);
  fs::create_symlink("drive", link);
  for (const std::string& with_old : {link, file}) {
    SCOPED_TRACE(with_old);
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
    change(1);
    close();
    if (with_old == file) fs::rename(file + ".memory", link + ".memory");
    fs::copy_file(kept(0) / "drive.memory", with_old + ".memory");
    path_ = link;
    const auto before = files();
    ASSERT_NE(open(again), KVS_SUCCESS);
    EXPECT_NE(message().find("the device has its memory"), std::string::npos) << message();
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
    expect(1);
    close();
    EXPECT_EQ(files(), before);
    // Back to one memory, beside the file.
    if (with_old == file) fs::rename(link + ".memory", file + ".memory");
    fs::remove(link + ".memory");
    path_ = file;
  }
  // None fits: the rebuilt one lies beside the file, and both names are one device.
  fs::copy_file(kept(0) / "drive.memory", file + ".memory", fs::copy_options::overwrite_existing);
  fs::copy_file(kept(0) / "drive.memory", link + ".memory");
  path_ = link;
  ASSERT_NE(open(), KVS_SUCCESS);
  EXPECT_NE(message().find("open it once with rebuild=yes"), std::string::npos) << message();
  ASSERT_EQ(open(again), KVS_SUCCESS) << message();
  use();
  close();
  for (const std::string& name : {file, link}) {
    path_ = name;
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
    use();
    close();
  }
}

// The memory is on a file system of its own, and stays there.
TEST_F(Copies, of_a_memory_behind_a_link_are_replaced_where_they_lie) {
  std::string far_name = "/tmp/pmlab-kvssd-far-XXXXXX";
  ASSERT_NE(::mkdtemp(far_name.data()), nullptr);
  const fs::path far = far_name, own = path_ + ".memory";
  const auto is_replaced_there = [&] {
    EXPECT_TRUE(fs::is_symlink(own));
    EXPECT_FALSE(fs::exists(folder_ / "drive.unfinished"));
    EXPECT_EQ(std::distance(fs::directory_iterator(far), fs::directory_iterator()), 1);
  };
  ASSERT_NO_FATAL_FAILURE(make_device_of_moment_0());
  fs::copy_file(own, far / "mem");
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  change(1);
  close();
  fs::remove(own);
  fs::create_symlink(far / "mem", own);
  ASSERT_NE(open(), KVS_SUCCESS);
  EXPECT_NE(message().find((far / "mem").string() + " is of an older moment"), std::string::npos) << message();
  ASSERT_EQ(open(again), KVS_SUCCESS) << message();
  use();
  close();
  is_replaced_there();
  // Killed before the renaming: the drive goes on with the rebuilt memory alone.
  fs::create_directory(folder_ / "drive.unfinished");
  fs::create_directory(far / "mem.making");
  fs::rename(far / "mem", far / "mem.making" / "rebuilt");
  fs::copy_file(far / "mem.making" / "rebuilt", far / "mem");
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  use();
  close();
  is_replaced_there();
  fs::remove_all(far);
}

TEST_F(Copies, that_cannot_be_reached_are_not_lost) {
  const std::string file = path_, link = folder_ / "link";
  const fs::path pmem = folder_ / "pmem", unmounted = folder_ / "unmounted";
  ASSERT_NO_FATAL_FAILURE(make_device_of_moment_0());
  fs::create_symlink("drive", link);
  // The memory beside the file fits: the one beside the link is not needed.
  fs::create_symlink("pmem/mem", link + ".memory");
  path_ = link;
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  expect(0);
  close();
  fs::remove(link + ".memory");
  fs::create_directory(pmem);
  fs::rename(file + ".memory", pmem / "mem");
  // A link to itself.
  fs::create_symlink("drive.memory", file + ".memory");
  EXPECT_TRUE(is_refused_as_unreachable("drive.memory (links to drive.memory): Too many levels of symbolic links"));
  fs::remove(file + ".memory");
  // The memory of the file, and that of a link to it.
  for (const std::string& name : {file, link}) {
    SCOPED_TRACE(name);
    path_ = name;
    fs::create_symlink("pmem/mem", name + ".memory");
    fs::rename(pmem, unmounted);
    EXPECT_TRUE(is_refused_as_unreachable(name + ".memory (links to pmem/mem): No such file or directory"));
    EXPECT_TRUE(fs::is_symlink(name + ".memory"));
    fs::rename(unmounted, pmem);
    ASSERT_EQ(open(), KVS_SUCCESS) << message();
    expect(0);
    close();
    // Its folder may not be entered.
    for (const fs::path& open_to_all : {folder_, fs::path(file), pmem / "mem"})
      fs::permissions(open_to_all, fs::perms::all);
    fs::permissions(pmem, fs::perms::none);
    EXPECT_TRUE(holds_for_another_user(
        [&] { return is_refused_as_unreachable(name + ".memory (links to pmem/mem): Permission denied"); }));
    fs::permissions(pmem, fs::perms::owner_all);
    EXPECT_TRUE(fs::is_symlink(name + ".memory"));
    fs::remove(name + ".memory");
  }
  // The drive.
  fs::rename(pmem / "mem", link + ".memory");
  fs::rename(file, pmem / "drive");
  fs::remove(link);
  fs::create_symlink("pmem/drive", link);
  fs::rename(pmem, unmounted);
  EXPECT_TRUE(is_refused_as_unreachable(link + " (links to pmem/drive): No such file or directory"));
  fs::rename(unmounted, pmem);
  fs::permissions(pmem, fs::perms::none);
  EXPECT_TRUE(holds_for_another_user([&] { return is_refused_as_unreachable("Permission denied"); }));
  fs::permissions(pmem, fs::perms::owner_all);
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  expect(0);
  close();
  path_ = file;
}

// A memory that lost its name in a power failure, and belongs to another user.
TEST_F(Copies, without_a_name_that_may_not_be_read_are_not_lost) {
  ASSERT_NO_FATAL_FAILURE(make_device_of_moment_0());
  fs::rename(path_ + ".memory", path_ + ".memory.unfinished");
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(path_, fs::perms::all);
  fs::permissions(path_ + ".memory.unfinished", fs::perms::none);
  EXPECT_TRUE(holds_for_another_user([&] {
    return open() != KVS_SUCCESS && message().find("rebuild") == std::string::npos && open(again) != KVS_SUCCESS;
  }));
  fs::permissions(path_ + ".memory.unfinished", fs::perms::owner_all);
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  expect(0);
  close();
}

TEST_F(Copies, that_are_links_without_an_end_are_refused) {
  const std::string file = path_;
  fs::create_symlink("b", folder_ / "a");
  fs::create_symlink("a", folder_ / "b");
  fs::create_symlink("self", folder_ / "self");
  for (const char* name : {"a", "b", "self"}) {
    path_ = folder_ / name;
    EXPECT_TRUE(is_refused_as_unreachable(path_ + ": too many symbolic links"));
    EXPECT_TRUE(fs::is_symlink(path_));
  }
  // The kernel follows 40.
  for (int n = 1; n <= 41; ++n)
    fs::create_symlink(n == 1 ? "drive" : "link" + std::to_string(n - 1), folder_ / ("link" + std::to_string(n)));
  path_ = folder_ / "link40";
  ASSERT_EQ(open(small), KVS_SUCCESS) << message();
  close();
  EXPECT_TRUE(fs::is_regular_file(file) && fs::is_regular_file(file + ".memory"));
  path_ = folder_ / "link41";
  EXPECT_TRUE(is_refused_as_unreachable("too many symbolic links"));
  path_ = file;
}

// A parent that has the device open is killed; its forked child lives, and has its files.
TEST_F(Copies, that_a_forked_child_of_a_killed_process_keeps_are_refused_with_its_number) {
  std::array<int, 2> from_grandchild{}, to_grandchild{};
  ASSERT_EQ(::pipe(from_grandchild.data()) + ::pipe(to_grandchild.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (open(small) != KVS_SUCCESS) ::_exit(1);
    change(0);
    if (const pid_t child = ::fork(); child == 0) {
      const pid_t own = ::getpid();
      char any = 0;
      if (::write(from_grandchild[1], &own, sizeof own) != sizeof own) ::_exit(1);
      ::_exit(::read(to_grandchild[0], &any, 1) == 1 ? 0 : 1);
    }
    for (;;) ::pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(from_grandchild[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  ASSERT_EQ(open(), KVS_ERR_DEV_NOT_EXIST) << "it is open";
  ::kill(parent, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  const kvs_result opened = open();
  EXPECT_EQ(opened, KVS_ERR_DEV_NOT_EXIST);
  EXPECT_NE(message().find("in process " + std::to_string(grandchild) + ";"), std::string::npos) << message();
  expect_for_c_programs(message());
  ASSERT_EQ(::write(to_grandchild[1], "x", 1), 1);
  // It is no child of this process: its end is waited for by its lock, which an opening does for half a second.
  ASSERT_EQ(open(), KVS_SUCCESS) << message();
  expect(0);
  close();
  for (const int file : {from_grandchild[0], from_grandchild[1], to_grandchild[0], to_grandchild[1]}) ::close(file);
}

}  // namespace
}  // namespace pmlab::tests
