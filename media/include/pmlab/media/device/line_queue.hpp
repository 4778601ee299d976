// Lines that wait for a DIMM to accept them.
#pragma once

#include <pmlab/base/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace pmlab::media {

// Lines that are on their way from cores to the DIMM. As many leave as have waited their time, but which of them is
// chance, among the older ones: mesh, controller and link keep no order between lines. All operations O(1). Not
// thread-safe.
class line_queue {
 public:
  [[nodiscard]] bool full() const noexcept { return size_ == capacity; }

  // `due`: when the DIMM can accept a line. REQUIRES: not full.
  void add(std::uint64_t line, std::uint64_t due) noexcept {
    lines_[(first_ + size_) % capacity] = line;
    dues_[(first_ + size_) % capacity] = due;
    ++size_;
  }

  // True if a line can be taken at `now`.
  [[nodiscard]] bool due(std::uint64_t now) const noexcept { return size_ != 0 && dues_[first_] <= now; }

  // When the DIMM accepts the next one. REQUIRES: not empty.
  [[nodiscard]] std::uint64_t next_due() const noexcept { return dues_[first_]; }

  // Removes one of them. REQUIRES: not empty.
  [[nodiscard]] std::uint64_t take_any() noexcept {
    std::uint64_t& chosen = lines_[(first_ + chance_.next() % (size_ * older_of_32 / 32 + 1)) % capacity];
    const std::uint64_t line = chosen;
    chosen = lines_[first_];
    --size_;
    first_ = (first_ + 1) % capacity;
    return line;
  }

 private:
  static constexpr std::size_t capacity = 4096;
  // The share of the waiting lines that counts as older: fitted to published bandwidths of many threads.
  static constexpr std::size_t older_of_32 = 13;

  // Rings from first_ on: the lines roughly in the order of their arrival, the times exactly.
  std::array<std::uint64_t, capacity> lines_{};
  std::array<std::uint64_t, capacity> dues_{};
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  xorshift64 chance_;
};

}  // namespace pmlab::media
