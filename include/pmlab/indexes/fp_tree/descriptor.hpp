// The DRAM part of an FP-tree's leaf: its lock, its range of keys, and the fingerprints of its entries.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/base/linked.hpp>
#include <pmlab/indexes/detail/four_words.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pmlab::indexes::detail::fp_tree {

using fingerprint = std::uint8_t;

// A hash of the key as a fraction of 2^32 times the number of fingerprints: below the point are 32 bits more.
[[nodiscard]] constexpr std::uint64_t hash_of(std::uint64_t key) noexcept {
  constexpr std::uint64_t odd = golden_ratio;
  constexpr std::uint64_t fingerprints = 255;
  return ((key ^ (key >> 32)) * odd >> 32) * fingerprints;
}

// Never 0, which marks a free slot.
[[nodiscard]] constexpr fingerprint fingerprint_of(std::uint64_t key) noexcept {
  return static_cast<fingerprint>((hash_of(key) >> 32) + 1);
}

// A slot whose line is the key's home line, by bits of the hash that are not in the fingerprint. All slots are equally
// likely, so that a line is home to as many keys as it has room for.
[[nodiscard]] constexpr std::size_t home_slot_of(std::uint64_t key) noexcept {
  return (hash_of(key) & 0xffffffffU) * capacity >> 32;
}

// Of the free slots, of which there is one, that of a new entry: in the home line if it has one; else beside the
// bitmap, whose line is written in any case, or else anywhere.
[[nodiscard]] constexpr std::size_t slot_for(std::uint64_t key, slot_set free) noexcept {
  const slot_set at_home = free & slots_of_line(line_of(home_slot_of(key)));
  return static_cast<std::size_t>(std::countr_zero(at_home != 0 ? at_home : free));
}

inline constexpr std::size_t mark_words = 4;
inline constexpr std::size_t bytes_per_word = 8;

// The bytes of a descriptor's marks: 31 fingerprints, and 1 in the last one if the leaf is part of the tree.
using mark_array = std::array<std::atomic<std::uint64_t>, mark_words>;

[[nodiscard]] constexpr std::uint64_t mark(std::size_t place, std::uint8_t byte) noexcept {
  return std::uint64_t{byte} << (place % bytes_per_word * 8);
}

// A copy of a descriptor's marks: each word is read atomically, all of it only if the version was valid.
class marks {
 public:
  explicit marks(const mark_array& words) noexcept : words_(words) {}

  // Slots with this fingerprint.
  [[nodiscard]] slot_set equal_to(fingerprint wanted) const noexcept { return bytes_equal_to(wanted) & all_slots; }
  [[nodiscard]] slot_set free() const noexcept { return equal_to(0); }
  [[nodiscard]] slot_set used() const noexcept { return ~bytes_equal_to(0) & all_slots; }

 private:
  using half = four_words::half;

  [[nodiscard]] slot_set bytes_equal_to(std::uint8_t byte) const noexcept {
    return half_equal_to(words_.low(), byte) | half_equal_to(words_.high(), byte) << sizeof(half);
  }

  // Bit i: byte i of the half is `byte`.
  [[nodiscard]] static slot_set half_equal_to(const half& bytes, std::uint8_t byte) noexcept {
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(byte));
    return static_cast<slot_set>(_mm_movemask_epi8(_mm_cmpeq_epi8(reinterpret_cast<__m128i>(bytes), wanted)));
#else
    constexpr std::uint64_t ones = 0x0101010101010101U;
    constexpr std::uint64_t low_bits = 0x7f * ones;
    slot_set result = 0;
    for (std::size_t i = 0; i < sizeof(half) / bytes_per_word; ++i) {
      const std::uint64_t differences = bytes[i] ^ (byte * ones);
      // 0x80 in every byte that is 0, then these bits gathered into the upper byte.
      const std::uint64_t zeroes = ~(((differences & low_bits) + low_bits) | differences | low_bits);
      result |= static_cast<slot_set>(((zeroes >> 7) * 0x0102040810204080U) >> 56) << (bytes_per_word * i);
    }
    return result;
#endif
  }

  four_words words_;
};

//   0      8      16     24     32                                     63       64
//   | lock | home | last | next | fingerprints of slots 0 .. 30        | linked |
//
// Everything but `home` is read under the version of `lock` and written with the lock held, while the descriptor is
// linked. A descriptor belongs to its leaf for ever; it may be removed from the tree and be reused for another range of
// keys. Its version never decreases, so that a late reader detects the reuse.
struct alignas(media::cache_line_bytes) descriptor {
  sync::version_lock lock;
  leaf* home = nullptr;                    // where the entries are
  std::atomic<std::uint64_t> last{0};      // the greatest key that this leaf is in charge of
  std::atomic<descriptor*> next{nullptr};  // the leaf that is in charge of last + 1; of a free one: the next free one
  mark_array bytes{};

  [[nodiscard]] marks read_marks() const noexcept { return marks(bytes); }
  [[nodiscard]] bool is_linked() const noexcept {
    return bytes[mark_words - 1].load(std::memory_order_acquire) >= mark(capacity, 1);
  }

  // ---- with the lock held, or private ----

  void set_byte(std::size_t place, std::uint8_t byte) noexcept {
    std::atomic<std::uint64_t>& word = bytes[place / bytes_per_word];
    const std::uint64_t others = word.load(std::memory_order_relaxed) & ~mark(place, 0xff);
    word.store(others | mark(place, byte), std::memory_order_release);
  }
  void clear_marks() noexcept {
    for (std::atomic<std::uint64_t>& word : bytes) word.store(0, std::memory_order_release);
  }
  void set_linked(bool linked) noexcept { set_byte(capacity, linked ? 1 : 0); }
};
static_assert(sizeof(descriptor) == media::cache_line_bytes);
static_assert(offsetof(descriptor, bytes) == sizeof(descriptor) / 2);

// The descriptors of one leaf group, in the order of the leaves; and beside them, since only writers need it, the least
// key that each leaf is in charge of. The words behind these belong to the leaf_store, under its mutex.
inline constexpr std::size_t page_bytes = 4096;

struct alignas(page_bytes) descriptor_page {
  std::array<descriptor, leaves_per_group> descriptors;
  std::array<std::atomic<std::uint64_t>, leaves_per_group> lows{};
  std::uint64_t group = 0;  // its number in the group_table; set before a descriptor of it is linked

  descriptor_page* newer = nullptr;  // its neighbours in the medium's list of groups
  descriptor_page* older = nullptr;
  descriptor* free = nullptr;  // the first of its free leaves, and how many there are (free_leaves)
  std::uint32_t free_count = 0;
  std::uint32_t cursor = 0;  // where the search for a leaf to move continues
  descriptor_page* previous_in_class = nullptr;
  descriptor_page* next_in_class = nullptr;
  std::uint64_t ticket = 0;  // of a group that waits to be released; 0: it does not

  [[nodiscard]] static descriptor_page& of(const descriptor& d) noexcept {
    return *reinterpret_cast<descriptor_page*>(reinterpret_cast<std::uintptr_t>(&d) & ~(page_bytes - 1));
  }
  [[nodiscard]] static std::size_t place_of(const descriptor& d) noexcept {
    return reinterpret_cast<std::uintptr_t>(&d) % page_bytes / sizeof(descriptor);
  }
};
static_assert(sizeof(descriptor_page) == page_bytes);
static_assert(offsetof(descriptor_page, descriptors) == 0);

// A list of groups, of which each is in one at most: those of a class (free_leaves), or those that wait (leaf_store).
using page_list = linked<&descriptor_page::previous_in_class, &descriptor_page::next_in_class>;

[[nodiscard]] inline std::atomic<std::uint64_t>& low_of(const descriptor& d) noexcept {
  return descriptor_page::of(d).lows[descriptor_page::place_of(d)];
}

}  // namespace pmlab::indexes::detail::fp_tree
