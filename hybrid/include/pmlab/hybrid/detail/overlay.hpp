// Entries for which the tree had no space: they belong into a tree that is the replica, and are kept beside it.
//
// Scans merge them in, so that no acknowledged entry is missing; new keys are refused as long as there are some. So
// there are never more than the changes that were under way when the space ran out.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace pmlab::hybrid::detail {

// Thread safety: any thread, any time. `count` is wait-free; the rest takes a mutex, and is not called while the
// overlay is empty.
//
//   O1  A change of a key that has an entry here is made in the tree and here under the mutex. Changes of one key are
//       made one after the other, so a key without an entry can be changed without the mutex.
class overlay {
 public:
  // `places`: so many changes may be under way; memory for them is reserved at once.
  explicit overlay(std::size_t places) : places_(places) { entries_.reserve(places); }

  [[nodiscard]] std::size_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_room() const noexcept { return count() < places_; }

  // Makes a change by `in_tree()`: false if the tree has no space for (key, value). It is then here.
  template <class InTree>
  void put(indexes::key_type key, indexes::value_type value, InTree&& in_tree) {
    if (count() == 0 && in_tree()) return;
    const std::scoped_lock lock(mutex_);
    const auto at = place_of(key);
    const bool is_here = at != entries_.end() && at->key == key;
    if (in_tree()) {
      if (is_here) entries_.erase(at);
    } else if (is_here) {
      at->value = value;
    } else {
      entries_.insert(at, {key, value});
    }
    publish_count();
  }

  template <class InTree>
  void remove(indexes::key_type key, InTree&& in_tree) {
    if (count() == 0) return in_tree();
    const std::scoped_lock lock(mutex_);
    in_tree();
    const auto at = place_of(key);
    if (at != entries_.end() && at->key == key) entries_.erase(at);
    publish_count();
  }

  // Tries all of them on the tree again, as long as `in_tree(entry)` finds space. True: none is left.
  template <class InTree>
  bool retry(InTree&& in_tree) {
    const std::scoped_lock lock(mutex_);
    while (!entries_.empty() && in_tree(entries_.back())) entries_.pop_back();
    publish_count();
    return entries_.empty();
  }

  // The first `most` entries at or above `from`.
  [[nodiscard]] std::vector<indexes::entry> from(indexes::key_type from, std::size_t most) const {
    const std::scoped_lock lock(mutex_);
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), from, by_key);
    const auto there = static_cast<std::size_t>(entries_.end() - first);
    return {first, first + static_cast<std::ptrdiff_t>(std::min(most, there))};
  }

 private:
  static bool by_key(const indexes::entry& e, indexes::key_type key) noexcept { return e.key < key; }
  [[nodiscard]] std::vector<indexes::entry>::iterator place_of(indexes::key_type key) {
    return std::lower_bound(entries_.begin(), entries_.end(), key, by_key);
  }
  void publish_count() noexcept { count_.store(entries_.size(), std::memory_order_release); }

  std::size_t places_;
  mutable std::mutex mutex_;
  std::vector<indexes::entry> entries_;  // ascending
  std::atomic<std::size_t> count_{0};
};

// Merges `above` (ascending) into the first `count` entries of `out` (ascending), of which it replaces those with equal
// keys. Returns the new number of entries, at most out.size(): the lowest ones.
inline std::size_t merge_into(std::span<indexes::entry> out, std::size_t count,
                              const std::vector<indexes::entry>& above) {
  const std::vector<indexes::entry> below(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count));
  std::size_t to = 0;
  auto b = below.begin();
  for (auto a = above.begin(); to < out.size() && (a != above.end() || b != below.end());) {
    const bool take_above = a != above.end() && (b == below.end() || a->key <= b->key);
    if (take_above && b != below.end() && a->key == b->key) ++b;
    out[to++] = take_above ? *a++ : *b++;
  }
  return to;
}

}  // namespace pmlab::hybrid::detail
