// The write buffer: a ring of lines in the device's memory. A put is acknowledged when its record is here and the index
// leads to it.
//
// Only the records are in the medium. The bookkeeping is in DRAM: opening builds it again from the index.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// Thread safety: any thread, except `adopt` and `begin`.
class write_buffer {
 public:
  // `first`: the ring in the medium.
  write_buffer(std::byte* first, std::uint32_t lines) : first_(first), lengths_(lines), states_(lines, state::none) {}

  [[nodiscard]] std::uint32_t lines() const noexcept { return static_cast<std::uint32_t>(lengths_.size()); }
  [[nodiscard]] std::byte* at(std::uint64_t line) const noexcept { return first_ + line * media::cache_line_bytes; }

  // Lines for one record or two, each in one piece: all or none. The caller commits or releases each.
  [[nodiscard]] bool reserve(std::span<const std::uint32_t> lengths, std::span<std::uint32_t> lines) {
    const std::scoped_lock lock(mutex_);
    std::uint64_t end = head_;
    for (const std::uint32_t length : lengths) end = start_of(end, length) + length;
    if (end - tail_ > this->lines()) return false;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (const std::uint64_t start = start_of(head_, lengths[i]); start != head_)
        append(static_cast<std::uint32_t>(start - head_), state::dead);
      lines[i] = static_cast<std::uint32_t>(head_ % this->lines());
      append(lengths[i], state::reserved);
    }
    return true;
  }

  // The index leads to the record.
  void commit(std::uint32_t line) {
    const std::scoped_lock lock(mutex_);
    states_[line] = state::live;
  }
  // The index does not lead to it, durably. Its lines are used again, if it is not being copied.
  void release(std::uint32_t line) {
    const std::scoped_lock lock(mutex_);
    states_[line] = states_[line] == state::copied ? state::released : state::dead;
    trim();
  }

  // The oldest records, up to `most_lines` of them in sum (at least one record): their lines stay until `end_copy`.
  // Nothing: the ring has no record, or the oldest is not committed yet.
  [[nodiscard]] std::vector<std::uint32_t> begin_copy(std::uint64_t most_lines) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint32_t> records;
    std::uint64_t sum = 0;
    for (std::uint64_t at = tail_; at < head_;) {
      const auto line = static_cast<std::uint32_t>(at % lines());
      if (states_[line] == state::reserved) break;
      if (states_[line] == state::live) {
        if (!records.empty() && sum + lengths_[line] > most_lines) break;
        sum += lengths_[line];
        states_[line] = state::copied;
        records.push_back(line);
      }
      at += lengths_[line];
    }
    return records;
  }
  // `moved`: no word of the index leads to it any more, durably.
  void end_copy(std::uint32_t line, bool moved) {
    const std::scoped_lock lock(mutex_);
    states_[line] = moved || states_[line] == state::released ? state::dead : state::live;
    trim();
  }

  // ---- opening

  // A record that the index leads to. In ascending order. False: it overlaps the one before, or the end.
  [[nodiscard]] bool adopt(std::uint64_t line, std::uint32_t length) {
    if (line < head_ || line + length > lines()) return false;
    if (line > head_) append(static_cast<std::uint32_t>(line - head_), state::dead);
    append(length, state::live);
    return true;
  }
  // After the last one.
  void begin() {
    const std::scoped_lock lock(mutex_);
    trim();
  }

 private:
  enum class state : std::uint8_t { none, reserved, live, copied, released, dead };

  // A record does not go round the end of the ring.
  [[nodiscard]] std::uint64_t start_of(std::uint64_t at, std::uint32_t length) const noexcept {
    const std::uint64_t line = at % lines();
    return line + length > lines() ? at + lines() - line : at;
  }
  void append(std::uint32_t length, state s) {
    const std::uint64_t line = head_ % lines();
    lengths_[line] = length;
    states_[line] = s;
    head_ += length;
  }
  void trim() {
    while (tail_ < head_ && states_[tail_ % lines()] == state::dead) tail_ += lengths_[tail_ % lines()];
  }

  std::byte* first_;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> lengths_;  // of the record that begins at a line
  std::vector<state> states_;           // the same
  std::uint64_t head_ = 0;              // lines since the beginning; the ring has those from tail_ to head_
  std::uint64_t tail_ = 0;
};

}  // namespace pmlab::stores::detail::kv_ssd
