// The requests of a queue through io_uring.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/file/transfer.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <liburing.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sched.h>

namespace pmlab::blocks::detail {

// One ring of one thread.
//
// The file is not registered with it. The kernel ends a ring some time after its owner has, and would keep the file,
// and with it the lock, that long. So the lock ends with the last request, also after `kill -9`.
class ring {
 public:
  // `file` outlives it. Throws pmlab::error: the kernel gives no ring.
  ring(int file, unsigned depth) : file_(file) {
    // Completions are worked on when this thread enters the kernel, without an interrupt of its work. Kernels before
    // 5.19 know no such flag.
    int failure = io_uring_queue_init(depth, &ring_, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
    if (failure == -EINVAL) failure = io_uring_queue_init(depth, &ring_, 0);
    if (failure != 0) refuse("the kernel gives no io_uring of depth " + std::to_string(depth), -failure);
  }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;
  ~ring() { io_uring_queue_exit(&ring_); }

  // Why io_uring cannot be used by this process; empty: it can.
  [[nodiscard]] static std::string refusal() {
    io_uring tried{};
    if (const int failure = io_uring_queue_init(2, &tried, 0); failure != 0)
      return std::string("io_uring is not allowed here (") + std::strerror(-failure) + ")";
    io_uring_probe* const probe = io_uring_get_probe_ring(&tried);
    bool all = probe != nullptr;
    for (const int needed : {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC, IORING_OP_FALLOCATE})
      all = all && io_uring_opcode_supported(probe, needed) != 0;
    io_uring_free_probe(probe);
    io_uring_queue_exit(&tried);
    return all ? std::string() : "this kernel's io_uring lacks reads, writes or flushes";
  }

  // The next system call of a transfer. The kernel sees it at the next submit. Its result has `slot`. There
  // is room for `depth` of them.
  void add(const transfer& t, std::uint32_t bytes, std::size_t slot) noexcept {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    switch (t.what.what) {
      case operation::read: io_uring_prep_read(entry, file_, t.place(), bytes, t.offset + t.done); break;
      case operation::write: io_uring_prep_write(entry, file_, t.place(), bytes, t.offset + t.done); break;
      case operation::write_durable:
        io_uring_prep_write(entry, file_, t.place(), bytes, t.offset + t.done);
        entry->rw_flags = RWF_DSYNC;
        break;
      case operation::flush: io_uring_prep_fsync(entry, file_, IORING_FSYNC_DATASYNC); break;
      case operation::discard:
        io_uring_prep_fallocate(entry, file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(t.offset),
                                static_cast<off_t>(t.bytes));
        break;
    }
    entry->user_data = slot;
  }

  // Gives the kernel all that was added. Throws pmlab::error: it takes nothing.
  void submit() {
    while (io_uring_sq_ready(&ring_) != 0) {
      const int taken = io_uring_submit(&ring_);
      if (taken >= 0 || taken == -EINTR) continue;
      // No memory for more at the moment: requests under way give theirs back.
      if (taken != -EAGAIN && taken != -EBUSY) refuse("the kernel takes no requests", -taken);
      ::sched_yield();
    }
  }

  // Waits for a result.
  void wait() {
    io_uring_cqe* first = nullptr;
    for (;;) {
      const int failure = io_uring_wait_cqe(&ring_, &first);
      if (failure == 0) return;
      if (failure != -EINTR && failure != -EAGAIN) refuse("the kernel returns no requests", -failure);
    }
  }

  // Calls `with(slot, result)` for each result that is there; returns how many were.
  template <class With>
  std::size_t harvest(With&& with) {
    std::size_t count = 0;
    io_uring_cqe* next = nullptr;
    while (io_uring_peek_cqe(&ring_, &next) == 0) {
      const auto slot = static_cast<std::size_t>(next->user_data);
      const std::int32_t result = next->res;
      io_uring_cqe_seen(&ring_, next);
      with(slot, result);
      ++count;
    }
    return count;
  }

 private:
  [[noreturn]] static void refuse(const std::string& problem, int number) {
    throw error(problem + " (" + std::strerror(number) + ")", "choose a smaller depth, or file_io::threads");
  }

  int file_;
  io_uring ring_{};
};

}  // namespace pmlab::blocks::detail
