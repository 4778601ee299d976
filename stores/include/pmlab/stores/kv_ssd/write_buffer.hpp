// The write buffer: a ring of lines in the device's memory. A put is acknowledged when its record is here and the index
// leads to it.
//
// Only the records are in the medium. The bookkeeping is in DRAM: opening builds it again from the index.
//
// Lines are promised first, when no lock is held, as there may be none. A record takes its lines under the lock of its
// manager: so the records of a slot of the index lie in the ring in the order of their versions.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>

#include <algorithm>
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
  write_buffer(std::byte* first, std::uint32_t lines) : first_(first), records_(lines) {}

  [[nodiscard]] std::uint32_t lines() const noexcept { return static_cast<std::uint32_t>(records_.size()); }
  [[nodiscard]] std::byte* at(std::uint64_t line) const noexcept { return first_ + line * media::cache_line_bytes; }

  // Promises lines for one record or two, each in one piece: all or none. Each is taken, or released by `give_back`.
  [[nodiscard]] bool promise(std::span<const std::uint32_t> lengths) {
    const std::scoped_lock lock(mutex_);
    std::uint64_t more = 0;
    for (const std::uint32_t length : lengths) {
      more += length;
      longest_ = std::max(longest_, length);
    }
    const std::uint64_t end = head_ + promised_ + more;
    // A record that does not fit before the end of the ring leaves lines there.
    const std::uint64_t lost = head_ / lines() == (end - 1) / lines() ? 0 : longest_ - 1;
    if (end + lost - reusable_to() > lines()) return false;
    promised_ += more;
    return true;
  }
  // Lines that may be promised now; a record that does not fit before the end of the ring leaves some there.
  [[nodiscard]] std::uint64_t promisable() const {
    const std::scoped_lock lock(mutex_);
    return lines() - (head_ + promised_ - reusable_to());
  }
  void give_back(std::uint32_t length) {
    const std::scoped_lock lock(mutex_);
    promised_ -= length;
  }
  // `length` lines of `promised` ones, counted from the device's first line. The caller commits or releases them.
  [[nodiscard]] std::uint64_t take(std::uint32_t promised, std::uint32_t length) {
    const std::scoped_lock lock(mutex_);
    promised_ -= promised;
    if (const std::uint64_t start = start_of(head_, length); start != head_)
      append(static_cast<std::uint32_t>(start - head_), state::dead);
    const std::uint64_t first = head_;
    append(length, state::reserved);
    return first;
  }
  [[nodiscard]] std::uint32_t line_of(std::uint64_t position) const noexcept {
    return static_cast<std::uint32_t>(position % lines());
  }

  // The position behind the newest record.
  [[nodiscard]] std::uint64_t end() const {
    const std::scoped_lock lock(mutex_);
    return head_;
  }
  // Lines that are free, and not used again before `keep_tail`, as replay would find records in them.
  [[nodiscard]] std::uint64_t unkept() const {
    const std::scoped_lock lock(mutex_);
    return keeps_tail_ ? tail_ - kept_tail_ : 0;
  }
  // What operations have of it, and have not released. REQUIRES: none runs.
  struct left_over {
    std::uint64_t promised = 0;    // lines
    std::uint64_t unfinished = 0;  // records that are being made or copied
    std::uint64_t records = 0;     // that the index leads to
    std::uint64_t kept_tail = 0;   // as the medium has it; 0: none is kept
  };
  [[nodiscard]] left_over at_rest() const {
    const std::scoped_lock lock(mutex_);
    left_over found{promised_, 0, 0, keeps_tail_ ? kept_tail_ : 0};
    for (std::uint64_t at = tail_; at < head_; at += records_[at % lines()].length) {
      const state is = records_[at % lines()].is;
      if (is == state::live)
        ++found.records;
      else if (is != state::dead)
        ++found.unfinished;
    }
    return found;
  }
  // Calls store(tail), which keeps it in the medium, durably; then the lines before it are used again.
  template <class Store>
  void keep_tail(Store&& store) {
    const std::scoped_lock one_at_a_time(keeping_);
    std::uint64_t tail = 0;
    {
      const std::scoped_lock lock(mutex_);
      tail = tail_;
    }
    store(tail);
    const std::scoped_lock lock(mutex_);
    kept_tail_ = tail;
  }

  // The index leads to the record, in the chain of `base`.
  void commit(std::uint32_t line, std::uint64_t base) {
    const std::scoped_lock lock(mutex_);
    records_[line].base = base;
    records_[line].is = state::live;
  }
  // What is known of a record that is being copied, whatever has become of its bytes.
  struct buffered {
    std::uint64_t base = 0;
    std::uint32_t length = 0;  // lines
  };
  [[nodiscard]] buffered at_line(std::uint32_t line) const {
    const std::scoped_lock lock(mutex_);
    return {records_[line].base, records_[line].length};
  }
  // The index does not lead to it, durably. Its lines are used again, if it is not being copied.
  void release(std::uint32_t line) {
    const std::scoped_lock lock(mutex_);
    records_[line].is = records_[line].is == state::copied ? state::released : state::dead;
    trim();
  }

  // The same of one that is being copied, and may have been released.
  void release_copied(std::uint32_t line) {
    const std::scoped_lock lock(mutex_);
    if (records_[line].is == state::copied) records_[line].is = state::released;
  }

  // The oldest records, up to `most_lines` of them in sum (at least one record): their lines stay until `end_copy`.
  // Empty: the ring has no record, or the oldest is not committed yet.
  [[nodiscard]] std::vector<std::uint32_t> begin_copy(std::uint64_t most_lines) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint32_t> records;
    std::uint64_t sum = 0;
    for (std::uint64_t at = tail_; at < head_;) {
      const auto line = static_cast<std::uint32_t>(at % lines());
      if (records_[line].is == state::reserved) break;
      if (records_[line].is == state::live) {
        if (!records.empty() && sum + records_[line].length > most_lines) break;
        sum += records_[line].length;
        records.push_back(line);
      }
      at += records_[line].length;
    }
    for (const std::uint32_t line : records) records_[line].is = state::copied;
    return records;
  }
  // `moved`: no word of the index leads to it any more, durably.
  void end_copy(std::uint32_t line, bool moved) {
    const std::scoped_lock lock(mutex_);
    records_[line].is = moved || records_[line].is == state::released ? state::dead : state::live;
    trim();
  }

  // ---- opening

  // The ring begins with line `first`, a multiple of its length. `keeps_tail`: as replay needs it.
  void start(std::uint64_t first, bool keeps_tail) {
    head_ = tail_ = kept_tail_ = first;
    keeps_tail_ = keeps_tail;
  }
  // A record that the index leads to. In ascending order. False: it overlaps the one before, or the end.
  [[nodiscard]] bool adopt(std::uint64_t line, std::uint32_t length, std::uint64_t base) {
    const std::uint64_t done = head_ - kept_tail_;
    if (line < done || line + length > lines()) return false;
    if (line > done) append(static_cast<std::uint32_t>(line - done), state::dead);
    append(length, state::live);
    records_[line].base = base;
    return true;
  }
  // After the last one.
  void begin() {
    const std::scoped_lock lock(mutex_);
    trim();
  }

 private:
  enum class state : std::uint8_t { none, reserved, live, copied, released, dead };
  // The record that begins at a line.
  struct known_record {
    std::uint64_t base = 0;    // the first slot of its chain
    std::uint32_t length = 0;  // lines
    state is = state::none;
  };

  // A record does not go round the end of the ring.
  [[nodiscard]] std::uint64_t start_of(std::uint64_t at, std::uint32_t length) const noexcept {
    const std::uint64_t line = at % lines();
    return line + length > lines() ? at + lines() - line : at;
  }
  [[nodiscard]] std::uint64_t reusable_to() const noexcept { return keeps_tail_ ? kept_tail_ : tail_; }
  void append(std::uint32_t length, state s) {
    const std::uint64_t line = head_ % lines();
    records_[line].length = length;
    records_[line].is = s;
    head_ += length;
  }
  void trim() {
    while (tail_ < head_ && records_[tail_ % lines()].is == state::dead) tail_ += records_[tail_ % lines()].length;
  }

  std::byte* first_;
  mutable std::mutex mutex_;
  std::mutex keeping_;                 // before mutex_
  std::vector<known_record> records_;  // by line
  std::uint64_t head_ = 0;             // lines since the beginning; the ring has those from tail_ to head_
  std::uint64_t tail_ = 0;
  std::uint64_t promised_ = 0;
  std::uint32_t longest_ = 1;  // longest of the records that lines were promised to
  bool keeps_tail_ = false;
  std::uint64_t kept_tail_ = 0;  // as the medium has it
};

// Lines that a record may take, once.
struct promised_lines {
  std::uint32_t count = 0;
  bool are_taken = false;

  // REQUIRES: at most as many as were promised.
  [[nodiscard]] std::uint64_t take(write_buffer& of, std::uint32_t length) {
    are_taken = true;
    return of.take(count, length);
  }
};

}  // namespace pmlab::stores::detail::kv_ssd
