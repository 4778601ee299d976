// The live entries of an NV-Tree's leaves, in ascending order.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/descriptor.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <span>

namespace pmlab::indexes::detail::nv_tree {

// Entries of a leaf, or of two neighbours. Those that a leaf had when it was made are in order: only those that were
// appended since are sorted, and merged with them. (Entries read while a writer was active may be anything.)
class gathered_entries {
 public:
  // Adds those of this leaf whose keys are >= `from`.
  void add(const descriptor& d, key_type from) noexcept {
    const leaf& l = d.entries();
    for_each_slot(d.live(), [&](std::size_t i) {
      const key_type key = l[i].word.load(std::memory_order_acquire).key(d.low);
      read_[count_] = {key, l[i].value.load(std::memory_order_acquire)};
      count_ += static_cast<std::size_t>(key >= from);
    });
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  // All of them in ascending order. Once; the span is valid while this object lives.
  [[nodiscard]] std::span<const entry> in_order() noexcept {
    const auto less = [](const entry& a, const entry& b) { return a.key < b.key; };
    const auto end = read_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto appended = std::is_sorted_until(read_.begin(), end, less);
    if (appended == end) return std::span(read_).first(count_);
    std::sort(appended, end, less);
    std::merge(read_.begin(), appended, appended, end, merged_.begin(), less);
    return std::span(merged_).first(count_);
  }

 private:
  std::array<entry, 2 * most_slots + 1> read_;  // one more, which is written and not counted
  std::array<entry, 2 * most_slots> merged_;
  std::size_t count_ = 0;
};

}  // namespace pmlab::indexes::detail::nv_tree
