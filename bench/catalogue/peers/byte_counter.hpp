// Counts the bytes that a DRAM container holds.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::bench::peers {

// One count per thread, on lines of their own: counting costs about a nanosecond and no shared line. Threads beyond
// the number of slots share the last one, and pay for the lock prefix.
class byte_counter {
 public:
  void add(std::int64_t bytes) noexcept {
    const std::size_t mine = slot_of_this_thread();
    std::atomic<std::int64_t>& count = slots_[mine].bytes;
    if (mine + 1 == slots_.size())
      count.fetch_add(bytes, std::memory_order_relaxed);
    else
      count.store(count.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  // Exact when no thread is adding.
  [[nodiscard]] std::uint64_t total() const noexcept {
    std::int64_t sum = 0;
    for (const slot& s : slots_) sum += s.bytes.load(std::memory_order_relaxed);
    return sum < 0 ? 0 : static_cast<std::uint64_t>(sum);
  }

 private:
  struct alignas(64) slot {
    std::atomic<std::int64_t> bytes{0};
  };

  std::size_t slot_of_this_thread() const noexcept {
    static std::atomic<std::size_t> next{0};
    static thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed);
    return std::min(mine, slots_.size() - 1);
  }

  std::array<slot, 256> slots_;
};

// `Base`, the default allocator of the container, with its bytes counted: `Rounded(bytes)` is the size that the heap
// actually allocates for a request.
template <class Base, auto Rounded>
class counting_allocator : public Base {
 public:
  using value_type = typename Base::value_type;

  explicit counting_allocator(byte_counter& counter) noexcept : counter_(&counter) {}
  template <class Other>
  counting_allocator(const counting_allocator<Other, Rounded>& other) noexcept : counter_(other.counter()) {}

  template <class T>
  struct rebind {
    template <template <class> class Allocator, class From>
    static Allocator<T> rebound(Allocator<From>*);
    using other = counting_allocator<decltype(rebound(static_cast<Base*>(nullptr))), Rounded>;
  };

  [[nodiscard]] value_type* allocate(std::size_t count) {
    value_type* const block = Base::allocate(count);
    counter_->add(static_cast<std::int64_t>(Rounded(count * sizeof(value_type))));
    return block;
  }
  void deallocate(value_type* block, std::size_t count) {
    counter_->add(-static_cast<std::int64_t>(Rounded(count * sizeof(value_type))));
    Base::deallocate(block, count);
  }

  [[nodiscard]] byte_counter* counter() const noexcept { return counter_; }
  template <class Other>
  friend bool operator==(const counting_allocator& a, const counting_allocator<Other, Rounded>& b) noexcept {
    return a.counter_ == b.counter();
  }

 private:
  byte_counter* counter_;
};

}  // namespace pmlab::bench::peers
