// Child processes: why they end, and that none stays.
#include <pmlab/base/child_process.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

namespace pmlab::tests {
namespace {

using namespace std::chrono_literals;

TEST(child_process, tells_why_it_ended) {
  EXPECT_TRUE(child_process::forked([] {}).wait().is_success());
  EXPECT_EQ(child_process::forked([] { ::_exit(3); }).wait().text(), "status 3");
  EXPECT_EQ(child_process::forked([] { ::raise(SIGTERM); }).wait().text(), "signal 15 (Terminated)");
  EXPECT_EQ(child_process::forked([] { throw std::runtime_error("no catch"); }).wait().signal, SIGABRT);
  EXPECT_EQ(child_process::of_program("/bin/sh", {"sh", "-c", "exit 5"}).wait().status, 5);
  EXPECT_EQ(child_process::of_program("/no/such/program", {"program"}).wait().status, 127);
}

TEST(child_process, runs_until_it_is_killed) {
  child_process child = child_process::forked([] { ::pause(); });
  EXPECT_FALSE(child.ended());
  child.kill();
  EXPECT_EQ(child.wait().signal, SIGKILL);
  ASSERT_TRUE(child.ended());
  EXPECT_EQ(child.ended()->signal, SIGKILL);
}

TEST(child_process, does_not_outlive_its_object) {
  pid_t id = 0;
  {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    child_process child = child_process::forked([&] {
      const pid_t mine = ::getpid();
      if (::write(ends[1], &mine, sizeof mine) == sizeof mine) ::pause();
    });
    ASSERT_EQ(::read(ends[0], &id, sizeof id), ssize_t{sizeof id});
    for (const int end : ends) ::close(end);
    const child_process moved = std::move(child);
  }
  EXPECT_EQ(::kill(id, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(child_process, one_for_its_parent_does_nothing_when_that_ended_before_its_first_step) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  child_process parent = child_process::forked([&] {
    static const pid_t id = ::getpid();
    // A child that is slow to start.
    ::pthread_atfork(nullptr, nullptr, [] {
      while (::getppid() == id) ::usleep(1000);
    });
    const child_process child = child_process::forked_for_its_parent([&] {
      if (::write(ends[1], "x", 1) != 1) ::abort();
    });
    ::_exit(0);  // the destructor would kill it
  });
  EXPECT_TRUE(parent.wait().is_success());
  ::close(ends[1]);
  char said = 0;
  EXPECT_EQ(::read(ends[0], &said, 1), ssize_t{0}) << "it worked without its parent";
  ::close(ends[0]);
}

TEST(child_process, one_for_its_parent_works_while_that_runs) {
  EXPECT_EQ(child_process::forked_for_its_parent([] { ::_exit(3); }).wait().text(), "status 3");
}

TEST(child_process, work_in_one_is_described_by_how_it_ended) {
  EXPECT_EQ(in_child_process(10s, [] { return std::string("done"); }).describe(), "returned: done");
  EXPECT_EQ(in_child_process(10s, []() -> std::string { throw std::runtime_error("no"); }).describe(), "threw: no");
  EXPECT_EQ(in_child_process(10s, []() -> std::string { std::abort(); }).describe(), "died of signal 6 (Aborted)");
  EXPECT_EQ(in_child_process(10s, []() -> std::string { ::_exit(0); }).describe(), "ended by itself");
  EXPECT_EQ(in_child_process(100ms, [] { return ::pause(), std::string(); }).describe(),
            "was killed: its time was over");
}

}  // namespace
}  // namespace pmlab::tests
