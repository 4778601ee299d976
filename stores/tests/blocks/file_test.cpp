// blocks::file on real files: retries, fail-stop, refusals; through io_uring and through threads.
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include "stores/tests/blocks/scratch_file.hpp"
#include "support/child_process.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::tests::file_test {
namespace {

using namespace blocks;

constexpr std::uint64_t megabyte = std::uint64_t{1} << 20;

// The failures that a test causes, shared with the device's threads.
struct plan {
  std::atomic<std::uint32_t> most_bytes{~0U};  // most bytes of one transfer
  std::atomic<int> failures{0};                // how many calls to come fail
  std::atomic<int> number{EIO};                // number of these failures
  std::atomic<int> what{-1};                   // the operation that fails; -1: each
  std::atomic<int> transfers{0};
  std::atomic<bool> no_direct_io{false};
  std::atomic<bool> holds_writes{false};  // a write's result is late
  std::atomic<bool> drive_in_use{false};
  std::atomic<bool> read_only_mount{false};
};

struct planned_system {
  std::shared_ptr<plan> planned = std::make_shared<plan>();

  [[nodiscard]] int open(const char* path, int flags) const {
    if (planned->no_direct_io && (flags & O_DIRECT) != 0) {
      errno = EINVAL;
      return -1;
    }
    if (planned->drive_in_use && (flags & O_EXCL) != 0) {
      errno = EBUSY;
      return -1;
    }
    if (planned->read_only_mount && (flags & O_ACCMODE) != O_RDONLY) {
      errno = EROFS;
      return -1;
    }
    return ::open(path, flags);
  }
  [[nodiscard]] std::uint32_t asked(operation /*what*/, std::uint32_t bytes) const {
    ++planned->transfers;
    return std::min(bytes, planned->most_bytes.load());
  }
  [[nodiscard]] std::int32_t result(operation what, std::int32_t found) const {
    while (what == operation::write && planned->holds_writes) std::this_thread::yield();
    if (planned->what != -1 && planned->what != static_cast<int>(what)) return found;
    int left = planned->failures;
    while (left > 0 && !planned->failures.compare_exchange_weak(left, left - 1)) continue;
    return left > 0 ? -planned->number : found;
  }
};

using planned_file = basic_file<planned_system>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void fill(buffer& data, unsigned seed) {
  for (std::size_t i = 0; i < data.size(); ++i) data.data()[i] = static_cast<std::byte>(i * 31 + i / 512 * 7 + seed);
}

class BlocksFile : public testing::TestWithParam<file_io> {
 protected:
  [[nodiscard]] static file_options options(bool page_cache = false) {
    return {.io = GetParam(), .page_cache = page_cache, .threads = 4};
  }

  scratch_file scratch_{megabyte};
  planned_system system_;
  plan& planned_ = *system_.planned;
};

TEST_P(BlocksFile, SaysHowItReachesTheDrive) {
  const blocks::file opened(scratch_.path(), options());
  EXPECT_EQ(opened.uses_io_uring(), GetParam() == file_io::io_uring);
  EXPECT_EQ(opened.way(), GetParam() == file_io::io_uring ? "io_uring, direct I/O" : "threads, direct I/O");
  EXPECT_EQ(opened.name(), "file:" + scratch_.path());
  EXPECT_EQ(opened.shape().blocks, 256U);
  EXPECT_GE(opened.facts().logical_block, 512U);
}

TEST_P(BlocksFile, ShortTransfersAreContinued) {
  planned_file opened(scratch_.path(), options(), system_);
  synchronous device(opened);
  buffer written(64 * 1024);
  fill(written, 1);
  planned_.most_bytes = 4096;
  device.write(3, written.bytes());
  EXPECT_EQ(planned_.transfers, 16);
  buffer read(written.size());
  device.read(3, read.bytes());
  EXPECT_EQ(planned_.transfers, 32);
  EXPECT_TRUE(std::ranges::equal(written.bytes(), read.bytes()));
}

TEST_P(BlocksFile, InterruptedTransfersAreRepeated) {
  planned_file opened(scratch_.path(), options(), system_);
  synchronous device(opened);
  buffer data(8192);
  fill(data, 2);
  for (const int number : {EINTR, EAGAIN}) {
    planned_.number = number;
    planned_.failures = 5;
    device.write_durable(0, data.bytes());
    planned_.failures = 5;
    device.read(0, data.bytes());
    EXPECT_EQ(planned_.failures, 0);
  }
  EXPECT_EQ(opened.failure(), "");
}

// A test's results are asked for where the system call is made: before submit returns, not at the reap.
TEST(BlocksFileAtDepthOne, ReadsWithinSubmit) {
  const scratch_file scratch{megabyte};
  const planned_system system;
  plan& planned = *system.planned;
  planned_file opened(scratch.path(), {}, system);
  buffer written(16 * 1024);
  fill(written, 3);
  synchronous(opened).write(5, written.bytes());

  struct {
    const char* name;
    int number;          // number of the failures
    int failures;        // how many of the first calls fail
    std::uint32_t most;  // bytes of a call
    int transfers;       // calls
    std::errc expected;
  } const cases[] = {
      {"whole", EIO, 0, ~0U, 1, std::errc{}},
      {"in short transfers", EIO, 0, 4096, 4, std::errc{}},
      {"interrupted", EINTR, 2, ~0U, 3, std::errc{}},
      {"failed", EIO, 1, ~0U, 1, std::errc::io_error},
  };
  planned_file::queue queue(opened, 1);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    buffer data(written.size());
    planned.number = c.number;
    planned.failures = c.failures;
    planned.most_bytes = c.most;
    planned.transfers = 0;
    const request read{.what = operation::read, .count = 4, .first = 5, .data = data.data(), .tag = 7};
    ASSERT_EQ(queue.submit({&read, 1}), 1U);
    EXPECT_EQ(planned.failures, 0);
    EXPECT_EQ(planned.transfers, c.transfers);
    if (c.expected == std::errc{}) {
      EXPECT_TRUE(std::ranges::equal(data.bytes(), written.bytes()));
    }
    EXPECT_EQ(queue.in_flight(), 1U);
    EXPECT_EQ(queue.submit({&read, 1}), 0U) << "a queue of depth 1 took a second request";
    std::array<completion, 1> done;
    ASSERT_EQ(queue.reap(done, 1), 1U);
    EXPECT_EQ(done[0].tag, 7U);
    EXPECT_EQ(done[0].error, c.expected);
  }
  EXPECT_EQ(opened.failure(), "");
}

TEST_P(BlocksFile, AFailedReadOrWriteIsOneFailedRequest) {
  planned_file opened(scratch_.path(), options(), system_);
  planned_file::queue queue(opened, 4);
  buffer data(4096);
  planned_.failures = 1;
  EXPECT_EQ(perform(queue, {.data = data.data()}), std::errc::io_error);
  EXPECT_EQ(perform(queue, {.data = data.data()}), std::errc{});
  planned_.number = ENOSPC;
  planned_.failures = 1;
  EXPECT_EQ(perform(queue, {.what = operation::write, .data = data.data()}), std::errc::no_space_on_device);
  EXPECT_EQ(perform(queue, {.what = operation::write, .data = data.data()}), std::errc{});
  EXPECT_EQ(opened.failure(), "");
}

TEST_P(BlocksFile, AFailedFlushFailsTheDevice) {
  planned_file opened(scratch_.path(), options(), system_);
  planned_file::queue queue(opened, 4);
  planned_file::queue another(opened, 4);
  buffer data(4096);
  planned_.what = static_cast<int>(operation::flush);
  planned_.failures = 1;
  EXPECT_EQ(perform(queue, {.what = operation::flush}), std::errc::io_error);
  for (const operation what :
       {operation::flush, operation::read, operation::write, operation::write_durable, operation::discard}) {
    EXPECT_EQ(perform(queue, {.what = what, .data = data.data()}), device_failed) << name_of(what);
    EXPECT_EQ(perform(another, {.what = what, .data = data.data()}), device_failed) << name_of(what);
  }
  EXPECT_TRUE(contains(opened.failure(), "flush of device file:")) << opened.failure();
  EXPECT_TRUE(contains(opened.failure(), "no request succeeds")) << opened.failure();
}

TEST_P(BlocksFile, AFailedDurableWriteFailsADeviceWithAVolatileCache) {
  planned_file opened(scratch_.path(), options(true), system_);
  ASSERT_TRUE(opened.shape().volatile_cache);
  planned_file::queue queue(opened, 4);
  buffer data(4096);
  planned_.failures = 1;
  EXPECT_EQ(perform(queue, {.what = operation::write_durable, .data = data.data()}), std::errc::io_error);
  EXPECT_EQ(perform(queue, {.data = data.data()}), device_failed);
}

// Its success may be of data that the kernel dropped when the other one failed.
TEST_P(BlocksFile, RequestsInFlightWhenAFlushFailsFailToo) {
  planned_file opened(scratch_.path(), options(), system_);
  planned_file::queue flushing(opened, 1);
  planned_file::queue queue(opened, 1);
  buffer data(4096);
  planned_.what = static_cast<int>(operation::flush);
  planned_.failures = 1;
  planned_.holds_writes = true;
  const request write{.what = operation::write, .data = data.data()};
  ASSERT_EQ(queue.submit({&write, 1}), 1U);
  EXPECT_EQ(perform(flushing, {.what = operation::flush}), std::errc::io_error);
  planned_.holds_writes = false;
  std::array<completion, 1> done;
  ASSERT_EQ(queue.reap(done, 1), 1U);
  EXPECT_EQ(done[0].error, device_failed);
}

TEST_P(BlocksFile, AFileThatWasCutShortIsAnError) {
  file opened(scratch_.path(), options());
  file::queue queue(opened, 1);
  std::filesystem::resize_file(scratch_.path(), megabyte / 2);
  buffer data(4096);
  EXPECT_EQ(perform(queue, {.first = 255, .data = data.data()}), std::errc::io_error);
  EXPECT_EQ(perform(queue, {.first = 0, .data = data.data()}), std::errc{});
}

TEST_P(BlocksFile, WithoutDirectIoItRefusesOrUsesThePageCache) {
  planned_.no_direct_io = true;
  const std::string said = message_of([&] { planned_file refused(scratch_.path(), options(), system_); });
  EXPECT_TRUE(contains(said, "has no direct I/O")) << said;
  EXPECT_TRUE(contains(said, "file_options::page_cache")) << said;
  planned_file opened(scratch_.path(), options(true), system_);
  EXPECT_TRUE(contains(opened.way(), "page cache"));
  EXPECT_TRUE(opened.shape().volatile_cache);
  EXPECT_EQ(opened.shape().atomic_bytes, 0U);
  synchronous device(opened);
  buffer data(4096);
  fill(data, 3);
  device.write_durable(7, data.bytes());
  buffer read(4096);
  device.read(7, read.bytes());
  EXPECT_TRUE(std::ranges::equal(data.bytes(), read.bytes()));
}

// Requests of one queue in flight together, more than the device has threads, each with its own block.
TEST_P(BlocksFile, ManyRequestsInFlight) {
  file opened(scratch_.path(), options());
  constexpr unsigned depth = 128;
  file::queue queue(opened, depth);
  buffer data(depth * 4096);
  fill(data, 4);
  std::vector<request> requests;
  for (std::uint64_t i = 0; i < depth; ++i)
    requests.push_back({.what = operation::write, .first = i, .data = data.data() + i * 4096, .tag = i});
  EXPECT_EQ(queue.submit(requests), depth);
  EXPECT_EQ(queue.submit({requests.data(), 1}), 0U);
  std::vector<completion> done(depth);
  EXPECT_EQ(queue.reap(done, depth), depth);
  std::vector<std::uint64_t> tags;
  for (const completion& c : done) {
    EXPECT_TRUE(c.succeeded());
    tags.push_back(c.tag);
  }
  std::ranges::sort(tags);
  for (std::uint64_t i = 0; i < depth; ++i) EXPECT_EQ(tags[i], i);
  buffer read(data.size());
  synchronous(opened).read(0, read.bytes());
  EXPECT_TRUE(std::ranges::equal(data.bytes(), read.bytes()));
}

TEST_P(BlocksFile, OfAReadOnlyMountIsReadAndNotWritten) {
  buffer data(4096);
  std::ranges::fill(data.bytes(), std::byte{7});
  {
    planned_file before(scratch_.path(), options(), system_);
    synchronous(before).write_durable(3, data.bytes());
  }
  planned_.read_only_mount = true;
  const std::string said = message_of([&] { planned_file refused(scratch_.path(), options(), system_); });
  EXPECT_TRUE(contains(said, "for writing: Read-only file system")) << said;
  EXPECT_TRUE(contains(said, "file_options::read_only")) << said;

  file_options reads = options();
  reads.read_only = true;
  planned_file opened(scratch_.path(), reads, system_);
  planned_file beside(scratch_.path(), reads, system_);
  buffer found(4096);
  synchronous reader(opened);
  reader.read(3, found.bytes());
  EXPECT_TRUE(std::ranges::equal(data.bytes(), found.bytes()));
  EXPECT_TRUE(contains(message_of([&] { reader.write(3, data.bytes()); }), "Read-only file system"));
  EXPECT_TRUE(contains(message_of([&] { reader.write_durable(3, data.bytes()); }), "Read-only file system"));
  reader.flush();
  EXPECT_EQ(opened.failure(), "");
  planned_.read_only_mount = false;
  EXPECT_TRUE(contains(message_of([&] { planned_file writes(scratch_.path(), options(), system_); }), "is open"));
}

// A child has none of the threads of its parent.
TEST_P(BlocksFile, IsGivenUpByAChildAndWorksOnInTheParent) {
  auto opened = std::make_unique<planned_file>(scratch_.path(), options(), system_);
  auto drive = std::make_unique<synchronous<planned_file>>(*opened);
  buffer data(4096);
  drive->write_durable(1, data.bytes());
  const child_end end = run_in_child(
      [&] {
        drive.reset();
        opened.reset();
        return std::string();
      },
      std::chrono::seconds(20));
  EXPECT_EQ(end.end, child_end::how::returned);
  drive->write_durable(2, data.bytes());
}

INSTANTIATE_TEST_SUITE_P(Ways, BlocksFile, testing::Values(file_io::io_uring, file_io::threads),
                         [](const auto& given) { return given.param == file_io::io_uring ? "io_uring" : "threads"; });

std::string refusal_of(const std::string& path, const file_options& options = {}) {
  return message_of([&] { file refused(path, options); });
}

TEST(BlocksFileRefuses, WhatCannotBeADevice) {
  const scratch_file small(8192);
  EXPECT_TRUE(contains(refusal_of(small.path(), {.least_bytes = megabyte}), "has 8192 bytes, and at least 1048576"));
  EXPECT_TRUE(contains(refusal_of(small.path(), {.block_bytes = 16384}), "has 8192 bytes, and at least 16384"));
  EXPECT_TRUE(contains(refusal_of(small.path(), {.block_bytes = 1000}), "blocks of 1000 bytes"));
  const scratch_file odd(12288);
  EXPECT_TRUE(contains(refusal_of(odd.path(), {.block_bytes = 8192}), "no whole number of blocks of 8192"));
  EXPECT_TRUE(contains(refusal_of("/no/such/file"), "cannot open /no/such/file"));
  EXPECT_TRUE(contains(refusal_of(std::filesystem::temp_directory_path()), "cannot open"));
  EXPECT_TRUE(contains(refusal_of("/dev/null", {.page_cache = true}), "neither a file nor a block device"));
}

TEST(BlocksFileRefuses, AFileThatIsNotPreallocated) {
  const scratch_file sparse(0);
  std::ofstream(sparse.path()).close();
  std::filesystem::resize_file(sparse.path(), megabyte);
  const std::string said = refusal_of(sparse.path());
  EXPECT_TRUE(contains(said, "is not preallocated: byte 0 was never written")) << said;
  EXPECT_TRUE(contains(said, "blocks::create_file")) << said;
}

TEST(BlocksFileRefuses, AFileThatIsAllocatedButNotWritten) {
  const scratch_file unwritten(0);
  const descriptor made(::open(unwritten.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (::fallocate(made.get(), 0, 0, megabyte) != 0) GTEST_SKIP() << "the file system allocates nothing in advance";
  EXPECT_TRUE(contains(refusal_of(unwritten.path()), "is not preallocated")) << refusal_of(unwritten.path());
}

TEST(BlocksFileRefuses, TheFileOfAnotherProcess) {
  const scratch_file scratch(megabyte);
  auto opened = std::make_unique<file>(scratch.path(), file_options{.io = file_io::threads});
  const auto refused_in_a_child = [&] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(contains(refusal_of(scratch.path()), "is open as a block device already") ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  };
  EXPECT_TRUE(refused_in_a_child());
  opened.reset();
  EXPECT_FALSE(refused_in_a_child());
}

// The kernel ends a ring later than its owner does.
TEST(BlocksFileLock, EndsWithTheDevice) {
  const scratch_file scratch(megabyte);
  buffer data(64 * 4096);
  for (int round = 0; round < 20; ++round) {
    planned_file opened(scratch.path(), {.least_bytes = megabyte});
    planned_file::queue queue(opened, 64);
    std::vector<request> requests;
    for (std::uint64_t i = 0; i < 64; ++i) requests.push_back({.first = i, .data = data.data() + i * 4096});
    ASSERT_EQ(queue.submit(requests), 64U);
  }
}

// The kernel answers EBUSY to O_EXCL for a device that is mounted.
TEST(BlocksFileRefuses, ABlockDeviceThatIsMounted) {
  struct stat root {};
  ASSERT_EQ(::stat("/", &root), 0);
  const std::string drive = "/dev/" + blocks::detail::drive_name(root.st_dev);
  struct stat status {};
  if (::stat(drive.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) GTEST_SKIP() << "no drive below / in /dev";
  const planned_system system;
  system.planned->drive_in_use = true;
  const std::string said = message_of([&] { planned_file refused(drive, {}, system); });
  EXPECT_TRUE(contains(said, "block device " + drive + " is in use")) << said;
}

// In a child in which a filter of system calls forbids io_uring, as containers do.
TEST(BlocksFileFallsBack, WhereIoUringIsForbidden) {
  const scratch_file scratch(megabyte);
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<sock_filter, 4> rules{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog filter{rules.size(), rules.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
      ::_exit(77);
    if (!contains(refusal_of(scratch.path(), {.io = file_io::io_uring}), "io_uring is not allowed here")) ::_exit(2);
    file opened(scratch.path());
    if (opened.uses_io_uring() || !contains(opened.way(), "threads (io_uring is not allowed here")) ::_exit(3);
    buffer data(4096);
    synchronous device(opened);
    device.write(0, data.bytes());
    device.flush();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_EQ(status, 0);
}

TEST(CreateFile, RefusesAndLeavesNothing) {
  const scratch_file there(4096);
  EXPECT_TRUE(contains(message_of([&] { create_file(there.path(), 4096); }), "File exists"));
  EXPECT_EQ(std::filesystem::file_size(there.path()), 4096U);
  const scratch_file none(0);
  EXPECT_TRUE(contains(message_of([&] { create_file(none.path(), 1000); }), "choose a multiple of 4096"));
  EXPECT_TRUE(contains(message_of([&] { create_file(none.path(), std::uint64_t{1} << 50); }), "cannot take"));
  EXPECT_FALSE(std::filesystem::exists(none.path()));
}

}  // namespace
}  // namespace pmlab::tests::file_test
