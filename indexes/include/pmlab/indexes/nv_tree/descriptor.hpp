// The DRAM part of an NV-Tree's leaf: its lock, its range of keys, and the fingerprints of its entries.
#pragma once

#include <pmlab/indexes/detail/fingerprints.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::nv_tree {

//   0      8     16     24     32     40         48         64                128
//   | lock | low | home | last | next | appended | reserved | fingerprints    |
//
// Everything but `low` is read under the version of `lock` and written with the lock held. A descriptor stands for one
// range's leaf, wherever its entries are: `home` changes when the leaf is replaced. It is freed when no reader is left
// that began before it was unlinked (epochs), and never used for another range.
struct alignas(media::cache_line_bytes) descriptor {
  descriptor(key_type begin, leaf* entries) noexcept : low(begin), home(entries) {}

  sync::version_lock lock;
  const key_type low;
  std::atomic<leaf*> home;
  std::atomic<key_type> last{0};           // the greatest key that this leaf is in charge of
  std::atomic<descriptor*> next{nullptr};  // the leaf that is in charge of last + 1
  std::atomic<std::uint64_t> appended{0};  // slots that are not free, with `unlinked`
  // A slot that is live has the fingerprint of its key, every other one has 0.
  static constexpr std::size_t slots_per_array = detail::marked_slots;
  alignas(media::cache_line_bytes) std::array<detail::mark_array, 2> bytes{};

  static constexpr std::uint64_t unlinked = std::uint64_t{1} << 63;

  [[nodiscard]] bool is_linked() const noexcept { return appended.load(std::memory_order_acquire) < unlinked; }
  [[nodiscard]] leaf& entries() const noexcept { return *home.load(std::memory_order_acquire); }

  // Slots with live entries.
  [[nodiscard]] slot_set live() const noexcept {
    return detail::marks(bytes[0]).used() | slot_set{detail::marks(bytes[1]).used()} << slots_per_array;
  }
  // Slots that may have this key.
  [[nodiscard]] slot_set candidates(key_type key) const noexcept {
    const fingerprint wanted = fingerprint_of(key);
    return detail::marks(bytes[0]).equal_to(wanted) | slot_set{detail::marks(bytes[1]).equal_to(wanted)}
                                                          << slots_per_array;
  }

  // ---- with the lock held, or private ----

  void set_mark(std::size_t slot, fingerprint mark) noexcept {
    constexpr std::size_t per_word = detail::bytes_per_word;
    const std::size_t place = slot % slots_per_array;
    std::atomic<std::uint64_t>& word = bytes[slot / slots_per_array][place / per_word];
    const std::uint64_t others = word.load(std::memory_order_relaxed) & ~detail::mark(place, 0xff);
    word.store(others | detail::mark(place, mark), std::memory_order_release);
  }
  void clear_marks() noexcept {
    for (detail::mark_array& half : bytes)
      for (std::atomic<std::uint64_t>& word : half) word.store(0, std::memory_order_release);
  }
};
static_assert(sizeof(descriptor) == 2 * media::cache_line_bytes);
static_assert(most_slots == 2 * descriptor::slots_per_array);

// The word by which the inner nodes name a descriptor.
[[nodiscard]] inline std::uint64_t word_of(const descriptor& d) noexcept { return reinterpret_cast<std::uint64_t>(&d); }

[[nodiscard]] inline descriptor* next_of(const descriptor& d) noexcept {
  return d.next.load(std::memory_order_acquire);
}
// REQUIRES: its low, which never changes, is at most `key`.
[[nodiscard]] inline bool is_in_charge(const descriptor& d, key_type key) noexcept {
  return d.is_linked() && key <= d.last.load(std::memory_order_relaxed);
}

}  // namespace pmlab::indexes::detail::nv_tree
