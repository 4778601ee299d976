// The free blocks of a drive: volatile, rebuilt when the store is opened.
//
// Best fit, as in the UStore paper: the shortest extent that is long enough, cut at its end, joined with its neighbours
// when it is freed. Two sorted containers of the standard library: a pmlab index would add nothing here, since one
// lock protects both, and a store under verification makes thousands of them.
//
// Giving never fails: blocks that there is no memory to list as an extent have a bit, until there is.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <bit>
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
  [[nodiscard]] std::optional<extent> take(std::uint32_t count) noexcept {
    const std::scoped_lock lock(mutex_);
    list_the_unlisted();
    const auto best = by_length_.lower_bound({count, 0});
    return best == by_length_.end() ? std::nullopt : std::optional(cut(*best, count));
  }

  // `count` blocks in as few pieces as there are long extents; nothing if they are not there. Throws std::bad_alloc;
  // nothing changed then.
  [[nodiscard]] std::vector<extent> take_pieces(std::uint32_t count) {
    std::vector<extent> pieces;
    const std::scoped_lock lock(mutex_);
    if (blocks_ < count) return pieces;
    pieces.reserve(std::min<std::size_t>(count, by_length_.size()));
    while (count > 0) {
      const auto best = by_length_.lower_bound({count, 0});
      const auto from = best == by_length_.end() ? std::prev(by_length_.end()) : best;
      pieces.push_back(cut(*from, std::min(count, from->first)));
      count -= pieces.back().count;
    }
    return pieces;
  }

  // REQUIRES: none of its blocks is free. Blocks beyond the drive are none: a damaged record named them.
  void give(extent e) noexcept {
    const std::scoped_lock lock(mutex_);
    if (e.first >= end_) return;
    e.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(e.count, end_ - e.first));
    list_the_unlisted();
    if (!insert(e)) keep_unlisted(e);
  }

  // All that is free on a drive of so many blocks, in the order of the drive, and not joined. REQUIRES: no block was
  // given or taken. Throws std::bad_alloc; nothing is free then.
  void fill(const std::vector<extent>& free, std::uint64_t blocks_of_drive) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint64_t> bits((blocks_of_drive + 63) / 64);
    std::map<std::uint32_t, std::uint32_t> by_place;
    std::set<std::pair<std::uint32_t, std::uint32_t>> by_length;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> lengths;
    lengths.reserve(free.size());
    std::uint64_t sum = 0;
    for (const extent& e : free) {
      by_place.emplace_hint(by_place.end(), e.first, e.count);
      lengths.emplace_back(e.count, e.first);
      sum += e.count;
    }
    std::ranges::sort(lengths);
    for (const auto& l : lengths) by_length.emplace_hint(by_length.end(), l);
    end_ = blocks_of_drive;
    unlisted_.swap(bits);
    by_place_.swap(by_place);
    by_length_.swap(by_length);
    blocks_ = sum;
  }

  [[nodiscard]] std::uint64_t free_blocks() const {
    const std::scoped_lock lock(mutex_);
    return blocks_ + unlisted_blocks_;
  }
  // In blocks; 0: no block is free.
  [[nodiscard]] std::uint32_t longest_extent() const {
    const std::scoped_lock lock(mutex_);
    return by_length_.empty() ? 0 : by_length_.rbegin()->first;
  }
  // Throws std::bad_alloc.
  [[nodiscard]] std::vector<extent> all() const {
    const std::scoped_lock lock(mutex_);
    std::vector<extent> list;
    for (const auto& [first, count] : by_place_) list.push_back({first, count});
    if (unlisted_blocks_ > 0)
      for (std::uint32_t b = 0; b < unlisted_.size() * 64; ++b)
        if (is_unlisted(b)) list.push_back({b, 1});
    return list;
  }

 private:
  // The rest: with the lock.

  // Takes `count` blocks from the end of an extent (length, first). The rest keeps the memory of the extent.
  [[nodiscard]] extent cut(std::pair<std::uint32_t, std::uint32_t> from, std::uint32_t count) noexcept {
    const auto [length, first] = from;
    if (length == count) {
      by_length_.erase(from);
      by_place_.erase(first);
    } else {
      by_place_.find(first)->second = length - count;
      change_length(from, {length - count, first});
    }
    blocks_ -= count;
    return {first + length - count, count};
  }

  // Adds an extent, joined with its neighbours. False: it has none, and there is no memory for an extent more; nothing
  // changed then.
  [[nodiscard]] bool insert(extent e) noexcept {
    const std::uint32_t given = e.count;
    const auto after = by_place_.lower_bound(e.first);
    const bool joins_after = after != by_place_.end() && after->first == e.first + e.count;
    if (joins_after) e.count += after->second;
    const auto before = after == by_place_.begin() ? by_place_.end() : std::prev(after);
    if (before != by_place_.end() && before->first + before->second == e.first) {
      change_length({before->second, before->first}, {before->second + e.count, before->first});
      before->second += e.count;
      if (joins_after) {
        by_length_.erase({after->second, after->first});
        by_place_.erase(after);
      }
    } else if (joins_after) {
      change_length({after->second, after->first}, {e.count, e.first});
      auto node = by_place_.extract(after);
      node.key() = e.first;
      node.mapped() = e.count;
      by_place_.insert(std::move(node));
    } else if (!add(e)) {
      return false;
    }
    blocks_ += given;
    return true;
  }
  [[nodiscard]] bool add(extent e) noexcept {
    try {
      by_place_.emplace(e.first, e.count);
      by_length_.emplace(e.count, e.first);
      return true;
    } catch (const std::bad_alloc&) {
      by_place_.erase(e.first);
      return false;
    }
  }
  void change_length(std::pair<std::uint32_t, std::uint32_t> from,
                     std::pair<std::uint32_t, std::uint32_t> to) noexcept {
    auto node = by_length_.extract(from);
    node.value() = to;
    by_length_.insert(std::move(node));
  }

  // ---- blocks that are free while DRAM has no memory to list them

  [[nodiscard]] bool is_unlisted(std::uint32_t block) const noexcept {
    return (unlisted_[block / 64] >> (block % 64) & 1) != 0;
  }
  void keep_unlisted(extent e) noexcept {
    for (std::uint32_t b = e.first; b < e.first + e.count && b / 64 < unlisted_.size(); ++b) {
      unlisted_[b / 64] |= std::uint64_t{1} << (b % 64);
      ++unlisted_blocks_;
    }
  }
  void list_the_unlisted() noexcept {
    for (std::uint32_t w = 0; unlisted_blocks_ > 0 && w < unlisted_.size(); ++w)
      while (unlisted_[w] != 0) {
        const auto b = static_cast<std::uint32_t>(std::countr_zero(unlisted_[w]));
        if (!insert({w * 64 + b, 1})) return;
        unlisted_[w] &= unlisted_[w] - 1;
        --unlisted_blocks_;
      }
  }

  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::uint32_t> by_place_;              // first -> count
  std::set<std::pair<std::uint32_t, std::uint32_t>> by_length_;  // (count, first)
  std::uint64_t blocks_ = 0;                                     // in these
  std::vector<std::uint64_t> unlisted_;                          // a bit for each block of the drive
  std::uint64_t unlisted_blocks_ = 0;
  std::uint64_t end_ = ~std::uint64_t{0};  // blocks of the drive, when they are known
};

}  // namespace pmlab::stores::detail::chunk_store
