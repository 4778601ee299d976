// Leaves in the medium whose locks and ranges of keys are descriptors in DRAM: how readers and writers stand at one.
//
// A Descriptor has a version `lock`; `is_linked()`; `last`, the greatest key that its leaf is in charge of; `next`, the
// descriptor of the leaf behind it; and is_in_charge(descriptor, key), which is called with its lock held.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <atomic>
#include <cstdint>

namespace pmlab::indexes::detail {

// A leaf at one of its versions.
template <class Descriptor>
struct versioned_leaf {
  versioned_leaf() = default;
  explicit versioned_leaf(Descriptor& of) noexcept : d(&of), version(of.lock.read_begin()) {}
  [[nodiscard]] bool is_current() const noexcept { return d->lock.read_validate(version); }

  // Moves from a leaf whose low is <= key to the one that is in charge of it. False: something has changed. A reader
  // that moves from one to the next reads the next one's version, and then checks that the first one has not changed:
  // so the next one was linked at that moment, and its version shows whether it still is.
  [[nodiscard]] bool go_right(key_type key) noexcept {
    while (d->is_linked()) {
      if (key <= d->last.load(std::memory_order_acquire)) [[likely]]
        return true;
      Descriptor* const next = d->next.load(std::memory_order_acquire);
      if (next == nullptr) return false;
      const versioned_leaf to(*next);
      if (!is_current()) return false;
      *this = to;
    }
    return false;
  }

  Descriptor* d = nullptr;
  std::uint64_t version = 0;
};

// Locks the leaf that is in charge of `key`. find() returns a reference to the descriptor of one that was a moment ago.
template <class Find>
[[nodiscard]] auto& lock_in_charge(key_type key, Find&& find) {
  for (;;) {
    auto& d = find();
    d.lock.lock();
    // It may have become another leaf before it was locked; which then may be the right one, too.
    if (is_in_charge(d, key)) return d;
    d.lock.unlock();
  }
}

// Unlocks a leaf at its end.
template <class Descriptor>
class held_leaf {
 public:
  // `d` is locked.
  explicit held_leaf(Descriptor& d) noexcept : d_(&d) {}
  held_leaf(const held_leaf&) = delete;
  held_leaf& operator=(const held_leaf&) = delete;
  ~held_leaf() { d_->lock.unlock(); }

  [[nodiscard]] Descriptor& operator*() const noexcept { return *d_; }
  [[nodiscard]] Descriptor* operator->() const noexcept { return d_; }

 private:
  Descriptor* d_;
};

}  // namespace pmlab::indexes::detail
