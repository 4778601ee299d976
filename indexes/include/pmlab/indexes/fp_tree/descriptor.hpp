// The DRAM part of an FP-tree's leaf: its lock, its range of keys, and the fingerprints of its entries.
#pragma once

#include <pmlab/base/linked.hpp>
#include <pmlab/indexes/detail/fingerprints.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fp_tree {

using detail::bytes_per_word;
using detail::fingerprint;
using detail::hash_of;
using detail::mark;
using detail::mark_array;
using detail::mark_words;
using detail::marks;
static_assert(capacity == detail::marked_slots);

// The line where an entry of `key` belongs, by the hash: any but the bitmap's, whose slots are for entries on their way
// (insert_plan.hpp). The others are equally likely.
[[nodiscard]] constexpr std::size_t home_line(std::uint64_t key) noexcept {
  // The product's upper half is a slot, its lower half evenly distributed again. Earlier releases had home slots beside
  // the bitmap; where they had none this is their home line, so that searches in their leaves stay short.
  const std::uint64_t product = (hash_of(key) & 0xffffffffU) * capacity;
  const std::size_t line = line_of(product >> 32);
  return line != 0 ? line : 1 + ((product & 0xffffffffU) * (lines_per_leaf - 1) >> 32);
}

// A byte of the hash, never 0, which marks a free slot. Keys of different home lines have different fingerprints: a
// search that compares an entry of another key reads its own home line for that, nearly always.
[[nodiscard]] constexpr fingerprint fingerprint_of(std::uint64_t key) noexcept {
  constexpr std::uint64_t of_a_line = 255 / (lines_per_leaf - 1);
  return static_cast<fingerprint>(1 + (home_line(key) - 1) * of_a_line + ((hash_of(key) >> 32) * of_a_line >> 8));
}

// The slot of an entry that moves to a leaf whose bitmap's line is written in any case. REQUIRES: one is free. A free
// one in the home line; else one beside the bitmap, or else anywhere.
[[nodiscard]] constexpr std::size_t slot_for(std::uint64_t key, slot_set free) noexcept {
  const slot_set at_home = free & slots_of_line(home_line(key));
  return static_cast<std::size_t>(std::countr_zero(at_home != 0 ? at_home : free));
}

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
  std::uint64_t ticket = 0;  // ticket of a group that waits to be released; 0: it does not

  [[nodiscard]] static descriptor_page& of(const descriptor& d) noexcept {
    return *reinterpret_cast<descriptor_page*>(reinterpret_cast<std::uintptr_t>(&d) & ~(page_bytes - 1));
  }
  [[nodiscard]] static std::size_t place_of(const descriptor& d) noexcept {
    return reinterpret_cast<std::uintptr_t>(&d) % page_bytes / sizeof(descriptor);
  }
};
static_assert(sizeof(descriptor_page) == page_bytes);
static_assert(offsetof(descriptor_page, descriptors) == 0);

// A list of groups: one of a class (free_leaves), or the list of waiting ones (leaf_store). A group is in one at most.
using page_list = linked<&descriptor_page::previous_in_class, &descriptor_page::next_in_class>;

[[nodiscard]] inline std::atomic<std::uint64_t>& low_of(const descriptor& d) noexcept {
  return descriptor_page::of(d).lows[descriptor_page::place_of(d)];
}

[[nodiscard]] inline bool is_in_charge(const descriptor& d, std::uint64_t key) noexcept {
  return d.is_linked() && low_of(d).load(std::memory_order_acquire) <= key &&
         key <= d.last.load(std::memory_order_acquire);
}

}  // namespace pmlab::indexes::detail::fp_tree
