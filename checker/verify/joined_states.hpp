// The states that a crash may leave at any of several crash points, as one set; and the search through it that branches
// on what is read.
//
// At each point, every line of memory has one of some contents, whichever the other lines have. A line that is equal at
// all points is not in here. States of different points that are equal are one state.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace pmlab::verify {

using line_content = std::array<std::uint64_t, simulator::words_per_line>;
// Bytes of a line: bit i is its i-th byte.
using byte_mask = std::uint64_t;

// Bytes [first, first + count) of a line.
[[nodiscard]] constexpr byte_mask bytes_of_line(std::size_t first, std::size_t count) noexcept {
  return (count >= 64 ? ~byte_mask{0} : (byte_mask{1} << count) - 1) << first;
}
// All other bytes are zero.
[[nodiscard]] line_content only(const line_content& content, byte_mask bytes) noexcept;
// Stores these bytes of `content` to a line of memory.
void put(std::byte* line, const line_content& content, byte_mask bytes) noexcept;
// The bytes in which they differ.
[[nodiscard]] byte_mask difference(const line_content& a, const line_content& b) noexcept;

// The points of a set of joined states.
class point_set {
 public:
  void add(std::size_t point) {
    if (point / 64 >= words_.size()) words_.resize(point / 64 + 1);
    words_[point / 64] |= std::uint64_t{1} << point % 64;
  }
  void add_below(std::size_t end) {
    for (std::size_t p = 0; p < end; ++p) add(p);
  }
  void add(const point_set& other) {
    if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void keep_only(const point_set& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= i < other.words_.size() ? other.words_[i] : 0;
  }
  [[nodiscard]] bool has(std::size_t point) const noexcept {
    return point / 64 < words_.size() && (words_[point / 64] >> point % 64 & 1) != 0;
  }
  [[nodiscard]] bool meets(const point_set& other) const noexcept {
    for (std::size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
      if ((words_[i] & other.words_[i]) != 0) return true;
    return false;
  }

 private:
  std::vector<std::uint64_t> words_;
};

class joined_states {
 public:
  struct possible {
    line_content content;
    point_set points;  // at which the line may have it
  };
  struct line {
    std::uint32_t number = 0;
    std::vector<possible> contents;
    std::vector<std::uint32_t> current;  // those of the last point
  };

  void clear();
  // Another point. From now on a line has the contents of the point before, unless `set` says others.
  void add_point() noexcept { ++points_; }
  // At the point that was added last, the line has one of the contents `now`. `before`: its content at all points
  // before, if it was not set yet.
  void set(std::uint32_t number, const line_content& before, std::span<const line_content> now);
  // The point is complete.
  void end_point();

  [[nodiscard]] std::size_t points() const noexcept { return points_; }
  [[nodiscard]] const std::vector<line>& lines() const noexcept { return lines_; }

 private:
  std::size_t points_ = 0;
  std::vector<line> lines_;
  std::unordered_map<std::uint32_t, std::size_t> place_of_;  // by a line's number
};

// Depth-first search for all the different courses of a deterministic reader over the states of some points. Where the
// bytes that it reads are not the same in all states that agree with what it has read before, the search branches by
// their values; so each course stands for all states that it cannot tell apart.
class course_search {
 public:
  // `states` outlives it, unchanged.
  course_search(const joined_states& states, const point_set& points);

  // Begins the next course; false: there is none.
  bool next();
  // The course reads these bytes of line `place` (in the order of joined_states::lines). The bytes that were not
  // decided before are, and returned.
  byte_mask read(std::size_t place, byte_mask bytes);
  // It has stored there: what the states have in these bytes is lost.
  void overwrite(std::size_t place, byte_mask bytes) {
    at_[place].decided |= bytes;
    touched_.push_back(place);
  }
  // Decided bytes of a line; the others are zero.
  [[nodiscard]] const line_content& content(std::size_t place) const noexcept { return at_[place].content; }

  // Points that have a state of this course.
  [[nodiscard]] const point_set& points() const noexcept { return alive_; }
  // True if the line may have this content in a state of this course.
  [[nodiscard]] bool agrees(std::size_t place, const line_content& content) const noexcept;
  // The bytes of a line that are not the same in all of the states.
  [[nodiscard]] byte_mask uncertain(std::size_t place) const noexcept { return uncertain_[place]; }
  // False: equal reads were followed by another one than before, so that it is not deterministic.
  [[nodiscard]] bool is_deterministic() const noexcept { return deterministic_; }
  // True: the course has ended, or ends now, without the reads that chose it, or has read something else in their
  // place. What it found is no verdict: it may have read bytes that were not decided.
  [[nodiscard]] bool has_diverged() const noexcept { return !deterministic_ || depth_ != decisions_.size(); }

 private:
  struct line_course {
    byte_mask decided = 0;  // or overwritten
    byte_mask read = 0;     // decided by a read
    line_content content{};
  };
  struct decision {
    std::size_t place;
    byte_mask bytes;
    std::vector<line_content> values;
    std::size_t taken;
  };

  void narrow(std::size_t place);

  const joined_states& states_;
  point_set initial_;
  point_set alive_;
  std::vector<line_course> at_;
  std::vector<std::size_t> touched_;  // places in at_ that this course has changed
  std::vector<byte_mask> uncertain_;
  std::vector<decision> decisions_;
  std::size_t depth_ = 0;
  bool began_ = false;
  bool deterministic_ = true;
};

}  // namespace pmlab::verify
