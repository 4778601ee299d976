// Structs of counters. Each lists its counters once, as its static member `counters`: sums, differences, words that
// threads share, and names in results follow from that list.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace pmlab {

// One counter of `Counts`.
template <class Counts>
struct counter {
  std::uint64_t Counts::*value;  // the member
  std::string_view name{};       // in results; empty: it is in none by itself
};
// `Counts` is the struct of the member.
template <class Counts, class... Name>
counter(std::uint64_t Counts::*, Name...) -> counter<Counts>;

// Adds each counter of `more` to that of `sum`, which it returns. Other members do not change.
template <class Counts>
constexpr Counts& add_counters(Counts& sum, const Counts& more) noexcept {
  for (const counter<Counts>& c : Counts::counters) sum.*c.value += more.*c.value;
  return sum;
}

// Subtracts each counter of `before` from that of `now`, which it returns. Other members do not change.
template <class Counts>
constexpr Counts& subtract_counters(Counts& now, const Counts& before) noexcept {
  for (const counter<Counts>& c : Counts::counters) now.*c.value -= before.*c.value;
  return now;
}

// The counters of a struct, zeros at first, as atomic words. Other members of the struct are not used.
//
// Thread safety: any thread may call any function, `add_alone` excepted. Progress: wait-free.
template <class Counts>
class shared_counters {
 public:
  // Adds to one counter.
  void add(std::uint64_t Counts::*which, std::uint64_t amount) noexcept {
    word(which).fetch_add(amount, std::memory_order_relaxed);
  }
  // The same without a locked instruction. REQUIRES: no other thread adds to this object or resets it.
  void add_alone(std::uint64_t Counts::*which, std::uint64_t amount) noexcept {
    const auto at = word(which);
    at.store(at.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  // All counters. Exact while no thread adds.
  [[nodiscard]] Counts now() const noexcept {
    Counts all{};
    for (const counter<Counts>& c : Counts::counters) all.*c.value = word(c.value).load(std::memory_order_relaxed);
    return all;
  }
  // Restarts from zero.
  void reset() noexcept {
    for (const counter<Counts>& c : Counts::counters) word(c.value).store(0, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::atomic_ref<std::uint64_t> word(std::uint64_t Counts::*which) const noexcept {
    return std::atomic_ref(counts_.*which);
  }

  mutable Counts counts_{};
};

}  // namespace pmlab
