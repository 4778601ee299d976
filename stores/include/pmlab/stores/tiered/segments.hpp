// Which segments are in use: counts of references, volatile, rebuilt when a store is opened.
//
// A segment is referred to by the log while replay may need it, and by each set whose keys or values are in it.
#pragma once

#include <pmlab/stores/tiered/layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace pmlab::stores::detail::tiered {

// A number of segments on each drive.
using class_counts = std::array<std::uint32_t, classes>;

// References to each segment of each drive.
using segment_references = std::array<std::vector<std::uint32_t>, classes>;

// Segments that are left free.
struct kept_segments {
  class_counts each{};    // on each drive, while another one has more: a preference
  std::uint32_t all = 0;  // on both together: always
  bool anywhere = true;   // the drive that is not preferred is used, too, before there is no room
};

// Thread safety: all of it, from any thread.
class segment_map {
 public:
  explicit segment_map(const store_areas& where) {
    for (std::size_t c = 0; c < classes; ++c) {
      drives_[c].references.resize(where.drives[c].segments());
      drives_[c].free = where.drives[c].segments();
    }
  }

  // A free segment, with one reference, on the drive that is preferred; if the staging drive is full, on the other one.
  // std::nullopt: no more than `keep` are free.
  [[nodiscard]] std::optional<std::uint32_t> take(media_class preferred, const kept_segments& keep = {}) {
    const std::scoped_lock lock(mutex_);
    if (drives_[0].free + drives_[1].free <= keep.all) return std::nullopt;
    for (std::size_t c = index_of(preferred); c < classes; ++c)
      if (drives_[c].free > keep.each[c]) return take_on(c);
    if (!keep.anywhere) return std::nullopt;
    for (std::size_t i = 0; i < classes; ++i)
      if (const std::size_t c = (index_of(preferred) + i) % classes; drives_[c].free > 0) return take_on(c);
    return std::nullopt;
  }
  // One more reference.
  void refer(std::uint32_t segment) {
    const std::scoped_lock lock(mutex_);
    drive& on = drives_[index_of(class_of(segment))];
    if (on.references[segment & ~capacity_bit]++ == 0) --on.free;
  }
  // One reference less. A segment without any may be overwritten at once: the word that replaced it must be durable.
  void drop(std::uint32_t segment) {
    const std::scoped_lock lock(mutex_);
    drive& on = drives_[index_of(class_of(segment))];
    if (--on.references[segment & ~capacity_bit] == 0) ++on.free;
  }

  [[nodiscard]] class_counts counts() const noexcept {
    return {static_cast<std::uint32_t>(drives_[0].references.size()),
            static_cast<std::uint32_t>(drives_[1].references.size())};
  }
  [[nodiscard]] class_counts free() const {
    const std::scoped_lock lock(mutex_);
    return {drives_[0].free, drives_[1].free};
  }
  // The references to the segments of each drive.
  [[nodiscard]] segment_references references() const {
    const std::scoped_lock lock(mutex_);
    return {drives_[0].references, drives_[1].references};
  }

 private:
  // REQUIRES: the drive has a free one.
  [[nodiscard]] std::uint32_t take_on(std::size_t c) {
    drive& on = drives_[c];
    const auto count = static_cast<std::uint32_t>(on.references.size());
    while (on.references[on.next] != 0) on.next = (on.next + 1) % count;
    const std::uint32_t taken = on.next;
    on.next = (on.next + 1) % count;
    on.references[taken] = 1;
    --on.free;
    return c == index_of(media_class::staging) ? taken : taken | capacity_bit;
  }
  struct drive {
    std::vector<std::uint32_t> references{};
    std::uint32_t free = 0;
    std::uint32_t next = 0;
  };
  mutable std::mutex mutex_;
  std::array<drive, classes> drives_{};
};

}  // namespace pmlab::stores::detail::tiered
