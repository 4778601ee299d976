// The global index: from the hash of a key to the place of its record. Keys with equal hashes are in a chain of slots.
//
// A key of the index is 55 bits of hash, a bit for bucket pages, and the number of a slot. Slot 0 is the first; a slot with `has_follower` may
// have a next one. The record itself decides whether it is that of a key.
#pragma once

#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::stores::detail::kv_ssd {

inline constexpr unsigned slot_bits = 8;
inline constexpr std::uint64_t slots = std::uint64_t{1} << slot_bits;

// Of the chains of bucket pages: no chain has keys of both kinds, as they have different locks.
inline constexpr std::uint64_t bucket_bit = std::uint64_t{1} << 63;

// The first slot of a chain, of which `slot` is one.
[[nodiscard]] constexpr std::uint64_t base_of_slot(std::uint64_t slot) noexcept { return slot & ~(slots - 1); }
// The first slot of a hash.
[[nodiscard]] constexpr std::uint64_t base_of_hash(std::uint64_t hash, bool of_bucket) noexcept {
  return base_of_slot(of_bucket ? hash | bucket_bit : hash & ~bucket_bit);
}

// Order: (C1) the predecessor has a follower  (C2) the new slot has its word
//   (C1) < (C2): each slot with a word can be reached.
// Thread safety: one writer of a chain, or any number of readers.
template <media::medium Medium>
class chains {
 public:
  chains(Medium& medium, std::string_view name) : index_(indexes::cceh<Medium>::open(medium, name)) {}

  // The result of a search: the slot of the key, or the one where it is to be added.
  struct position {
    bool found = false;
    std::uint64_t slot = 0;  // key of the index; without `found` and `has_room`: nothing
    place_word place{};      // of the record
    bool has_room = true;    // the chain has a slot for one key more
    bool is_gone = false;    // the slot has a word without a record
    bool unlinked = false;   // the predecessor has no follower yet
    place_word before{};     // its word, then
  };

  // Searches for the slot whose record matches. `matches(place_word)`: it is that of the key.
  template <class Matches>
  [[nodiscard]] position find(std::uint64_t base, Matches&& matches) {
    position at;
    std::optional<std::uint64_t> free;
    for (std::uint64_t n = 0; n < slots; ++n) {
      const std::optional<std::uint64_t> w = index_.find(base | n);
      if (!w) {
        if (free) return gone_slot(*free);
        return {.slot = base | n};
      }
      const place_word place(*w);
      if (place.is_gone()) {
        if (!free) free = base | n;
      } else if (matches(place)) {
        return {.found = true, .slot = base | n, .place = place};
      }
      if (!place.has_follower()) {
        if (free) return gone_slot(*free);
        if (n + 1 == slots) break;
        return {.slot = base | (n + 1), .unlinked = true, .before = place};
      }
    }
    return {.has_room = false};
  }

  // Lets the key of `at` lead to `place`. False: no space; nothing has changed. Durable on return.
  [[nodiscard]] bool put(const position& at, place_word place) {
    if (at.found) {
      const place_word next = at.place.has_follower() ? place.with_follower() : place;
      return index_.update(at.slot, next.word()) == indexes::outcome::updated;
    }
    if (at.is_gone) return index_.update(at.slot, place.with_follower().word()) == indexes::outcome::updated;
    if (at.unlinked) static_cast<void>(index_.update(at.slot - 1, at.before.with_follower().word()));  // (C1)
    return index_.insert(at.slot, place.word()) == indexes::outcome::inserted;                         // (C2)
  }

  // The key of `at`, which was found, leads nowhere. Durable on return.
  void erase(const position& at) {
    if (at.place.has_follower())
      static_cast<void>(index_.update(at.slot, place_word::gone_with_follower().word()));
    else
      static_cast<void>(index_.erase(at.slot));
  }

  // The slot that leads to `place`.
  [[nodiscard]] position find_place(std::uint64_t base, place_word place) {
    return find(base, [&](place_word w) { return w.is_same_place(place); });
  }

  // Calls visit(slot, place) for each slot with a record. REQUIRES: no writer.
  template <class Visit>
  void for_each(Visit&& visit) const {
    index_.for_each([&](std::uint64_t slot, std::uint64_t w) {
      if (!place_word(w).is_gone()) visit(slot, place_word(w));
    });
  }
  [[nodiscard]] std::uint64_t medium_bytes() const { return index_.stats().medium_bytes; }
  [[nodiscard]] indexes::check_report check() const { return index_.check(); }

 private:
  [[nodiscard]] static position gone_slot(std::uint64_t slot) { return {.slot = slot, .is_gone = true}; }

  indexes::cceh<Medium> index_;
};

}  // namespace pmlab::stores::detail::kv_ssd
