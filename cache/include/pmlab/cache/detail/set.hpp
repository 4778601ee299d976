// One set of the cache: two cache lines, seven entries, and two words that synchronize readers, fills and writers.
//
//   line 0: | gate | shape | key 0 ... key 5 |
//   line 1: | key 6 | value 0 ... value 6    |
//
//   gate    lock (bit 0), writers in progress (1-11), version (12-63): one more for each writer that begins
//   shape   the policy's word (bits 0-20), ways in use (21-27), changes (28-63): one more before entries change
//
// Neither count wraps around: at ten million changes of one set in a second, the changes last two hours of one reader's
// access to the set, and the version fourteen years of one fill's wait.
//
// Readers take no lock. Order:
//   S1  A reader loads the shape, then entries in use, then the shape again. Before a fill changes the words of an
//       entry, it takes its way out of use and increments the changes, in one compare-and-swap; the words are stored
//       (release; readers acquire), and then the way is put in use. So a reader that read any word of a change, in a
//       way that was in use at first, sees an incremented count at last, and returns nothing from the set.
//   S2  The gate is locked only by a fill, and only while there are no writers; no writer begins while it is locked. So
//       only the holder puts ways in use and changes keys. Writers take ways out of use, and store the value of a way
//       in use: the key that it belongs to stays, so that a reader gets the old value or the new one. Readers that hit
//       change the policy's word alone, by a compare-and-swap of the shape that gives up if anything else has changed.
#pragma once

#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/relax.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::cache::detail {

using indexes::key_type;
using indexes::value_type;

class gate_word {
 public:
  static constexpr std::uint64_t locked = 1;
  static constexpr std::uint64_t one_writer = 2;
  static constexpr std::uint64_t one_version = std::uint64_t{1} << 12;
  static constexpr std::uint64_t most_writers = one_version / one_writer - 1;

  [[nodiscard]] static constexpr bool is_locked(std::uint64_t gate) noexcept { return (gate & locked) != 0; }
  [[nodiscard]] static constexpr std::uint64_t writers(std::uint64_t gate) noexcept {
    return (gate % one_version) / one_writer;
  }
  [[nodiscard]] static constexpr std::uint64_t version(std::uint64_t gate) noexcept { return gate / one_version; }
};

class shape_word {
 public:
  static constexpr std::uint64_t one_change = std::uint64_t{1} << (eviction_bits + ways);

  [[nodiscard]] static constexpr std::uint32_t policy(std::uint64_t shape) noexcept {
    return static_cast<std::uint32_t>(shape & policy_mask);
  }
  [[nodiscard]] static constexpr unsigned used(std::uint64_t shape) noexcept {
    return static_cast<unsigned>(shape >> eviction_bits) & all_ways;
  }
  [[nodiscard]] static constexpr std::uint64_t changes(std::uint64_t shape) noexcept { return shape / one_change; }
  [[nodiscard]] static constexpr std::uint64_t with_policy(std::uint64_t shape, std::uint32_t policy) noexcept {
    return (shape & ~policy_mask) | policy;
  }
  [[nodiscard]] static constexpr std::uint64_t way_bit(unsigned way) noexcept {
    return std::uint64_t{1} << (eviction_bits + way);
  }
  static constexpr unsigned all_ways = (1U << ways) - 1;

 private:
  static constexpr std::uint64_t policy_mask = (std::uint64_t{1} << eviction_bits) - 1;
};

inline constexpr unsigned no_way = ways;

struct alignas(128) entry_set {
  std::atomic<std::uint64_t> gate{0};
  std::atomic<std::uint64_t> shape{0};
  std::array<std::atomic<key_type>, ways> keys{};
  std::array<std::atomic<value_type>, ways> values{};

  // Which of the ways `used` holds `key`; no_way: none.
  [[nodiscard]] unsigned way_of(key_type key, unsigned used) const noexcept {
    unsigned equal = 0;
    for (unsigned way = 0; way < ways; ++way)
      equal |= static_cast<unsigned>(keys[way].load(std::memory_order_acquire) == key) << way;
    equal &= used;
    return equal == 0 ? no_way : static_cast<unsigned>(std::countr_zero(equal));
  }

  // For a fill: locks the gate if it is `expected`, which has no writers. Waits for another fill, a few stores long.
  [[nodiscard]] bool lock_if(std::uint64_t expected) noexcept {
    for (sync::backoff wait;; wait.pause()) {
      std::uint64_t seen = gate.load(std::memory_order_relaxed);
      if (gate_word::is_locked(seen)) continue;
      if (seen != expected) return false;
      if (gate.compare_exchange_weak(seen, seen | gate_word::locked, std::memory_order_acq_rel)) return true;
    }
  }
  // The same, but gives up where that would wait.
  [[nodiscard]] bool try_lock_if(std::uint64_t expected) noexcept {
    return gate.compare_exchange_strong(expected, expected | gate_word::locked, std::memory_order_acq_rel,
                                        std::memory_order_relaxed);
  }
  // `before`: the gate that was locked. Nothing else changes a locked gate (S2).
  void unlock(std::uint64_t before) noexcept { gate.store(before, std::memory_order_release); }

  // Counts one more writer. Waits for a fill, a few stores long; for another writer only if the count is full. Returns
  // the new gate.
  std::uint64_t begin_write() noexcept {
    for (sync::backoff wait;; wait.pause()) {
      std::uint64_t seen = gate.load(std::memory_order_relaxed);
      if (gate_word::is_locked(seen) || gate_word::writers(seen) == gate_word::most_writers) continue;
      const std::uint64_t begun = seen + gate_word::one_writer + gate_word::one_version;
      if (gate.compare_exchange_weak(seen, begun, std::memory_order_acq_rel)) return begun;
    }
  }
  void end_write() noexcept { gate.fetch_sub(gate_word::one_writer, std::memory_order_acq_rel); }

  // Changes the shape, also while readers change the policy's word: change(shape) -> shape may be called again.
  template <class Change>
  void reshape(Change&& change) noexcept {
    std::uint64_t seen = shape.load(std::memory_order_relaxed);
    while (!shape.compare_exchange_weak(seen, change(seen), std::memory_order_acq_rel)) {
    }
  }
};

static_assert(sizeof(entry_set) == 128 && ways * (sizeof(key_type) + sizeof(value_type)) + 16 == 128);

}  // namespace pmlab::cache::detail
