// What the handles of the API lead to, and how they are used and closed.
//
// A handle that was closed keeps its memory, so that its use is an error and not a crash.
//
// Each call enters the handle that it uses, and an asynchronous request has entered it from its acceptance to the end
// of its callback. Closing refuses further entries first, and then waits for those that are inside: so each request
// that was accepted is performed, and has called back when closing returns.
#pragma once

#include "tools/kvssd/device.hpp"
#include <pmlab/kvssd/kvs_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <pthread.h>

namespace pmlab::kvssd {

// Forks that lie between the first process and this one: a handle belongs to the process that opened it. A child has
// none of its threads and locks, and shares its files.
class forks {
 public:
  [[nodiscard]] static std::uint64_t count() noexcept {
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++count_; });
    static_cast<void>(registered);
    return count_;
  }

 private:
  static inline std::uint64_t count_ = 0;  // changed in a child alone, while it has one thread
};

// Counts the calls that use a handle.
class entrance {
 public:
  // False: the handle is closed, or of another process.
  [[nodiscard]] bool enter() noexcept {
    // A closing thread stores and then counts, this one counts and then loads: one of them sees the other.
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (is_open()) return true;
    leave();
    return false;
  }
  void leave() noexcept {
    if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) inside_.notify_all();
  }
  [[nodiscard]] bool is_open() const noexcept {
    return is_open_.load(std::memory_order_seq_cst) && forks_ == forks::count();
  }
  // Refuses further entries. False: it was closed before, or belongs to another process.
  [[nodiscard]] bool close() noexcept {
    return forks_ == forks::count() && is_open_.exchange(false, std::memory_order_seq_cst);
  }
  // REQUIRES: it is closed.
  void wait_until_empty() const noexcept {
    for (std::uint32_t n = inside_.load(std::memory_order_seq_cst); n != 0; n = inside_.load(std::memory_order_seq_cst))
      inside_.wait(n, std::memory_order_seq_cst);
  }

 private:
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<bool> is_open_{true};
  std::uint64_t forks_ = forks::count();
};

}  // namespace pmlab::kvssd

struct _kvs_key_space_handle {
  pmlab::kvssd::entrance door{};
  _kvs_device_handle* on = nullptr;
  pmlab::kvssd::key_space* of = nullptr;
  std::unique_ptr<_kvs_key_space_handle> next_closed{};
};

struct _kvs_device_handle {
  pmlab::kvssd::entrance door{};
  std::unique_ptr<pmlab::kvssd::device> of{};
  std::mutex mutex{};  // guards the key spaces' handles
  std::map<pmlab::kvssd::key_space*, std::unique_ptr<_kvs_key_space_handle>> spaces{};
  std::unique_ptr<_kvs_key_space_handle> closed_spaces{};
  _kvs_device_handle* next_closed = nullptr;
};

namespace pmlab::kvssd {

// A call inside a handle; see `entrance`. With nullptr there is no call.
template <class Handle>
class entry {
 public:
  explicit entry(Handle* handle) noexcept : handle_(handle != nullptr && handle->door.enter() ? handle : nullptr) {}
  entry(entry&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  entry& operator=(entry&&) = delete;
  ~entry() {
    if (handle_ != nullptr) handle_->door.leave();
  }
  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }
  // The new owner of the handle leaves it.
  void release() noexcept { handle_ = nullptr; }

 private:
  Handle* handle_;
};

}  // namespace pmlab::kvssd
