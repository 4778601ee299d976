// The free blocks of a drive: volatile, rebuilt when the store is opened.
//
// Best fit, as in the UStore paper: the shortest extent that is long enough, cut at its end, joined with its neighbours
// when it is freed. Two sorted containers of the standard library: a pmlab index would add nothing here, since one
// lock protects both, and a store under verification makes thousands of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

struct extent {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const extent&, const extent&) = default;
};

// Thread safety: all operations from any thread.
class free_map {
 public:
  // `count` blocks in one piece, from the end of the shortest extent that has them.
  [[nodiscard]] std::optional<extent> take(std::uint32_t count) {
    const std::scoped_lock lock(mutex_);
    const auto best = by_length_.lower_bound({count, 0});
    return best == by_length_.end() ? std::nullopt : std::optional(cut(*best, count));
  }

  // `count` blocks in as few pieces as there are long extents; nothing if they are not there.
  [[nodiscard]] std::vector<extent> take_pieces(std::uint32_t count) {
    const std::scoped_lock lock(mutex_);
    std::vector<extent> pieces;
    if (blocks_ < count) return pieces;
    while (count > 0) {
      const auto best = by_length_.lower_bound({count, 0});
      const auto from = best == by_length_.end() ? std::prev(by_length_.end()) : best;
      pieces.push_back(cut(*from, std::min(count, from->first)));
      count -= pieces.back().count;
    }
    return pieces;
  }

  // REQUIRES: none of its blocks is free. If DRAM is full the blocks stay unused until the store is opened again.
  void give(extent e) noexcept {
    const std::scoped_lock lock(mutex_);
    const std::uint32_t given = e.count;
    auto after = by_place_.lower_bound(e.first);
    if (after != by_place_.end() && after->first == e.first + e.count) {
      e.count += after->second;
      by_length_.erase({after->second, after->first});
      after = by_place_.erase(after);
    }
    if (after != by_place_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == e.first) {
        e = {before->first, before->second + e.count};
        by_length_.erase({before->second, before->first});
        by_place_.erase(before);
      }
    }
    try {
      by_place_.emplace(e.first, e.count);
      by_length_.emplace(e.count, e.first);
      blocks_ += given;
    } catch (const std::bad_alloc&) {
      by_place_.erase(e.first);
      blocks_ -= e.count - given;
    }
  }

  // All that is free, in the order of the drive, and not joined. REQUIRES: nothing is free yet. Throws std::bad_alloc.
  void fill(const std::vector<extent>& free) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths;
    lengths.reserve(free.size());
    for (const extent& e : free) {
      by_place_.emplace_hint(by_place_.end(), e.first, e.count);
      lengths.emplace_back(e.count, e.first);
      blocks_ += e.count;
    }
    std::ranges::sort(lengths);
    for (const auto& l : lengths) by_length_.emplace_hint(by_length_.end(), l);
  }

  [[nodiscard]] std::uint64_t free_blocks() const {
    const std::scoped_lock lock(mutex_);
    return blocks_;
  }
  // In blocks; 0: no block is free.
  [[nodiscard]] std::uint32_t longest_extent() const {
    const std::scoped_lock lock(mutex_);
    return by_length_.empty() ? 0 : by_length_.rbegin()->first;
  }
  // In the order of the drive.
  [[nodiscard]] std::vector<extent> all() const {
    const std::scoped_lock lock(mutex_);
    std::vector<extent> list;
    for (const auto& [first, count] : by_place_) list.push_back({first, count});
    return list;
  }

 private:
  // With the lock. Takes `count` blocks from the end of an extent (length, first).
  [[nodiscard]] extent cut(std::pair<std::uint32_t, std::uint32_t> from, std::uint32_t count) {
    const auto [length, first] = from;
    by_length_.erase(from);
    if (length == count) {
      by_place_.erase(first);
    } else {
      by_place_[first] = length - count;
      by_length_.emplace(length - count, first);
    }
    blocks_ -= count;
    return {first + length - count, count};
  }

  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint32_t> by_place_;              // first -> count
  std::set<std::pair<std::uint32_t, std::uint32_t>> by_length_;  // (count, first)
  std::uint64_t blocks_ = 0;
};

}  // namespace pmlab::stores::detail::chunk_store
