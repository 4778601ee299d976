// A file or a block device as a block device: io_uring and direct I/O, with threads where io_uring is forbidden.
//
// Link pmlab::uring (liburing). blocks::create_file makes a file that can be opened here; docs/blocks.md is the guide.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_holders.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/blocks/completion_ring.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/file/create.hpp>
#include <pmlab/blocks/file/facts.hpp>
#include <pmlab/blocks/file/recorded_blocks.hpp>
#include <pmlab/blocks/file/ring.hpp>
#include <pmlab/blocks/file/system.hpp>
#include <pmlab/blocks/file/thread_pool.hpp>
#include <pmlab/blocks/file/transfer.hpp>
#include <pmlab/media/forks.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pmlab::blocks {

// The way of requests to the kernel.
enum class file_io : std::uint8_t {
  automatic,  // io_uring, or threads where the kernel forbids it; reads of a queue of depth 1: preadv by the caller
  io_uring,   // each request; refused where the kernel forbids it
  threads     // preadv and pwritev2; reads of a queue of depth 1 by the caller
};

// How a file or block device is opened.
struct file_options {
  // At least the drive's logical block. 0: as the store on it was made with; 4096, if there is none.
  std::uint32_t block_bytes = 0;
  std::uint64_t least_bytes = 0;    // a smaller file or device is refused
  file_io io = file_io::automatic;  // how requests reach the kernel
  // True: through the kernel's page cache, for file systems without direct I/O. Requests are copied, and a drive's
  // figures become the cache's; durability is the same, since a flush still reaches the drive.
  bool page_cache = false;
  // True: for a drive that can only be read. Requests that write fail; other processes may read it at the same time.
  bool read_only = false;
  unsigned threads = 16;  // threads of the whole device, where threads are used
};

// Thread safety: see blocks/device.hpp. Durability: a flush is fdatasync, a write_durable is a write with RWF_DSYNC. A
// failed flush fails the device (B5), and so does a failed write_durable where the drive has a volatile cache. Short
// transfers and interrupted ones are continued. A discard does nothing to a file, whose extents must stay written (B6);
// a block device gets it as a hint, after which its blocks read zero or as before.
//
// shape().atomic_bytes is the unit that the kernel states. A drive promises it for a request of one such unit; of a
// larger request most drives keep each unit whole, and none promises it.
template <class System = plain_system>
class basic_file {
 public:
  class queue;

  // Opens the file or block device, and locks it against other processes until it is destroyed. Throws pmlab::error if
  //   - it is smaller than options.least_bytes or one block, or has no whole number of blocks
  //   - it has holes or unwritten extents (create_file makes none)
  //   - its file system has no direct I/O, unless options.page_cache
  //   - a block device is in use: mounted, or part of another device
  //   - another process, or another object of this one, has it open (half a second is waited for it)
  //   - the drive's logical block is larger than the blocks
  //   - io_uring is asked for and forbidden.
  explicit basic_file(const std::string& path, const file_options& options = {}, System system = {})
      : state_{.file = descriptor(),
               .name = "file:" + path,
               .shape = {},
               .facts = {},
               .direct = !options.page_cache,
               .read_only = options.read_only,
               .system = std::move(system),
               .failed = {}},
        threads_(options.threads),
        reads_at_depth_1_(options.io != file_io::io_uring) {
    constexpr std::uint32_t usual_block_bytes = 4096;
    std::uint32_t block_bytes = options.block_bytes == 0 ? usual_block_bytes : options.block_bytes;
    check_geometry({.blocks = 1, .block_bytes = block_bytes}, state_.name);
    state_.file = opened(path);
    lock(path);
    state_.facts = facts_of_drive(state_.file.get(), path);
    if (options.block_bytes == 0) block_bytes = block_bytes_of_store(state_.file.get()).value_or(block_bytes);
    check_size(path, options.least_bytes, block_bytes);
    check_written(path);
    state_.shape = {.blocks = state_.facts.bytes / block_bytes,
                    .block_bytes = block_bytes,
                    .atomic_bytes = options.page_cache ? 0 : state_.facts.atomic_unit,
                    // The page cache is one itself. For an unknown drive the worst is assumed.
                    .volatile_cache = options.page_cache || state_.facts.volatile_cache.value_or(true)};
    choose(options.io);
  }
  basic_file(const basic_file&) = delete;
  basic_file& operator=(const basic_file&) = delete;
  // Unlocked, not only closed: a child process that was forked since has the descriptor, too. Such a child unlocks
  // nothing. It has none of the threads either: they are not waited for.
  ~basic_file() {
    if (locked_by_.is_this_one())
      ::flock(state_.file.get(), LOCK_UN);
    else
      static_cast<void>(pool_.release());
  }

  // Constant.
  [[nodiscard]] geometry shape() const noexcept { return state_.shape; }
  // "file:PATH".
  [[nodiscard]] std::string name() const { return state_.name; }
  // Why a flush failed, after which no request succeeds; empty: the device works.
  [[nodiscard]] std::string failure() const { return state_.failed.reason(); }

  // The kernel's facts of the drive.
  [[nodiscard]] const drive_facts& facts() const noexcept { return state_.facts; }
  // How requests reach the kernel: "io_uring, direct I/O", "threads (REASON), page cache".
  [[nodiscard]] std::string way() const {
    std::string text = "io_uring";
    if (pool_wanted_) text = no_ring_.empty() ? "threads" : "threads (" + no_ring_ + ")";
    return text + (state_.direct ? ", direct I/O" : ", page cache");
  }
  // False: threads make the system calls.
  [[nodiscard]] bool uses_io_uring() const noexcept { return !pool_wanted_; }

 private:
  // Tries until `is_done()`, for half a second: requests of an owner that was killed end within that. Returns whether
  // it was done.
  template <class IsDone>
  [[nodiscard]] static bool done_soon(IsDone&& is_done) {
    constexpr int most_tries = 100;
    constexpr std::chrono::milliseconds time_of_a_try{5};
    for (int tries = 0; !is_done(); ++tries) {
      if (tries == most_tries) return false;
      std::this_thread::sleep_for(time_of_a_try);
    }
    return true;
  }

  [[nodiscard]] descriptor opened(const std::string& path) {
    struct stat status {};
    const bool is_block_device = ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
    const int flags = (state_.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | (state_.direct ? O_DIRECT : 0) |
                      (is_block_device ? O_EXCL : 0);
    descriptor file;
    int failure = 0;
    // A block device is its opener's own from here on, and a killed one's until its requests have ended.
    static_cast<void>(done_soon([&] {
      file = descriptor(state_.system.open(path.c_str(), flags));
      failure = errno;
      return file.is_open() || !is_block_device || failure != EBUSY;
    }));
    if (file.is_open()) return file;
    const std::string cannot_open = "cannot open " + path;
    const std::string why = std::strerror(failure);
    if (failure == EINVAL && state_.direct)
      throw error(
          "the file system of " + path + " has no direct I/O",
          "use a file on another one, or file_options::page_cache (then each request is copied, and figures are "
          "those of the page cache)");
    if (failure == EBUSY)
      throw error("block device " + path + " is in use: mounted, or part of another device",
                  "unmount it, or choose another device");
    const bool is_forbidden = failure == EROFS || failure == EACCES || failure == EPERM;
    if (is_forbidden && !state_.read_only && ::access(path.c_str(), R_OK) == 0)
      throw error(cannot_open + " for writing: " + why,
                  "let this user write to it, or copy it to where that is possible; file_options::read_only reads it");
    throw error(cannot_open + ": " + why, failure == ENOENT
                                              ? "blocks::create_file makes a file"
                                              : remedy_for(failure, "check the path and its permissions"));
  }

  // Requests of a process that was killed hold the lock until the drive has ended them: these are waited for, since
  // they would change blocks under the new owner.
  void lock(const std::string& path) {
    const int kind = state_.read_only ? LOCK_SH : LOCK_EX;
    const bool is_locked = done_soon([&] {
      const bool locks = ::flock(state_.file.get(), kind | LOCK_NB) == 0;
      if (!locks && errno != EWOULDBLOCK)
        throw error("cannot lock " + path + ": " + std::strerror(errno), "use a file system with flock");
      return locks;
    });
    if (!is_locked)
      throw error(path + " is open as a block device already, " +
                      holders_as_text(state_.file.get(), "in this process or another one"),
                  "close it there, or choose another file; a forked process keeps the files of its parent, also of one "
                  "that was killed: end it");
  }

  void check_size(const std::string& path, std::uint64_t least_bytes, std::uint32_t block_bytes) const {
    const std::uint64_t bytes = state_.facts.bytes;
    const std::uint64_t least = std::max<std::uint64_t>(least_bytes, block_bytes);
    if (bytes < least)
      throw error(
          path + " has " + std::to_string(bytes) + " bytes, and at least " + std::to_string(least) + " are needed",
          state_.facts.block_device ? "choose a larger device" : "make a larger one with blocks::create_file");
    if (state_.direct && block_bytes < state_.facts.logical_block)
      throw error("blocks of " + std::to_string(block_bytes) + " bytes on " + path +
                      ", whose drive reads and writes at least " + std::to_string(state_.facts.logical_block),
                  "choose file_options::block_bytes of at least that");
    if (bytes % block_bytes != 0 && !state_.facts.block_device)
      throw error(path + " has " + std::to_string(bytes) + " bytes, no whole number of blocks of " +
                      std::to_string(block_bytes),
                  "choose other blocks, or make another file with blocks::create_file");
  }

  // Rule B6. The kernel shows an extent that was allocated and never written as a hole.
  void check_written(const std::string& path) const {
    if (state_.facts.block_device) return;
    const off_t hole = ::lseek(state_.file.get(), 0, SEEK_HOLE);
    if (hole < 0 || static_cast<std::uint64_t>(hole) >= state_.facts.bytes) return;
    throw error(
        path + " is not preallocated: byte " + std::to_string(hole) + " was never written",
        "make the file with blocks::create_file, which writes all of it; a write to a hole would change the file "
        "system's metadata");
  }

  void choose(file_io io) {
    if (io == file_io::threads) {
      pool_wanted_ = true;
      return;
    }
    no_ring_ = detail::ring::refusal();
    if (no_ring_.empty()) return;
    if (io == file_io::io_uring)
      throw error(state_.name + ": " + no_ring_, "use file_io::automatic, which takes threads then");
    pool_wanted_ = true;
  }

  // Started when the first queue needs it.
  [[nodiscard]] detail::thread_pool& pool() {
    const std::scoped_lock lock(pool_starts_);
    if (pool_ == nullptr) pool_ = std::make_unique<detail::thread_pool>(std::max(1U, threads_));
    return *pool_;
  }

  // All system calls of a request, on a thread of the pool.
  [[nodiscard]] std::errc perform(detail::transfer& t) noexcept {
    for (;;)
      if (const std::optional<std::errc> end = state_.settle(t, call(t))) return *end;
  }

  // One system call; a negated errno if it failed.
  [[nodiscard]] std::int32_t call(const detail::transfer& t) noexcept {
    const int file = state_.file.get();
    const auto offset = static_cast<off_t>(t.offset + t.done);
    ssize_t result = 0;
    if (t.what.what == operation::flush) {
      result = ::fdatasync(file);
    } else if (t.what.what == operation::discard) {
      result = ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, static_cast<off_t>(t.bytes));
    } else {
      const iovec piece{t.place(), state_.next_bytes(t)};
      if (t.what.what == operation::read)
        result = ::preadv(file, &piece, 1, offset);
      else
        result = ::pwritev2(file, &piece, 1, offset, t.what.what == operation::write_durable ? RWF_DSYNC : 0);
    }
    return result < 0 ? -errno : static_cast<std::int32_t>(result);
  }

  detail::file_state<System> state_;
  unsigned threads_;
  bool reads_at_depth_1_;  // a queue of depth 1 reads within submit()
  bool pool_wanted_ = false;
  media::maker_process locked_by_;
  std::string no_ring_;
  std::mutex pool_starts_;
  std::unique_ptr<detail::thread_pool> pool_;
};

// A queue of a file: a ring of its own, or a share of the device's threads.
template <class System>
class basic_file<System>::queue {
 public:
  // At most `depth` requests in flight, 1 to 32768. `device` outlives it. Throws pmlab::error: the kernel gives no
  // ring.
  queue(basic_file& device, unsigned depth)
      : device_(device),
        state_(device.state_),
        reads_itself_(depth == 1 && device.reads_at_depth_1_),
        ready_(depth),
        under_way_(depth) {
    free_.reserve(depth);
    for (std::size_t slot = depth; slot > 0; --slot) free_.push_back(slot - 1);
    if (device.pool_wanted_)
      pool_ = &device.pool();
    else
      ring_.emplace(state_.file.get(), depth);
  }
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  // A child process that was forked since waits for nothing: the completions are its parent's.
  ~queue() {
    if (!device_.locked_by_.is_this_one()) return;
    while (free_.size() < under_way_.size()) collect(true);
  }

  [[nodiscard]] std::size_t submit(std::span<const request> requests) {
    const std::size_t taken = std::min(requests.size(), std::size_t{depth()} - in_flight());
    for (const request& r : requests.first(taken)) check_request(state_.shape, r, state_.name);
    for (const request& r : requests.first(taken)) begin(r);
    if (ring_) ring_->submit();
    return taken;
  }

  [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t at_least) {
    const std::size_t wanted = std::min(at_least, in_flight());
    collect(false);
    while (ready_.size() < wanted) collect(true);
    return ready_.pop(completions);
  }

  [[nodiscard]] std::size_t in_flight() const noexcept { return under_way_.size() - free_.size() + ready_.size(); }
  [[nodiscard]] unsigned depth() const noexcept { return ready_.capacity(); }

 private:
  void begin(const request& r) {
    // A file's extents must stay written (B6): its blocks keep their content, as a discard may have it (B4).
    const bool nothing_to_do = r.what == operation::discard && !state_.facts.block_device;
    if (state_.failed.failed()) return ready_.push({r.tag, device_failed});
    if (!has_blocks_of(state_.shape, r)) return ready_.push({r.tag, beyond_end});
    if (state_.read_only && r.what != operation::read && r.what != operation::flush)
      return ready_.push({r.tag, std::errc::read_only_file_system});
    if (nothing_to_do) return ready_.push({r.tag, std::errc{}});
    if (reads_itself_ && r.what == operation::read) {
      detail::transfer read(r, state_.shape.block_bytes);
      return ready_.push({r.tag, device_.perform(read)});
    }
    const std::size_t slot = free_.back();
    free_.pop_back();
    under_way_[slot] = detail::transfer(r, state_.shape.block_bytes);
    if (ring_)
      add(slot);
    else
      pool_->run([this, slot] { finished_.add({slot, device_.perform(under_way_[slot])}); });
  }

  void add(std::size_t slot) {
    const detail::transfer& t = under_way_[slot];
    ring_->add(t, moves_data(t.what.what) ? state_.next_bytes(t) : 0, slot);
  }

  void complete(std::size_t slot, std::errc e) {
    ready_.push({under_way_[slot].what.tag, e});
    free_.push_back(slot);
  }

  // Moves the requests that have ended to ready_. If `waits`, there is a result of the kernel at least; its request may
  // need another call.
  void collect(bool waits) {
    if (!ring_) {
      results_.clear();
      finished_.take(results_, waits);
      for (const auto& [slot, e] : results_) complete(slot, e);
      return;
    }
    if (waits) ring_->wait();
    bool more = false;
    ring_->harvest([&](std::size_t slot, std::int32_t result) {
      if (const std::optional<std::errc> end = state_.settle(under_way_[slot], result)) return complete(slot, *end);
      add(slot);
      more = true;
    });
    if (more) ring_->submit();
  }

  basic_file& device_;
  detail::file_state<System>& state_;
  // A queue of depth 1 has no other request that a read could overlap with: one system call costs less than a ring's.
  bool reads_itself_;
  completion_ring ready_;
  std::vector<detail::transfer> under_way_;  // by slot
  std::vector<std::size_t> free_;            // slots
  std::optional<detail::ring> ring_;
  detail::thread_pool* pool_ = nullptr;
  detail::finished_slots finished_;
  std::vector<detail::finished_slots::one> results_;
};

// The file or block device itself, without a test's failures.
using file = basic_file<>;

static_assert(device<file>);

}  // namespace pmlab::blocks
