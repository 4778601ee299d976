// Which parts of a simulated memory are allocated.
//
// Blocks lie at least one cache line apart: side by side, the flush of one would save the unflushed last line of its
// neighbour, and hide a missing flush. Blocks of small alignment may begin in the middle of a line, as they do in a
// pool.
#pragma once

#include <pmlab/media/lines.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::simulator {

class block_table {
 public:
  using extents = std::map<std::size_t, std::size_t>;  // offset -> bytes

  // Offsets below `first` belong to the medium itself.
  explicit block_table(std::size_t first = 0, std::size_t end = 0) : first_(first), end_(end), top_(first) {}

  // Blocks of at most this alignment begin so many bytes behind the beginning of a line (a multiple of the alignment).
  static constexpr std::size_t small_alignment = 16;
  void place_small_blocks_at(std::size_t bytes_into_line) noexcept { bytes_into_line_ = bytes_into_line; }

  // Usual blocks begin at `end` from now on; below it lie those of `reserve_low`, whose places are used once.
  void divide_at(std::size_t end) noexcept {
    low_end_ = end;
    low_top_ = first_;
    top_ = std::max(top_, end);
  }
  // As `reserve`, below the division.
  std::size_t reserve_low(std::size_t bytes, std::size_t alignment) {
    alignment = std::max(alignment, media::cache_line_bytes);
    const std::size_t offset = (low_top_ + alignment - 1) / alignment * alignment;
    if (offset + bytes > low_end_) return 0;
    low_top_ = media::whole_lines(offset + bytes + media::cache_line_bytes);
    reserved_.emplace(offset, reservation{bytes, alignment});
    return offset;
  }

  // A place for `bytes`, not handed out again until cancelled or released. 0: no room.
  std::size_t reserve(std::size_t bytes, std::size_t alignment) {
    alignment = alignment <= small_alignment ? small_alignment : std::max(alignment, media::cache_line_bytes);
    auto& reusable = free_[{bytes, alignment}];
    std::size_t offset = 0;
    if (!reusable.empty()) {
      offset = reusable.back();
      reusable.pop_back();
    } else {
      const std::size_t whole = std::max(alignment, media::cache_line_bytes);
      offset = (top_ + whole - 1) / whole * whole + (alignment == small_alignment ? bytes_into_line_ : 0);
      if (offset + bytes + media::cache_line_bytes > end_) return 0;
      top_ = media::whole_lines(offset + bytes + media::cache_line_bytes);
    }
    reserved_.emplace(offset, reservation{bytes, alignment});
    return offset;
  }
  [[nodiscard]] std::size_t reserved_bytes(std::size_t offset) const {
    const auto found = reserved_.find(offset);
    return found == reserved_.end() ? 0 : found->second.bytes;
  }
  void cancel(std::size_t offset) {
    const auto found = reserved_.find(offset);
    if (found == reserved_.end()) return;
    if (offset >= low_end_) free_[{found->second.bytes, found->second.alignment}].push_back(offset);
    reserved_.erase(found);
  }

  void keep(std::size_t offset) {
    const auto found = reserved_.find(offset);
    if (found == reserved_.end()) return;
    live_.emplace(offset, found->second.bytes);
    alignments_.emplace(offset, found->second.alignment);
    live_bytes_ += found->second.bytes;
    reserved_.erase(found);
    snapshot_.reset();
  }

  // "" or the error.
  std::string release(std::size_t offset, std::size_t bytes) {
    const auto found = live_.find(offset);
    if (found == live_.end()) return "release of a block that is not allocated (offset " + std::to_string(offset) + ")";
    if (found->second != bytes)
      return "release of " + std::to_string(bytes) + " bytes of a block of " + std::to_string(found->second);
    const auto aligned = alignments_.find(offset);
    if (offset >= low_end_) free_[{bytes, aligned->second}].push_back(offset);
    alignments_.erase(aligned);
    live_.erase(found);
    live_bytes_ -= bytes;
    snapshot_.reset();
    return {};
  }

  [[nodiscard]] std::size_t live_bytes() const noexcept { return live_bytes_; }
  [[nodiscard]] std::size_t top() const noexcept { return top_; }
  [[nodiscard]] std::size_t end() const noexcept { return end_; }
  [[nodiscard]] std::size_t first() const noexcept { return first_; }

  // The current allocation; shared, and copied again only after a change.
  [[nodiscard]] std::shared_ptr<const extents> snapshot() const {
    if (snapshot_ == nullptr) snapshot_ = std::make_shared<const extents>(live_);
    return snapshot_;
  }

  // Restores the allocated blocks to exactly `blocks`. Everything above `top` was never used.
  void restore(const extents& blocks, std::size_t top) {
    live_ = blocks;
    alignments_.clear();
    live_bytes_ = 0;
    for (const auto& [offset, bytes] : live_) {
      live_bytes_ += bytes;
      alignments_.emplace(offset, offset % media::cache_line_bytes == 0 ? media::cache_line_bytes : small_alignment);
    }
    reserved_.clear();
    free_.clear();
    top_ = top;
    snapshot_.reset();
  }

 private:
  struct reservation {
    std::size_t bytes;
    std::size_t alignment;
  };

  std::size_t first_;
  std::size_t end_;
  std::size_t top_;
  std::size_t low_end_ = 0;  // 0: there is no division
  std::size_t low_top_ = 0;
  std::size_t live_bytes_ = 0;
  std::size_t bytes_into_line_ = 0;
  extents live_;
  extents alignments_;
  std::map<std::size_t, reservation> reserved_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> free_;
  mutable std::shared_ptr<const extents> snapshot_;
};

}  // namespace pmlab::simulator
