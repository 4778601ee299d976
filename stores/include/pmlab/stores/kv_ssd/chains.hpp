// The index: from the hash of a key to the place of its record. Keys with equal hashes are in a chain of slots.
//
// A key of the index is 55 bits of hash, a bit for bucket pages, and the number of a slot. Slot 0 is the first; a slot
// with `has_follower` may have a next one. The record itself decides whether it has a key.
//
// Where the medium is full, one part of the index is full before others, and refuses the slot of a key. The key gets an
// outlying slot then: one of the last three of its hash, which other parts of the index have. So the index is full as a
// whole, and what is erased anywhere makes space for any key. Searches that find no record in the chain look there,
// too, in a device whose notes say that there may be some.
//
// The words are in the global index, a cceh in the medium. A checked word is there with the parity of its name, so that
// a flipped bit of either is noticed. A name is as the table stores it: the hash of the slot.
//
// The table's directory leads to its segments: a damaged one may hide half of all keys. Closing leaves a check of it in
// the notes, which ends when the device is open: (K1) with each entry in its place  (K2) before the next one.
// (K1), (K2): the check that an opening finds is that of the directory, or there is none.
//
// With local tables, the word of a slot that was overwritten is in the table of its manager until the record is on
// flash: the slot's word of the global index leads to an older place meanwhile, which may be in use for something else.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>
#include <pmlab/stores/kv_ssd/local_tables.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

inline constexpr unsigned slot_bits = 8;
inline constexpr std::uint64_t slots = std::uint64_t{1} << slot_bits;
// The last slots of each hash are found without a chain that leads to them. A long chain may have them, too.
inline constexpr std::uint64_t outlying_slots = 3;
inline constexpr std::uint64_t first_outlying = slots - outlying_slots;

// Marks the chains of bucket pages: no chain has keys of both kinds, as they have different locks.
inline constexpr std::uint64_t bucket_bit = std::uint64_t{1} << 63;

// The first slot of a chain, of which `slot` is one.
[[nodiscard]] constexpr std::uint64_t base_of_slot(std::uint64_t slot) noexcept { return slot & ~(slots - 1); }
// The first slot of a hash.
[[nodiscard]] constexpr std::uint64_t base_of_hash(std::uint64_t hash, bool of_bucket) noexcept {
  return base_of_slot(of_bucket ? hash | bucket_bit : hash & ~bucket_bit);
}

// Index managers: each has a lock and a local table, and chains of its own.
inline constexpr std::size_t managers_of_users = 64;
inline constexpr std::size_t managers_of_buckets = 16;
[[nodiscard]] constexpr std::size_t manager_of(std::uint64_t base) noexcept {
  const std::uint64_t spread = base >> slot_bits;
  return (base & bucket_bit) != 0 ? managers_of_users + spread % managers_of_buckets : spread % managers_of_users;
}

// How often the words of the index were used since it was opened.
struct index_counts {
  std::atomic<std::uint64_t> reads{0};     // searches in the global index
  std::atomic<std::uint64_t> changes{0};   // changes of words of the global index
  std::atomic<std::uint64_t> deferred{0};  // overwrites that a local table has taken
};

// Order: (C0) the device's notes say that there are outlying slots  (C1) the predecessor has a follower
//        (C2) the new slot has its word
//   (C0) < (C2), or (C1) < (C2): each slot with a word can be reached.
// Thread safety: one writer of a manager's chains, or any number of readers.
template <media::medium Medium, class Index = indexes::cceh<Medium>>
class chains {
 public:
  // `notes`: of the device, in the medium. `local`: overwrites are deferred; `bloom`: the tables have filters. Throws
  // pmlab::error: the directory of the table is damaged.
  chains(Medium& medium, std::string_view name, word& notes, bool local, bool bloom)
      : medium_(medium),
        notes_(notes),
        may_have_outlying_((notes.load(std::memory_order_acquire) & has_outlying_slots) != 0),
        defers_(local),
        name_(name),
        index_(open()) {
    for (local_table& t : tables_) t.use(bloom);
  }
  // Words that are written are named from now on. REQUIRES: no other operation.
  void check_names() noexcept { checks_names_ = true; }
  // From now on slots may be added. REQUIRES: no other operation.
  void begin() {
    if ((notes_.load(std::memory_order_acquire) & index_check) == 0) return;
    notes_.fetch_and(~std::uint64_t{index_check}, std::memory_order_acq_rel);
    media::persist(medium_, notes_);  // (K2)
  }

  // The result of a search: the slot of the key, or the one where it is to be added.
  struct position {
    bool found = false;
    std::uint64_t slot = 0;    // key of the index; without `found` and `has_room`: nothing
    place_word place{};        // where the record is
    bool has_room = true;      // the chain has a slot for one key more
    bool is_gone = false;      // the slot has a word without a record
    bool unlinked = false;     // the predecessor has no follower yet
    place_word before{};       // its word, then
    bool is_reserved = false;  // the slot has a word without a record, by `can_add`, and nothing is behind it
  };

  // Searches for the slot whose record matches. `matches(place_word)`: the record has the key.
  template <class Matches>
  [[nodiscard]] position find(std::uint64_t base, Matches&& matches) {
    const position in_chain = find_in_chain(base, matches);
    if (in_chain.found || !was_full()) return in_chain;
    std::optional<std::uint64_t> gone;
    for (std::uint64_t n = first_outlying; n < slots; ++n)
      if (const std::optional<std::uint64_t> w = word_of(base | n)) {
        const place_word place(*w);
        if (place.is_gone())
          gone = base | n;
        else if (matches(place))
          return {.found = true, .slot = base | n, .place = place};
      }
    return gone && needs_slot(in_chain) ? gone_slot(*gone) : in_chain;
  }

  // True if a record in the write buffer for `at` is itself the commit: it is to be marked so.
  [[nodiscard]] bool defers(const position& at) const noexcept { return defers_ && at.found; }

  // What `put` of a deferred word needs: behind the record, which is the commit, nothing may fail.
  void prepare(const position& at) {
    if (defers(at)) table_of(at.slot).add(at.slot, at.place.word());
  }

  // Lets the key of `at` lead to `place`. `write_record(slot)` brings the record there, durably, for the slot that the
  // key will have; it may be called again, for another slot. `in_buffer`: the record's position there. REQUIRES:
  // `prepare`, for a place in the ring. False: no space; nothing has changed. Durable on return.
  template <class Write>
  [[nodiscard]] bool put(const position& at, place_word place, std::uint64_t in_buffer, Write&& write_record) {
    if (needs_slot(at)) return add(at, place, write_record);
    write_record(at.slot);
    const place_word next = at.is_gone || at.place.has_follower() ? place.with_follower() : place;
    if (defers(at) && place.is_in_ring()) {
      counts_.deferred.fetch_add(1, std::memory_order_relaxed);
      table_of(at.slot).set(at.slot, next.word(), in_buffer);
      return true;
    }
    return set(at.slot, next);
  }
  // The same for a record that is there, and is not replayed.
  [[nodiscard]] bool put(const position& at, place_word place) {
    return put(at, place, 0, [](std::uint64_t /*slot*/) {});
  }

  // Where the medium was full before, a new key's slot is reserved: it gets a word without a record. False: no space.
  // `put` or `release` follows, with the same lock. A crash between them leaves a word that the chain's next new key
  // gets.
  [[nodiscard]] bool can_add(position& at) {
    if (!was_full() || !needs_slot(at)) return true;
    if (!at.has_room) return false;
    std::uint64_t taken = 0;
    if (!add(at, place_word::gone_with_follower(), [&](std::uint64_t slot) { taken = slot; })) return false;
    at = {.slot = taken, .is_reserved = true};
    return true;
  }
  void release(const position& at) {
    if (at.is_reserved) static_cast<void>(index_.erase(at.slot));
  }

  // The key of `at`, which was found, leads nowhere. Durable on return.
  void erase(const position& at) {
    counts_.changes.fetch_add(1, std::memory_order_relaxed);
    if (at.place.has_follower())
      static_cast<void>(index_.update(at.slot, place_word::gone_with_follower().word()));
    else
      static_cast<void>(index_.erase(at.slot));
    table_of(at.slot).erase(at.slot);
  }

  // Opening: slots with a damaged name have the right one from now on, durably. `for_each_likely(place, visit)` calls
  // visit(slot) for the slots that one with this place may be. Returns how many there were. REQUIRES: no other
  // operation, and the local tables are empty.
  //
  // What a split of the table has left behind is taken for no slot: its name is not of that part of the table.
  template <class ForEachLikely>
  std::size_t mend_names(ForEachLikely&& for_each_likely) {
    return index_.mend_hashes([&](std::uint64_t hash, std::uint64_t w, bool is_live) -> std::optional<std::uint64_t> {
      if (is_live && place_word::of_named(w, hash).is_whole()) return std::nullopt;
      std::optional<std::uint64_t> right;
      const std::uint64_t other_parity = hash ^ (is_live ? 1 : 0);
      for_each_likely(place_word::of_named(w, other_parity), [&](std::uint64_t slot) {
        const std::uint64_t likely = Index::hash_of(slot);
        if (std::popcount(likely ^ hash) == (is_live ? 1 : 0)) right = likely;
      });
      return right;
    });
  }

  // Opening: a record in the write buffer is the newest of the slot's key. Nothing happens if the slot has no record:
  // its key was deleted later. Durable on return. REQUIRES: the local tables are empty.
  void replay(std::uint64_t slot, place_word place) {
    const std::optional<std::uint64_t> w = in_table(slot);
    if (!w || place_word(*w).is_gone()) return;
    static_cast<void>(set(slot, place_word(*w).has_follower() ? place.with_follower() : place));
  }

  // Opening: the slot's key has lost its record, and gets the word `lost`. Durable on return. REQUIRES: the local
  // tables are empty.
  void lose(std::uint64_t slot, place_word lost) {
    const std::optional<std::uint64_t> w = in_table(slot);
    if (!w || place_word(*w).is_gone() || (place_word(*w).is_whole() && place_word(*w).is_lost())) return;
    static_cast<void>(set(slot, place_word(*w).has_follower() ? lost.with_follower() : lost));
  }

  // The global index leads to what the manager's local table leads to, where that has had a record before the position
  // `in_buffer`. Durable on return. REQUIRES: the manager's lock is held.
  void settle_before(std::size_t manager, std::uint64_t in_buffer) {
    tables_[manager].settle_before(in_buffer, [&](std::uint64_t slot, std::uint64_t w) {
      counts_.changes.fetch_add(1, std::memory_order_relaxed);
      static_cast<void>(index_.update(slot, for_table(slot, place_word(w))));
    });
  }
  // Closing: the global index leads to all that the local tables lead to, and has a check. Durable on return. False: a
  // slot has no word. REQUIRES: no other operation, and none follows.
  [[nodiscard]] bool settle() {
    bool is_done = true;
    for (const local_table& t : tables_)
      t.for_each([&](std::uint64_t slot, std::uint64_t w) {
        is_done = index_.update(slot, for_table(slot, place_word(w))) == indexes::outcome::updated && is_done;
      });
    notes_.fetch_or(check_of_directory(), std::memory_order_acq_rel);
    media::persist(medium_, notes_);  // (K1)
    return is_done;
  }

  // The slot that leads to `place`.
  [[nodiscard]] position find_place(std::uint64_t base, place_word place) {
    return find(base, [&](place_word w) { return w.is_same_place(place); });
  }

  // True: no key has this hash, nor had one that a later key of it followed. Needs no lock; a key may be added
  // meanwhile.
  [[nodiscard]] bool is_empty(std::uint64_t base) {
    const auto has_record_or_follower = [&](std::uint64_t n) {
      const std::optional<std::uint64_t> w = index_.find(base | n);
      return w && (!place_word(*w).is_gone() || (n == 0 && index_.find(base | 1)));
    };
    if (has_record_or_follower(0)) return false;
    if (!was_full()) return true;
    for (std::uint64_t n = first_outlying; n < slots; ++n)
      if (has_record_or_follower(n)) return false;
    return true;
  }

  // The word of a slot, if it has a record.
  [[nodiscard]] std::optional<place_word> place_of(std::uint64_t slot) {
    const std::optional<std::uint64_t> w = word_of(slot);
    if (!w || place_word(*w).is_gone()) return std::nullopt;
    return place_word(*w);
  }
  // Calls visit(slot, place) for each slot with a record. REQUIRES: no writer.
  template <class Visit>
  void for_each(Visit&& visit) const {
    index_.for_each([&](std::uint64_t slot, std::uint64_t w) {
      const std::optional<std::uint64_t> local = tables_[manager_of(slot)].find(slot);
      const place_word place = local ? place_word(*local) : place_word::of_named(w, Index::hash_of(slot));
      if (!place.is_gone()) visit(slot, place);
    });
  }
  // Calls visit(slot) for each slot with a word, beside writers: those that are there throughout, and some of the
  // others.
  template <class Visit>
  void for_each_slot_beside_writers(Visit&& visit) {
    index_.for_each_beside_writers([&](std::uint64_t slot, std::uint64_t) { visit(slot); });
  }
  // Opening: as for_each, with empty local tables, and removes words without a record that lead nowhere. A crash
  // between `can_add` and `put` has left them.
  template <class Visit>
  void recover(Visit&& visit) {
    std::vector<std::uint64_t> gone;
    index_.for_each([&](std::uint64_t slot, std::uint64_t w) {
      const auto place = place_word::of_named(w, Index::hash_of(slot));
      if (!place.is_gone())
        visit(slot, place);
      else if (was_full())
        gone.push_back(slot);
    });
    std::ranges::sort(gone, std::greater<>());  // the last of a chain comes first
    for (const std::uint64_t slot : gone) {
      const bool is_last = (slot + 1) % slots == 0;
      if (is_last || !index_.find(slot + 1)) static_cast<void>(index_.erase(slot));
    }
  }
  [[nodiscard]] const index_counts& counts() const noexcept { return counts_; }
  // Calls visit(counts) for each local table.
  template <class Visit>
  void for_each_table(Visit&& visit) const {
    for (const local_table& t : tables_) visit(t.counts());
  }
  [[nodiscard]] std::uint64_t medium_bytes() const { return index_.stats().medium_bytes; }
  [[nodiscard]] indexes::check_report check() const { return index_.check(); }

 private:
  [[nodiscard]] Index open() {
    const std::uint64_t check = notes_.load(std::memory_order_acquire) & index_check;
    if (check != 0 && check != check_of_directory())
      throw error("the index of the key-value device in " + medium_.name() + " is damaged: its directory",
                  "restore the pool and the flash from a copy, or rebuild the memory from the flash");
    return Index::open(medium_, name_);
  }
  [[nodiscard]] std::uint64_t check_of_directory() {
    const std::uint64_t sum = Index::directory_sum(medium_, name_) & index_check;
    return sum != 0 ? sum : index_check;
  }

  // A slot that has no word gets one. Where the medium was full before, the index grows only if it must: what it takes,
  // it keeps, and the directory needs some again when its nodes split.
  template <class Write>
  [[nodiscard]] bool add(const position& at, place_word place, Write&& write_record) {
    const auto try_slot = [&](std::uint64_t slot, bool may_grow) {
      write_record(slot);
      counts_.changes.fetch_add(1, std::memory_order_relaxed);
      const std::uint64_t w = for_table(slot, place);
      return indexes::outcome::inserted == (may_grow ? index_.insert(slot, w)  // (C2)
                                                     : index_.insert_without_split(slot, w));
    };
    const auto try_chain = [&](bool may_grow) {
      if (at.unlinked) static_cast<void>(set(at.slot - 1, at.before.with_follower()));  // (C1)
      if (try_slot(at.slot, may_grow)) return true;
      if (at.unlinked) static_cast<void>(set(at.slot - 1, at.before));  // nothing follows
      return false;
    };
    if (!was_full()) {
      if (try_chain(true)) return true;
      notes_.fetch_or(has_outlying_slots, std::memory_order_acq_rel);
      media::persist(medium_, notes_);  // (C0)
      may_have_outlying_.store(true, std::memory_order_release);
    }
    for (const bool may_grow : {false, true}) {
      if (try_chain(may_grow)) return true;
      // From the last one down: a chain comes to them from the other side.
      for (std::uint64_t slot = base_of_slot(at.slot) + slots; slot-- > base_of_slot(at.slot) + first_outlying;)
        if (!word_of(slot) && try_slot(slot, may_grow)) return true;
    }
    return false;
  }

  template <class Matches>
  [[nodiscard]] position find_in_chain(std::uint64_t base, Matches&& matches) {
    std::optional<std::uint64_t> free;
    for (std::uint64_t n = 0; n < slots; ++n) {
      const std::optional<std::uint64_t> w = word_of(base | n);
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

  [[nodiscard]] bool was_full() const noexcept { return may_have_outlying_.load(std::memory_order_acquire); }
  [[nodiscard]] static bool needs_slot(const position& at) noexcept {
    return !at.found && !at.is_gone && !at.is_reserved;
  }
  [[nodiscard]] static position gone_slot(std::uint64_t slot) { return {.slot = slot, .is_gone = true}; }

  // The word that the global index has for a slot, and the one that it gets.
  [[nodiscard]] std::optional<std::uint64_t> in_table(std::uint64_t slot) {
    const std::optional<std::uint64_t> w = index_.find(slot);
    if (!w) return std::nullopt;
    return place_word::of_named(*w, Index::hash_of(slot)).word();
  }
  [[nodiscard]] std::uint64_t for_table(std::uint64_t slot, place_word place) const noexcept {
    return checks_names_ ? place.named(Index::hash_of(slot)) : place.word();
  }

  [[nodiscard]] local_table& table_of(std::uint64_t slot) noexcept { return tables_[manager_of(slot)]; }
  [[nodiscard]] std::optional<std::uint64_t> word_of(std::uint64_t slot) {
    if (const std::optional<std::uint64_t> w = table_of(slot).find(slot)) return w;
    counts_.reads.fetch_add(1, std::memory_order_relaxed);
    return in_table(slot);
  }
  // The slot, which has a word, gets this one.
  [[nodiscard]] bool set(std::uint64_t slot, place_word place) {
    counts_.changes.fetch_add(1, std::memory_order_relaxed);
    const bool done = index_.update(slot, for_table(slot, place)) == indexes::outcome::updated;
    table_of(slot).erase(slot);
    return done;
  }

  Medium& medium_;
  word& notes_;
  std::atomic<bool> may_have_outlying_;  // a copy of the notes in DRAM, for each search for an absent key
  bool defers_;
  bool checks_names_ = false;
  std::string name_;
  Index index_;
  std::array<local_table, managers_of_users + managers_of_buckets> tables_;
  index_counts counts_;
};

}  // namespace pmlab::stores::detail::kv_ssd
