// Level hashing: two levels of buckets, four places for a key, after Zuo, Hua, Wu, OSDI'18 [Level hashing].
//
// Use it for point operations if inserts must not pause and space must not grow in steps: the longest pause is the
// growth of one of 4096 small tables, and the bytes per key are nearly the same at any number of keys. It keeps no
// order: for scans use a tree.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: finds write nothing that others read except their epoch; they wait only while a writer changes the same
// shard. Writers exclude each other per shard.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the shard's version lock, and a reader returns only if that lock was free and unchanged
// while it read: it cannot have read anything that a crash undoes.
//
// Layout (medium):
//
//   named root -> root object: | log2 (shards) | retired | top 0 | bottom 0 | top 1 | bottom 1 | ... |
//                                                            |        |
//                 top level of shard 0: 2^n buckets       <--+        +-->  bottom level: 2^(n-1) buckets
//                 bucket: | 7 valid bits, 7 tags | unused | 7 x (key, value) |      128 bytes, two lines
//
// Bits of the hash select the shard (detail/level_hashing_place.hpp). In it a key has two candidate buckets in the top
// level and, at half their numbers, two in the bottom level. A full shard gets a new top level of twice the size; its
// old top level becomes the bottom level unchanged, and the entries of the old bottom level, a third of all, move into
// the new top level. A shard has no levels before its first key.
//
// In DRAM: a line for each shard, of its version lock and its levels' addresses. Opening reads the root object only.
//
// Differences from the paper:
//  * Many small tables in place of a big one: each grows by itself, under its own lock, so that the longest pause is a
//    4096th, and one version lock makes uniqueness over four buckets, movement and growth simple (L8). There are as
//    many locks as shards, at any size of the table (L12).
//  * The shares of the shards are staggered, so that they do not all grow at the same time: about as many bytes per key
//    at any number of keys.
//  * Growing is one publication, of a level that was filled in private: nothing needs to be resumed (L2, L6, L7, L11).
//  * So is a movement: no crash shows an entry twice or not at all (L3).
//  * Tags in the token word: a search reads, of a bucket, its token word and the matching entry.
//  * Updates replace the value in place, with one 8-byte store: no bit is flipped, and nothing can be lost (L4).
//  * The two candidates of a level lie in its two halves: they are never the same bucket.
//
// Invariants:
//   I1  An entry lies in one of its key's four candidate buckets, with its key's tag.
//   I2  A key is in at most one slot of its shard.
//   I3  A shard has both levels or none; the bottom level has half as many buckets as the top level.
//   I4  Every allocated level is named by its shard, or is on the list of retired ones; that list is empty after
//       opening.
//   I5  The unused bits of a bucket are 0.
//
// Damage: `open` refuses levels that are not in the medium or overlap, before it follows them. `check` detects every
// misplaced entry, and (I5) nearly every bucket that was overwritten at random, empty ones included. It cannot detect a
// changed value, a bucket that was overwritten with zeros, nor damage in slots without entries.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/hash_changes.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/level_hashing/bucket.hpp>
#include <pmlab/indexes/level_hashing/levels.hpp>
#include <pmlab/indexes/level_hashing/place.hpp>
#include <pmlab/indexes/level_hashing/salvage.hpp>
#include <pmlab/indexes/level_hashing/search.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::indexes {

// Hash table of two levels [Level hashing]. See the file's prologue for its use, thread safety, durability and layout.
// Operations: O(1); a change that makes one of the many small tables grow moves a third of its entries.
template <media::medium Medium>
class level_hashing {
  using bucket = detail::level_hashing::bucket;
  using slot = detail::level_hashing::slot;
  using tokens = detail::level_hashing::tokens;
  using candidates = detail::level_hashing::candidates;
  using level = detail::level_hashing::level;
  using stored_level = detail::level_hashing::stored_level;
  using root_object = detail::level_hashing::root_object;
  using stored_shard = detail::level_hashing::stored_shard;
  using shard = detail::level_hashing::shard;
  using wanted = detail::level_hashing::wanted;
  using position = detail::level_hashing::position;
  using publication = typename Medium::publication;
  using changes = detail::hash_changes;
  using step = outcome;
  friend changes;

 public:
  static constexpr std::string_view layout_name = "level_hashing";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the table `name` in `medium`, or creates an empty one. Releases levels that a crash or a kill left retired.
  // Time: proportional to the number of shards, independent of their content. Throws pmlab::error: the name belongs to
  // another layout, the root object is corrupt, no space for an empty table. `medium` must outlive the index.
  static level_hashing open(Medium& medium, std::string_view name = layout_name) { return level_hashing(medium, name); }

  // Calls function(key, value) for the reachable entries of a table that does not open. Changes nothing. Throws
  // pmlab::error at the end if some of it could not be read.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    detail::level_hashing::salvage(medium, root, function);
  }

  level_hashing(const level_hashing&) = delete;
  level_hashing& operator=(const level_hashing&) = delete;
  // Releases the retired levels. No operation may be under way.
  ~level_hashing() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and one fence, or two of each if the entry is in another line than the token word; one
  // entry may be moved before (two flushes' worth more, as a publication), or the shard grow.
  outcome insert(key_type key, value_type value) { return changes::insert(*this, key, value); }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) { return changes::update(*this, key, value); }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) { return changes::upsert(*this, key, value); }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. The slot is free for another key;
  // levels never shrink.
  outcome erase(key_type key) { return changes::erase(*this, key); }

  // The value of `key`. Reads the token words of its two top buckets at once, of the two bottom buckets only if the key
  // is not there, and the entry: three buckets on average for present keys, four for absent ones.
  std::optional<value_type> find(key_type key) {
    const wanted w(key);
    const shard& s = shard_of(w);
    prefetch_top(s, w);
    const auto guard = readers_.pin();
    return find_in(s, w);
  }

  // Prefetches the lines in which a search for `key` begins.
  void prefetch_find(key_type key) noexcept {
    const wanted w(key);
    prefetch_top(shard_of(w), w);
  }

  // values[i] := find(keys[i]). The cache misses of the searches overlap.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    detail::in_batches<batch_width>(keys, values, [this](const auto some, const auto found) {
      for (const key_type key : some) prefetch_find(key);
      const auto guard = readers_.pin();
      for (std::size_t i = 0; i < some.size(); ++i) {
        const wanted w(some[i]);
        found[i] = find_in(shard_of(w), w);
      }
    });
  }

  // The one key with this hash, whose upper bits select the shard: for tests that fill shards unevenly.
  [[nodiscard]] static constexpr key_type key_of_hash(std::uint64_t hash) noexcept { return detail::key_of_hash(hash); }

  // Entries in the table; walks it.
  [[nodiscard]] std::uint64_t size() const { return detail::count_entries(*this); }

  // Calls function(key, value) for every entry, in no particular order.
  template <class Function>
  void for_each(Function&& function) const {
    for_each_entry([&](std::size_t, level, std::uint64_t, const bucket& b, unsigned number) {
      function(b.slots[number].key.load(std::memory_order_acquire),
               b.slots[number].value.load(std::memory_order_acquire));
    });
  }

  // depth = levels of a shard; nodes = buckets. medium_bytes includes levels that wait for their release.
  [[nodiscard]] index_stats stats() const;

  // Every invariant above, and that DRAM names the levels that the medium does.
  [[nodiscard]] check_report check() const;
  // The same of a table that was opened this moment: no level waits for its release.
  [[nodiscard]] check_report check_opened() const {
    check_report report = check();
    if (root_->retired.load(std::memory_order_acquire) != 0)
      report.add("I4: levels that were retired before it was opened still wait for their release");
    return report;
  }

 private:
  static constexpr std::size_t batch_width = 16;
  // As many as make the longest pause a fraction of a millisecond, and locks and root object still small.
  static constexpr std::size_t usual_shards = std::size_t{1} << 12;
  static constexpr unsigned first_top_log2 = 1;
  // Growing is rare: a level is released as soon as no reader can use it.
  static constexpr std::size_t retired_at_once = 1;

  level_hashing(Medium& medium, std::string_view name)
      : medium_(medium), root_word_(medium.named_root(name, layout_name, layout_version).word) {
    if (root_word_->load(std::memory_order_acquire) == 0) create();
    load();
  }

  // ---- searches ----

  [[nodiscard]] std::size_t shard_number(const wanted& w) const noexcept {
    return detail::level_hashing::shard_of(w.hash, log2_shards_);
  }
  [[nodiscard]] shard& shard_of(const wanted& w) const noexcept { return shards_[shard_number(w)]; }

  // Prefetches the token words that a search reads first. The shard's line may be out of date: then a useless line is
  // prefetched.
  void prefetch_top(const shard& s, const wanted& w) const noexcept { prefetch(s.top_level(), w); }
  void prefetch_all(const shard& s, const wanted& w) const noexcept {
    prefetch(s.top_level(), w);
    prefetch(s.bottom_level(), w);
  }
  void prefetch(level l, const wanted& w) const noexcept {
    if (l.none()) return;
    for (unsigned which = 0; which < 2; ++which) media::prefetch(medium_, l[w.at.number(which, l.log2())].word);
  }

  // REQUIRES: a guard, so that a level that is retired during the call stays readable.
  [[nodiscard]] std::optional<value_type> find_in(const shard& s, const wanted& w) const {
    for (;;) {
      const std::uint64_t version = s.lock.read_begin();
      const position found = search(s.top_level(), s.bottom_level(), w);
      const value_type value = found ? found.in->slots[found.slot].value.load(std::memory_order_acquire) : 0;
      if (s.lock.read_validate(version)) [[likely]]
        return found ? std::optional<value_type>(value) : std::nullopt;
    }
  }

  [[nodiscard]] position search(level top, level bottom, const wanted& w) const {
    if (top.none() || bottom.none()) return {};
    const auto visit = [this](const auto& object) { media::annotate_read(medium_, object); };
    if (const position found = detail::level_hashing::search(top, w, visit)) return found;
    prefetch(bottom, w);
    return detail::level_hashing::search(bottom, w, visit);
  }

  // ---- changes ----

  // Where a key belongs while its shard is locked.
  struct location {
    shard& s;
    const wanted& w;
  };

  // Runs `operation(location, position of the key or none)` with the key's shard locked.
  template <class Operation>
  outcome change(key_type key, Operation&& operation) {
    const wanted w(key);
    shard& s = shard_of(w);
    prefetch_all(s, w);
    const std::scoped_lock guard(s.lock);
    return operation(location{s, w}, search(s.top_level(), s.bottom_level(), w));
  }

  outcome add(location at, value_type value) {
    for (;;) {
      if (const position to = room_for(at.s, at.w)) {
        put(to, at.w, value);
        return outcome::inserted;
      }
      if (!(at.s.top_level().none() ? make_levels(at.s) : grow(at.s))) return outcome::full;
    }
  }

  outcome replace(position found, value_type value) {
    return detail::replace_value(medium_, found.in->slots[found.slot].value, value);
  }

  outcome remove(location, position found) {
    bucket& b = *found.in;
    b.word.store(b.load().without(found.slot).word(), std::memory_order_release);  // (E1) commit
    media::persist(medium_, b.word);                                               // (E2)
    // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
    return outcome::erased;
  }

  void put(position to, const wanted& w, value_type value) {
    bucket& b = *to.in;
    slot& there = b.slots[to.slot];
    there.value.store(value, std::memory_order_release);                                        // (P1)
    there.key.store(w.key, std::memory_order_release);                                          // (P2)
    if (to.slot >= detail::level_hashing::slots_beside_tokens) media::persist(medium_, there);  // (P3)
    // (P1), (P2) < (P3) < (P4), or all of them in one line: no crash image has the token without its entry (L1).
    b.word.store(b.load().with(to.slot, w.at.tag()).word(), std::memory_order_release);  // (P4) commit
    media::persist(medium_, b.word);                                                     // (P5)
    // (P4) < (P5) < unlock: the value that a reader returns is durable (L9).
  }

  // A free slot among the candidates of a key: in the emptier bucket of the top level, else of the bottom level, else
  // one that the movement of an entry makes free. None: the shard must grow.
  position room_for(shard& s, const wanted& w) {
    const level top = s.top_level();
    const level bottom = s.bottom_level();
    if (top.none()) return {};
    for (const level l : {top, bottom})
      if (const position free = detail::level_hashing::free_in(l, w.at)) return free;
    for (const level l : {top, bottom})
      for (unsigned which = 0; which < 2; ++which)
        if (const position free = move_one(l, w.at.number(which, l.log2()))) return free;
    return {};
  }

  // Moves an entry of a full bucket to its other candidate of the same level. Returns the slot that this makes free.
  position move_one(level l, std::uint64_t number) {
    bucket& from = l[number];
    std::array<std::uint64_t, detail::level_hashing::slots_per_bucket> others;
    media::annotate_read(medium_, from);
    for (unsigned i = 0; i < others.size(); ++i) {
      const candidates at(detail::hash_of_key(from.slots[i].key.load(std::memory_order_relaxed)));
      const std::uint64_t first = at.number(0, l.log2());
      others[i] = first != number ? first : at.number(1, l.log2());
      __builtin_prefetch(&l[others[i]].word);
    }
    for (unsigned i = 0; i < others.size(); ++i) {
      bucket& to = l[others[i]];
      if (&to == &from) continue;
      media::annotate_read(medium_, to.word);
      if (to.load().full()) continue;
      move({&from, i}, {&to, to.load().free_slot()});
      return {&from, i};
    }
    return {};
  }

  void move(position from, position to) {
    const slot& source = from.in->slots[from.slot];
    slot& target = to.in->slots[to.slot];
    target.value.store(source.value.load(std::memory_order_relaxed), std::memory_order_release);  // (V1)
    target.key.store(source.key.load(std::memory_order_relaxed), std::memory_order_release);      // (V2)
    media::persist(medium_, target);                                                              // (V3)
    const tokens before = from.in->load();
    publication change(medium_);
    change.store(to.in->word, to.in->load().with(to.slot, before.tag(from.slot)).word());  // (V4)
    change.store(from.in->word, before.without(from.slot).word());
    change.commit();
    // (V1), (V2) < (V3) < (V4): the copy is durable before its token. Both tokens change as one: the entry is never
    // there twice or not at all (L3), and the freed slot is durably free before it is filled.
  }

  // ---- levels ----

  [[nodiscard]] stored_shard& stored(const shard& s) const noexcept {
    return root_->shards()[static_cast<std::size_t>(&s - shards_.get())];
  }
  [[nodiscard]] stored_level stored(level l) const noexcept {
    return stored_level::of(medium_.locate(&l[0]), l.log2());
  }
  [[nodiscard]] level resolved(stored_level l) const noexcept {
    return l.none() ? level() : level(medium_.resolve(l.buckets()), l.log2());
  }

  [[nodiscard]] static bucket* allocate_level(publication& change, unsigned log2) {
    return static_cast<bucket*>(change.allocate(detail::level_hashing::level_bytes(log2), alignof(bucket)));
  }

  // Gives a shard its first two levels, both empty. False: no space; nothing has changed.
  bool make_levels(shard& s) {
    const std::array<bucket, std::size_t{1} << first_top_log2> empty{};
    publication change(medium_);
    bucket* const top = allocate_level(change, first_top_log2);
    bucket* const bottom = top == nullptr ? nullptr : allocate_level(change, first_top_log2 - 1);
    if (bottom == nullptr) return false;
    medium_.copy(top, empty.data(), detail::level_hashing::level_bytes(first_top_log2));         // (M1)
    medium_.copy(bottom, empty.data(), detail::level_hashing::level_bytes(first_top_log2 - 1));  // (M2)
    medium_.fence();                                                                             // (M3)
    name_levels(change, s, level(top, first_top_log2), level(bottom, first_top_log2 - 1));       // (M4)
    change.commit();
    // (M1), (M2) < (M3) < (M4): the shard names levels only when they are durably empty (A6).
    show_levels(s, level(top, first_top_log2), level(bottom, first_top_log2 - 1));
    return true;
  }

  void name_levels(publication& change, const shard& s, level top, level bottom) const {
    change.store(stored(s).top, stored(top).word());
    change.store(stored(s).bottom, stored(bottom).word());
  }
  static void show_levels(shard& s, level top, level bottom) noexcept {
    s.top.store(top.word(), std::memory_order_release);
    s.bottom.store(bottom.word(), std::memory_order_release);
  }

  // Gives a shard a new top level above the one that it has. False: no space (or no use, see tolerated_emptiness);
  // nothing has changed.
  bool grow(shard& s) {
    const level old_top = s.top_level();
    const level old_bottom = s.bottom_level();
    if (old_top.log2() == candidates::greatest_log2) return false;
    const unsigned log2 = old_top.log2() + 1;
    medium_.annotate_read(&old_bottom[0], old_bottom.bytes());
    const std::unique_ptr<bucket[]> filled = detail::level_hashing::new_top_of(old_bottom, log2);
    if (filled == nullptr) return false;
    {
      publication change(medium_);
      bucket* const top = allocate_level(change, log2);
      if (top == nullptr) return false;
      medium_.copy(top, filled.get(), detail::level_hashing::level_bytes(log2));  // (G1)
      medium_.fence();                                                            // (G2)
      const std::scoped_lock guard(retired_mutex_);
      name_levels(change, s, level(top, log2), old_top);  // (G3)
      // Readers may still be in the old bottom level. Its first token word, which no reader can validate any more,
      // becomes the link that keeps it reachable.
      change.store(old_bottom[0].word, root_->retired.load(std::memory_order_relaxed));
      change.store(root_->retired, stored(old_bottom).word());
      change.commit();
      // (G1) < (G2) < (G3): the new level is complete before its shard names it, and all that happens to the shard
      // happens as one: a crash leaves the table of before or of after (L2, L6, L7, L11).
      show_levels(s, level(top, log2), old_top);
    }
    // Without memory to remember it, it waits for the next opening.
    readers_.retire([this, old_bottom] { release(old_bottom); });
    return true;
  }

  // Removes a level from the list of retired ones and frees it. REQUIRES: no guard may still read it.
  void release(level retired) {
    const std::scoped_lock guard(retired_mutex_);
    const std::uint64_t word = stored(retired).word();
    std::atomic<std::uint64_t>* link = &root_->retired;
    while (link->load(std::memory_order_relaxed) != word)
      link = &resolved(stored_level(link->load(std::memory_order_relaxed)))[0].word;
    release(*link, retired);
  }

  // `link` leads to `retired`.
  void release(std::atomic<std::uint64_t>& link, level retired) {
    publication change(medium_);
    change.store(link, retired[0].word.load(std::memory_order_relaxed));
    change.release(&retired[0], retired.bytes());
    change.commit();
  }

  // ---- opening ----

  // Shards of a new table (a power of two): fewer on a medium that overrides it, for example so that short histories
  // meet in one shard. An existing table keeps its number.
  [[nodiscard]] std::size_t new_shards() const noexcept {
    if constexpr (requires { medium_.shards(usual_shards); })
      return medium_.shards(usual_shards);
    else
      return usual_shards;
  }

  // Makes an empty table: the root object is durable before the medium names it (A6).
  void create() {
    const std::size_t shards = new_shards();
    const auto log2_shards = static_cast<unsigned>(std::bit_width(shards) - 1);
    publication change(medium_);
    void* const block = change.allocate(root_object::bytes(log2_shards), alignof(root_object));
    if (block == nullptr) throw error("no space for an empty Level hashing table", "use a larger pool");
    auto* const made = ::new (block) root_object{};
    made->log2_shards.store(log2_shards, std::memory_order_relaxed);
    for (std::size_t i = 0; i < shards; ++i) ::new (&made->shards()[i]) stored_shard{};
    medium_.flush(made, root_object::bytes(log2_shards));  // (R1)
    medium_.fence();                                       // (R2)
    // (R1) < (R2) < (R3): the root never names memory that is not durable.
    change.store(*root_word_, medium_.locate(made).word());  // (R3)
    change.commit();
  }

  // Reads the root object, and releases the levels that an earlier run had retired.
  void load() {
    root_ = &detail::level_hashing::root_at(medium_, root_word_->load(std::memory_order_acquire));
    log2_shards_ = static_cast<unsigned>(root_->log2_shards.load(std::memory_order_acquire));
    check_levels();
    shards_.reset(new (std::nothrow) shard[std::size_t{1} << log2_shards_]);
    if (shards_ == nullptr) throw error("no memory for the shards of a Level hashing table", "free some memory");
    for (std::size_t i = 0; i < shard_count(); ++i) {
      const stored_level top(root_->shards()[i].top.load(std::memory_order_acquire));
      const stored_level bottom(root_->shards()[i].bottom.load(std::memory_order_acquire));
      if (!top.none()) show_levels(shards_[i], resolved(top), resolved(bottom));
    }
    release_retired();
  }

  // Throws pmlab::error if the levels are none that a crash can leave: before one is followed or released.
  void check_levels() const {
    std::vector<stored_level> all;
    for (std::size_t i = 0; i < shard_count(); ++i) {
      const stored_level top(root_->shards()[i].top.load(std::memory_order_acquire));
      const stored_level bottom(root_->shards()[i].bottom.load(std::memory_order_acquire));
      if (top.none() && bottom.none()) continue;
      if (!names_a_level(top) || !names_a_level(bottom) || top.log2() != bottom.log2() + 1)
        throw detail::level_hashing::corrupt("the levels of shard " + std::to_string(i));
      all.push_back(top);
      all.push_back(bottom);
    }
    // More than there can be of one size and shard: the list runs in a circle.
    const std::size_t most = all.size() + shard_count() * candidates::greatest_log2;
    for (stored_level l(root_->retired.load(std::memory_order_acquire)); !l.none();) {
      if (!names_a_level(l) || all.size() == most) throw detail::level_hashing::corrupt("its list of retired levels");
      all.push_back(l);
      l = stored_level(resolved(l)[0].word.load(std::memory_order_acquire));
    }
    std::sort(all.begin(), all.end(),
              [](stored_level a, stored_level b) { return a.buckets().word() < b.buckets().word(); });
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i].buckets().word() - all[i - 1].buckets().word() < detail::level_hashing::level_bytes(all[i - 1].log2()))
        throw detail::level_hashing::corrupt("two of its levels overlap");
  }

  // Their list was checked.
  void release_retired() {
    for (;;) {
      const stored_level first(root_->retired.load(std::memory_order_acquire));
      if (first.none()) return;
      release(root_->retired, resolved(first));
    }
  }

  [[nodiscard]] bool names_a_level(stored_level l) const noexcept {
    return detail::level_hashing::names_a_level(medium_, l);
  }

  // ---- walks ----

  [[nodiscard]] std::size_t shard_count() const noexcept { return std::size_t{1} << log2_shards_; }

  // Calls function(shard number, level, bucket number, bucket, slot number) for every entry.
  template <class Function>
  void for_each_entry(Function&& function) const {
    for (std::size_t i = 0; i < shard_count(); ++i)
      for (const level l : {shards_[i].top_level(), shards_[i].bottom_level()}) {
        if (l.none()) continue;
        medium_.annotate_read(&l[0], l.bytes());
        for (std::uint64_t n = 0; n < l.size(); ++n)
          for (unsigned valid = l[n].load().valid(); valid != 0; valid &= valid - 1)
            function(i, l, n, l[n], static_cast<unsigned>(std::countr_zero(valid)));
      }
  }

  Medium& medium_;
  std::atomic<std::uint64_t>* root_word_;
  root_object* root_ = nullptr;
  unsigned log2_shards_ = 0;
  std::unique_ptr<shard[]> shards_;
  // Guards the list of retired levels. Taken after a shard's lock, never before one.
  mutable std::mutex retired_mutex_;
  // Last: levels that are still retired are released when it is destroyed.
  sync::epochs readers_{retired_at_once};
};

template <media::medium Medium>
index_stats level_hashing<Medium>::stats() const {
  index_stats result;
  result.entries = size();
  result.medium_bytes = root_object::bytes(log2_shards_);
  for (std::size_t i = 0; i < shard_count(); ++i)
    for (const level l : {shards_[i].top_level(), shards_[i].bottom_level()})
      if (!l.none()) {
        result.nodes += l.size();
        result.medium_bytes += l.bytes();
      }
  result.depth = 2;
  if (result.nodes != 0)
    result.load_factor = static_cast<double>(result.entries) /
                         static_cast<double>(result.nodes * detail::level_hashing::slots_per_bucket);
  result.dram_bytes = shard_count() * sizeof(shard);

  const std::scoped_lock guard(retired_mutex_);
  for (stored_level l(root_->retired.load(std::memory_order_acquire)); !l.none();) {
    result.medium_bytes += detail::level_hashing::level_bytes(l.log2());
    l = stored_level(resolved(l)[0].word.load(std::memory_order_acquire));
  }
  return result;
}

template <media::medium Medium>
check_report level_hashing<Medium>::check() const {
  check_report report;
  for (std::size_t i = 0; i < shard_count(); ++i) {
    const stored_level top(root_->shards()[i].top.load(std::memory_order_acquire));
    const stored_level bottom(root_->shards()[i].bottom.load(std::memory_order_acquire));
    if (resolved(top).word() != shards_[i].top_level().word() ||
        resolved(bottom).word() != shards_[i].bottom_level().word())
      report.add("shard " + std::to_string(i) + " has other levels in the medium than in DRAM");
    if (top.none() != bottom.none() || (!top.none() && top.log2() != bottom.log2() + 1))
      report.add("I3: the levels of shard " + std::to_string(i) + " do not fit each other");
  }
  if (!report.ok()) return report;

  std::vector<key_type> keys;
  std::size_t shard_of_keys = 0;
  const auto look_for_twins = [&] {
    std::sort(keys.begin(), keys.end());
    for (auto twin = keys.begin(); (twin = std::adjacent_find(twin, keys.end())) != keys.end(); ++twin)
      report.add("I2: key " + std::to_string(*twin) + " is present twice");
    keys.clear();
  };
  for_each_entry([&](std::size_t i, level l, std::uint64_t n, const bucket& b, unsigned number) {
    if (i != shard_of_keys) look_for_twins();
    shard_of_keys = i;
    const wanted w(b.slots[number].key.load(std::memory_order_acquire));
    keys.push_back(w.key);
    ++report.entries;
    if (!detail::level_hashing::is_at_home(b, number, i, log2_shards_, n, l.log2()))
      report.add("I1: no search finds key " + std::to_string(w.key));
  });
  look_for_twins();

  std::uint64_t damaged = 0;
  for (std::size_t i = 0; i < shard_count(); ++i)
    for (const level l : {shards_[i].top_level(), shards_[i].bottom_level()})
      for (std::uint64_t n = 0; !l.none() && n < l.size(); ++n) damaged += l[n].plausible() ? 0 : 1;
  if (damaged != 0) report.add("I5: " + std::to_string(damaged) + " buckets have bits that are always 0: overwritten");

  const std::scoped_lock guard(retired_mutex_);
  std::uint64_t retired = 0;
  for (stored_level l(root_->retired.load(std::memory_order_acquire)); !l.none();) {
    // More than there can be of one size and shard: the list runs in a circle.
    if (!names_a_level(l) || ++retired > shard_count() * candidates::greatest_log2) {
      report.add("I4: the list of retired levels is damaged");
      break;
    }
    l = stored_level(resolved(l)[0].word.load(std::memory_order_acquire));
  }
  return report;
}

}  // namespace pmlab::indexes
