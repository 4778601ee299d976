// A bounded queue: any number of threads push, one at a time pops. After Vyukov's array queue [VYUKOV].
//
// A thread puts in by either of two ways. `push` gives up where the queue is full: for items that may be dropped.
// `reserve` takes a position in any case, which `publish` fills in once it has room: for items whose order is decided
// before they are known. A thread that cannot wait for room may return the newest position.
//
// Progress: `push` is lock-free, `reserve` and `publish` are wait-free. The taking thread finds nothing behind a
// position that is taken and not filled in yet.
//
// Order:
//   Q1  A place's turn is `position + 1` from when it is filled for that position; before, it is that of an earlier
//       round.
//   Q2  The turn is stored (release) after the item's words; the popping thread loads it (acquire) before it reads
//       them.
//   Q3  The head is stored (release) after the words are read. A place is filled only by a thread that knows (acquire)
//       the head to have passed the same place's position of the round before. So taking out writes to no place: a
//       thread that pushes does not wait for a line from the taking thread's core.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace pmlab::sync {

// How an item lies in a place of a queue.
template <class Item>
struct plain_cell {
  Item item{};  // the newest
  // Replaces it. REQUIRES: no other thread reads or writes this cell.
  void put(const Item& given) noexcept { item = given; }
  // The newest item.
  [[nodiscard]] const Item& get() const noexcept { return item; }
};

// Thread safety: see above; `pop`, `take` and `is_empty` by one thread at a time, the rest by any number.
template <class Item, class Cell = plain_cell<Item>>
class bounded_queue {
 public:
  // `places`: at least so many items wait at most; the next power of two counts.
  explicit bounded_queue(std::size_t places)
      : mask_(std::bit_ceil(places) - 1), places_(std::make_unique<place[]>(mask_ + 1)) {}

  // False: full, and the item is not in.
  bool push(const Item& item) noexcept {
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    do {
      if (has_room(position, known_head_.load(std::memory_order_acquire))) continue;  // Q3
      const std::uint64_t head = head_.load(std::memory_order_acquire);               // Q3
      if (!has_room(position, head)) return false;
      known_head_.store(head, std::memory_order_release);
    } while (!tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed));
    publish(position, item);
    // The taking thread has a copy of the next place's line: let it be this core's own by the next push.
    constexpr int for_writing = 1;
    __builtin_prefetch(&places_[(position + 1) & mask_], for_writing);
    return true;
  }

  // The next position. The caller must `publish` an item there, as soon as `has_room` is true for it.
  [[nodiscard]] std::uint64_t reserve() noexcept { return tail_.fetch_add(1, std::memory_order_acq_rel); }
  // Undoes `reserve`, if no later position was given out since. False: one was, and `position` must be published.
  [[nodiscard]] bool give_back(std::uint64_t position) noexcept {
    std::uint64_t tail = position + 1;
    return tail_.compare_exchange_strong(tail, position, std::memory_order_acq_rel);
  }
  // Whether the item of the round before has left the place of `position`.
  [[nodiscard]] bool has_room(std::uint64_t position) const noexcept {
    return has_room(position, head_.load(std::memory_order_acquire));  // Q3
  }
  // Fills in a reserved position. REQUIRES: `has_room(position)` was true.
  void publish(std::uint64_t position, const Item& item) noexcept {
    place& p = places_[position & mask_];
    p.cell.put(item);
    p.turn.store(position + 1, std::memory_order_release);  // Q2
  }

  // The oldest item, or std::nullopt if there is none or its position is not filled in yet.
  [[nodiscard]] std::optional<Item> pop() noexcept {
    const std::uint64_t position = head_.load(std::memory_order_relaxed);
    const place& p = places_[position & mask_];
    if (p.turn.load(std::memory_order_acquire) != position + 1) return std::nullopt;  // Q2
    const Item result = p.cell.get();
    head_.store(position + 1, std::memory_order_release);  // Q3
    return result;
  }

  // Takes the oldest items, in their order, up to the first position that is not filled in.
  std::size_t take(std::span<Item> out) noexcept {
    const std::uint64_t first = head_.load(std::memory_order_relaxed);
    std::size_t count = 0;
    for (; count < out.size(); ++count) {
      const place& p = places_[(first + count) & mask_];
      if (p.turn.load(std::memory_order_acquire) != first + count + 1) break;  // Q2
      out[count] = p.cell.get();
    }
    if (count != 0) head_.store(first + count, std::memory_order_release);  // Q3
    return count;
  }

  // True if `pop` would find nothing now.
  [[nodiscard]] bool is_empty() const noexcept {
    const std::uint64_t position = head_.load(std::memory_order_relaxed);
    return places_[position & mask_].turn.load(std::memory_order_acquire) != position + 1;
  }

  // Positions that `push` and `reserve` ever gave out, without those that were returned.
  [[nodiscard]] std::uint64_t reserved() const noexcept { return tail_.load(std::memory_order_acquire); }
  // Items popped so far.
  [[nodiscard]] std::uint64_t taken() const noexcept { return head_.load(std::memory_order_acquire); }

  // The most items that wait at a time.
  [[nodiscard]] std::size_t places() const noexcept { return mask_ + 1; }
  // The bytes of the places, in DRAM.
  [[nodiscard]] std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(place); }

 private:
  struct place {
    std::atomic<std::uint64_t> turn{0};
    Cell cell;
  };

  // A position that is behind the head by now is not the tail any more: taking it fails.
  [[nodiscard]] bool has_room(std::uint64_t position, std::uint64_t head) const noexcept {
    return position < head || position - head <= mask_;
  }

  std::size_t mask_;
  std::unique_ptr<place[]> places_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint64_t> known_head_{0};  // as pushing threads last saw it
  alignas(64) std::atomic<std::uint64_t> head_{0};
};

}  // namespace pmlab::sync
