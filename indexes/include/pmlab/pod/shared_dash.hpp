// A hash table that several hosts share in one memory, coherent or not: Dash's segments [Dash], whose locks are where
// all hosts see them.
//
//   head      a line with the first two segments, locks that the groups share, and locks that the stashes share: in
//             coherent memory, where there is some
//   segment   as Dash's (indexes/dash/segment.hpp), then links to the halves that were split off: anywhere
//
//                     halves[2]                    halves[d]: the segment of those of its keys whose hash bit d is 1,
//   first[0] -> 00..  ---------> 001..                        since it was split by that bit; until then 0
//               |
//               | halves[1]
//               +----------> 01..
//
// A reader takes no lock. It looks at the version of its group's lock, refreshes the line of halves[d] and the key's
// home line, reads, and looks at the version again; it leaves the refresh of a line out if the version is the one
// behind which its host has refreshed this line for this group last.
//
// There is no directory. A host remembers, in its DRAM, to which segment the first bits of a hash have led. That
// segment may have been split since: then halves[d], for the depth d that is remembered, is not 0, and leads on. It
// changes once, under the locks of all groups, so that the version which the data need is the one that it needs, too.
// A split is one publication: the new segment and the word that leads to it. So there is no version of a directory that
// every search would look at, no copy of it that every split of another host makes stale, and nothing to complete
// behind a death.
//
// (S1) < (S2) < (S3): a line is refreshed behind the look at its version, and read behind the refresh. The version that
// is remembered is that of (S1): one that was read behind the refresh might be newer than what was refreshed.
// (S4) < (S5): a writer refreshes under the lock, too: it changes parts of lines, and the rest is written back with
// them.
// (S6) comes last: every store was published by then, filters too, which is rule (L2) of the lock.
// (S7) < (S8): lines of the stash have entries of several groups, so a store there, of a value too, is under the
// stash's lock, and the stash is refreshed behind it.
// (S9): stores of a holder that died have no version of their own. So a lock that was inherited is released, which
// raises its version, before anything is read under it.
//
// Invariants, after every store that may be on the device:
//   I1  The filter of a line covers each entry that belongs to it and lies elsewhere: bits are published before the
//       entry is there, and taken away behind its removal.
//   I2  A key is live in one slot of its segment: an entry moves by one publication.
//   I3  A slot of a segment holds an entry with the hash prefix that the segment was created with, or nothing but
//       filter bits.
//   I4  halves[d] is 0, or leads to a segment that is complete; those behind the first 0 are 0.
// So a host that died under a lock has left a group that is valid, and the next holder repairs nothing. Nor does the
// first one that opens the table behind a power failure: it frees the locks, and reads no segment.
//
// Differences from indexes/dash.hpp, beside these: a split does not move entries of the half that stays to their home
// lines, since there would be two copies of them until each move is durable. They are searched in more lines until they
// are erased.
//
// Papers: Lu et al., VLDB'20 [Dash]; Tigon, OSDI'25, which remembers what a host has in its caches.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/dash/changes.hpp>
#include <pmlab/indexes/dash/segment.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/detail/extendible/check.hpp>
#include <pmlab/indexes/detail/extendible/directory.hpp>
#include <pmlab/indexes/detail/extendible/segment_directory.hpp>
#include <pmlab/indexes/detail/hash_changes.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/pod/refreshed_versions.hpp>
#include <pmlab/pod/shared_head.hpp>
#include <pmlab/pod/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>

namespace pmlab::pod {

// The sizes of a shared_dash beside its entries. Each is a power of two; the first two are the same for all hosts of a
// table, and each of these locks is a line of coherent memory.
struct table_sizes {
  std::size_t locks = 256;              // which the groups of 8 buckets share
  std::size_t stash_locks = 32;         // which the stashes of the segments share
  std::size_t remembered = 1U << 14;    // lines that a host knows it has refreshed; 32 bytes of its DRAM each
  std::size_t known_places = 1U << 12;  // prefixes of hashes whose segments a host knows; 8 bytes of its DRAM each
};

// A hash table for several hosts. Operations: O(1), and a link for each second split beyond the prefixes that a host
// remembers.
//
// Thread safety: every operation from any number of threads of any number of hosts, which may die (`check`, `stats`,
// `size`, `for_each`: no concurrent writer). Progress: readers write nothing shared; they wait while a living writer
// changes the key's group of 8 buckets, or one that shares its lock. Writers exclude each other per group; a split
// excludes the writers of its segment. Behind a death they wait until it is known. Durability: strict durable
// linearizability. The result of an operation survives the death of any host, and a power failure that all have:
// changes are published before the lock is released, and searches answer only what they read while it was free. Space:
// segments of 17.25 KiB, which are never joined or freed; an erase frees the slot for other keys.
//
// REQUIRES: the first host has opened it before others do. A single host (media::hosts_of is 1) opens it once, as
// behind a power failure of all: that frees the locks. A host that is started again has another number.
//
// A damaged memory: operations throw pmlab::error at an invalid link, and `check` names it.
template <media::medium Medium, table_sizes Sizes = table_sizes{}>
class shared_dash {
  using changes = indexes::detail::hash_changes;
  using entry_word = indexes::detail::extendible::entry_word;
  using key_type = indexes::key_type;
  using outcome = indexes::outcome;
  using slot = indexes::detail::dash::slot;
  using step = indexes::detail::extendible::step;
  using value_type = indexes::value_type;
  friend changes;
  static_assert(std::has_single_bit(Sizes.locks) && std::has_single_bit(Sizes.stash_locks) &&
                std::has_single_bit(Sizes.remembered) && std::has_single_bit(Sizes.known_places) &&
                Sizes.known_places > 1);

 public:
  static constexpr std::string_view layout_name = "shared_dash";  // name in pools
  static constexpr std::uint64_t layout_version = 1;              // version of its bytes in the medium
  // Several hosts may open it.
  static constexpr bool shared_by_hosts = true;
  // A single host opens what a power failure of all has left.
  static constexpr bool survives_power_failure = true;

  // Makes it, or joins those that have it open; takes the same time for a table of any size. `medium` must outlive it.
  // Throws pmlab::error: no space for the locks and the first segments, the name is another layout's, or the table has
  // another number of locks.
  [[nodiscard]] static shared_dash open(Medium& medium, std::string_view name = layout_name) {
    return shared_dash(medium, name);
  }

  shared_dash(const shared_dash&) = delete;
  shared_dash& operator=(const shared_dash&) = delete;
  ~shared_dash() = default;

  // Adds (key, value). inserted; exists: the key is there, and nothing changed; full: no space, and nothing changed.
  outcome insert(key_type key, value_type value) { return changes::insert(*this, key, value); }
  // Adds (key, value), or replaces the value of the key. inserted; updated; full: no space, and nothing changed.
  outcome upsert(key_type key, value_type value) { return changes::upsert(*this, key, value); }
  // Replaces the value of a key that is there. updated; absent: nothing changed.
  outcome update(key_type key, value_type value) { return changes::update(*this, key, value); }
  // Removes the key. erased; absent: nothing changed.
  outcome erase(key_type key) { return changes::erase(*this, key); }

  // The value of the key; nothing: it is absent. Reads two lines, more where an entry of the same home line and filter
  // class lies elsewhere.
  [[nodiscard]] std::optional<value_type> find(key_type key) const {
    const std::uint64_t hash = indexes::detail::hash_of_key(key);
    place at = known_place(hash);
    for (;;) {
      version_lock& lock = lock_of(*at.s, hash);
      const std::optional<std::uint64_t> version = lock.read_begin(medium_);  // (S1)
      if (!version) {
        // Its holder has died, and has left a valid group.
        static_cast<void>(lock.lock(medium_));
        lock.unlock(medium_);
        continue;
      }
      if (descends(at, hash, *version)) continue;
      const std::atomic<std::uint64_t>* const found = indexes::detail::dash::find_value(
          at.s->entries, hash, [&](const auto& line) { see(*at.s, line, hash, *version); });
      const std::optional<value_type> result =
          found == nullptr ? std::nullopt : std::optional(found->load(std::memory_order_acquire));  // (S3)
      if (lock.read_validate(medium_, *version)) return result;
    }
  }
  // As find of each key. REQUIRES: as many values as keys.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) const {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  // The one key with this hash, whose upper bits select the segment: for tests that fill segments unevenly.
  [[nodiscard]] static constexpr key_type key_of_hash(std::uint64_t hash) noexcept {
    return indexes::detail::key_of_hash(hash);
  }

  // How many entries there are; walks the segments.
  [[nodiscard]] std::uint64_t size() const { return indexes::detail::count_entries(*this); }
  // Calls function(key, value) for every entry, in no particular order.
  template <class Function>
  void for_each(Function&& function) const {
    for_each_segment([&](segment& s, std::uint64_t prefix, unsigned depth) {
      indexes::detail::dash::for_each_value(s.entries, prefix, depth, [&](std::uint64_t hash, value_type value) {
        function(indexes::detail::key_of_hash(hash), value);
      });
    });
  }
  // depth = most bits of a hash that lead to a segment; nodes = segments.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    result.entries = size();
    for_each_segment([&](segment&, std::uint64_t, unsigned depth) {
      ++result.nodes;
      result.depth = std::max<std::uint64_t>(result.depth, depth);
    });
    result.load_factor = static_cast<double>(result.entries) /
                         static_cast<double>(result.nodes * indexes::detail::dash::slots_per_segment);
    result.medium_bytes = sizeof(head) + result.nodes * sizeof(segment);
    result.dram_bytes = refreshed_.bytes() + Sizes.known_places * sizeof(word);
    return result;
  }
  // Checks every invariant above.
  [[nodiscard]] indexes::check_report check() const {
    try {
      return indexes::detail::extendible::check(all_segments{*this}, [](auto& s, std::uint64_t prefix, entry_word entry,
                                                                        auto&& visit) {
        indexes::detail::dash::for_each_slot(s, prefix, entry.local_depth(), [&](std::uint64_t hash, const slot& at) {
          const auto filter = indexes::detail::dash::filter_of(indexes::detail::dash::home_line(s, hash));
          visit(hash, (filter & at.needed) == at.needed);
        });
      });
    } catch (const error& e) {
      indexes::check_report report;
      report.add(e.what());
      return report;
    }
  }

 private:
  using word = std::atomic<std::uint64_t>;

  static constexpr std::size_t groups = indexes::detail::dash::groups_per_segment;
  static constexpr std::size_t bucket_lines = indexes::detail::dash::lines_per_segment;
  static constexpr unsigned first_depth = indexes::detail::extendible::initial_global_depth;
  static constexpr unsigned greatest_depth = indexes::detail::extendible::greatest_global_depth;
  static constexpr unsigned place_bits = static_cast<unsigned>(std::bit_width(Sizes.known_places)) - 1;

  struct segment {
    indexes::detail::dash::segment entries{};
    std::array<word, 64> halves{};
  };
  static_assert(greatest_depth < 64);
  struct head {
    static constexpr std::uint64_t sizes = Sizes.locks | std::uint64_t{Sizes.stash_locks} << 32;
    alignas(media::cache_line_bytes) std::array<word, std::size_t{1} << first_depth> first{};
    word made_with{sizes};
    std::array<version_lock, Sizes.locks> locks{};
    std::array<version_lock, Sizes.stash_locks> stash_locks{};
  };

  // A segment that had the hashes with its first `depth` bits at some time: it has them still, or a half of it has.
  struct place {
    segment* s;
    unsigned depth;
  };
  // Where a key belongs while its group is locked.
  struct location : place {
    std::uint64_t hash;
    std::uint64_t version;  // the group's lock had it before
  };

  shared_dash(Medium& medium, std::string_view name)
      : medium_(medium),
        head_(head_of<head>(medium, name, layout_name, layout_version, [&](word& named) { make(medium, named); })),
        refreshed_(Sizes.remembered),
        places_(new word[Sizes.known_places]) {
    if (media::hosts_of(medium_) > 1) return;
    // A crash of all hosts has left them as they were.
    for (version_lock& l : head_.locks) l.reset(medium_);
    for (version_lock& l : head_.stash_locks) l.reset(medium_);
  }

  static void make(Medium& medium, word& named) {
    typename Medium::publication made(medium);
    auto* const h = media::create_coherent<head>(made);
    const auto no_space = [] {
      return error("no space for a shared_dash", "give the medium 128 KiB, and the coherent part 32 KiB of it");
    };
    if (h == nullptr) throw no_space();
    for (word& first : h->first) {
      auto* const s = media::create<segment>(made);
      if (s == nullptr) throw no_space();
      media::publish(medium, *s);  // (M1)
      first.store(medium.locate(s).word(), std::memory_order_relaxed);
    }
    media::publish(medium, *h);  // (M2)
    made.store(named, medium.locate(h).word());
    // (M1), (M2) < return: a host that finds the name finds all that it leads to.
    made.commit();
  }

  [[noreturn]] static void throw_damaged(const char* part) { throw indexes::detail::damaged_tree(layout_name, part); }

  [[nodiscard]] segment& named_by(std::uint64_t link) const {
    const media::pointer<segment> at(link);
    if (!media::can_name(medium_, at)) throw_damaged("a link");
    return *medium_.resolve(at);
  }
  [[nodiscard]] std::uint64_t number_of(const segment& s) const noexcept {
    return medium_.locate(&s).word() / alignof(segment);
  }
  [[nodiscard]] std::size_t first_lock_of(const segment& s) const noexcept {
    return number_of(s) * groups % Sizes.locks;
  }
  [[nodiscard]] version_lock& lock_of(const segment& s, std::uint64_t hash) const noexcept {
    return head_.locks[(first_lock_of(s) + indexes::detail::dash::group_of(hash)) % Sizes.locks];
  }
  [[nodiscard]] version_lock& stash_lock_of(const segment& s) const noexcept {
    return head_.stash_locks[number_of(s) % Sizes.stash_locks];
  }

  // ---- lines ----

  // A line as a group's version tells of it: the groups of a segment share the lines behind the buckets.
  template <class Part>
  [[nodiscard]] std::uint64_t object_of(const segment& s, const Part& part, std::uint64_t hash) const noexcept {
    constexpr std::size_t shared_lines = sizeof(segment) / media::cache_line_bytes - bucket_lines;
    static_assert(bucket_lines + shared_lines * groups <= 2 * (bucket_lines + shared_lines));
    const std::uint64_t first = 2 * medium_.locate(&s).word() / media::cache_line_bytes;
    const std::size_t line =
        static_cast<std::size_t>(reinterpret_cast<const char*>(&part) - reinterpret_cast<const char*>(&s)) /
        media::cache_line_bytes;
    return first + (line < bucket_lines
                        ? line
                        : bucket_lines + (line - bucket_lines) * groups + indexes::detail::dash::group_of(hash));
  }
  // This host's loads of the line of `part` see all that was published for the group of `hash` up to this version.
  template <class Part>
  void see(const segment& s, const Part& part, std::uint64_t hash, std::uint64_t version) const {
    const std::uint64_t object = object_of(s, part, hash);
    if (!refreshed_.has(object, version)) {
      media::refresh(medium_, part);  // (S2)
      refreshed_.note(object, version);
    }
    media::annotate_read(medium_, part);
  }
  void see_buckets(const location& at) const {
    const std::size_t first = indexes::detail::dash::group_of(at.hash) * indexes::detail::dash::buckets_per_group;
    for (std::size_t b = 0; b < indexes::detail::dash::buckets_per_group; ++b)
      for (const auto& line : at.s->entries.buckets[first + b].lines) see(*at.s, line, at.hash, at.version);
  }
  void see_stash(const location& at) const {
    for (const auto& line : at.s->entries.stash) see(*at.s, line, at.hash, at.version);
  }

  // ---- the segment of a key ----

  [[nodiscard]] word& known_word(std::uint64_t hash) const noexcept { return places_[hash >> (64 - place_bits)]; }
  [[nodiscard]] place known_place(std::uint64_t hash) const {
    const entry_word known{known_word(hash).load(std::memory_order_acquire)};
    if (known.word != 0) return {medium_.resolve(media::pointer<segment>(known.segment_word())), known.local_depth()};
    return {&named_by(head_.first[hash >> (64 - first_depth)].load(std::memory_order_acquire)), first_depth};
  }
  // True: the segment has been split, and `at` becomes the half that has the hash. `version`: of its group's lock.
  bool descends(place& at, std::uint64_t hash, std::uint64_t version) const {
    const word& half = at.s->halves[at.depth];
    see(*at.s, half, hash, version);
    const std::uint64_t link = half.load(std::memory_order_acquire);
    if (link == 0) return false;
    if (at.depth >= greatest_depth) throw_damaged("a link");
    if ((hash & indexes::detail::extendible::next_bit(at.depth)) != 0) at.s = &named_by(link);
    ++at.depth;
    if (at.depth <= place_bits)
      known_word(hash).store(entry_word::of(medium_.locate(at.s).word(), at.depth).word, std::memory_order_release);
    return true;
  }

  // Calls function(segment, prefix, depth) for every segment, refreshed.
  template <class Function>
  void for_each_segment(Function&& function) const {
    std::unordered_set<const segment*> seen;
    for (std::size_t i = 0; i < head_.first.size(); ++i)
      for_each_half(named_by(head_.first[i].load(std::memory_order_acquire)), std::uint64_t{i} << (64 - first_depth),
                    first_depth, seen, function);
  }
  template <class Function>
  void for_each_half(segment& s, std::uint64_t prefix, unsigned depth, std::unordered_set<const segment*>& seen,
                     Function& function) const {
    if (!seen.insert(&s).second) throw_damaged("two links to one segment");
    media::refresh(medium_, s);
    unsigned own_depth = depth;
    while (s.halves[own_depth].load(std::memory_order_acquire) != 0)
      if (++own_depth > greatest_depth) throw_damaged("a link");
    for (unsigned d = depth; d < own_depth; ++d)
      for_each_half(named_by(s.halves[d].load(std::memory_order_acquire)),
                    prefix | indexes::detail::extendible::next_bit(d), d + 1, seen, function);
    for (std::size_t d = 0; d < s.halves.size(); ++d)
      if ((d < depth || d > own_depth) && s.halves[d].load(std::memory_order_acquire) != 0)
        throw_damaged("a link of a split that there was not");
    function(s, prefix, own_depth);
  }
  // For the check of extendible tables.
  struct all_segments {
    const shared_dash& table;
    void check(indexes::check_report& /*report*/) const {}
    template <class Function>
    void for_each_segment(Function&& function) const {
      table.for_each_segment([&](segment& s, std::uint64_t prefix, unsigned depth) {
        function(s.entries, prefix, entry_word::of(0, depth));
      });
    }
  };

  // ---- changes ----

  // The group of a hash, locked, in the segment that has it.
  class locked_group {
   public:
    // Built behind the first step: a damaged link that throws releases the lock.
    locked_group(const shared_dash& table, std::uint64_t hash) : locked_group(table, table.known_place(hash), hash) {
      for (;;) {
        lock();
        place next = at_;
        if (!table_.descends(next, hash, at_.version)) break;
        unlock();
        static_cast<place&>(at_) = next;
      }
      table_.see(*at_.s, home(), hash, at_.version);  // (S5)
      knows_lines_ = true;
    }
    locked_group(const locked_group&) = delete;
    locked_group& operator=(const locked_group&) = delete;
    ~locked_group() { unlock(); }

    [[nodiscard]] const location& where() const noexcept { return at_; }
    [[nodiscard]] slot find() const {
      return indexes::detail::dash::find_in_segment(
          at_.s->entries, at_.hash, [&](const auto& line) { table_.see(*at_.s, line, at_.hash, at_.version); });
    }

   private:
    locked_group(const shared_dash& table, place at, std::uint64_t hash) noexcept : table_(table), at_{at, hash, 0} {}

    [[nodiscard]] const auto& home() const noexcept {
      return indexes::detail::dash::home_line(at_.s->entries, at_.hash);
    }
    void lock() {
      version_lock& lock = table_.lock_of(*at_.s, at_.hash);
      while (lock.lock(table_.medium_, at_.version) == acquired::inherited) lock.unlock(table_.medium_);  // (S4), (S9)
      is_locked_ = true;
    }
    void unlock() noexcept {
      if (!is_locked_) return;
      is_locked_ = false;
      const std::uint64_t version = table_.lock_of(*at_.s, at_.hash).unlock(table_.medium_);  // (S6)
      if (!knows_lines_) return;
      table_.refreshed_.note(table_.object_of(*at_.s, home(), at_.hash), version);
      table_.refreshed_.note(table_.object_of(*at_.s, at_.s->halves[at_.depth], at_.hash), version);
    }

    const shared_dash& table_;
    location at_;
    bool is_locked_ = false;
    bool knows_lines_ = false;
  };

  // The stash of a segment, locked and refreshed, beside the lock of a group.
  class locked_stash {
   public:
    locked_stash(const shared_dash& table, const segment& s) noexcept : table_(table), lock_(table.stash_lock_of(s)) {
      static_cast<void>(lock_.lock(table_.medium_));    // (S7)
      media::refresh(table_.medium_, s.entries.stash);  // (S8)
    }
    locked_stash(const locked_stash&) = delete;
    locked_stash& operator=(const locked_stash&) = delete;
    ~locked_stash() { lock_.unlock(table_.medium_); }

   private:
    const shared_dash& table_;
    version_lock& lock_;
  };

  // All groups of a segment, locked in ascending order, and refreshed.
  class locked_segment {
   public:
    locked_segment(const shared_dash& table, const segment& s) noexcept
        : table_(table), first_(table.first_lock_of(s)) {
      for (std::size_t i = 0; i < count; ++i) static_cast<void>(table_.head_.locks[first_ + i].lock(table_.medium_));
      media::refresh(table_.medium_, s);
    }
    locked_segment(const locked_segment&) = delete;
    locked_segment& operator=(const locked_segment&) = delete;
    ~locked_segment() {
      for (std::size_t i = 0; i < count; ++i) table_.head_.locks[first_ + i].unlock(table_.medium_);
    }

   private:
    static constexpr std::size_t count = std::min(Sizes.locks, groups);
    const shared_dash& table_;
    std::size_t first_;
  };

  // Runs operation(location, slot of the key or none) with the key's group locked, and its stash if the key is there;
  // splits the segment when the operation requests it.
  template <class Operation>
  outcome change(key_type key, Operation&& operation) {
    const std::uint64_t hash = indexes::detail::hash_of_key(key);
    for (;;) {
      place full{};
      {
        const locked_group group(*this, hash);
        const slot found = group.find();
        std::optional<locked_stash> stash;
        if (found && found.entry_bits != ~indexes::detail::dash::filter_mask) stash.emplace(*this, *group.where().s);
        const step result = operation(group.where(), found);
        if (!result.must_split) return result.answer;
        full = group.where();
      }
      if (!split(full, hash)) return outcome::full;
    }
  }

  step add(const location& at, value_type value) {
    auto& s = at.s->entries;
    if (indexes::detail::dash::free_slots(indexes::detail::dash::home_line(s, at.hash), at.hash, at.depth) == 0)
      see_buckets(at);
    slot to = indexes::detail::dash::free_in_buckets(s, at.hash, at.depth);
    if (!to) to = displace(at);
    if (!to) return add_to_stash(at, value);
    make_findable(s, at.hash, to);
    indexes::detail::dash::store_entry(medium_, to, at.hash, value);
    return outcome::inserted;
  }
  step add_to_stash(const location& at, value_type value) {
    const locked_stash guard(*this, *at.s);
    const auto to = indexes::detail::dash::free_in_stash(at.s->entries, at.hash, at.depth);
    if (!to.free) return step::split_first();
    make_findable(at.s->entries, at.hash, to.free);
    indexes::detail::dash::store_in_stash(medium_, to, at.hash, value);
    return outcome::inserted;
  }
  // Before an entry of `hash` is in this slot (I1): its home line's filter covers it, on the device.
  void make_findable(indexes::detail::dash::segment& s, std::uint64_t hash, const slot& to) {
    auto& home = indexes::detail::dash::home_line(s, hash);
    if ((indexes::detail::dash::filter_of(home) & to.needed) == to.needed) return;
    indexes::detail::dash::add_to_filter(home, to.needed);
    media::publish(medium_, home);  // (F1)
    // (F1) < return: a death behind it leaves bits that lead nowhere, and never an entry without them.
  }

  // A slot in the full buckets of `at.hash`, whose entry has moved to its own other bucket. None: those are full, too.
  [[nodiscard]] slot displace(const location& at) {
    const auto move = indexes::detail::dash::find_move(at.s->entries, at.hash, at.depth);
    if (!move.to) return {};
    const bool is_displaced = (move.to.needed & indexes::detail::dash::in_next_bucket) != 0;
    make_findable(at.s->entries, move.hash, move.to);
    typename Medium::publication change(medium_);
    change.store(*move.to.value, move.from.value->load(std::memory_order_relaxed));
    change.store(*move.to.word, indexes::detail::dash::with_entry(
                                    *move.to.word, indexes::detail::dash::live_word(move.hash, is_displaced)));
    change.store(*move.from.word, indexes::detail::dash::with_entry(*move.from.word, 0));
    change.commit();
    return move.from;
  }

  outcome replace(const slot& found, value_type value) {
    return indexes::detail::replace_value(medium_, *found.value, value);
  }
  outcome remove(const location& at, const slot& found) {
    auto& s = at.s->entries;
    indexes::detail::dash::remove_entry(medium_, found);
    if (found.needed == 0) return outcome::erased;
    see_buckets(at);
    see_stash(at);
    indexes::detail::dash::find_filter_of_line(s, at.hash, at.depth);
    media::publish(medium_, indexes::detail::dash::home_line(s, at.hash));  // (F2)
    // (F2) < unlock: rule (L2). It comes behind the removal, which is durable (I1).
    return outcome::erased;
  }

  // Moves half of the keys of a segment to a new one, unless another thread has. False: no space (or no further bit of
  // the hash); nothing has changed.
  bool split(const place& at, std::uint64_t hash) {
    const locked_segment guard(*this, *at.s);
    word& half = at.s->halves[at.depth];
    if (half.load(std::memory_order_acquire) != 0) return true;
    if (at.depth >= greatest_depth) return false;
    typename Medium::publication change(medium_);
    auto* const made = media::create<segment>(change);
    if (made == nullptr) return false;
    const std::uint64_t bit = indexes::detail::extendible::next_bit(at.depth);
    if (!indexes::detail::dash::place_at_home(at.s->entries, made->entries, hash | bit, at.depth + 1)) {
      // Nearly all of the entries move. There is room for them where they are.
      ::new (made) segment;
      indexes::detail::dash::copy_entries(at.s->entries, made->entries, hash | bit, at.depth + 1);
    }
    media::publish(medium_, *made);                   // (D1)
    change.store(half, medium_.locate(made).word());  // (D2) commit
    change.commit();
    // (D1) < (D2): the new segment is complete where the link leads to it. It is allocated with that very store.
    indexes::detail::dash::find_filters(at.s->entries, hash & ~bit, at.depth + 1);
    media::publish(medium_, at.s->entries.buckets);  // (D3)
    // (D2) < (D3) < unlock: rule (L2), and bits that entries of the other half needed go behind them.
    return true;
  }

  Medium& medium_;
  head& head_;
  mutable refreshed_versions refreshed_;
  std::unique_ptr<word[]> places_;
};

}  // namespace pmlab::pod
