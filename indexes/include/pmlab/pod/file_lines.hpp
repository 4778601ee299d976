// Lines of a file that each host maps.
#pragma once

#include <pmlab/media/cache_flush.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/pod/host_file.hpp>
#include <pmlab/pod/line_memory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace pmlab::pod {

// The memory is the file. Its first `coherent_bytes` are coherent between hosts, by hardware, and so are locked
// instructions on them; between processes of one machine all of it is. Behind them a refresh is clflushopt and mfence,
// which needs a CPU that has clflushopt.
class file_lines {
 public:
  static constexpr bool has_stale_copies = false;  // a file is made for these lines, or for stale_lines
  // Bytes of the file behind a memory of this shape.
  [[nodiscard]] static constexpr std::uint64_t bytes_beyond(const file_shape& /*shape*/) noexcept { return 0; }

  // Throws pmlab::error: see host_file and shared_mapping.
  file_lines(const std::string& path, sharing how)
      : file_(path, how, has_stale_copies, bytes_beyond), lines_(file_, host_file::head_bytes, file_.shape().bytes) {}

  [[nodiscard]] std::string name() const { return "shared_file:" + file_.path(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.shape().bytes; }
  [[nodiscard]] std::uint64_t coherent_bytes() const noexcept { return file_.shape().coherent_bytes; }
  [[nodiscard]] char* at(std::uint64_t offset) const noexcept { return lines_.begin() + offset; }
  [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const char*>(address) - lines_.begin());
  }
  [[nodiscard]] bool is_durable() const noexcept { return lines_.is_durable(); }

  [[nodiscard]] bool is_alone() const noexcept { return file_.is_alone(); }
  [[nodiscard]] bool take_host(unsigned host) noexcept { return file_.take_host(host); }
  void release_host(unsigned host) noexcept { file_.release_host(host); }
  [[nodiscard]] bool has_died(unsigned host) const noexcept { return !file_.is_taken(host); }

  void flush(const void* address, std::size_t bytes) noexcept { media::flush_lines(write_back_, address, bytes); }
  void fence() noexcept { media::store_fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    std::memcpy(target, source, bytes);
    flush(target, bytes);
  }
  void refresh(const void* address, std::size_t bytes) noexcept {
    if (offset_of(address) + bytes <= coherent_bytes()) return;
    media::flush_lines(media::flush_instruction::clflushopt, address, bytes);
    // It orders the loads behind it, which an sfence does not.
    asm volatile("mfence" ::: "memory");
  }
  bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                               std::uint64_t desired) noexcept {
    return word.compare_exchange_strong(expected, desired, std::memory_order_acq_rel, std::memory_order_acquire);
  }
  void device_store(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    // Not before the stores in front of it: non-temporal ones have no order.
    media::store_fence();
    asm volatile("movnti %1, %0" : "=m"(word) : "r"(value) : "memory");
  }

 private:
  host_file file_;
  shared_mapping lines_;
  media::flush_instruction write_back_ = media::best_flush_instruction();
};
static_assert(line_memory<file_lines>);

}  // namespace pmlab::pod
