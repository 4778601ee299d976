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

// Entries of a leaf, or of two neighbours. (Read while a writer was active they may be anything.)
class gathered_entries {
 public:
  // Adds those of this leaf whose keys are >= `from`.
  void add(const descriptor& d, key_type from) noexcept {
    const leaf& l = d.entries();
    for_each_slot(d.live(), [&](std::size_t i) {
      const key_type key = l[i].word.load(std::memory_order_acquire).key(d.low);
      all_[count_] = {key, l[i].value.load(std::memory_order_acquire)};
      count_ += static_cast<std::size_t>(key >= from);
    });
  }
  void sort() noexcept {
    std::sort(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(count_),
              [](const entry& a, const entry& b) { return a.key < b.key; });
  }

  [[nodiscard]] std::span<const entry> all() const noexcept { return std::span(all_).first(count_); }

 private:
  std::array<entry, 2 * most_slots + 1> all_;  // one more, which is written and not counted
  std::size_t count_ = 0;
};

}  // namespace pmlab::indexes::detail::nv_tree
