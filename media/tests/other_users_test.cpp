// Pools of users without privileges: makers that were killed, files of others, files that can only be read. Where the
// tests run as root, children become another user.
#include <pmlab/base/child_process.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/probe_pool.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <grp.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/child_process.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab {
namespace {

using tests::message_of;
using pool = media::pmem;

constexpr std::uint64_t pool_bytes = pool::least_pool_bytes;
constexpr uid_t nobody = 65534;
constexpr uid_t somebody = 65533;

bool is_root() { return ::geteuid() == 0; }

// A child process has no way back.
void become_nobody() {
  if (is_root() && (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(3);
}

class other_users : public testing::Test {
 protected:
  other_users() { std::filesystem::permissions(folder_.file(""), std::filesystem::perms::all); }

  [[nodiscard]] std::string path() const { return folder_.file("pool"); }
  [[nodiscard]] std::string unfinished() const { return media::unfinished_name(path()); }

  // What `work` returns, as a user without privileges.
  [[nodiscard]] static std::string as_nobody(const std::function<std::string()>& work) {
    const child_end end = tests::run_in_child(
        [&] {
          become_nobody();
          return work();
        },
        std::chrono::seconds(30));
    return end.end == child_end::how::returned ? end.text : "the child failed: " + end.text;
  }

  void make() const { pool(path(), {.create_bytes = pool_bytes, .huge_pages = false}); }

  tests::temporary_folder folder_;
};

enum class maker_end : std::uint8_t { killed, made, untraceable };

// Calls make() as a user without privileges, in a child process that is killed at its `stops`-th stop: odd ones are
// before a system call, even ones behind it.
maker_end kill_maker(int stops, const std::function<void()>& make) {
  const pid_t child = ::fork();
  if (child == 0) {
    become_nobody();
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    make();
    ::_exit(0);
  }
  int status = 0;
  for (int stop = 0; ::waitpid(child, &status, 0) == child && WIFSTOPPED(status); ++stop) {
    if (stop == stops) ::kill(child, SIGKILL);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  }
  if (WIFSIGNALED(status)) return maker_end::killed;
  return WEXITSTATUS(status) == 0 ? maker_end::made : maker_end::untraceable;
}

TEST_F(other_users, A1_make_a_pool_again_whose_maker_was_killed_at_any_system_call) {
  constexpr int most_stops = 10'000;
  int left = 0, without_permissions = 0;
  for (int stops = 1;; stops += 2) {
    ASSERT_LT(stops, most_stops);
    const maker_end end = kill_maker(stops, [&] { make(); });
    if (end == maker_end::untraceable) GTEST_SKIP() << "processes cannot be traced here";
    if (end == maker_end::made) break;
    struct stat status {};
    if (::stat(unfinished().c_str(), &status) == 0) {
      ++left;
      if ((status.st_mode & 0777) == 0) ++without_permissions;
    }
    const std::string said = as_nobody([&] { return message_of([&] { make(); }); });
    ASSERT_EQ(said, "") << "killed at stop " << stops;
    ASSERT_FALSE(std::filesystem::exists(unfinished())) << "killed at stop " << stops;
    std::filesystem::remove(path());
  }
  EXPECT_GT(left, 0);
  EXPECT_GT(without_permissions, 0);
}

TEST_F(other_users, A1_have_no_pool_where_a_maker_was_cut_off_and_no_size_is_given) {
  const std::string said = as_nobody([&] {
    std::ofstream(unfinished()) << "cut off";
    ::chmod(unfinished().c_str(), 0);
    return message_of([&] { pool{path()}; });
  });
  EXPECT_EQ(said.find("there is no pool at"), 0U) << said;
}

TEST_F(other_users, A1_are_named_when_what_they_left_is_in_the_way) {
  if (!is_root()) GTEST_SKIP() << "needs root, to make files of several users";
  std::filesystem::permissions(folder_.file(""), std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
  std::ofstream(unfinished()) << "cut off";
  ASSERT_EQ(::chown(unfinished().c_str(), somebody, somebody), 0);
  for (const mode_t mode : {0000U, 0600U, 0644U}) {
    ASSERT_EQ(::chmod(unfinished().c_str(), mode), 0);
    const std::string said = as_nobody([&] { return message_of([&] { make(); }); });
    EXPECT_EQ(
        said.find("cannot finish pool " + path() + ": a making of user 65533 that was cut off left " + unfinished()),
        0U)
        << mode << ": " << said;
    EXPECT_NE(said.find("let that user make the pool or remove the file"), std::string::npos) << said;
  }
  EXPECT_TRUE(std::filesystem::exists(unfinished()));
}

// A link of this user may lead to a file whose permissions are to stay.
TEST_F(other_users, A1_keep_the_permissions_of_what_a_link_leads_to) {
  const std::string other = folder_.file("other");
  const std::string said = as_nobody([&] {
    std::ofstream(other) << "other";
    ::chmod(other.c_str(), 0);
    std::filesystem::create_symlink(other, unfinished());
    return message_of([&] { make(); });
  });
  EXPECT_EQ(said.find("cannot finish pool"), 0U) << said;
  EXPECT_EQ(std::filesystem::status(other).permissions(), std::filesystem::perms::none);
}

// The word of a pool that was left open, in a private mapping; then its message where it is opened for writing.
TEST_F(other_users, read_a_pool_that_they_cannot_write_to_in_a_private_mapping) {
  child_process user = child_process::forked([&] {
    pool medium(path(), {.create_bytes = pool_bytes, .huge_pages = false});
    medium.named_root("a", "tree", 1).word->store(42);
    ::raise(SIGKILL);
  });
  ASSERT_EQ(user.wait().signal, SIGKILL);
  const auto before = std::filesystem::last_write_time(path());
  ASSERT_EQ(::chmod(path().c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder_.file("").c_str(), 0555), 0);
  EXPECT_NE(as_nobody([&] { return message_of([&] { pool{path()}; }); }).find("a pool is opened for writing"),
            std::string::npos);
  const std::string word = as_nobody([&] {
    media::map_pools_privately(path());
    pool medium(path(), {.huge_pages = false, .reserve_space = false});
    media::root root = medium.named_root("a", "tree", 1);
    root.word->fetch_add(1);
    return medium.path() + " " + std::to_string(root.word->load());
  });
  EXPECT_EQ(word, path() + " 43");
  EXPECT_EQ(std::filesystem::last_write_time(path()), before);
  ASSERT_EQ(::chmod(folder_.file("").c_str(), 0755), 0);
}

}  // namespace
}  // namespace pmlab
