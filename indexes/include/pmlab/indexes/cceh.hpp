// CCEH: extendible hashing in cache lines, after Nam et al., FAST'19 [CCEH].
//
// Use it for point operations on any medium. It keeps no order: for scans use a tree.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: finds write nothing shared; they wait only while a writer changes the same segment (or one that shares its
// version lock). Writers exclude each other per segment.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the segment's version lock, and a reader returns only if that lock was free and unchanged
// while it read: it cannot have read anything that a crash undoes.
//
// Layout (medium):
//
//   named root -> directory: | global depth | entry | entry | ... |          entry = segment pointer | local depth
//                                               |
//                                               v
//                            segment: 64 windows of 256 bytes; window: 4 lines of 4 slots (detail/cceh_segment.hpp)
//
// In DRAM: a copy of the directory and the version locks. Opening reads the directory and no segment; the first
// operation on a segment reads it once to find its overflow bits.
//
// Differences from the paper: the hash is bijective and its prefix and window are implied by the place, so that 16
// slots fill a device line without a header, and every key and value is allowed; the window's 6 bits that this frees
// locate the overflow entries of a line, so that most searches read one cache line, absent keys included. Local depths
// live in the directory entries: a split publishes them with the segment, in one store per entry, and there is no
// segment header to tear. A full window borrows space from the three others of its KB, so segments fill further before
// they split.
//
// Invariants, beside those of the directory (detail/extendible/segment_directory.hpp):
//   I1  The overflow bits of a segment cover each of its entries, unless its cached directory entry is "unsearched".
//   I2  A key is live in at most one slot of the segment that the directory names for it.
//   I3  A slot of a segment holds an entry with the hash prefix that the segment was created with, or nothing but
//       overflow bits.
//
// Damage: `open` refuses an inconsistent directory, before it follows it. `check` detects, by I3, nearly every
// misplaced word: of random words, all but one in 2^(d+1) in a segment that was created with depth d. It cannot detect
// a changed value, nor an entry that was overwritten with zeros or with another entry's words.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh/segment.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/extendible/check.hpp>
#include <pmlab/indexes/detail/extendible/salvage.hpp>
#include <pmlab/indexes/detail/extendible/segment_directory.hpp>
#include <pmlab/indexes/detail/hash_changes.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::indexes {

// Extendible hash table [CCEH]. See the file's prologue for its use, thread safety, durability and layout. Operations:
// O(1), one flush and one fence per change except for splits and growth.
template <media::medium Medium>
class cceh {
  using segment = detail::cceh::segment;
  using slot = detail::cceh::slot;
  using position = detail::cceh::position;
  using slot_word = detail::cceh::slot_word;
  using entry_line = detail::entry_line;
  using entry_word = detail::extendible::entry_word;
  using changes = detail::hash_changes;
  using step = detail::extendible::step;
  using segment_directory = detail::extendible::segment_directory<Medium, segment>;
  friend changes;

 public:
  static constexpr std::string_view layout_name = "cceh";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the table `name` in `medium`, or makes an empty one of two segments. Completes a split that a crash
  // interrupted. Time: proportional to the directory (8 bytes per 600 entries or so). Throws pmlab::error: the name
  // belongs to another layout, the directory is corrupt, no space for an empty table. `medium` must outlive the index.
  static cceh open(Medium& medium, std::string_view name = layout_name) { return cceh(medium, name); }

  // Calls function(key, value) for the readable entries of a table that does not open, or is damaged. Changes nothing.
  // Throws pmlab::error at the end if some slots could not be read, with their number.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    detail::extendible::salvage<segment>(medium, root, table_name, function);
  }

  // For callers that keep a check of the table while it is closed: a checksum of its directory, which changes when a
  // segment is split. 0: there is no table. Throws pmlab::error: the directory is corrupt. REQUIRES: no writer.
  [[nodiscard]] static std::uint64_t directory_sum(Medium& medium, std::string_view name) {
    return segment_directory::sum_of(medium, *medium.named_root(name, layout_name, layout_version).word, table_name);
  }

  cceh(const cceh&) = delete;
  cceh& operator=(const cceh&) = delete;
  ~cceh() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and one fence, unless the segment is split.
  outcome insert(key_type key, value_type value) { return changes::insert(*this, key, value); }

  // The same, where the segment of the key has a slot for it. full: it has none; no segment is split.
  outcome insert_without_split(key_type key, value_type value) {
    return change(key, [&](const location& at, slot found) -> step {
      if (found) return outcome::exists;
      const step added = add(at, value);
      return added.must_split ? outcome::full : added;
    });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) { return changes::update(*this, key, value); }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) { return changes::upsert(*this, key, value); }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. The slot is free for another key;
  // segments are never freed.
  outcome erase(key_type key) { return changes::erase(*this, key); }

  // The value of `key`. Reads one window of 256 bytes, and another one only where a full window lends.
  std::optional<value_type> find(key_type key) {
    const std::uint64_t hash = detail::hash_of_key(key);
    return find_hash(hash, searchable_entry(hash));
  }

  // Prefetches the line in which a search for `key` begins.
  void prefetch_find(key_type key) noexcept {
    const std::uint64_t hash = detail::hash_of_key(key);
    prefetch_home_line(*segment_of(current_entry(hash)), hash);
  }

  // values[i] := find(keys[i]). The first cache miss of each search overlaps with the others'.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    detail::in_batches<batch_width>(keys, values, [this](const auto some, const auto found) {
      std::array<std::uint64_t, batch_width> hashes;
      std::array<entry_word, batch_width> entries;
      for (std::size_t i = 0; i < some.size(); ++i) {
        hashes[i] = detail::hash_of_key(some[i]);
        entries[i] = searchable_entry(hashes[i]);
        prefetch_home_line(*segment_of(entries[i]), hashes[i]);
      }
      for (std::size_t i = 0; i < some.size(); ++i) found[i] = find_hash(hashes[i], entries[i]);
    });
  }

  // The one key with this hash, whose upper bits select the segment: for tests that fill segments unevenly.
  [[nodiscard]] static constexpr key_type key_of_hash(std::uint64_t hash) noexcept { return detail::key_of_hash(hash); }

  // The bits by which the table stores a key.
  [[nodiscard]] static constexpr std::uint64_t hash_of(key_type key) noexcept { return detail::hash_of_key(key); }

  // For callers whose values have a check of their keys' hashes: calls right(hash, value, is_live) for each slot that
  // is not empty, also for one that a split has left behind, or that damage hides (`is_live`: false if it looks empty).
  // Where it returns another hash than the slot has, which belongs into the slot's segment, the slot has this one from
  // now on; or none, if another slot has it. Durable on return. Returns how many slots were changed. REQUIRES: no other
  // operation.
  template <class Right>
  std::size_t mend_hashes(Right&& right) {
    std::size_t changed = 0;
    directory_.for_each_segment([&](segment& s, std::uint64_t prefix, entry_word entry) {
      detail::cceh::for_each_used_slot(s, [&](std::size_t window, slot at) {
        const slot_word word = at.word().load(std::memory_order_acquire);
        const std::optional<std::uint64_t> hash =
            right(detail::cceh::hash_of(word, window), at.value().load(std::memory_order_acquire),
                  (word & detail::cceh::live_bit) != 0);
        if (hash && mend(s, prefix, entry.local_depth(), window, at, *hash)) ++changed;
      });
    });
    return changed;
  }

  // Entries in the table; walks it.
  [[nodiscard]] std::uint64_t size() const { return detail::count_entries(*this); }

  // Calls function(key, value) for every entry, in no particular order.
  template <class Function>
  void for_each(Function&& function) const {
    directory_.for_each_entry(function);
  }

  // The same beside writers, which wait while a segment is copied: `function` may call the table. An entry that is
  // there throughout is met once; one that is inserted, changed or erased meanwhile is met or not, with a value that it
  // had. Throws std::bad_alloc. Memory: the entries of a segment.
  template <class Function>
  void for_each_beside_writers(Function&& function) {
    std::vector<std::pair<key_type, value_type>> some;
    for (std::uint64_t prefix = 0;;) {
      const entry_word entry = current_entry(prefix);
      segment& s = *segment_of(entry);
      some.clear();
      {
        const std::scoped_lock guard(lock_of(&s));
        if (current_entry(prefix) != entry) continue;
        media::annotate_read(medium_, s);
        for_each_value(s, prefix, entry.local_depth(), [&](std::uint64_t hash, value_type value) {
          some.emplace_back(detail::key_of_hash(hash), value);
        });
      }
      for (const auto& [key, value] : some) function(key, value);
      // Segments are split, and never joined: the next one begins behind this one for good.
      prefix += std::uint64_t{1} << (64 - entry.local_depth());
      if (prefix == 0) return;
    }
  }

  // depth = global depth; nodes = segments.
  [[nodiscard]] index_stats stats() const {
    index_stats result = directory_.stats(size(), detail::cceh::slots_per_segment);
    result.dram_bytes += locks_.bytes();
    return result;
  }

  // Checks every invariant above, and that the cached directory equals the medium's.
  [[nodiscard]] check_report check() const;

 private:
  static constexpr std::size_t batch_width = 16;
  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 14);
  static constexpr std::string_view table_name = "CCEH";

  // Where a key belongs while its segment is locked.
  struct location {
    std::uint64_t hash;
    entry_word entry;
    segment* s;
  };

  cceh(Medium& medium, std::string_view name)
      : medium_(medium),
        locks_(lock_stripes),
        directory_(medium, *medium.named_root(name, layout_name, layout_version).word, table_name) {}

  // ---- operations ----

  [[nodiscard]] static segment* segment_of(entry_word cached) noexcept { return segment_directory::segment_of(cached); }
  [[nodiscard]] sync::version_lock& lock_of(const segment* s) const noexcept {
    return locks_[reinterpret_cast<std::uintptr_t>(s) / sizeof(segment)];
  }

  [[nodiscard]] entry_word current_entry(std::uint64_t hash) const noexcept { return directory_.current_entry(hash); }

  // The directory entry of `hash`, of a segment whose overflow bits are valid.
  [[nodiscard]] entry_word searchable_entry(std::uint64_t hash) {
    for (;;) {
      const entry_word entry = current_entry(hash);
      if (!entry.is_unsearched()) [[likely]]
        return entry;
      find_overflow_of(hash, entry);
    }
  }

  // Brings a segment that an earlier run left behind to I1. None of it needs to be durable.
  void find_overflow_of(std::uint64_t hash, entry_word entry) {
    segment& s = *segment_of(entry);
    const std::scoped_lock guard(lock_of(&s));
    if (current_entry(hash) != entry) return;
    media::annotate_read(medium_, s);
    detail::cceh::find_overflow(s, hash, entry.local_depth());
    directory_.mark_searched(hash, entry);
  }

  // `entry`: the result of `searchable_entry` for `hash` a moment ago.
  std::optional<value_type> find_hash(std::uint64_t hash, entry_word entry) {
    for (;; entry = searchable_entry(hash)) {
      segment& s = *segment_of(entry);
      const sync::version_lock& lock = lock_of(&s);
      const std::uint64_t version = lock.read_begin();
      const slot found =
          detail::cceh::find_in_segment(s, hash, [this](const entry_line& l) { media::annotate_read(medium_, l); });
      const value_type value = found ? found.value().load(std::memory_order_acquire) : 0;
      // The entry is read again under the version (C6): a split between the two would have moved the key.
      if (current_entry(hash) == entry && lock.read_validate(version)) [[likely]]
        return found ? std::optional<value_type>(value) : std::nullopt;
    }
  }

  void prefetch_home_line(const segment& s, std::uint64_t hash) const noexcept {
    const entry_line& home = s.windows[detail::cceh::window_of(hash)].lines[detail::cceh::home_line_of(hash)];
    media::prefetch(medium_, home);
  }

  // Runs `operation(location, slot of the key or none)` with the key's segment locked, and splits the segment when the
  // operation requests it.
  template <class Operation>
  outcome change(key_type key, Operation&& operation) {
    const std::uint64_t hash = detail::hash_of_key(key);
    for (;;) {
      const entry_word entry = searchable_entry(hash);
      const location at{hash, entry, segment_of(entry)};
      const std::scoped_lock guard(lock_of(at.s));
      // The segment may have been split before it was locked (C6, C11).
      if (current_entry(hash) != entry) continue;
      const slot found =
          detail::cceh::find_in_segment(*at.s, hash, [this](const entry_line& l) { media::annotate_read(medium_, l); });
      const step result = operation(at, found);
      if (!result.must_split) return result.answer;
      if (!split(at)) return outcome::full;
    }
  }

  step add(const location& at, value_type value) {
    const position to = detail::cceh::free_in_segment(*at.s, at.hash, at.entry.local_depth());
    if (!to.slot) return step::split_first();
    std::atomic<slot_word>& word = to.slot.word();
    // (P1) < (P2): one line, so no crash image holds the key without its value.
    to.slot.value().store(value, std::memory_order_release);  // (P1)
    word.store(detail::cceh::with_entry(word, detail::cceh::live_word(at.hash, to.displacement)),
               std::memory_order_release);   // (P2) commit
    media::persist(medium_, *to.slot.line);  // (P3)
    // (P2) < (P3) < unlock: the value that a reader returns is durable.
    detail::cceh::lead_to(*at.s, at.hash, to);
    return outcome::inserted;
  }

  outcome replace(slot found, value_type value) { return detail::replace_value(medium_, found.value(), value); }

  outcome remove(const location&, slot found) {
    std::atomic<slot_word>& word = found.word();
    word.store(detail::cceh::with_entry(word, 0), std::memory_order_release);  // (E1) commit
    media::persist(medium_, *found.line);                                      // (E2)
    // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
    return outcome::erased;
  }

  // The slot has the entry of `hash`. False: that is in another segment, or the slot has it.
  bool mend(segment& s, std::uint64_t prefix, unsigned local_depth, std::size_t window, slot at, std::uint64_t hash) {
    const std::size_t displacement = detail::cceh::window_of(hash) ^ window;
    const slot_word wanted = detail::cceh::live_word(hash, displacement);
    if (!detail::cceh::occupied(wanted, prefix, local_depth) || displacement >= detail::cceh::displacements)
      return false;
    bool is_there = false;
    detail::cceh::for_each_entry(s, prefix, local_depth,
                                 [&](std::uint64_t other, const position&) { is_there |= other == hash; });
    at.word().store(detail::cceh::with_entry(at.word(), is_there ? 0 : wanted), std::memory_order_release);  // (H1)
    // (H1) < (H2): one store, so a crash leaves the slot as it was, or mended.
    media::persist(medium_, *at.line);  // (H2)
    if (!is_there) {
      const auto line = static_cast<std::size_t>(at.line - s.windows[window].lines.data());
      const std::size_t lines = detail::cceh::lines_per_window;
      detail::cceh::lead_to(s, hash, {at, displacement, (line + lines - detail::cceh::home_line_of(hash)) % lines});
    }
    return true;
  }

  // ---- structure ----

  // Moves half of a locked segment's keys to a new segment. False: no space (or no use, see tolerated_skew_bits);
  // nothing has changed.
  bool split(const location& at) {
    const std::unique_ptr<segment> moved = entries_that_move(at);
    if (moved == nullptr || !directory_.split(at.hash, at.entry, *moved)) return false;
    // Half of the overflow entries have moved: searches in the other half need not look for them any more.
    const unsigned local_depth = at.entry.local_depth();
    detail::cceh::tidy_overflow(*at.s, at.hash & ~detail::extendible::next_bit(local_depth), local_depth + 1);
    return true;
  }

  // A segment, in DRAM, of the entries whose next hash bit is 1. nullptr: they do not all have room, or no memory.
  std::unique_ptr<segment> entries_that_move(const location& at) const {
    const unsigned local_depth = at.entry.local_depth();
    std::unique_ptr<segment> moved(new (std::nothrow) segment{});
    if (moved == nullptr) return nullptr;
    media::annotate_read(medium_, *at.s);
    bool all_placed = true;
    detail::cceh::for_each_entry(*at.s, at.hash, local_depth, [&](std::uint64_t hash, const position& from) {
      if ((hash & detail::extendible::next_bit(local_depth)) == 0) return;
      const value_type value = from.slot.value().load(std::memory_order_relaxed);
      all_placed &= detail::cceh::place_privately(*moved, hash, value, local_depth + 1);
    });
    return all_placed ? std::move(moved) : nullptr;
  }

  Medium& medium_;
  sync::version_lock_table locks_;
  segment_directory directory_;
};

template <media::medium Medium>
check_report cceh<Medium>::check() const {
  return detail::extendible::check(directory_, [](segment& s, std::uint64_t prefix, entry_word entry, auto&& visit) {
    const bool searched = !entry.is_unsearched();
    detail::cceh::for_each_entry(s, prefix, entry.local_depth(), [&](std::uint64_t hash, const position& at) {
      bool is_found = true;
      detail::cceh::for_each_overflow_bit(hash, at, [&](const detail::cceh::overflow_place& place) {
        if (searched && (detail::cceh::word_at(s, place).load(std::memory_order_acquire) & place.bit) == 0)
          is_found = false;
      });
      visit(hash, is_found);
    });
  });
}

}  // namespace pmlab::indexes
