// The time of one DIMM's media, shared between reads and writes.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <cstdint>

namespace pmlab::media {

// Work that waits for the media, in picoseconds of media time. While reads and writes both wait, writes get
// `write_share` of the time and reads the rest; while one kind waits, it gets all of it. No media time is lost. A
// result holds if no further request arrives; later requests do not change results returned before. Not thread-safe.
class media_queue {
 public:
  explicit media_queue(double write_share)
      : write_parts_(static_cast<std::uint64_t>(write_share * parts)), read_parts_(parts - write_parts_) {}

  // Lets the media work until `now`; an earlier `now` than before changes nothing.
  void advance(std::uint64_t now) noexcept {
    if (now <= time_) return;
    std::uint64_t left = now - time_;
    time_ = now;
    if (reads_ != 0 && writes_ != 0) {
      const std::uint64_t both = std::min({left, reads_ * parts / read_parts_, writes_ * parts / write_parts_});
      reads_ -= std::min(reads_, both * read_parts_ / parts);
      writes_ -= std::min(writes_, both * write_parts_ / parts);
      left -= both;
    }
    const std::uint64_t read = std::min(left, reads_);
    reads_ -= read;
    writes_ -= std::min(left - read, writes_);
  }

  // Adds a read that keeps the media busy for `work`. Returns how long it waits for others.
  [[nodiscard]] std::uint64_t add_read(std::uint64_t work) noexcept {
    reads_ += work;
    if (writes_ == 0) return reads_ - work;
    return std::min(reads_ * parts / read_parts_, reads_ + writes_) - work;
  }

  // The media time of the reads, and of the writes, that are not done.
  [[nodiscard]] std::uint64_t reads_waiting() const noexcept { return reads_; }
  [[nodiscard]] std::uint64_t writes_waiting() const noexcept { return writes_; }

  void add_write(std::uint64_t work) noexcept { writes_ += work; }

  // How long until no more than `allowed` of the writes waits.
  [[nodiscard]] std::uint64_t until_writes_at_most(std::uint64_t allowed) const noexcept {
    if (writes_ <= allowed) return 0;
    const std::uint64_t excess = writes_ - allowed;
    return std::min(excess * parts / write_parts_, excess + reads_);
  }

 private:
  static constexpr std::uint64_t parts = 1024;

  std::uint64_t write_parts_;
  std::uint64_t read_parts_;
  std::uint64_t time_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace pmlab::media
