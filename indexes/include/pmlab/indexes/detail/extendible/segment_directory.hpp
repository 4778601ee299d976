// The directory of an extendible hash table as its index uses it: lookups, splits and growth of the directory, and the
// recovery of both. What a segment holds is the index's. The namespace of its segment has, of entries whose hashes have
// `prefix` in their upper bits:
//
//   for_each_value(segment, prefix, local_depth, entry)   calls entry(hash, value) for each of them, once
//   damaged_slots(segment, prefix, local_depth)           number of slots with words that no operation stores there
//
// Invariants:
//   T1  The entries of a directory run are equal, except while one split is under way; then the run's last entry names
//       the new segment, and its first entry still has the old local depth.
//   T2  The copy in DRAM has the medium's entries.
//
// A crash in a split leaves the run as T1 has it, or complete. `segment_directory` completes it when it opens.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/extendible/directory.hpp>
#include <pmlab/indexes/detail/extendible/salvage.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::extendible {

// Result of a locked step of an operation: an outcome, or "split the segment and retry".
struct step {
  bool must_split = false;
  outcome answer = outcome::full;

  constexpr step(outcome o) noexcept : answer(o) {}  // NOLINT(google-explicit-constructor)
  static constexpr step split_first() noexcept {
    step result = outcome::full;
    result.must_split = true;
    return result;
  }
};

// Thread safety: any operation from any number of threads, except `check`, `for_each_segment` and the sizes (no
// concurrent writer). The index excludes other writers and readers of a segment while it calls `mark_searched` or
// `split` for it, and a reader compares `current_entry` again after it has read a segment.
template <media::medium Medium, class Segment>
class segment_directory {
  using publication = typename Medium::publication;

 public:
  // Finds the directory that `root` names, or makes an empty table of two segments. Completes a split that a crash
  // interrupted. `table`: the index, as messages name it; a literal. Throws pmlab::error: the directory is corrupt, no
  // space for an empty table, no memory.
  segment_directory(Medium& medium, std::atomic<std::uint64_t>& root, std::string_view table)
      : medium_(medium), root_(root), table_(table) {
    if (root_.load(std::memory_order_acquire) == 0) create();
    load();
  }
  segment_directory(const segment_directory&) = delete;
  segment_directory& operator=(const segment_directory&) = delete;
  ~segment_directory() = default;

  // A checksum of the directory that `root` names, and of its place: another one after each split. 0: there is none.
  // Throws pmlab::error: it is corrupt.
  [[nodiscard]] static std::uint64_t sum_of(const Medium& medium, const std::atomic<std::uint64_t>& root,
                                            std::string_view table) {
    const std::uint64_t at = root.load(std::memory_order_acquire);
    if (at == 0) return 0;
    directory& stored = directory_at(medium, at, table);
    std::vector<std::uint64_t> words{at, stored.global_depth.load(std::memory_order_acquire)};
    for (std::size_t i = 0; i < std::size_t{1} << words[1]; ++i)
      words.push_back(stored.entries()[i].load(std::memory_order_acquire).word);
    return checksum(words.data(), words.size() * sizeof(std::uint64_t));
  }

  [[nodiscard]] static Segment* segment_of(entry_word cached) noexcept {
    return reinterpret_cast<Segment*>(cached.segment_word());
  }

  [[nodiscard]] entry_word current_entry(std::uint64_t hash) const noexcept {
    return current_.load(std::memory_order_acquire)->entry_of(hash).load(std::memory_order_acquire);
  }

  // The segment of `entry`, which is current for `hash`, may be searched from now on.
  void mark_searched(std::uint64_t hash, entry_word entry) { mark(hash, entry.searched()); }

  // The entry that is current for `hash` is `entry` from now on, but for its marks in DRAM the same one.
  void mark(std::uint64_t hash, entry_word entry) {
    const std::scoped_lock guard(mutex_);
    const cached_directory& cache = *current_.load(std::memory_order_relaxed);
    fill_cache(cache, entry_run::of(hash, cache.global_depth(), entry.local_depth()), entry);
  }

  // Splits the segment of `entry`, which is current for `hash`: the keys whose next hash bit is 1 have a new segment,
  // with the content of `moved`, from now on. Their old entries stay behind in the old one, with a prefix that is not
  // its own. False: no space (or no use, see tolerated_skew_bits); nothing has changed. Durable on return.
  [[nodiscard]] bool split(std::uint64_t hash, entry_word entry, const Segment& moved) {
    const unsigned local_depth = entry.local_depth();
    const std::scoped_lock guard(mutex_);
    if (local_depth == current_.load(std::memory_order_relaxed)->global_depth() && !double_directory()) return false;
    const cached_directory& cache = *current_.load(std::memory_order_relaxed);
    directory& stored = *stored_directory();
    const entry_run run = entry_run::of(hash, cache.global_depth(), local_depth);
    const entry_word left = entry_word::of(medium_.locate(segment_of(entry)).word(), local_depth);

    publication change(medium_);
    auto* const target = static_cast<Segment*>(change.allocate(sizeof(Segment), alignof(Segment)));
    if (target == nullptr) return false;
    medium_.copy(target, &moved, sizeof(Segment));  // (S1)
    medium_.fence();                                // (S2)
    const entry_word right = entry_word::of(medium_.locate(target).word(), local_depth + 1);
    media::publish_store(change, stored.entries()[run.first + run.count - 1], right);  // (S3)
    change.commit();
    // (S1) < (S2) < (S3): the new segment is complete before the directory names it, and is allocated with that very
    // store: no crash leaks it (C14), loses an entry (C8), or shows a depth without its segment (C1).
    store_split(stored, run, left, right);
    ++segments_;

    fill_cache(cache, {run.first, run.count / 2}, entry_word::of(entry.segment_word(), local_depth + 1));
    fill_cache(cache, {run.first + run.count / 2, run.count / 2}, cached(right));
    return true;
  }

  // Calls function(segment, prefix, entry) for every segment, in order of prefix; `entry`: its entry in DRAM.
  template <class Function>
  void for_each_segment(Function&& function) const {
    const cached_directory& cache = *current_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < cache.size();) {
      const entry_word entry = cache[i].load(std::memory_order_acquire);
      function(*segment_of(entry), std::uint64_t{i} << (64 - cache.global_depth()), entry);
      i += std::size_t{1} << (cache.global_depth() - entry.local_depth());
    }
  }

  // Calls function(key, value) for every entry, in no particular order.
  template <class Function>
  void for_each_entry(Function&& function) const {
    for_each_segment([&](Segment& s, std::uint64_t prefix, entry_word entry) {
      for_each_value(s, prefix, entry.local_depth(),
                     [&](std::uint64_t hash, value_type value) { function(key_of_hash(hash), value); });
    });
  }

  // Entries, and the load factor, are the index's to count: `slots` that a segment has.
  [[nodiscard]] index_stats stats(std::uint64_t entries, std::size_t slots) const {
    const unsigned global_depth = current_.load(std::memory_order_acquire)->global_depth();
    index_stats result;
    result.entries = entries;
    for_each_segment([&](Segment&, std::uint64_t, entry_word) { ++result.nodes; });
    result.depth = global_depth;
    result.load_factor = static_cast<double>(entries) / static_cast<double>(result.nodes * slots);
    result.medium_bytes = result.nodes * sizeof(Segment) + directory::bytes(global_depth);
    for (const auto& kept : copies_) result.dram_bytes += kept->size() * sizeof(entry_word);
    return result;
  }

  // Adds the violations of T1 and T2 to `report`; after any of these, the segments should not be followed.
  void check(check_report& report) const;

 private:
  // A good hash deepens the directory by 3 or 4 bits beyond an even spread. More means keys that were chosen to have
  // equal hash prefixes: the table then returns `full` instead of doubling its directory until memory is exhausted
  // (C7).
  static constexpr unsigned tolerated_skew_bits = 12;

  [[nodiscard]] directory* stored_directory() const noexcept {
    return medium_.resolve(media::pointer<directory>(root_.load(std::memory_order_acquire)));
  }

  [[nodiscard]] error no_space() const {
    return {"no space for an empty " + std::string(table_) + " table", "use a larger pool"};
  }

  // Makes an empty table: directory and segments are durable before the root names them (A6, C4).
  void create() {
    publication change(medium_);
    constexpr std::size_t segments = std::size_t{1} << initial_global_depth;
    void* const block = change.allocate(directory::bytes(initial_global_depth), alignof(directory));
    if (block == nullptr) throw no_space();
    auto* const made = ::new (block) directory{initial_global_depth};
    for (std::size_t i = 0; i < segments; ++i) {
      auto* const s = media::create<Segment>(change);
      if (s == nullptr) throw no_space();
      media::flush(medium_, *s);  // (M1)
      ::new (&made->entries()[i])
          std::atomic<entry_word>(entry_word::of(medium_.locate(s).word(), initial_global_depth));
    }
    medium_.flush(made, directory::bytes(initial_global_depth));  // (M2)
    medium_.fence();                                              // (M3)
    // (M1), (M2) < (M3) < (M4): the root never names memory that is not durable.
    change.store(root_, medium_.locate(made).word());  // (M4)
    change.commit();
  }

  // Reads the medium's directory, completes operations that a crash interrupted, and fills the copy in DRAM.
  void load() {
    directory& stored = directory_at(medium_, root_.load(std::memory_order_acquire), table_);
    const auto global_depth = static_cast<unsigned>(stored.global_depth.load(std::memory_order_acquire));
    validate(stored, global_depth);
    // Room for all copies there can be: nothing may fail once a doubled directory was published.
    copies_.reserve(greatest_global_depth + 1);
    auto cache = cached_directory::make(global_depth);
    if (cache == nullptr)
      throw error("no memory for the directory of a " + std::string(table_) + " table", "free some memory");
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
        // A split was cut off (T1): the new segment is complete. Read the run again after it.
        store_split(stored, run, first, last);
      }
    }
    copies_.push_back(std::move(cache));
    current_.store(copies_.back().get(), std::memory_order_release);
  }

  // Throws pmlab::error if the directory is none that a crash can leave: before anything is followed or changed.
  void validate(directory& stored, unsigned global_depth) const {
    std::atomic<entry_word>* const entries = stored.entries();
    std::vector<std::uint64_t> segments;
    const auto expect = [&](std::size_t i, bool holds) {
      if (!holds) throw corrupt(table_, "directory entry " + std::to_string(i));
    };
    for (std::size_t i = 0; i < std::size_t{1} << global_depth;) {
      const entry_word first = entries[i].load(std::memory_order_acquire);
      expect(i, names_a_segment<Segment>(medium_, first, global_depth));
      const std::size_t count = std::size_t{1} << (global_depth - first.local_depth());
      expect(i, i % count == 0);
      const entry_word last = entries[i + count - 1].load(std::memory_order_acquire);
      const entry_word left_after = entry_word::of(first.segment_word(), last.local_depth());
      if (last != first)
        expect(i + count - 1,
               last.local_depth() == first.local_depth() + 1 && names_a_segment<Segment>(medium_, last, global_depth));
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
      if (segments[i] - segments[i - 1] < sizeof(Segment)) throw corrupt(table_, "two segments overlap");
  }

  [[nodiscard]] entry_word cached(entry_word stored) const noexcept {
    const auto* const s = medium_.resolve(media::pointer<Segment>(stored.segment_word()));
    return entry_word::of(reinterpret_cast<std::uint64_t>(s), stored.local_depth());
  }

  static void fill_cache(const cached_directory& cache, entry_run run, entry_word entry) noexcept {
    for (std::size_t i = 0; i < run.count; ++i) cache[run.first + i].store(entry, std::memory_order_release);
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

  // Called with the mutex held: no split is under way. False: no space; nothing has changed.
  bool double_directory() {
    const cached_directory& old_cache = *current_.load(std::memory_order_relaxed);
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
    change.store(root_, medium_.locate(stored).word());  // (G3)
    change.release(old_stored, directory::bytes(old_depth));
    change.commit();

    // Readers may still hold the old copy: it is kept until the index is closed. All copies together are less than
    // twice the last one. The vector has room for it: an exception here would leave DRAM at the old depth, and the
    // next doubling would lose the keys of half of the segments.
    assert(copies_.size() < copies_.capacity());
    copies_.push_back(std::move(cache));
    current_.store(copies_.back().get(), std::memory_order_release);
    return true;
  }

  Medium& medium_;
  std::atomic<std::uint64_t>& root_;
  std::string_view table_;
  std::atomic<const cached_directory*> current_{nullptr};
  // Guards everything below, the directory in the medium, and changes of the entries of the copy in DRAM. Taken after
  // a segment's locks, never before one.
  std::mutex mutex_;
  std::vector<std::unique_ptr<cached_directory>> copies_;
  std::uint64_t segments_ = 0;
};

template <media::medium Medium, class Segment>
void segment_directory<Medium, Segment>::check(check_report& report) const {
  const cached_directory& cache = *current_.load(std::memory_order_acquire);
  directory& stored = *stored_directory();
  if (stored.global_depth.load(std::memory_order_acquire) != cache.global_depth())
    report.add("T2: the copied directory has another depth than the medium's");
  for (std::size_t i = 0; i < cache.size() && report.ok(); ++i) {
    const entry_word copied = cache[i].load(std::memory_order_acquire);
    if (copied.unmarked() != cached(stored.entries()[i].load(std::memory_order_acquire)))
      report.add("T2: directory entry " + std::to_string(i) + " differs between medium and copy");
    const std::size_t count = std::size_t{1} << (cache.global_depth() - copied.local_depth());
    if (copied != cache[i & ~(count - 1)].load(std::memory_order_acquire))
      report.add("T1: directory entry " + std::to_string(i) + " differs from the first of its run");
  }
  if (!report.ok()) return;
  std::unordered_set<const Segment*> seen;
  for_each_segment([&](Segment& s, std::uint64_t, entry_word) {
    if (!seen.insert(&s).second) report.add("T1: two directory runs lead to one segment");
  });
}

}  // namespace pmlab::indexes::detail::extendible
