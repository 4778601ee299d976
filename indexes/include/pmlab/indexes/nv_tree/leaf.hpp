// The medium part of an NV-Tree: leaves, in which entries are appended.
#pragma once

#include <pmlab/indexes/detail/leaf_group.hpp>
#include <pmlab/indexes/detail/slot_bits.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pointer.hpp>

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::nv_tree {

// A key has the upper bits of its leaf's low: no leaf has keys of two regions. So a word has room for a key and
// the state of its slot, and one store makes an entry valid.
inline constexpr unsigned region_bits = 2;
inline constexpr std::size_t regions = std::size_t{1} << region_bits;
inline constexpr key_type region_mask = ~(~key_type{0} >> region_bits);

[[nodiscard]] constexpr key_type region_of(key_type key) noexcept { return key & region_mask; }
[[nodiscard]] constexpr bool begins_region(key_type low) noexcept { return region_of(low) == low; }
[[nodiscard]] constexpr bool ends_region(key_type last) noexcept { return begins_region(last + 1); }
[[nodiscard]] constexpr key_type low_of_region(std::size_t i) noexcept { return key_type{i} << (64 - region_bits); }

enum class states : std::uint8_t {
  free = 0,  // nothing was appended here
  live = 1,
  dead = 2,  // erased; its place is reclaimed when the leaf is replaced
};

//   63                         2 1       0
//   | lower 62 bits of the key  | state   |
struct slot_word {
  std::uint64_t word = 0;

  static constexpr std::uint64_t state_mask = 3;

  static constexpr slot_word of(key_type key, states state) noexcept {
    return {key << region_bits | static_cast<std::uint64_t>(state)};
  }
  // `low`: any key of the leaf.
  [[nodiscard]] constexpr key_type key(key_type low) const noexcept { return word >> region_bits | region_of(low); }
  [[nodiscard]] constexpr std::uint64_t state() const noexcept { return word & state_mask; }
  [[nodiscard]] constexpr bool is(states s) const noexcept { return state() == static_cast<std::uint64_t>(s); }
  [[nodiscard]] constexpr slot_word with(states s) const noexcept {
    return {(word & ~state_mask) | static_cast<std::uint64_t>(s)};
  }
};

struct slot {
  std::atomic<slot_word> word;
  std::atomic<value_type> value;
};
static_assert(sizeof(slot) == 16 && std::atomic<slot_word>::is_always_lock_free);

// One bit for each slot of a leaf.
using slot_set = std::uint64_t;

[[nodiscard]] constexpr std::size_t count_of(slot_set set) noexcept {
  return static_cast<std::size_t>(std::popcount(set));
}

//   0      8     16          24         32       48       64                           1024
//   | link | low | low again | reserved | slot 0 | slot 1 | slots 2 .. 5 | ... 58 .. 61 |
//
//   L1  The slots of a leaf that are not free are its first ones: entries are appended. No slot lies in two lines.
//   L2  A key is live in one slot of the tree at most, in the leaf whose range it is in.
//   L3  A leaf's `low` never changes, from before the medium leads to it. Its range begins there, and ends where the
//       next one's begins. The leaves are a list by their links, in ascending order of `low`, and each region has a
//       leaf that begins with it.
//   L4  A link has a check of the leaf's place, of its low and of the place that it leads to, in bits that a place does
//       not need: an overwritten link or low is detected. Then the other one of the two words of a low
//       is used.
struct leaf {
  std::atomic<std::uint64_t> link;
  std::atomic<key_type> low;
  std::atomic<key_type> low_again;
  std::atomic<std::uint64_t> reserved;

  [[nodiscard]] slot& operator[](std::size_t i) noexcept { return reinterpret_cast<slot*>(this + 1)[i]; }
  [[nodiscard]] const slot& operator[](std::size_t i) const noexcept {
    return reinterpret_cast<const slot*>(this + 1)[i];
  }
};
static_assert(sizeof(leaf) == 32 && sizeof(leaf) % sizeof(slot) == 0);

// True if the keys of the leaf's first `count` slots are all less than `key`; so it is none of them. `low`: the leaf's.
[[nodiscard]] inline bool has_only_keys_below(const leaf& l, std::size_t count, key_type low, key_type key) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    if (l[i].word.load(std::memory_order_relaxed).key(low) >= key) return false;
  return true;
}

// Four device lines. Histories of a few operations fill several leaves of two cache lines.
template <class Medium>
inline constexpr std::size_t leaf_bytes = media::sizes_on<Medium>.small_slabs ? 2 * media::cache_line_bytes : 1024;
template <class Medium>
inline constexpr std::size_t slots_of_leaf = (leaf_bytes<Medium> - sizeof(leaf)) / sizeof(slot);
inline constexpr std::size_t most_slots = 62;

using leaf_place = media::pointer<leaf>;

inline constexpr unsigned place_bits = 48;
inline constexpr std::uint64_t place_mask = (std::uint64_t{1} << place_bits) - 1;

[[nodiscard]] constexpr std::uint64_t link_to(leaf_place next, leaf_place from, key_type low) noexcept {
  assert((next.word() & ~place_mask) == 0);
  return (detail::check_of(from.word(), low, next.word()) & ~place_mask) | next.word();
}

// The header of a leaf as it was read.
struct read_header {
  read_header(const leaf& l, leaf_place place) noexcept {
    const std::uint64_t link = l.link.load(std::memory_order_acquire);
    const key_type again = l.low_again.load(std::memory_order_acquire);
    low = l.low.load(std::memory_order_acquire);
    next = leaf_place(link & place_mask);
    if (link != link_to(next, place, low)) low = again;
    leads_on = link == link_to(next, place, low);
    is_whole = leads_on && l.low.load(std::memory_order_acquire) == again;
  }
  key_type low;     // the right one, if one of the two words is
  leaf_place next;  // null: this is the last leaf
  bool leads_on;    // the link is that of this leaf and of `low`
  bool is_whole;    // L4 holds
};

}  // namespace pmlab::indexes::detail::nv_tree
