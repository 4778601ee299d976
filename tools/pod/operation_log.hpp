// What the processes of a round have done, in memory that they share with the program that judges it.
#pragma once

#include "checker/verify/operations.hpp"
#include "tools/pod/options.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <sys/mman.h>

namespace pmlab::pods {

// Nanoseconds of the machine's clock, which is the same for all processes.
[[nodiscard]] inline std::uint64_t clock_now() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// An operation of a process.
struct operation_record {
  std::uint64_t called = 0;                 // when
  std::atomic<std::uint64_t> returned = 0;  // when; 0: it has not
  verify::step what;
  verify::answer got;
};

// A process. It alone stores to it.
struct process_log {
  std::atomic<std::uint64_t> begun = 0;  // operations
  std::atomic<bool> is_ready = false;    // it has joined
  std::atomic<bool> has_ended = false;   // it has left in order
  std::array<char, 512> failure{};       // why it gave up; "": it did not
  std::atomic<std::uint64_t> happened = 0;

  void fail(std::string_view why) noexcept {
    std::copy_n(why.data(), std::min(why.size(), failure.size() - 1), failure.data());
  }
};

// Shared with the children that are made by fork. Thread safety: that of its parts.
class operation_log {
 public:
  // Throws pmlab::error: no memory.
  operation_log(std::size_t processes, std::uint64_t operations)
      : processes_(processes), operations_(operations), memory_(mapped(bytes())) {
    for (std::size_t i = 0; i < processes_; ++i) new (&process(i)) process_log;
  }
  operation_log(const operation_log&) = delete;
  operation_log& operator=(const operation_log&) = delete;
  ~operation_log() { ::munmap(memory_, bytes()); }

  [[nodiscard]] process_log& process(std::size_t i) const noexcept {
    return reinterpret_cast<process_log*>(memory_ + begin_of_logs)[i];
  }
  // A process has them; as many as it has begun are valid.
  [[nodiscard]] std::span<operation_record> records(std::size_t i) const noexcept {
    auto* const first = reinterpret_cast<operation_record*>(memory_ + records_at());
    return {first + i * operations_, static_cast<std::size_t>(operations_)};
  }
  // All begin when it is true.
  [[nodiscard]] std::atomic<bool>& may_begin() const noexcept { return *reinterpret_cast<std::atomic<bool>*>(memory_); }
  [[nodiscard]] std::size_t processes() const noexcept { return processes_; }

 private:
  static constexpr std::size_t begin_of_logs = 64;
  [[nodiscard]] std::size_t records_at() const noexcept { return begin_of_logs + processes_ * sizeof(process_log); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return records_at() + processes_ * static_cast<std::size_t>(operations_) * sizeof(operation_record);
  }
  // Zero: no operation has begun.
  [[nodiscard]] static char* mapped(std::size_t bytes) {
    void* const area =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
      throw error(std::string("no memory for the answers of the hosts: ") + std::strerror(errno),
                  "give fewer --operations");
    return static_cast<char*>(area);
  }

  std::size_t processes_;
  std::uint64_t operations_;
  char* memory_;
};

}  // namespace pmlab::pods
