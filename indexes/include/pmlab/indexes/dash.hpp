// Dash: extendible hashing with balanced buckets, displacement and a stash, after Lu et al., VLDB'20 [Dash].
//
// Use it for point operations on any medium, most of all where space or absent keys count: segments are 93 % full on
// the mean before they split, and an absent key is decided in one cache line. It keeps no order: for scans use a tree.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: finds write nothing shared; they wait only while a writer changes the same group of 8 buckets (or one that
// shares its version lock). Writers exclude each other per group; a split excludes the writers of its segment.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the group's version lock, and a reader returns only if that lock was free and unchanged
// while it read: it cannot have read anything that a crash undoes.
//
// Layout (medium):
//
//   named root -> directory: | global depth | entry | entry | ... |          entry = segment pointer | local depth
//                                               |
//                                               v
//       segment: 8 groups of 8 buckets, and 3 buckets of stash, of 256 bytes each
//         bucket: 4 lines of 4 slots; 16 bits of each line: a filter of its entries that lie elsewhere
//         stash:  lines of 3 slots                                                      (dash/segment.hpp)
//
// The hash selects a home line. An insert tries in this order:
//
//   1. the home line
//   2. the emptier of its bucket and the next one (balanced insert)
//   3. a slot of these two that becomes free because its entry moves to its other bucket (displacement)
//   4. the stash
//
// and then splits the segment. In DRAM: a copy of the directory and the version locks. Opening reads the directory and
// no segment; the first operation on a segment reads it once, to find its filters and to remove second copies.
//
// Differences from the paper:
//  * No header in a bucket. The hash is bijective and its bucket is implied by the place: the bits that this frees hold
//    the validity and the filters, so that 16 slots fill a device line, an insert flushes one line and fences once (the
//    paper: two of each), and every key and value is allowed.
//  * No fingerprints of the entries in the home line: their keys are in that line and are compared at once. The
//    overflow fingerprints are the line's filter. They also cover the bucket's other lines and the next bucket, so that
//    absent keys need no second line.
//  * Filter bits and locks are never needed after a crash, so none is flushed and none can be stale: the first
//    operation on a segment computes the filters again, for all of its entries. No version is stored in segments: a bit
//    of the directory's copy in DRAM marks a segment of an earlier run.
//  * The next bucket of a group's last one is its first one. So a group and the stash hold all entries of a key's
//    candidates, one lock makes searches, uniqueness and displacement simple, and a reader validates one version.
//  * A split is as in cceh.hpp: one publication, and no state of a segment that recovery would have to interpret.
//    Then entries of both halves move to their home lines: a tenth of all entries lie elsewhere, on the mean over the
//    sizes of a table, and a fifth would otherwise.
//
// Invariants, beside those of the directory (detail/extendible/segment_directory.hpp):
//   I1  The filter of a line covers each entry that belongs to it and lies elsewhere, unless the segment is
//       "unsearched".
//   I2  A key is live in at most one slot of the segment that the directory names for it. In an unsearched segment it
//       may be in two; the one that is nearer to its home line has its value.
//   I3  A slot of a segment holds an entry with the hash prefix that the segment was created with, or nothing but
//       filter bits.
//
// Damage: `open` refuses an inconsistent directory, before it follows it. `check` detects, by I3, nearly every
// misplaced word: of random words, all but one in 2^(d+1) in a segment that was created with depth d. It cannot detect
// a changed value, nor an entry that was overwritten with zeros or with another entry's words.
#pragma once

#include <pmlab/indexes/dash/changes.hpp>
#include <pmlab/indexes/dash/segment.hpp>
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

#include <algorithm>
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

namespace pmlab::indexes {

// Extendible hash table with a stash [Dash]. See the file's prologue for its use, thread safety, durability and layout.
// Operations: O(1), one flush and one fence per change except for displacements, splits and growth.
template <media::medium Medium>
class dash {
  using segment = detail::dash::segment;
  using slot = detail::dash::slot;
  using slot_word = detail::dash::slot_word;
  using stash_place = detail::dash::stash_place;
  using entry_word = detail::extendible::entry_word;
  using changes = detail::hash_changes;
  using step = detail::extendible::step;
  using segment_directory = detail::extendible::segment_directory<Medium, segment>;
  friend changes;

 public:
  static constexpr std::string_view layout_name = "dash";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the table `name` in `medium`, or makes an empty one of two segments. Completes a split that a crash
  // interrupted. Time: proportional to the directory (8 bytes per 700 entries or so). Throws pmlab::error: the name
  // belongs to another layout, the directory is corrupt, no space for an empty table. `medium` must outlive the index.
  static dash open(Medium& medium, std::string_view name = layout_name) { return dash(medium, name); }

  // Calls function(key, value) for the readable entries of a table that does not open, or is damaged. Changes nothing.
  // Throws pmlab::error at the end if some slots could not be read, with their number.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    detail::extendible::salvage<segment>(medium, root, table_name, function);
  }

  dash(const dash&) = delete;
  dash& operator=(const dash&) = delete;
  ~dash() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and one fence, two of each with a displacement, more if the segment is split.
  outcome insert(key_type key, value_type value) { return changes::insert(*this, key, value); }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) { return changes::update(*this, key, value); }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) { return changes::upsert(*this, key, value); }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence, but for the first one in a segment
  // since its last split or since the table was opened: it flushes all of the segment. The slot is free for another
  // key; segments are never freed.
  outcome erase(key_type key) { return changes::erase(*this, key); }

  // The value of `key`. An absent key: one cache line, unless an entry with an equal filter class lies elsewhere.
  std::optional<value_type> find(key_type key) {
    const std::uint64_t hash = detail::hash_of_key(key);
    return find_hash(hash, searchable_entry(hash));
  }

  // Prefetches the line in which a search for `key` begins.
  void prefetch_find(key_type key) noexcept {
    const std::uint64_t hash = detail::hash_of_key(key);
    media::prefetch(medium_, detail::dash::home_line(*segment_of(directory_.current_entry(hash)), hash));
  }

  // values[i] := find(keys[i]). The cache misses of the searches overlap: those in home lines, then those in other
  // ones.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    detail::in_batches<batch_width>(keys, values, [this](const auto some, const auto found) {
      std::array<std::uint64_t, batch_width> hashes;
      std::array<entry_word, batch_width> entries;
      for (std::size_t i = 0; i < some.size(); ++i) {
        hashes[i] = detail::hash_of_key(some[i]);
        entries[i] = searchable_entry(hashes[i]);
        media::prefetch(medium_, detail::dash::home_line(*segment_of(entries[i]), hashes[i]));
      }
      std::array<std::size_t, batch_width> away;
      std::size_t away_count = 0;
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (prefetch_away(*segment_of(entries[i]), hashes[i])) [[unlikely]]
          away[away_count++] = i;
        else
          found[i] = find_hash(hashes[i], entries[i]);
      }
      for (const std::size_t i : std::span(away).first(away_count)) found[i] = find_hash(hashes[i], entries[i]);
    });
  }

  // The one key with this hash, whose upper bits select the segment: for tests that fill segments unevenly.
  [[nodiscard]] static constexpr key_type key_of_hash(std::uint64_t hash) noexcept { return detail::key_of_hash(hash); }

  // Entries in the table; walks it.
  [[nodiscard]] std::uint64_t size() const { return detail::count_entries(*this); }

  // Calls function(key, value) for every entry, in no particular order.
  template <class Function>
  void for_each(Function&& function) const {
    directory_.for_each_entry(function);
  }

  // depth = global depth; nodes = segments.
  [[nodiscard]] index_stats stats() const {
    index_stats result = directory_.stats(size(), detail::dash::slots_per_segment);
    result.dram_bytes += locks_.bytes() + stash_locks_.bytes();
    return result;
  }

  // Checks every invariant above, and that the cached directory equals the medium's.
  [[nodiscard]] check_report check() const;

 private:
  static constexpr std::size_t batch_width = 16;
  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 14);
  static constexpr std::size_t stash_lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 10);
  static constexpr std::string_view table_name = "Dash";

  // Where a key belongs while its group is locked.
  struct location {
    std::uint64_t hash;
    entry_word entry;
    segment* s;
  };

  // All groups of a segment, locked: in ascending order, each stripe once.
  class locked_segment {
   public:
    locked_segment(const dash& table, const segment* s) : table_(table), first_(first_lock_of(s)) {
      for (std::size_t i = 0; i < count; ++i) table_.locks_[first_ + i].lock();
    }
    locked_segment(const locked_segment&) = delete;
    locked_segment& operator=(const locked_segment&) = delete;
    ~locked_segment() {
      for (std::size_t i = 0; i < count; ++i) table_.locks_[first_ + i].unlock();
    }

   private:
    static constexpr std::size_t count = std::min(lock_stripes, detail::dash::groups_per_segment);
    const dash& table_;
    std::size_t first_;
  };

  dash(Medium& medium, std::string_view name)
      : medium_(medium),
        locks_(lock_stripes),
        stash_locks_(stash_lock_stripes),
        directory_(medium, *medium.named_root(name, layout_name, layout_version).word, table_name) {}

  // ---- operations ----

  [[nodiscard]] static segment* segment_of(entry_word cached) noexcept { return segment_directory::segment_of(cached); }
  [[nodiscard]] static std::size_t number_of(const segment* s) noexcept {
    return reinterpret_cast<std::uintptr_t>(s) / sizeof(segment);
  }
  [[nodiscard]] static std::size_t first_lock_of(const segment* s) noexcept {
    return number_of(s) * detail::dash::groups_per_segment;
  }
  // The lock of the group of `hash`.
  [[nodiscard]] sync::version_lock& lock_of(const segment* s, std::uint64_t hash) const noexcept {
    return locks_[first_lock_of(s) + detail::dash::group_of(hash)];
  }
  // Excludes writers of the segment's stash, beside the lock of a group; taken after it.
  [[nodiscard]] sync::version_lock& stash_lock_of(const segment* s) const noexcept {
    return stash_locks_[number_of(s)];
  }

  // The directory entry of `hash`, of a segment whose filters are valid.
  [[nodiscard]] entry_word searchable_entry(std::uint64_t hash) {
    for (;;) {
      const entry_word entry = directory_.current_entry(hash);
      if (!entry.is_unsearched()) [[likely]]
        return entry;
      recover(hash, entry);
    }
  }

  [[nodiscard]] slot find_slot(segment& s, std::uint64_t hash) noexcept {
    return detail::dash::find_in_segment(s, hash, [this](const auto& line) { media::annotate_read(medium_, line); });
  }

  // True if the entry of `hash` may lie outside of its home line; prefetches the lines where. A writer may change them
  // meanwhile: for the search it is no more than a hint.
  [[nodiscard]] bool prefetch_away(segment& s, std::uint64_t hash) noexcept {
    detail::entry_line& home = detail::dash::home_line(s, hash);
    if (detail::dash::find_in_line(home, hash, 0) || !detail::dash::leads_away(home, hash)) return false;
    detail::dash::for_each_line_away(s, hash, [this](const auto& line, auto) {
      media::prefetch(medium_, line);
      return false;
    });
    return true;
  }

  // `entry`: the result of `searchable_entry` for `hash` a moment ago.
  std::optional<value_type> find_hash(std::uint64_t hash, entry_word entry) {
    std::optional<value_type> value;
    return try_find(hash, entry, value) ? value : find_again(hash);
  }

  // Not inline, and no loop in `find_hash`: what a compiler keeps ready for a second attempt would delay the first.
  [[gnu::noinline, gnu::cold]] std::optional<value_type> find_again(std::uint64_t hash) {
    for (;;) {
      std::optional<value_type> value;  // a new one: an attempt that failed may have read that of another key
      if (try_find(hash, searchable_entry(hash), value)) return value;
    }
  }

  // False: a writer has changed the group meanwhile, `result` means nothing.
  bool try_find(std::uint64_t hash, entry_word entry, std::optional<value_type>& result) {
    segment& s = *segment_of(entry);
    const sync::version_lock& lock = lock_of(&s, hash);
    const std::uint64_t version = lock.read_begin();
    const auto* const found =
        detail::dash::find_value(s, hash, [this](const auto& line) { media::annotate_read(medium_, line); });
    if (found != nullptr) result = found->load(std::memory_order_acquire);
    // The entry is read again under the version (C6): a split between the two would have moved the key.
    return directory_.current_entry(hash) == entry && lock.read_validate(version);
  }

  // Runs `operation(location, slot of the key or none)` with the key's group locked, and splits the segment when the
  // operation requests it.
  template <class Operation>
  outcome change(key_type key, Operation&& operation) {
    const std::uint64_t hash = detail::hash_of_key(key);
    for (;;) {
      const entry_word entry = searchable_entry(hash);
      const location at{hash, entry, segment_of(entry)};
      // The lock's line and this one are read at the same time: the processor begins nothing before it has a lock.
      media::prefetch(medium_, detail::dash::home_line(*at.s, hash));
      {
        const std::scoped_lock guard(lock_of(at.s, hash));
        // The segment may have been split before its group was locked (C6, C11).
        if (directory_.current_entry(hash) != entry) continue;
        const step result = operation(at, find_slot(*at.s, hash));
        if (!result.must_split) return result.answer;
      }
      if (!split(at)) return outcome::full;
    }
  }

  step add(const location& at, value_type value) {
    slot to = detail::dash::free_in_buckets(*at.s, at.hash, at.entry.local_depth());
    if (!to) to = displace(at);
    if (!to) return add_to_stash(at, value);
    detail::dash::store_entry(medium_, to, at.hash, value);
    make_findable(at, to);
    return outcome::inserted;
  }

  // Makes the filter of the home line of `at.hash` cover the slot.
  static void make_findable(const location& at, const slot& to) noexcept {
    if (to.needed != 0) detail::dash::add_to_filter(detail::dash::home_line(*at.s, at.hash), to.needed);
  }

  [[gnu::noinline]] step add_to_stash(const location& at, value_type value) {
    const std::scoped_lock guard(stash_lock_of(at.s));
    const stash_place to = detail::dash::free_in_stash(*at.s, at.hash, at.entry.local_depth());
    if (!to.free) return step::split_first();
    detail::dash::store_in_stash(medium_, to, at.hash, value);
    make_findable(at, to.free);
    return outcome::inserted;
  }

  outcome replace(const slot& found, value_type value) { return detail::replace_value(medium_, *found.value, value); }

  outcome remove(const location& at, const slot& found) {
    const bool in_buckets = found.entry_bits == ~detail::dash::filter_mask;
    if (at.entry.is_untidy()) tidy(at);
    std::unique_lock guard(stash_lock_of(at.s), std::defer_lock);
    if (!in_buckets) guard.lock();  // the word has the bits of other groups' entries
    detail::dash::remove_entry(medium_, found);
    if (found.needed != 0) detail::dash::find_filter_of_line(*at.s, at.hash, at.entry.local_depth());
    return outcome::erased;
  }

  // Makes durable that the old copies of entries which `move_home` moved are gone, whether in this run or in an earlier
  // one. Before an entry is removed: an old copy that a crash brought back would be the only one.
  [[gnu::noinline, gnu::cold]] void tidy(const location& at) {
    // Redundant when inserts have flushed each line that had a removal. Which lines had one, is not recorded.
    media::flush(medium_, *at.s);  // (T1)
    medium_.fence();               // (T2) Redundant when (T1) was.
    // (T1) < (T2) < the removal, see above.
    directory_.mark(at.hash, at.entry.tidy());
  }

  // A slot in the full buckets of `at.hash`, whose entry has moved to its own other bucket. None: those are full, too.
  [[nodiscard, gnu::noinline]] slot displace(const location& at) {
    const detail::dash::possible_move move = detail::dash::find_move(*at.s, at.hash, at.entry.local_depth());
    const slot& to = move.to;
    if (!to) return {};
    const bool is_displaced = (to.needed & detail::dash::in_next_bucket) != 0;
    // (V1) < (V2): one line, so no crash image holds the key without its value.
    to.value->store(move.from.value->load(std::memory_order_relaxed), std::memory_order_release);  // (V1)
    to.word->store(detail::dash::with_entry(*to.word, detail::dash::live_word(move.hash, is_displaced)),
                   std::memory_order_release);  // (V2)
    media::persist(medium_, *to.word);          // (V3)
    make_findable({move.hash, at.entry, at.s}, to);
    move.from.word->store(detail::dash::with_entry(*move.from.word, 0), std::memory_order_release);  // (V4)
    // (V2) < (V3) < (V4): no crash image is without the entry. (V4) < the next store there: while one has both copies,
    // they are equal; recovery removes one of them.
    return move.from;
  }

  // ---- structure ----

  // Brings a segment that an earlier run left behind to I1 and I2.
  [[gnu::noinline, gnu::cold]] void recover(std::uint64_t hash, entry_word entry) {
    segment& s = *segment_of(entry);
    const locked_segment guard(*this, &s);
    if (directory_.current_entry(hash) != entry) return;
    media::annotate_read(medium_, s);
    bool has_second_copies = false;
    detail::dash::for_each_slot_away(s, hash, entry.local_depth(), [&](std::uint64_t other, const slot& at) {
      const detail::entry_line* const counts = detail::dash::other_copy(s, other, at);
      if (counts == nullptr) return;
      media::flush(medium_, *counts);  // (R1)
      has_second_copies = true;
    });
    if (has_second_copies) {
      medium_.fence();  // (R2)
      detail::dash::for_each_slot_away(s, hash, entry.local_depth(), [&](std::uint64_t other, const slot& at) {
        if (detail::dash::other_copy(s, other, at) == nullptr) return;
        detail::dash::clear_slot(at);     // (R3)
        media::flush(medium_, *at.word);  // (R4)
      });
      medium_.fence();  // (R5)
      // (R1) < (R2) < (R3): of a process that was killed before (V3) or (H4), the copy that counts may be in the cache
      // alone. Redundant when the power failed: then the copy has been read from the medium.
      // (R3) < (R4) < (R5) < unlock: a copy that stayed would be the only one when the entry has been displaced.
    }
    detail::dash::find_filters(s, hash, entry.local_depth());
    // Removals may be in the cache alone, if a process was killed.
    directory_.mark(hash, entry.searched().untidy());
  }

  // Moves half of a segment's keys to a new segment, unless another thread has. False: no space (or no use); nothing
  // has changed.
  [[gnu::noinline]] bool split(const location& at) {
    const locked_segment guard(*this, at.s);
    if (directory_.current_entry(at.hash) != at.entry) return true;
    const std::unique_ptr<segment> moved = entries_that_move(at);
    if (moved == nullptr || !directory_.split(at.hash, at.entry, *moved)) return false;
    // Half of the entries have moved: there is room in the home lines of the other half, and their filters need not
    // have those any more.
    const unsigned local_depth = at.entry.local_depth();
    const std::uint64_t prefix = at.hash & ~detail::extendible::next_bit(local_depth);
    move_home(*at.s, prefix, local_depth + 1);
    detail::dash::find_filters(*at.s, prefix, local_depth + 1);
    directory_.mark(prefix, directory_.current_entry(prefix).untidy());
    return true;
  }

  // Moves the entries of a locked segment to their home lines, where these have free slots.
  //
  // The removal of the old copies is not flushed. It would cost as many device writes as the copies do, and nearly all
  // of these lines are flushed by later inserts. A crash until then brings old copies back, with old values; the copies
  // in the home lines are there, too, and count (`other_copy`). The segment is "untidy" until all removals are durable:
  // no entry leaves a home line before (`tidy`).
  void move_home(segment& s, std::uint64_t prefix, unsigned local_depth) {
    detail::dash::for_each_slot_away(s, prefix, local_depth, [&](std::uint64_t hash, const slot& from) {
      if (!detail::dash::copy_home(s, hash, from, local_depth)) return;  // (H2)
      media::flush(medium_, detail::dash::home_line(s, hash));           // (H3)
    });
    medium_.fence();  // (H4)
    // (H2) < (H3) < (H4) < (H5): no crash image is without the entry.
    detail::dash::for_each_slot_away(s, prefix, local_depth, [&](std::uint64_t hash, const slot& at) {
      if (detail::dash::is_at_home(s, hash)) detail::dash::clear_slot(at);  // (H5)
    });
  }

  // A segment, in DRAM, of the entries whose next hash bit is 1. nullptr: no memory.
  std::unique_ptr<segment> entries_that_move(const location& at) const {
    const unsigned local_depth = at.entry.local_depth();
    const std::uint64_t prefix = at.hash | detail::extendible::next_bit(local_depth);
    media::annotate_read(medium_, *at.s);
    std::unique_ptr<segment> moved(new (std::nothrow) segment{});
    if (moved == nullptr || detail::dash::place_at_home(*at.s, *moved, prefix, local_depth + 1)) return moved;
    // Nearly all of the entries move. There is room for them where they are.
    moved.reset(new (std::nothrow) segment{});
    if (moved != nullptr) detail::dash::copy_entries(*at.s, *moved, prefix, local_depth + 1);
    return moved;
  }

  Medium& medium_;
  sync::version_lock_table locks_;
  sync::version_lock_table stash_locks_;
  segment_directory directory_;
};

template <media::medium Medium>
check_report dash<Medium>::check() const {
  return detail::extendible::check(directory_, [](segment& s, std::uint64_t prefix, entry_word entry, auto&& visit) {
    const bool searched = !entry.is_unsearched();
    detail::dash::for_each_slot(s, prefix, entry.local_depth(), [&](std::uint64_t hash, const slot& at) {
      if (!searched && detail::dash::other_copy(s, hash, at) != nullptr) return;
      const auto filter = detail::dash::filter_of(detail::dash::home_line(s, hash));
      visit(hash, !searched || (filter & at.needed) == at.needed);
    });
  });
}

}  // namespace pmlab::indexes
