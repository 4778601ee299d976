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
// Invariants:
//   I1  The overflow bits of a segment cover each of its entries, unless its cached directory entry is "unsearched".
//   I2  A key is live in at most one slot of the segment that the directory names for it.
//   I3  The entries of a directory run are equal, except while one split is under way; then the run's last entry names
//       the new segment, and its first entry still has the old local depth.
//   I4  A slot of a segment holds an entry with the hash prefix that the segment was created with, or nothing but
//       overflow bits.
//
// Damage: `open` refuses an inconsistent directory, before it follows it. `check` detects, by I4, nearly every
// misplaced word: of random words, all but one in 2^(d+1) in a segment that was created with depth d. It cannot detect
// a changed value, nor an entry that was overwritten with zeros or with another entry's words.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh/directory.hpp>
#include <pmlab/indexes/cceh/salvage.hpp>
#include <pmlab/indexes/cceh/segment.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
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
  using entry_word = detail::cceh::entry_word;
  using entry_run = detail::cceh::entry_run;
  using directory = detail::cceh::directory;
  using cached_directory = detail::cceh::cached_directory;
  using publication = typename Medium::publication;

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
    detail::cceh::salvage(medium, root, function);
  }

  cceh(const cceh&) = delete;
  cceh& operator=(const cceh&) = delete;
  ~cceh() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and one fence, unless the segment is split.
  outcome insert(key_type key, value_type value) {
    return change(key, [&](const location& at, slot found) {
      return found ? step::done(outcome::exists) : add(at, value, outcome::inserted);
    });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    return change(
        key, [&](const location&, slot found) { return found ? replace(found, value) : step::done(outcome::absent); });
  }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) {
    return change(key, [&](const location& at, slot found) {
      return found ? replace(found, value) : add(at, value, outcome::inserted);
    });
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. The slot is free for another key;
  // segments are never freed.
  outcome erase(key_type key) {
    return change(key, [&](const location&, slot found) {
      if (!found) return step::done(outcome::absent);
      std::atomic<slot_word>& word = found.word();
      word.store(detail::cceh::with_entry(word, 0), std::memory_order_release);  // (E1) commit
      media::persist(medium_, *found.line);                                      // (E2)
      // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
      return step::done(outcome::erased);
    });
  }

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
    assert(keys.size() == values.size());
    std::array<std::uint64_t, batch_width> hashes;
    std::array<entry_word, batch_width> entries;
    for (std::size_t done = 0; done < keys.size(); done += batch_width) {
      const std::size_t width = std::min(batch_width, keys.size() - done);
      for (std::size_t i = 0; i < width; ++i) {
        hashes[i] = detail::hash_of_key(keys[done + i]);
        entries[i] = searchable_entry(hashes[i]);
        prefetch_home_line(*segment_of(entries[i]), hashes[i]);
      }
      for (std::size_t i = 0; i < width; ++i) values[done + i] = find_hash(hashes[i], entries[i]);
    }
  }

  // The one key with this hash, whose upper bits select the segment: for tests that fill segments unevenly.
  [[nodiscard]] static constexpr key_type key_of_hash(std::uint64_t hash) noexcept { return detail::key_of_hash(hash); }

  // Entries in the table; walks it.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    for_each([&](key_type, value_type) { ++entries; });
    return entries;
  }

  // Calls function(key, value) for every entry, in no particular order.
  template <class Function>
  void for_each(Function&& function) const {
    for_each_segment([&](segment& s, std::uint64_t prefix, unsigned local_depth) {
      detail::cceh::for_each_entry(s, prefix, local_depth, [&](std::uint64_t hash, const position& at) {
        function(detail::key_of_hash(hash), at.slot.value().load(std::memory_order_acquire));
      });
    });
  }

  // depth = global depth; nodes = segments.
  [[nodiscard]] index_stats stats() const {
    const cached_directory& cache = *directory_.load(std::memory_order_acquire);
    index_stats result;
    result.entries = size();
    for_each_segment([&](segment&, std::uint64_t, unsigned) { ++result.nodes; });
    result.depth = cache.global_depth();
    result.load_factor =
        static_cast<double>(result.entries) / static_cast<double>(result.nodes * detail::cceh::slots_per_segment);
    result.medium_bytes = result.nodes * sizeof(segment) + directory::bytes(cache.global_depth());
    result.dram_bytes = locks_.bytes();
    for (const auto& kept : directories_) result.dram_bytes += kept->size() * sizeof(entry_word);
    return result;
  }

  // Checks every invariant above, and that the cached directory equals the medium's.
  [[nodiscard]] check_report check() const;

 private:
  static constexpr std::size_t batch_width = 16;
  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 14);
  static constexpr unsigned initial_global_depth = detail::cceh::initial_global_depth;
  static constexpr unsigned greatest_global_depth = detail::cceh::greatest_global_depth;
  // A good hash deepens the directory by 3 or 4 bits beyond an even spread. More means keys that were chosen to have
  // equal hash prefixes: the table then returns `full` instead of doubling its directory until memory is exhausted
  // (C7).
  static constexpr unsigned tolerated_skew_bits = 12;

  // Where a key belongs while its segment is locked.
  struct location {
    std::uint64_t hash;
    entry_word entry;
    segment* s;
  };

  // Result of a locked step of an operation: an outcome, or "split the segment and retry".
  struct step {
    bool must_split = false;
    outcome answer = outcome::full;

    static constexpr step done(outcome o) noexcept { return {false, o}; }
    static constexpr step split_first() noexcept { return {true, outcome::full}; }
  };

  cceh(Medium& medium, std::string_view name)
      : medium_(medium), locks_(lock_stripes), root_(medium.named_root(name, layout_name, layout_version).word) {
    if (root_->load(std::memory_order_acquire) == 0) create();
    load_directory();
  }

  // ---- operations ----

  [[nodiscard]] static segment* segment_of(entry_word cached) noexcept {
    return reinterpret_cast<segment*>(cached.segment_word());
  }
  [[nodiscard]] sync::version_lock& lock_of(const segment* s) const noexcept {
    return locks_[reinterpret_cast<std::uintptr_t>(s) / sizeof(segment)];
  }

  [[nodiscard]] entry_word current_entry(std::uint64_t hash) const noexcept {
    return directory_.load(std::memory_order_acquire)->entry_of(hash).load(std::memory_order_acquire);
  }

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
    const std::scoped_lock directory_guard(directory_mutex_);
    const cached_directory& cache = *directory_.load(std::memory_order_relaxed);
    fill_cache(cache, entry_run::of(hash, cache.global_depth(), entry.local_depth()), entry.searched());
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

  step add(const location& at, value_type value, outcome answer) {
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
    return step::done(answer);
  }

  step replace(slot found, value_type value) {
    found.value().store(value, std::memory_order_release);  // (U1) commit
    media::persist(medium_, *found.line);                   // (U2)
    // (U1) < (U2) < unlock: as (P3).
    return step::done(outcome::updated);
  }

  // ---- structure ----

  [[nodiscard]] directory* stored_directory() const noexcept {
    return medium_.resolve(media::pointer<directory>(root_->load(std::memory_order_acquire)));
  }

  // Makes an empty table: directory and segments are durable before the root names them (A6, C4).
  void create() {
    publication change(medium_);
    constexpr std::size_t segments = std::size_t{1} << initial_global_depth;
    void* const block = change.allocate(directory::bytes(initial_global_depth), alignof(directory));
    if (block == nullptr) throw no_space();
    auto* const made = ::new (block) directory{initial_global_depth};
    for (std::size_t i = 0; i < segments; ++i) {
      auto* const s = media::create<segment>(change);
      if (s == nullptr) throw no_space();
      media::flush(medium_, *s);  // (M1)
      ::new (&made->entries()[i])
          std::atomic<entry_word>(entry_word::of(medium_.locate(s).word(), initial_global_depth));
    }
    medium_.flush(made, directory::bytes(initial_global_depth));  // (M2)
    medium_.fence();                                              // (M3)
    // (M1), (M2) < (M3) < (M4): the root never names memory that is not durable.
    change.store(*root_, medium_.locate(made).word());  // (M4)
    change.commit();
  }

  static error no_space() { return {"no space for an empty CCEH table", "use a larger pool"}; }

  // Reads the medium's directory, completes operations that a crash interrupted, and fills the copy in DRAM.
  void load_directory() {
    directory& stored = detail::cceh::directory_at(medium_, root_->load(std::memory_order_acquire));
    const auto global_depth = static_cast<unsigned>(stored.global_depth.load(std::memory_order_acquire));
    check_directory(stored, global_depth);
    // Room for all copies there can be: nothing may fail once a doubled directory was published.
    directories_.reserve(greatest_global_depth + 1);
    auto cache = cached_directory::make(global_depth);
    if (cache == nullptr) throw error("no memory for the directory of a CCEH table", "free some memory");
    std::atomic<entry_word>* const entries = stored.entries();
    for (std::size_t i = 0; i < cache->size();) {
      const entry_word first = entries[i].load(std::memory_order_acquire);
      const entry_run run{i, std::size_t{1} << (global_depth - first.local_depth())};
      const entry_word last = entries[i + run.count - 1].load(std::memory_order_acquire);
      if (last == first) {
        fill_cache(*cache, run, cached(first).unsearched());
        ++segments_;
        i += run.count;
      } else {
        // A split was cut off (I3): the new segment is complete. Read the run again after it.
        store_split(stored, run, first, last);
      }
    }
    directories_.push_back(std::move(cache));
    directory_.store(directories_.back().get(), std::memory_order_release);
  }

  // Throws pmlab::error if the directory is none that a crash can leave: before anything is followed or changed.
  void check_directory(directory& stored, unsigned global_depth) const {
    std::atomic<entry_word>* const entries = stored.entries();
    std::vector<std::uint64_t> segments;
    const auto expect = [&](std::size_t i, bool holds) {
      if (!holds) throw detail::cceh::corrupt("directory entry " + std::to_string(i));
    };
    for (std::size_t i = 0; i < std::size_t{1} << global_depth;) {
      const entry_word first = entries[i].load(std::memory_order_acquire);
      expect(i, detail::cceh::names_a_segment(medium_, first, global_depth));
      const std::size_t count = std::size_t{1} << (global_depth - first.local_depth());
      expect(i, i % count == 0);
      const entry_word last = entries[i + count - 1].load(std::memory_order_acquire);
      const entry_word left_after = entry_word::of(first.segment_word(), last.local_depth());
      if (last != first)
        expect(i + count - 1, last.local_depth() == first.local_depth() + 1 &&
                                  detail::cceh::names_a_segment(medium_, last, global_depth));
      for (std::size_t k = 1; k + 1 < count; ++k) {
        const entry_word between = entries[i + k].load(std::memory_order_acquire);
        expect(i + k, between == first || between == (k < count / 2 ? left_after : last));
      }
      segments.push_back(first.segment_word());
      if (last != first) segments.push_back(last.segment_word());
      i += count;
    }
    std::sort(segments.begin(), segments.end());
    for (std::size_t i = 1; i < segments.size(); ++i)
      if (segments[i] - segments[i - 1] < sizeof(segment)) throw detail::cceh::corrupt("two segments overlap");
  }

  [[nodiscard]] entry_word cached(entry_word stored) const noexcept {
    const auto* const s = medium_.resolve(media::pointer<segment>(stored.segment_word()));
    return entry_word::of(reinterpret_cast<std::uint64_t>(s), stored.local_depth());
  }

  static void fill_cache(const cached_directory& cache, entry_run run, entry_word entry) noexcept {
    for (std::size_t i = 0; i < run.count; ++i) cache[run.first + i].store(entry, std::memory_order_release);
  }

  // Moves half of a locked segment's keys to a new segment. False: no space (or no use, see tolerated_skew_bits);
  // nothing has changed.
  bool split(const location& at) {
    const unsigned local_depth = at.entry.local_depth();
    const std::unique_ptr<segment> moved = entries_that_move(at);
    if (moved == nullptr) return false;

    const std::scoped_lock guard(directory_mutex_);
    if (local_depth == directory_.load(std::memory_order_relaxed)->global_depth() && !double_directory()) return false;
    const cached_directory& cache = *directory_.load(std::memory_order_relaxed);
    directory& stored = *stored_directory();
    const entry_run run = entry_run::of(at.hash, cache.global_depth(), local_depth);
    const entry_word left = entry_word::of(medium_.locate(at.s).word(), local_depth);

    publication change(medium_);
    auto* const target = static_cast<segment*>(change.allocate(sizeof(segment), alignof(segment)));
    if (target == nullptr) return false;
    medium_.copy(target, moved.get(), sizeof(segment));  // (S1)
    medium_.fence();                                     // (S2)
    const entry_word right = entry_word::of(medium_.locate(target).word(), local_depth + 1);
    media::publish_store(change, stored.entries()[run.first + run.count - 1], right);  // (S3)
    change.commit();
    // (S1) < (S2) < (S3): the new segment is complete before the directory names it, and is allocated with that very
    // store: no crash leaks it (C14), loses an entry (C8), or shows a depth without its segment (C1).
    store_split(stored, run, left, right);
    ++segments_;
    // Half of the overflow entries have moved: searches in the other half need not look for them any more.
    detail::cceh::tidy_overflow(*at.s, at.hash & ~next_bit(local_depth), local_depth + 1);

    fill_cache(cache, {run.first, run.count / 2}, entry_word::of(at.entry.segment_word(), local_depth + 1));
    fill_cache(cache, {run.first + run.count / 2, run.count / 2}, cached(right));
    return true;
  }

  // The hash bit by which a segment of this local depth is split.
  [[nodiscard]] static constexpr std::uint64_t next_bit(unsigned local_depth) noexcept {
    return std::uint64_t{1} << (63 - local_depth);
  }

  // A segment, in DRAM, of the entries whose next hash bit is 1. nullptr: they do not all have room, or no memory.
  std::unique_ptr<segment> entries_that_move(const location& at) const {
    const unsigned local_depth = at.entry.local_depth();
    std::unique_ptr<segment> moved(new (std::nothrow) segment{});
    if (moved == nullptr) return nullptr;
    media::annotate_read(medium_, *at.s);
    bool all_placed = true;
    detail::cceh::for_each_entry(*at.s, at.hash, local_depth, [&](std::uint64_t hash, const position& from) {
      if ((hash & next_bit(local_depth)) == 0) return;
      const value_type value = from.slot.value().load(std::memory_order_relaxed);
      all_placed &= detail::cceh::place_privately(*moved, hash, value, local_depth + 1);
    });
    return all_placed ? std::move(moved) : nullptr;
  }

  // Brings a run, whose last entry is `right` already, to its state after the split. `left` is its first entry, which
  // is stored last: as long as it has the old depth, recovery does all of this again.
  void store_split(directory& stored, entry_run run, entry_word left, entry_word right) {
    std::atomic<entry_word>* const entries = stored.entries() + run.first;
    const entry_word left_after = entry_word::of(left.segment_word(), right.local_depth());
    for (std::size_t i = run.count - 1; i > 0; --i)
      entries[i].store(i >= run.count / 2 ? right : left_after, std::memory_order_release);  // (D1)
    if (run.count > 2) {
      medium_.flush(entries + 1, (run.count - 1) * sizeof(entry_word));  // (D2)
      medium_.fence();                                                   // (D3)
    }
    // (D1) < (D2) < (D3) < (D4): the first entry's depth commits the split, so the others are durable before it.
    entries[0].store(left_after, std::memory_order_release);  // (D4) commit
    media::persist(medium_, entries[0]);                      // (D5)
    // (D4) < (D5) < unlock: entries that are added to the new segment are found after a crash.
  }

  // Called with the directory mutex held: no split is under way. False: no space; nothing has changed.
  bool double_directory() {
    const cached_directory& old_cache = *directory_.load(std::memory_order_relaxed);
    const unsigned old_depth = old_cache.global_depth();
    if (old_depth == greatest_global_depth ||
        old_depth >= static_cast<unsigned>(std::bit_width(segments_)) + tolerated_skew_bits)
      return false;
    auto cache = cached_directory::make(old_depth + 1);
    if (cache == nullptr) return false;

    publication change(medium_);
    directory* const old_stored = stored_directory();
    const std::size_t bytes = directory::bytes(old_depth + 1);
    void* const block = change.allocate(bytes, alignof(directory));
    if (block == nullptr) return false;
    auto* const stored = ::new (block) directory{old_depth + 1};
    for (std::size_t i = 0; i < cache->size(); ++i) {
      (*cache)[i].store(old_cache[i / 2].load(std::memory_order_relaxed), std::memory_order_relaxed);
      ::new (&stored->entries()[i])
          std::atomic<entry_word>(old_stored->entries()[i / 2].load(std::memory_order_relaxed));
    }
    medium_.flush(stored, bytes);  // (G1)
    medium_.fence();               // (G2)
    // (G1) < (G2) < (G3): array and depth are durable before the one word that makes them the directory (C3).
    change.store(*root_, medium_.locate(stored).word());  // (G3)
    change.release(old_stored, directory::bytes(old_depth));
    change.commit();

    // Readers may still hold the old copy: it is kept until the index is closed. All copies together are less than
    // twice the last one. The vector has room for it: an exception here would leave DRAM at the old depth, and the
    // next doubling would lose the keys of half of the segments.
    assert(directories_.size() < directories_.capacity());
    directories_.push_back(std::move(cache));
    directory_.store(directories_.back().get(), std::memory_order_release);
    return true;
  }

  // Calls function(segment, prefix, local_depth) for every segment, in order of prefix.
  template <class Function>
  void for_each_segment(Function&& function) const {
    const cached_directory& cache = *directory_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < cache.size();) {
      const entry_word entry = cache[i].load(std::memory_order_acquire);
      function(*segment_of(entry), std::uint64_t{i} << (64 - cache.global_depth()), entry.local_depth());
      i += std::size_t{1} << (cache.global_depth() - entry.local_depth());
    }
  }

  Medium& medium_;
  sync::version_lock_table locks_;
  std::atomic<std::uint64_t>* root_;
  std::atomic<const cached_directory*> directory_{nullptr};
  // Guards everything below, the directory in the medium, and changes of the entries of the copy in DRAM. Taken after
  // a segment's lock, never before one.
  std::mutex directory_mutex_;
  std::vector<std::unique_ptr<cached_directory>> directories_;
  std::uint64_t segments_ = 0;
};

template <media::medium Medium>
check_report cceh<Medium>::check() const {
  check_report report;
  const auto violated = [&](const std::string& what) { report.add(what); };
  const cached_directory& cache = *directory_.load(std::memory_order_acquire);
  directory& stored = *stored_directory();
  if (stored.global_depth.load(std::memory_order_acquire) != cache.global_depth())
    violated("the copied directory has another depth than the medium's");
  for (std::size_t i = 0; i < cache.size() && report.ok(); ++i) {
    const entry_word copied = cache[i].load(std::memory_order_acquire);
    if (copied.searched() != cached(stored.entries()[i].load(std::memory_order_acquire)))
      violated("directory entry " + std::to_string(i) + " differs between medium and copy");
    const std::size_t count = std::size_t{1} << (cache.global_depth() - copied.local_depth());
    if (copied != cache[i & ~(count - 1)].load(std::memory_order_acquire))
      violated("I3: directory entry " + std::to_string(i) + " differs from the first of its run");
  }
  if (!report.ok()) return report;

  std::unordered_set<const segment*> seen;
  std::size_t damaged = 0;
  std::size_t segments = 0;
  for_each_segment([&](segment& s, std::uint64_t prefix, unsigned local_depth) {
    const bool searched = !cache[prefix >> (64 - cache.global_depth())].load(std::memory_order_acquire).is_unsearched();
    if (!seen.insert(&s).second) violated("two directory runs lead to one segment");
    std::vector<std::uint64_t> hashes;
    detail::cceh::for_each_entry(s, prefix, local_depth, [&](std::uint64_t hash, const position& at) {
      hashes.push_back(hash);
      detail::cceh::for_each_overflow_bit(hash, at, [&](const detail::cceh::overflow_place& place) {
        if (searched && (detail::cceh::word_at(s, place).load(std::memory_order_acquire) & place.bit) == 0)
          violated("I1: no search finds key " + std::to_string(detail::key_of_hash(hash)));
      });
    });
    std::sort(hashes.begin(), hashes.end());
    if (const auto twice = std::adjacent_find(hashes.begin(), hashes.end()); twice != hashes.end())
      violated("I2: key " + std::to_string(detail::key_of_hash(*twice)) + " is present twice");
    report.entries += hashes.size();
    const std::size_t here = detail::cceh::damaged_slots(s, prefix, local_depth);
    damaged += here;
    segments += here != 0 ? 1 : 0;
  });
  if (damaged != 0)
    violated("I4: " + std::to_string(damaged) + " slots in " + std::to_string(segments) +
             " segments hold impossible words: they were overwritten");
  return report;
}

}  // namespace pmlab::indexes
