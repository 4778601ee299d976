// The two files of a device as a kill leaves them, as copies of different moments, and as rebuild=yes makes them.
#include <pmlab/kvssd/kvs_api.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>

#include "tools/tests/kvssd/kvs_states.hpp"

#include <gtest/gtest.h>
#include <signal.h>
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
