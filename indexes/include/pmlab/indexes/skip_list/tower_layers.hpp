// The search layer of a skip list with towers in DRAM, and a smaller one that takes its place after many erases.
#pragma once

#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/sync/epoch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>

namespace pmlab::indexes::detail::skip_list {

// A search layer never shrinks (its readers need its blocks to stay blocks). So entries are copied to another one, a
// few at a time, in ascending order, and the old layer is freed as a whole when no reader is left in it. Entries are
// hints: one may be missing in a layer, or be in both.
//
//   L1  Keys below `border_` are looked up in the new layer, others in the old one.
//   L2  A word is put into a layer, by any thread, with its node's lock held and when the node is not marked. An erase,
//       with the lock held after the mark, removes it from all layers that it sees, and it sees the one where it was
//       put, or a later state in which no reader that begins finds that one. So K2 holds for both layers.
//
// Thread safety: as of a search layer, with a guard of the index's epochs; `shrink`: one thread at a time.
class tower_layers {
  using layer = search_layer<>;

 public:
  // `head`: the result below the least key. `least_bytes`: smaller layers are not shrunk. Throws std::bad_alloc.
  tower_layers(std::uint64_t head, std::uint64_t least_bytes)
      : head_(head), least_bytes_(least_bytes), now_(new layer(head)) {}
  tower_layers(const tower_layers&) = delete;
  tower_layers& operator=(const tower_layers&) = delete;
  ~tower_layers() {
    delete now_.load(std::memory_order_relaxed);
    delete next_.load(std::memory_order_relaxed);
    delete left_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool build(std::span<const search_entry> entries, unsigned threads) {
    return now_.load(std::memory_order_relaxed)->build(entries, threads);
  }

  [[nodiscard]] std::uint64_t floor(key_type key) const {
    const layer& first = layer_of(key);
    const std::uint64_t found = first.floor(key);
    return found == head_ ? floor_elsewhere(first, key) : found;
  }

  // A search in steps, as of search_layer.
  class descent {
    friend tower_layers;
    const layer* layer_;
    typename layer::descent at_;
    key_type key_;
  };
  [[nodiscard]] descent begin(key_type key) const {
    descent d;
    d.layer_ = &layer_of(key);
    d.at_ = d.layer_->begin(key);
    d.key_ = key;
    return d;
  }
  // 0: the search continues.
  [[nodiscard]] std::uint64_t step(descent& d) const {
    std::uint64_t word = 0;
    if (!d.layer_->step(d.at_, [&](std::uint64_t found) { word = found; })) {
      layer::prefetch(d.at_);
      return 0;
    }
    return word == head_ ? floor_elsewhere(*d.layer_, d.key_) : word;
  }

  [[nodiscard]] std::size_t words_after(key_type key, std::span<std::uint64_t> out) const {
    return layer_of(key).words_after(key, out);
  }

  void put(key_type key, std::uint64_t word) { layer_of(key).put(key, word); }
  void remove(key_type key, std::uint64_t word) {
    // In this order: the new layer is `now_` before it is no longer `next_`.
    layer* const next = next_.load(std::memory_order_acquire);
    layer* const now = now_.load(std::memory_order_acquire);
    now->remove(key, word);
    if (next != nullptr && next != now) next->remove(key, word);
  }

  // Does a part of the work that makes the memory fit so many entries, if it is much too large. `lock_of(node)`: its
  // lock. With a guard of `epochs`. Throws std::bad_alloc.
  template <class LockOf>
  void shrink(std::size_t entries, sync::epochs& epochs, LockOf&& lock_of) {
    layer* const next = next_.load(std::memory_order_relaxed);
    if (next != nullptr) return copy_some(*next, epochs, lock_of);
    if (left_.load(std::memory_order_relaxed) != nullptr) return;
    const std::uint64_t bytes = now_.load(std::memory_order_relaxed)->bytes();
    if (bytes < least_bytes_ || bytes < most_bytes_of_entry * entries) return;
    border_.store(0, std::memory_order_relaxed);
    next_.store(new layer(head_), std::memory_order_release);
  }

  [[nodiscard]] std::uint64_t levels() const { return now_.load(std::memory_order_acquire)->levels(); }
  [[nodiscard]] std::uint64_t bytes() const {
    const layer* const next = next_.load(std::memory_order_acquire);
    return now_.load(std::memory_order_acquire)->bytes() + (next == nullptr ? 0 : next->bytes());
  }

  // Checks both layers.
  template <class Visit>
  void check(check_report& report, Visit&& visit) const {
    now_.load(std::memory_order_acquire)->check(report, visit);
    if (const layer* const next = next_.load(std::memory_order_acquire); next != nullptr) next->check(report, visit);
  }

 private:
  // An entry takes 20 bytes where blocks are full, some 28 after inserts in random order, 39 after descending ones.
  static constexpr std::uint64_t most_bytes_of_entry = 44;
  static constexpr std::size_t copied_at_once = 64;
  static constexpr std::size_t copied_in_a_step = 32 * copied_at_once;

  // Whatever layers and border a thread sees together: any of these layers is good for any key.
  [[nodiscard]] layer& layer_of(key_type key) const noexcept {
    layer* const next = next_.load(std::memory_order_acquire);
    if (next != nullptr && key < border_.load(std::memory_order_acquire)) [[unlikely]]
      return *next;
    return *now_.load(std::memory_order_acquire);
  }

  // The floor in the layer that is not `first`.
  [[nodiscard]] std::uint64_t floor_elsewhere(const layer& first, key_type key) const {
    const layer* const next = next_.load(std::memory_order_acquire);
    return next == nullptr || next == &first ? head_ : next->floor(key);
  }

  template <class LockOf>
  void copy_some(layer& next, sync::epochs& epochs, LockOf& lock_of) {
    layer* const now = now_.load(std::memory_order_relaxed);
    std::array<std::uint64_t, copied_at_once> words;
    for (std::size_t done = 0; done < copied_in_a_step; done += words.size()) {
      const key_type from = border_.load(std::memory_order_relaxed);
      std::size_t count = 0;
      if (from == 0) {
        const std::uint64_t first = now->floor(0);
        if (first != head_) words[count++] = first;
      }
      count += now->words_after(from == 0 ? 0 : from - 1, std::span(words).subspan(count));
      if (count == 0) {
        // None is left, or a writer has disturbed the walk.
        const std::uint64_t greatest = now->floor(std::numeric_limits<key_type>::max());
        const bool is_done = greatest == head_ || reinterpret_cast<const node*>(greatest)->key < from;
        if (is_done) take_place(*now, next, epochs);
        return;
      }
      key_type last = from;
      for (std::size_t i = 0; i < count; ++i) {
        node& n = *reinterpret_cast<node*>(words[i]);
        const std::scoped_lock lock(lock_of(n));
        const key_type key = n.key.load(std::memory_order_acquire);
        last = std::max(last, key);
        if (is_marked(n.next.load(std::memory_order_acquire))) continue;
        if (!next.put(key, words[i])) return;
      }
      if (last == std::numeric_limits<key_type>::max()) return take_place(*now, next, epochs);
      border_.store(last + 1, std::memory_order_release);
    }
  }

  void take_place(layer& old, layer& next, sync::epochs& epochs) {
    now_.store(&next, std::memory_order_release);
    next_.store(nullptr, std::memory_order_release);
    if (!epochs.retire([old = &old] { delete old; })) left_.store(&old, std::memory_order_relaxed);
  }

  std::uint64_t head_;
  std::uint64_t least_bytes_;
  std::atomic<layer*> now_;
  std::atomic<layer*> next_{nullptr};  // that is being filled
  std::atomic<key_type> border_{0};
  std::atomic<layer*> left_{nullptr};  // that could not be retired, for lack of memory
};

}  // namespace pmlab::indexes::detail::skip_list
