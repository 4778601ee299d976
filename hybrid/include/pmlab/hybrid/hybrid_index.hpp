// Two indexes over the same data: a hash for its points and a tree for its ranges, after [HIKV] and [Han21].
//
//   using hash = indexes::cceh<media::dram>;
//   using plus = hybrid::hybrid_index<hash, indexes::fast_fair<media::pmem>, hybrid::primary::tree>;
//   auto index = plus::open(dram, pool, {.how = hybrid::update::synchronous});
//
// One half is the primary: it lives in persistent memory, decides every operation and makes it durable. The other half
// is a replica, usually in DRAM, and is rebuilt by `open`.
//
//   primary::hash  HybridIndex: points from the primary, ranges from the replica
//   primary::tree  HybridIndex+: ranges from the primary, points from the replica, or the primary if that is behind
//
// Use it for a load of both point and range queries, if there is DRAM for a second index. HybridIndex+ is the one for
// devices whose reads are slow, and for reads; HybridIndex is the one for writes. For a load of points alone use the
// hash alone.
//
// How the replica is updated is an option, not a type: an adaptive index switches between both ways at run time.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: writers exclude each other by stripe of keys, and wait when a queue is full, but never for memory (H8).
// Point reads never wait, except for a writer of the same stripe if the hash is the primary and updates are not
// asynchronous. Scans of a replica wait until the changes queued before are applied, and help with that.
//
// Durability: the primary's. Every result, from either half, was made durable by the primary before.
//
// Difference from the paper: HybridIndex+ may be asynchronous too, since a read of a key whose change is still queued
// uses the tree instead of waiting; scans of HybridIndex include everything that was acknowledged before; the way of
// updating can be switched while operations run.
//
// Both halves must erase without needing space, so erase never returns `full`.
//
// Invariants (S1-S3: detail/stripes.hpp; E1, E2: detail/rebuild.hpp; O1: detail/overlay.hpp):
//   H1  A writer holds the stripe of its key from before the primary changes until the replica has changed or the
//       change counts as queued. So the changes of a key reach the replica in the primary's order, and the primary
//       alone decides the outcome of an insert, update or erase.
//   H2  The replica changes after the primary has returned: it shows nothing that a crash can undo.
//   H3  A queue's place is reserved before the primary changes, and no thread changes the replica directly while a
//       change is queued for the stripe. So a thread that has seen a change, and then waits until all reserved places
//       are applied, finds it in the replica.
//   H4  (tree) A point read returns from the hash only if its stripe is settled before and unchanged after; a miss
//       counts only if the hash is complete.
//   H5  (hash) A point read that may meet a direct change waits until both halves have it.
//   H6  If the replica has no space: (tree) the hash loses the key and stops being complete, so that finds continue in
//       the tree; (hash) the entry is stored in the overlay, and new keys are refused, with nothing changed, until the
//       tree accepts the entries of the overlay. A rebuild does the same: so a full index that is opened again can be
//       erased from.
//   H7  A replica in a durable medium is marked as one before an entry is in it, and no marked half is opened as the
//       primary: it may lack changes, and the other half would lose them. (With a name in the options the names of the
//       roots do the same.)
//   H8  No thread waits for memory. A change that the primary has made, and for which the replica has none, goes into
//       the queue; a writer or a scan that needs it applied, and has no memory for that, throws before it has changed
//       anything. If the queue is full of such changes: (tree) the stripe stays unsettled, and its keys are read from
//       the tree; (hash) the tree is no replica any more, and scans and changes throw.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/hybrid/detail/load_watch.hpp>
#include <pmlab/hybrid/detail/memory.hpp>
#include <pmlab/hybrid/detail/overlay.hpp>
#include <pmlab/hybrid/detail/rebuild.hpp>
#include <pmlab/hybrid/detail/sorted_parts.hpp>
#include <pmlab/hybrid/detail/stripes.hpp>
#include <pmlab/hybrid/detail/updaters.hpp>
#include <pmlab/hybrid/options.hpp>
#include <pmlab/hybrid/roots.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::hybrid {

using indexes::key_type;
using indexes::outcome;
using indexes::value_type;

// Half of an ordered index is enough.
template <class Index>
concept scannable = indexes::point_index<Index> && requires(Index& index, key_type key, std::span<indexes::entry> out) {
  { index.scan(key, out) } -> std::same_as<std::size_t>;
};

// Both halves as one ordered index. Point operations cost as much as the hash's, scans as the tree's; changes cost as
// much as the primary's, and with synchronous updates the replica's in addition.
template <indexes::point_index Hash, scannable Tree, primary Primary>
class hybrid_index {
  static constexpr bool hash_is_primary = Primary == primary::hash;

 public:
  static constexpr std::string_view layout_name = hash_is_primary ? "hybrid_index" : "hybrid_index_plus";
  // The medium holds the primary only, which can be opened by itself.
  static constexpr std::uint64_t layout_version = hash_is_primary ? Hash::layout_version : Tree::layout_version;

  // Opens the primary, or creates it, and begins to rebuild the replica in the background. Until that is done
  // (`wait_until_complete`): with the tree as primary everything is served, points from the tree; with the hash as
  // primary points are served, while writes and scans wait. A replica in a durable medium is first compared with the
  // primary, which takes a walk of it. Throws the exceptions of the halves; pmlab::error: an invalid option, no
  // threads, a primary that was the replica, a replica with entries beside an empty primary. The media must outlive the
  // index.
  template <class HashMedium, class TreeMedium>
  static hybrid_index open(HashMedium& hash_medium, TreeMedium& tree_medium, const options& o = {}) {
    return hybrid_index(hash_medium, tree_medium, o, clock::now());
  }

  hybrid_index(const hybrid_index&) = delete;
  hybrid_index& operator=(const hybrid_index&) = delete;
  // Queued changes are dropped: the next `open` rebuilds the replica.
  ~hybrid_index() {
    stop_.store(true, std::memory_order_relaxed);
    if (rebuilder_.joinable()) rebuilder_.join();
    updaters_.close();
  }

  // ---- operations: outcomes and durability are the primary's ----

  // Also returns `full` if the replica is a tree that has no space for a new key; nothing has changed then.
  outcome insert(key_type key, value_type value) {
    return write({detail::change::kind::put, key, value}, true, [&] { return the_primary().insert(key, value); });
  }
  outcome update(key_type key, value_type value) {
    return write({detail::change::kind::put, key, value}, false, [&] { return the_primary().update(key, value); });
  }
  outcome upsert(key_type key, value_type value) {
    return write({detail::change::kind::put, key, value}, true, [&] { return the_primary().upsert(key, value); });
  }
  outcome erase(key_type key) {
    return write({detail::change::kind::remove, key, 0}, false, [&] { return the_primary().erase(key); });
  }

  std::optional<value_type> find(key_type key) {
    if constexpr (hash_is_primary)
      return find_in_primary(key);
    else
      return find_in_replica(key);
  }

  // values[i] := find(keys[i]). The searches overlap, but for those whose keys are being changed.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    indexes::detail::in_batches<batch_width>(keys, values,
                                             [this](const auto some, const auto found) { find_some(some, found); });
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. See options::scan. Throws
  // std::bad_alloc, and pmlab::error if the tree is the replica and there was no memory for it.
  std::size_t scan(key_type from, std::span<indexes::entry> out) {
    if constexpr (!hash_is_primary) {
      return tree_.scan(from, out);
    } else {
      watch_.note_reads();
      wait_until_complete();
      if (updaters_.settle(options_.scan == scans::fresh ? 0 : options_.stale_bound))
        scan_waits_.fetch_add(1, std::memory_order_relaxed);
      // An entry that moves from the overlay into the tree during the scan is seen twice rather than not at all.
      const auto above = overlay_.count() == 0 ? std::vector<indexes::entry>() : overlay_.from(from, out.size());
      const std::size_t count = tree_.scan(from, out);
      return above.empty() ? count : detail::merge_into(out, count, above);
    }
  }

  // Calls function(key, value) for every entry of [first, last], ascending. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) {
    indexes::detail::for_each_in_by_scan(*this, first, last, function);
  }

  // The primary's, in its order.
  template <class Function>
  void for_each(Function&& function) const {
    the_primary().for_each(std::forward<Function>(function));
  }
  [[nodiscard]] std::uint64_t size() const { return the_primary().size(); }

  // The primary's; all memory of the replica counts as DRAM.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats shape = the_primary().stats();
    const indexes::index_stats of_replica = the_replica().stats();
    shape.dram_bytes += of_replica.medium_bytes + of_replica.dram_bytes + own_bytes();
    return shape;
  }
  // Bytes of DRAM beside both halves: stripes and queues.
  [[nodiscard]] std::uint64_t own_bytes() const noexcept {
    return stripes_.bytes() + erasures_.bytes() + updaters_.bytes();
  }

  // Checks the invariants of both halves, and that the replica equals the primary. Waits until that may be expected.
  [[nodiscard]] indexes::check_report check() const;

  // ---- the hybrid itself ----

  // True: the replica holds all entries of the primary, except for queued changes.
  [[nodiscard]] bool is_complete() const noexcept { return complete_.load(std::memory_order_acquire); }
  // Returns when the rebuild is over. Throws pmlab::error if there was no memory for it.
  void wait_until_complete() const {
    if (is_complete()) [[likely]]
      return;
    std::unique_lock lock(mutex_);
    rebuilt_.wait(lock, [this] { return !is_rebuilding_; });
    if (hash_is_primary && !is_complete())
      throw error("there was no memory for the tree of the hybrid index", "free some, and open it again");
  }
  // Waits until every change that was queued before is in the replica. Throws std::bad_alloc: there is no memory to
  // help with that.
  void settle() const { updaters_.settle(); }

  // Rebuilds the hash from the tree in the background, after it was incomplete (H6) and there is memory again. With
  // `empty_first` it loses all entries before. Reads and writes continue. REQUIRES: no other call of it runs.
  void rebuild(bool empty_first = false) requires(!hash_is_primary) {
    wait_until_complete();
    if (rebuilder_.joinable()) rebuilder_.join();
    complete_.store(false, std::memory_order_release);
    start_rebuild(empty_first);
  }

  // Counts since `open`. Exact when nothing runs.
  [[nodiscard]] statistics hybrid_statistics() const {
    statistics s;
    updaters_.add_to(s);
    s.scan_waits = scan_waits_.load(std::memory_order_relaxed);
    s.switches = watch_.switches();
    s.asynchronous = watch_.is_asynchronous();
    s.complete = is_complete();
    s.refused_by_replica = refused_.load(std::memory_order_relaxed);
    s.ready_ns = ready_ns_;
    const std::scoped_lock lock(mutex_);
    s.rebuilt = rebuilt_entries_;
    s.rebuild_ns = rebuild_ns_;
    return s;
  }

 private:
  using clock = std::chrono::steady_clock;
  using change = detail::change;

  static constexpr std::size_t batch_width = 64;

  template <class HashMedium, class TreeMedium>
  hybrid_index(HashMedium& hash_medium, TreeMedium& tree_medium, const options& o, clock::time_point opened)
      : options_(checked(o)),
        hash_(Hash::open(hash_medium, root_of(o, Hash::layout_name, hash_is_primary))),
        tree_(Tree::open(tree_medium, root_of(o, Tree::layout_name, !hash_is_primary))),
        begin_([&hash_medium, &tree_medium] {
          media::begin_operation(hash_medium);
          media::begin_operation(tree_medium);
        }),
        watch_(o),
        stripes_(o.stripes),
        erasures_(hash_is_primary ? 0 : o.stripes),
        updaters_(
            o,
            [this](const change& c, bool last) {
              if (last) change_replica(c);
              stripes_[stripes_.number_of(c.key)].applied();
            },
            [this](key_type key) { prefetch_replica(key); }, begin_),
        overlay_(hash_is_primary ? updaters_.places() + most_threads : 0) {
    if constexpr (hash_is_primary)
      tell_halves_apart(hash_medium, tree_medium, Hash::layout_name, Tree::layout_name);
    else
      tell_halves_apart(tree_medium, hash_medium, Tree::layout_name, Hash::layout_name);
    drop_entries_missing_in_primary();
    start_rebuild(false);
    if (o.rebuilders == 0) wait_until_complete();
    ready_ns_ = nanoseconds_since(opened);
  }

  static std::uint64_t nanoseconds_since(clock::time_point start) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start).count());
  }

  // Root of the replica, behind the name that the user gave.
  static constexpr std::string_view suffix_of_copy = ":c";

  static std::string root_of(const options& o, std::string_view layout, bool is_primary) {
    if (o.name.empty()) return std::string(layout);
    std::string root(o.name);
    return is_primary ? root : root.append(suffix_of_copy);
  }

  // H7. A medium that does not list its roots is not searched for marks.
  template <class PrimaryMedium, class ReplicaMedium>
  void tell_halves_apart(PrimaryMedium& of_primary, ReplicaMedium& of_replica, std::string_view primary_layout,
                         std::string_view of_replica_layout) {
    if (!options_.name.empty()) return;
    if constexpr (requires { of_primary.roots(); })
      for (const auto& r : of_primary.roots())
        if (r.made && r.layout == replica_layout && r.name == std::string(primary_layout).append(replica_suffix))
          throw error("'" + std::string(primary_layout) + "' is the replica of a hybrid index, and may lack changes",
                      std::string("open it with the ") + (hash_is_primary ? "tree" : "hash") + " as the primary");
    if constexpr (media::medium<ReplicaMedium>) {
      if (!media::is_durable(of_replica)) return;
      std::atomic<std::uint64_t>& mark =
          *of_replica.named_root(std::string(of_replica_layout).append(replica_suffix), replica_layout, replica_version)
               .word;
      if (mark.load(std::memory_order_acquire) != 0) return;
      if (the_primary().size() == 0 && the_replica().size() != 0)
        throw error("the primary of this hybrid index, '" + std::string(primary_layout) + "', is empty, and '" +
                        std::string(of_replica_layout) + "' has entries that were never its replica's",
                    "make that one the primary, or give the hybrid index a name of its own");
      mark.store(1, std::memory_order_release);  // (M1)
      media::persist(of_replica, mark);          // (M2)
      // (M1) < (M2) < the first entry of the replica.
    }
  }

  // Threads that may be in the middle of a direct change at a time.
  static constexpr std::size_t most_threads = 4096;

  static const options& checked(const options& o) {
    if (o.stripes < 2 || !std::has_single_bit(o.stripes))
      throw error("a hybrid index cannot have " + std::to_string(o.stripes) + " stripes",
                  "give a power of two, at least 2");
    constexpr std::size_t most = (detail::stripe::most_queued + 1) / 2;
    if (o.queue < 1 || o.queue > most)
      throw error("a queue of " + std::to_string(o.queue) + " changes cannot be", "give 1 to " + std::to_string(most));
    if (o.batch > most)
      throw error("a batch of " + std::to_string(o.batch) + " changes cannot be", "give 1 to " + std::to_string(most));
    if (!o.name.empty()) check_name(o.name, media::root_name_limit - suffix_of_copy.size(), "a hybrid index");
    return o;
  }

  [[nodiscard]] auto& the_primary() const noexcept {
    if constexpr (hash_is_primary)
      return hash_;
    else
      return tree_;
  }
  [[nodiscard]] auto& the_replica() const noexcept {
    if constexpr (hash_is_primary)
      return tree_;
    else
      return hash_;
  }

  // ---- reading ----

  [[nodiscard]] std::optional<value_type> find_in_primary(key_type key) {
    // With a place in the queue taken for every change, a point read needs no stripe (H3).
    if (options_.how == update::asynchronous) return hash_.find(key);
    const detail::stripe& s = stripes_[stripes_.number_of(key)];
    for (sync::backoff wait;; wait.pause()) {
      const std::uint64_t word = s.word();
      if (detail::stripe::is_held(word)) continue;  // H5
      const std::optional<value_type> value = hash_.find(key);
      if (s.stands(word)) return value;
    }
  }

  [[nodiscard]] std::optional<value_type> find_in_replica(key_type key) {
    watch_.note_reads();
    const detail::stripe& s = stripes_[stripes_.number_of(key)];
    const std::uint64_t word = s.word();
    if (detail::stripe::is_settled(word)) {
      const bool complete = is_complete();
      const std::optional<value_type> value = hash_.find(key);
      if ((value || complete) && s.stands(word)) [[likely]]
        return value;  // H4
    }
    return tree_.find(key);
  }

  void find_some(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    if (hash_is_primary && options_.how == update::asynchronous) return hash_.find_batch(keys, values);
    std::array<std::uint64_t, batch_width> words;
    const auto stripe_of = [&](std::size_t i) -> const detail::stripe& {
      return stripes_[stripes_.number_of(keys[i])];
    };
    for (std::size_t i = 0; i < keys.size(); ++i) words[i] = stripe_of(i).word();
    const bool complete = is_complete();
    if (!hash_is_primary) watch_.note_reads(static_cast<std::uint32_t>(keys.size()));
    hash_.find_batch(keys, values);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool usable = hash_is_primary ? !detail::stripe::is_held(words[i])
                                          : detail::stripe::is_settled(words[i]) && (values[i] || complete);
      if (!usable || !stripe_of(i).stands(words[i])) values[i] = find(keys[i]);
    }
  }

  // ---- writing ----

  static constexpr bool has_changed(outcome o) noexcept {
    return o == outcome::inserted || o == outcome::updated || o == outcome::erased;
  }

  // `adds`: the operation may bring a new key. `operation`: on the primary.
  template <class Operation>
  outcome write(const change& c, bool adds, Operation&& operation) {
    if constexpr (hash_is_primary) wait_until_complete();
    watch_.note_write();
    const std::size_t number = stripes_.number_of(c.key);
    detail::stripe& s = stripes_[number];
    detail::held_stripe held(s);  // H1
    if (adds && overlay_.count() != 0 && !replica_has_space() && !the_primary().find(c.key))
      return outcome::full;  // H6
    if (!watch_.is_asynchronous() && !s.has_queued()) {
      prefetch_replica(c.key);
      const outcome answer = operation();
      const bool is_made = !has_changed(answer) || has_changed_replica(c);  // H2
      if (answer == outcome::erased) note_erased(number);
      if (!is_made) leave_to_queue(c, number, held);
      return answer;
    }
    detail::updaters::ticket place(updaters_, number);  // H3
    const outcome answer = operation();
    if (!has_changed(answer)) return answer;
    if (answer == outcome::erased) note_erased(number);
    held.unlock_queued();
    place.publish(c);
    return answer;
  }

  // Prefetches for the change of the replica, while the primary works. Without memory for it that is left out.
  void prefetch_replica([[maybe_unused]] key_type key) {
    if constexpr (!hash_is_primary && requires { hash_.prefetch_find(key); })
      detail::has_memory_for([&] { hash_.prefetch_find(key); });
  }

  void note_erased([[maybe_unused]] std::size_t stripe) noexcept {
    if constexpr (!hash_is_primary) erasures_.note(stripe);  // E1
  }

  // By the one who may change the key now: its writer, who found nothing queued, or who empties its queue. Throws
  // std::bad_alloc only where the replica has to lose a key, which it has still then: that needs memory if it is the
  // thread's first call of the replica.
  void change_replica(const change& c) {
    if constexpr (hash_is_primary)
      change_tree(c);
    else
      change_hash(c);
  }

  // False: there is no memory for it, and nothing was done.
  bool has_changed_replica(const change& c) {
    return detail::has_memory_for([&] { change_replica(c); });
  }

  // The primary has changed already, and this thread has no memory to change the replica (H8).
  [[gnu::noinline]] void leave_to_queue(const change& c, std::size_t number, detail::held_stripe& held) {
    detail::updaters::ticket place(updaters_, number, std::nothrow);
    if (!place.is_there() && hash_is_primary) return lose_space();
    held.unlock_queued();
    if (place.is_there()) place.publish(c);
  }

  // Without memory for the change, the replica has no space for it (H6).
  template <class Half>
  static bool put_in(Half& half, key_type key, value_type value) {
    bool is_put = false;
    return detail::has_memory_for([&] { is_put = half.upsert(key, value) != outcome::full; }) && is_put;
  }

  bool put_in_tree(key_type key, value_type value) {
    if (put_in(tree_, key, value)) return true;
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  void change_tree(const change& c) {
    if (c.what == change::kind::put)
      overlay_.put(c.key, c.value, [&] { return put_in_tree(c.key, c.value); });
    else
      overlay_.remove(c.key, [&] { tree_.erase(c.key); });
  }
  bool replica_has_space() {
    // Queued changes may make some. A thread that has a place in a queue waits for no stripe.
    updaters_.settle();
    return overlay_.retry([&](const indexes::entry& e) { return put_in_tree(e.key, e.value); });
  }

  void change_hash(const change& c) {
    if (c.what == change::kind::put && put_in(hash_, c.key, c.value)) return;
    if (c.what == change::kind::put) {
      lose_space();
      // An entry of this key that a rebuild has read may be older (E2).
      erasures_.note(stripes_.number_of(c.key));
    }
    hash_.erase(c.key);
  }
  // Before the change counts as made, so that who finds the stripe settled finds this too.
  void lose_space() {
    refused_.fetch_add(1, std::memory_order_relaxed);
    const std::scoped_lock lock(mutex_);
    has_lost_space_ = true;
    complete_.store(false, std::memory_order_release);
  }

  // ---- rebuilding ----

  // Erases the entries of an earlier run in a durable replica that the primary does not hold.
  void drop_entries_missing_in_primary() {
    std::vector<key_type> wrong;
    the_replica().for_each([&](key_type key, value_type value) {
      if (the_primary().find(key) != value) wrong.push_back(key);
    });
    for (const key_type key : wrong) the_replica().erase(key);
  }

  void start_rebuild(bool empty_first) {
    {
      const std::scoped_lock lock(mutex_);
      is_rebuilding_ = true;
      has_lost_space_ = false;
    }
    const auto work = [this, empty_first] { rebuild_replica(empty_first); };
    if (options_.rebuilders == 0) return work();
    try {
      rebuilder_ = std::thread(work);
    } catch (const std::system_error&) {
      work();
    } catch (const std::bad_alloc&) {
      work();
    }
  }

  void rebuild_replica(bool empty_first) {
    const clock::time_point start = clock::now();
    std::uint64_t entries = 0;
    try {
      begin_();
      if constexpr (hash_is_primary) {
        // An entry that a durable tree holds already has the hash's value.
        entries = detail::for_each_sorted_part(hash_, threads(), stop_, [this](std::span<const indexes::entry> part) {
          begin_();
          load_or_keep_beside(part);
        });
      } else {
        if (empty_first) empty_hash();
        entries = detail::for_each_chunk(
            tree_, threads(), chunk_entries(), stop_,
            [this] {
              begin_();
              return erasures_.now();
            },
            [this](std::span<const indexes::entry> chunk, std::uint64_t time) { fill_hash(chunk, time); });
      }
    } catch (const std::bad_alloc&) {
      lose_space();
    }
    const std::scoped_lock lock(mutex_);
    rebuilt_entries_ = entries;
    rebuild_ns_ = nanoseconds_since(start);
    complete_.store(!has_lost_space_, std::memory_order_release);
    is_rebuilding_ = false;
    rebuilt_.notify_all();
  }

  // Entries for which the tree has no space are kept beside it, as far as that has room (H6).
  void load_or_keep_beside(std::span<const indexes::entry> part) {
    const std::size_t loaded = indexes::detail::load_into(tree_, part);
    for (const indexes::entry& e : part.subspan(loaded)) {
      if (!overlay_.has_room()) return lose_space();
      change_tree({change::kind::put, e.key, e.value});
    }
  }

  void fill_hash(std::span<const indexes::entry> chunk, std::uint64_t time) {
    begin_();
    constexpr std::size_t ahead = 8;  // entries whose places in the hash are on their way
    for (std::size_t i = 0; i < chunk.size() && !stop_.load(std::memory_order_relaxed); ++i) {
      if (i + ahead < chunk.size()) prefetch_replica(chunk[i + ahead].key);
      const indexes::entry& e = chunk[i];
      const std::size_t number = stripes_.number_of(e.key);
      const detail::held_stripe held(stripes_[number]);
      std::optional<value_type> value = e.value;
      // A queued change is applied to the replica after this, or has been applied already: the current value of the
      // primary agrees with both.
      if (erasures_.any_since(time, number) || stripes_[number].has_queued()) value = tree_.find(e.key);  // E2
      // A present entry is at least as new.
      if (value && hash_.insert(e.key, *value) == outcome::full) lose_space();
    }
  }

  void empty_hash() {
    detail::for_each_chunk(
        tree_, threads(), chunk_entries(), stop_, [] { return std::uint64_t{0}; },
        [this](std::span<const indexes::entry> chunk, std::uint64_t) {
          for (const indexes::entry& e : chunk) {
            const detail::held_stripe held(stripes_[stripes_.number_of(e.key)]);
            hash_.erase(e.key);
          }
        });
  }

  // Much more than an updater's batch: no thread waits for it.
  [[nodiscard]] std::size_t chunk_entries() const noexcept { return 8 * std::max<std::size_t>(options_.batch, 1); }
  [[nodiscard]] unsigned threads() const noexcept { return std::max(options_.rebuilders, 1U); }

  const options options_;
  // Searching has no visible effect: `check` may call it.
  mutable Hash hash_;
  mutable Tree tree_;
  std::function<void()> begin_;
  detail::load_watch watch_;
  detail::stripe_table stripes_;
  detail::erasures erasures_;
  mutable detail::updaters updaters_;
  detail::overlay overlay_;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> scan_waits_{0};
  std::uint64_t ready_ns_ = 0;  // set by `open`

  std::atomic<bool> stop_{false};
  std::atomic<bool> complete_{false};
  mutable std::mutex mutex_;  // guards the members below
  mutable std::condition_variable rebuilt_;
  bool is_rebuilding_ = false;
  bool has_lost_space_ = false;  // since the last rebuild began
  std::uint64_t rebuilt_entries_ = 0;
  std::uint64_t rebuild_ns_ = 0;
  std::thread rebuilder_;
};

template <indexes::point_index Hash, scannable Tree, primary Primary>
indexes::check_report hybrid_index<Hash, Tree, Primary>::check() const {
  wait_until_complete();
  settle();
  indexes::check_report report = hash_.check();
  for (const std::string& violation : tree_.check().violations) report.add(violation);
  std::uint64_t in_replica = 0;
  std::uint64_t in_primary = 0;
  const std::vector<indexes::entry> above = overlay_.from(0, overlay_.count());
  const auto differs = [&](key_type key, const std::string& how) {
    report.add("key " + std::to_string(key) + " of the " + (hash_is_primary ? "tree" : "hash") + " " + how);
  };
  the_replica().for_each([&](key_type key, value_type value) {
    ++in_replica;
    const std::optional<value_type> held = the_primary().find(key);
    // Nothing is queued, and so the stripe is never settled again (H8).
    if (!held && !hash_is_primary && stripes_[stripes_.number_of(key)].has_queued()) {
      --in_replica;
      return;
    }
    const bool is_above = std::any_of(above.begin(), above.end(), [&](const auto& e) { return e.key == key; });
    if (!held) differs(key, "is not in the other half");
    if (held && *held != value && !is_above) differs(key, "has another value in the other half");
    in_replica -= is_above ? 1 : 0;
  });
  for (const indexes::entry& e : above)
    if (the_primary().find(e.key) != e.value) differs(e.key, "waits for space with a value that is not the hash's");
  the_primary().for_each([&](key_type, value_type) { ++in_primary; });
  if (is_complete() && in_replica + above.size() != in_primary)
    report.add("the primary holds " + std::to_string(in_primary) + " entries, its replica " +
               std::to_string(in_replica + above.size()));
  report.entries = in_primary;
  return report;
}

}  // namespace pmlab::hybrid
