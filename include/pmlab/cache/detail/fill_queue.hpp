// A bounded queue of fills: any number of threads put in, one takes out. After Vyukov's array queue [VYUKOV].
//
// Use it where a full queue is a reason to drop, never to wait.
//
// Progress: `push` is lock-free. `pop` is called by one thread at a time, and finds nothing behind a place that a
// pushing thread has taken and not filled yet.
//
// Order:
//   Q1  A place's turn is `position + 1` from when it is filled for that position; before, it is that of an earlier
//       round.
//   Q2  The turn is stored (release) after the fill's words; `pop` loads it (acquire) before it touches them.
//   Q3  The head is stored (release) after the words are read. A position is taken only by a thread that knows
//       (acquire) the head to have passed the same place's position of the round before. So `pop` writes to no place: a
//       reader that pushes does not wait for a line from the filler's core.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace pmlab::cache::detail {

// What a reader found, and the gate of the key's set from before it asked the index.
struct fill {
  indexes::key_type key;
  indexes::value_type value;
  std::uint64_t gate;
};

class fill_queue {
 public:
  // `places`: at least so many fills wait at most.
  explicit fill_queue(std::size_t places)
      : mask_(std::bit_ceil(places < 2 ? 2 : places) - 1), places_(std::make_unique<place[]>(mask_ + 1)) {}

  // False: full, and the fill is not in.
  bool push(const fill& f) noexcept {
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    do {
      if (has_room(position, known_head_.load(std::memory_order_acquire))) continue;  // Q3
      const std::uint64_t head = head_.load(std::memory_order_acquire);               // Q3
      if (!has_room(position, head)) return false;
      known_head_.store(head, std::memory_order_release);
    } while (!tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed));
    place& p = places_[position & mask_];
    p.key.store(f.key, std::memory_order_relaxed);
    p.value.store(f.value, std::memory_order_relaxed);
    p.gate.store(f.gate, std::memory_order_relaxed);
    p.turn.store(position + 1, std::memory_order_release);  // Q2
    // The taking thread has a copy of the next place's line: let it be this core's own by the next push.
    constexpr int for_writing = 1;
    __builtin_prefetch(&places_[(position + 1) & mask_], for_writing);
    return true;
  }

  // The next fill; nothing: there is none.
  [[nodiscard]] std::optional<fill> pop() noexcept {
    const std::uint64_t position = head_.load(std::memory_order_relaxed);
    const place& p = places_[position & mask_];
    if (p.turn.load(std::memory_order_acquire) != position + 1) return std::nullopt;  // Q2
    const fill result{p.key.load(std::memory_order_relaxed), p.value.load(std::memory_order_relaxed),
                      p.gate.load(std::memory_order_relaxed)};
    head_.store(position + 1, std::memory_order_release);  // Q3
    return result;
  }

  // True if `pop` would find nothing now.
  [[nodiscard]] bool is_empty() const noexcept {
    const std::uint64_t position = head_.load(std::memory_order_relaxed);
    return places_[position & mask_].turn.load(std::memory_order_acquire) != position + 1;
  }

  // Fills that were ever put in, and that were ever taken out.
  [[nodiscard]] std::uint64_t pushed() const noexcept { return tail_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t popped() const noexcept { return head_.load(std::memory_order_acquire); }

  [[nodiscard]] std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(place); }

 private:
  struct place {
    std::atomic<std::uint64_t> turn{0};
    std::atomic<indexes::key_type> key{0};
    std::atomic<indexes::value_type> value{0};
    std::atomic<std::uint64_t> gate{0};
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

}  // namespace pmlab::cache::detail
