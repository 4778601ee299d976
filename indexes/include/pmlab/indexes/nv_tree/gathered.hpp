// The live entries of an NV-Tree's leaves, in ascending order.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/descriptor.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail::nv_tree {

// Entries of a leaf, or of two neighbours. Those that a leaf had when it was made are in order: only those that were
// appended since are sorted, and merged with them. (Entries read while a writer was active may be anything.)
class gathered_entries {
 public:
  // Adds the entries of this leaf whose keys are >= `from`.
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
    const std::span<entry> all(read_.data(), count_);
    const auto end = std::is_sorted_until(all.begin(), all.end(), is_less);
    if (end == all.end()) return all;
    const auto ordered = static_cast<std::size_t>(end - all.begin());
    merge(all.first(ordered), sorted(all.subspan(ordered)));
    return std::span<const entry>(merged_).first(count_);
  }

 private:
  // So many are sorted by counting, for each, the smaller ones: without a branch on the keys, and none waits for
  // another.
  static constexpr std::size_t most_counted = 24;

  static bool is_less(const entry& a, const entry& b) noexcept { return a.key < b.key; }

  [[nodiscard]] std::span<const entry> sorted(std::span<entry> appended) noexcept {
    if (appended.size() > most_counted) {
      std::sort(appended.begin(), appended.end(), is_less);
      return appended;
    }
    for (std::size_t i = 0; i < appended.size(); ++i) {
      const key_type key = appended[i].key;
      std::size_t rank = 0;
      for (std::size_t k = 0; k < i; ++k) rank += static_cast<std::size_t>(appended[k].key <= key);
      for (std::size_t k = i + 1; k < appended.size(); ++k) rank += static_cast<std::size_t>(appended[k].key < key);
      counted_[rank] = appended[i];
    }
    return std::span<const entry>(counted_).first(appended.size());
  }

  // Merges without a branch on the keys, too.
  void merge(std::span<const entry> a, std::span<const entry> b) noexcept {
    std::size_t i = 0;
    std::size_t k = 0;
    while (i < a.size() && k < b.size()) {
      const auto of_b = static_cast<std::size_t>(b[k].key < a[i].key);
      const entry* const least[] = {&a[i], &b[k]};
      merged_[i + k] = *least[of_b];
      i += 1 - of_b;
      k += of_b;
    }
    const auto rest = merged_.begin() + static_cast<std::ptrdiff_t>(i + k);
    std::copy(b.begin() + static_cast<std::ptrdiff_t>(k), b.end(),
              std::copy(a.begin() + static_cast<std::ptrdiff_t>(i), a.end(), rest));
  }

  std::array<entry, 2 * most_slots + 1> read_;  // one more, which is written and not counted
  std::array<entry, 2 * most_slots> merged_;
  std::array<entry, most_counted> counted_;
  std::size_t count_ = 0;
};

}  // namespace pmlab::indexes::detail::nv_tree
