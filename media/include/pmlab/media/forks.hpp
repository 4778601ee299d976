// Forks: a child process has a copy of memory that it must not take for its own.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pmlab::media {

// Keeps these addresses from all later mappings. `how`: MAP_FIXED, in place of the mappings there; or
// MAP_FIXED_NOREPLACE, if there is none.
inline void block_addresses(void* begin, std::size_t bytes, int how) noexcept {
  static_cast<void>(::mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0));
}

// The forks that led to this process.
class forks {
 public:
  // A range that children shall not have (MADV_DONTFORK), and whose addresses stay blocked in them while this lives.
  class blocked_range {
   public:
    // Throws pmlab::error: no memory.
    blocked_range(void* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {
      forks& all = the();
      const std::scoped_lock lock(all.mutex_);
      next_ = all.blocked_;
      all.blocked_ = this;
    }
    blocked_range(const blocked_range&) = delete;
    blocked_range& operator=(const blocked_range&) = delete;
    ~blocked_range() {
      forks& all = the();
      const std::scoped_lock lock(all.mutex_);
      blocked_range** place = &all.blocked_;
      while (*place != this) place = &(*place)->next_;
      *place = next_;
    }

   private:
    friend forks;
    void* begin_;
    std::size_t bytes_;
    blocked_range* next_;
  };

  // Another number in each child. Not the process number alone: a child in another PID namespace may have that of its
  // parent. Throws pmlab::error: no memory.
  [[nodiscard]] static std::uint64_t count() { return the().count_; }

 private:
  forks() {
    if (::pthread_atfork([] { the().mutex_.lock(); }, [] { the().mutex_.unlock(); }, [] { the().begin_child(); }) != 0)
      throw error("cannot watch for child processes: no memory", "close other programs");
  }

  [[nodiscard]] static forks& the() {
    static forks one;
    return one;
  }

  // The kernel may give a hole to the next mapping.
  void begin_child() noexcept {
    ++count_;
    for (const blocked_range* range = blocked_; range != nullptr; range = range->next_)
      block_addresses(range->begin_, range->bytes_, MAP_FIXED_NOREPLACE);
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::uint64_t count_ = 0;
  blocked_range* blocked_ = nullptr;
};

// The process that makes it. Throws pmlab::error: see forks::count.
class maker_process {
 public:
  // A child by clone(2) has another number, and by fork another count.
  [[nodiscard]] bool is_this_one() const noexcept { return ::getpid() == id_ && forks::count() == forks_; }

 private:
  pid_t id_ = ::getpid();
  std::uint64_t forks_ = forks::count();
};

}  // namespace pmlab::media
