// Skip list: a sorted list in the medium, and towers that shorten the way, after Pugh, 1990 [Skip list].
//
// Use it for ordered data under many writers: an insert writes one node and one link, and moves nothing. With its
// towers in DRAM (`skip_list`; the semi-persistent form) a search reads one line of the medium; every open rebuilds
// them. With its towers in the medium (`skip_list_pm`) it uses little DRAM and opens at once, but a search walks
// through the medium.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers and inserts never wait for each other: linking a node is lock-free. Writers of one node (update,
// erase, and an insert that builds its tower) exclude each other by the node's version lock, and a reader of a value
// waits for an update of it that is under way. A thread holds one of these locks at a time, and no lock of the list
// while it waits for memory. (With towers in DRAM, their blocks have locks, too: detail/search_layer.hpp.)
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A link carries a dirty bit
// while it may not be durable ("link and persist"); a thread that depends on such a link, readers included, makes it
// durable first. Values are durable before the version lock is released under which readers validate them.
//
// Layout (medium):
//
//   named root -> root: | slabs | head of the list | heads of 12 levels of towers (persistent towers only) |
//                           |           |
//                           v           v
//                         slab ...    node: | key | value | next, mark, dirty | level |      32 bytes, two to a line
//
// Nodes are allocated from slabs of 64 KB (detail/skip_list_slabs.hpp). In DRAM: the set of free nodes, the version
// locks, and the towers (detail/skip_list_dram_towers.hpp), or the recovery state of slabs of earlier runs
// (detail/skip_list_persistent_towers.hpp).
//
// Space: when more than a third of the nodes of the slabs are free, and half a slab at least, erases move the nodes of
// the emptiest slabs to others, and release these slabs (detail/skip_list_compaction.hpp): one erase in a hundred or so
// does a part of that work, some 250 moves at most, each at the cost of an insert and an erase. Towers in DRAM are
// rebuilt then, if they use more than twice the space that they need. Slabs that no erase has processed yet, and nodes
// that readers hold back, wait for later erases.
//
// Differences from the literature: towers in DRAM are the sorted blocks of a search layer, one entry for each key: a
// deterministic skip list whose towers are arrays, so that a search reads a few lines in place of a node for each step.
// Persistent towers are not arrays behind the node but tower nodes, nodes of lists of their own: all nodes have one
// size, none spans two lines, and every level is maintained by the one list algorithm. Recovery follows the list by
// thousands of walks at once instead of sorting the nodes of the slabs. Unlinking is not flushed by the operation that
// does it, but before the node is reused, many at a time: erase costs one flush and one fence.
//
// Invariants (C1 to C5: detail/skip_list_chain.hpp; W1 to W4: detail/skip_list_persistent_towers.hpp):
//   K1  The list alone is authoritative. Towers are hints: if they lack an entry, the list is walked from further left
//       (S5).
//   K2  A node that towers lead to is not freed: a node enters them, with its lock held, only when it is not marked; it
//       leaves them, with its lock held, after it was marked and before it is retired.
//   K3  A node is retired by the thread that marked it, once, after a walk to the first node of its key that is not
//       marked, or behind its key, has found no path to it: so no guard that begins later reaches it (S2). It is reused
//       when the link behind which it was snipped off is durable (A7: no free node is reachable, also after a crash).
//       That link is in front of all nodes of its key, of a copy that replaced it, too (C6).
//   K4  A node of a slab is in the list, in a list of tower nodes, free, or about to be freed (retired). A crash may
//       lose the last two states: the next open, or slab recovery, recomputes them from the lists. `skip_list_pm` keeps
//       the node of an insert that a crash interrupted if its neighbours no longer show that it was interrupted: at
//       most one for each thread and crash.
//   K5  An entry that is not deleted and not in the list is the last node that its writer has signed: a thread signs a
//       node (writer, turn; detail/skip_list_node.hpp) only when the one before is linked, durably, or was withdrawn,
//       durably. (A copy to which an entry is moved is such a node.) So a crash leaves one such entry for each thread,
//       and the next open of `skip_list` withdraws it. Any other was cut off from the list by a lost link. The
//       signature is in the line of the node that the insert flushes anyway. `skip_list` looks for them at every open,
//       and refuses; `skip_list_pm` does not walk its list when it opens: `check` finds them, and until then no node is
//       reused that may be one of them.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/after_reclaiming.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list/body.hpp>
#include <pmlab/indexes/skip_list/dram_towers.hpp>
#include <pmlab/indexes/skip_list/persistent_towers.hpp>
#include <pmlab/indexes/skip_list/salvage.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::indexes {

// Location of the towers: in DRAM, rebuilt by every open.
struct dram_towers {
  static constexpr std::string_view layout_name = "skip_list";
  // The towers of a list on `Medium`.
  template <class Medium>
  using on = detail::skip_list::dram_towers<Medium>;
};

// In the medium: open in an instant, searches read more of the medium.
struct persistent_towers {
  static constexpr std::string_view layout_name = "skip_list_pm";
  // The towers of a list on `Medium`.
  template <class Medium>
  using on = detail::skip_list::persistent_towers<Medium>;
};

// Sorted list with towers. See the file's prologue for its use, thread safety, durability and layout. Operations: O(log
// n) expected; a scan of m entries O(log n + m). `Towers`: dram_towers or persistent_towers.
template <media::medium Medium, class Towers = dram_towers>
class skip_list {
  using towers = typename Towers::template on<Medium>;
  using body = typename towers::body_type;
  using node = detail::skip_list::node;
  using link_word = detail::skip_list::link_word;
  using ascent = detail::skip_list::ascent;
  using place = typename detail::skip_list::chain<Medium>::place;

 public:
  static constexpr std::string_view layout_name = Towers::layout_name;
  static constexpr std::uint64_t layout_version = 1;

  // Opens the list `name` in `medium`, or creates an empty one. Time with towers in DRAM: proportional to the entries,
  // on all cores; with persistent ones: to the slabs (one for each 1500 entries or so); the first inserts then also
  // look for free nodes, a slab at a time (some milliseconds). Throws pmlab::error: the name belongs to another layout,
  // the list is corrupt, no space for an empty one; std::bad_alloc: no memory for the towers. `medium` must outlive the
  // index. Corrupt: with towers in DRAM the whole list is validated, and entries that a lost link has cut off are
  // detected (K5); the medium is unchanged then. With persistent ones, only root and slabs are: an operation that meets
  // an invalid or descending link throws pmlab::error, and `check` validates the rest.
  static skip_list open(Medium& medium, std::string_view name = layout_name) { return skip_list(medium, name); }

  // Calls function(key, value) for the reachable entries of a damaged list, and for entries that a lost link has cut
  // off. Changes nothing. Throws pmlab::error at the end if entries may be missing, or may belong to an insert that a
  // crash interrupted.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    detail::skip_list::salvage_reader<typename body::root_type, typename body::slab_type, Medium>(medium, root)
        .read(function);
  }

  skip_list(const skip_list&) = delete;
  skip_list& operator=(const skip_list&) = delete;
  ~skip_list() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed,
  // and no erased node can be reused now (readers may be reading it). Durable on return: two flushes and two fences
  // (and the tower's, if it is persistent and the node gets one).
  outcome insert(key_type key, value_type value) {
    return put(key, value, [](node&) { return std::optional(outcome::exists); });
  }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) {
    return put(key, value, [&](node& n) -> std::optional<outcome> {
      return replace(n, value) ? std::optional(outcome::updated) : std::nullopt;
    });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    const auto guard = body_.epochs.pin();
    for (;;) {
      node* const n = entry_of(key);
      if (n == nullptr) return outcome::absent;
      if (replace(*n, value)) return outcome::updated;
    }
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. The node is reused when no reader can
  // use it; it costs another flush then. If many were erased it may also do a part of the compaction (see Space,
  // above).
  outcome erase(key_type key) {
    const outcome answer = take_out(key);
    // No guard is held here, so that retired nodes may be freed during the call.
    if (body_.nodes.may_be_sparse()) [[unlikely]]
      compact();
    return answer;
  }

  // The value of `key`. Reads one line of the medium if it is present, two if not.
  std::optional<value_type> find(key_type key) {
    const auto guard = body_.epochs.pin();
    return find_from(towers_.floor(key), key);
  }

  // values[i] := find(keys[i]). The searches overlap, so that their cache misses do.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    assert(keys.size() == values.size());
    const auto guard = body_.epochs.pin();
    std::array<node*, towers::most_at_once> found;
    for (std::size_t done = 0; done < keys.size(); done += found.size()) {
      const auto some = keys.subspan(done, std::min(found.size(), keys.size() - done));
      towers_.floors(some, std::span(found.data(), some.size()));
      for (std::size_t i = 0; i < some.size(); ++i) values[done + i] = find_from(*found[i], some[i]);
    }
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. Each entry is read
  // atomically; entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    const auto guard = body_.epochs.pin();
    if (out.empty()) return 0;
    std::size_t ahead = std::min(out.size(), towers::most_ahead);
    towers_.look_ahead(from, ahead);
    node* n = first_at(from);
    std::size_t count = 0;
    ascent keys;
    while (n != nullptr) {
      const reading r = read(*n);
      const key_type key = n->key.load(std::memory_order_acquire);
      if (!keys.goes_to(key)) [[unlikely]]
        throw descends();
      if (!is_marked(r.link)) {
        out[count++] = {key, r.value};
        if (count == out.size()) break;
        if (count == ahead) {
          towers_.look_ahead(out[count - 1].key, std::min(out.size() - count, towers::most_ahead));
          ahead += towers::most_ahead;
        }
      }
      n = body_.list.target(r.link);
    }
    return count;
  }

  // Calls function(key, value) for every entry of [first, last], ascending. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) {
    detail::for_each_in_by_scan(*this, first, last, function);
  }

  // Calls function(key, value) for every entry, ascending.
  template <class Function>
  void for_each(Function&& function) const {
    ascent keys;
    for (node* n = next_of(head()); n != nullptr; n = next_of(*n)) {
      const key_type key = n->key.load(std::memory_order_acquire);
      if (!keys.goes_to(key)) [[unlikely]]
        throw descends();
      if (!is_marked(n->next.load(std::memory_order_acquire))) function(key, n->value.load(std::memory_order_acquire));
    }
  }

  // Entries in the list; walks it.
  [[nodiscard]] std::uint64_t size() const { return detail::count_entries(*this); }

  // nodes = slabs; depth = levels, the list included; load factor = entries / nodes of the slabs.
  [[nodiscard]] index_stats stats() const {
    index_stats result;
    result.entries = size();
    result.nodes = slabs().size();
    result.depth = towers_.levels() + 1;
    result.load_factor =
        static_cast<double>(result.entries) / static_cast<double>(result.nodes * body::slab_type::capacity);
    result.medium_bytes = result.nodes * sizeof(typename body::slab_type) + sizeof(typename body::root_type);
    result.dram_bytes = towers_.bytes() + body_.nodes.dram_bytes() + body_.locks.bytes();
    return result;
  }

  // Checks C1 and K5 of the list, and the invariants of the towers. A node that is marked and still in the list is no
  // violation. Reads every node of the slabs. REQUIRES: no concurrent writer.
  [[nodiscard]] check_report check() const;

 private:
  struct reading {
    link_word link;
    value_type value;
  };

  skip_list(Medium& medium, std::string_view name)
      : body_(medium, name, *medium.named_root(name, layout_name, layout_version).word, towers::zeroed_slabs),
        towers_(body_) {}

  [[nodiscard]] node& head() const noexcept { return body_.root->heads[0]; }
  [[nodiscard]] bool is_head(const node& n) const noexcept { return &n == &head(); }
  [[nodiscard]] static constexpr bool is_marked(link_word link) noexcept { return detail::skip_list::is_marked(link); }
  [[nodiscard]] static error descends() { return detail::skip_list::corrupt("its keys do not ascend"); }
  [[nodiscard]] node* next_of(const node& n) const { return body_.list.target(n.next.load(std::memory_order_acquire)); }

  // ---- searching, under a guard ----

  // A node below `key` that is not marked now: the nearest one in the towers, or the head.
  [[nodiscard]] node& before(key_type key) const {
    while (key > 0) {
      node& n = towers_.floor(key - 1);
      if (is_head(n)) break;
      media::annotate_read(body_.medium, n);
      if (!is_marked(n.next.load(std::memory_order_acquire))) return n;
      key = n.key.load(std::memory_order_acquire);
    }
    return head();
  }

  // Link and value of a node as they were at one moment, durably.
  [[nodiscard]] reading read(node& n) const {
    const sync::version_lock& lock = body_.lock_of(n);
    for (;;) {
      const std::uint64_t version = lock.read_begin();
      media::annotate_read(body_.medium, n);
      const reading r{body_.list.settled(n), n.value.load(std::memory_order_acquire)};
      if (lock.read_validate(version)) [[likely]]
        return r;
    }
  }

  // `at`: the result of the towers for `key`.
  [[nodiscard]] std::optional<value_type> find_from(node& at, key_type key) const {
    node* n = &at;
    if (is_head(*n) || n->key.load(std::memory_order_acquire) != key) {
      if (!is_head(*n)) media::annotate_read(body_.medium, *n);
      node* start = n;
      if (is_marked(n->next.load(std::memory_order_acquire))) start = &before(n->key.load(std::memory_order_acquire));
      return value_at(body_.list.first_from(*start, key), key);
    }
    if (const reading r = read(*n); !is_marked(r.link)) [[likely]]
      return r.value;
    // It was moved, or another node of this key was linked before this one.
    return value_at(body_.list.first_from(before(key), key), key);
  }

  // The value of `key`, of whose nodes `n` is the first one, or behind them.
  [[nodiscard]] std::optional<value_type> value_at(node* n, key_type key) const {
    while (n != nullptr && n->key.load(std::memory_order_acquire) == key) {
      const reading r = read(*n);
      if (!is_marked(r.link)) return r.value;
      n = body_.list.target(r.link);
    }
    return std::nullopt;
  }

  // The first node at or above `key`; it may be marked by now.
  [[nodiscard]] node* first_at(key_type key) const {
    node& n = towers_.floor(key);
    if (!is_head(n) && n.key.load(std::memory_order_acquire) == key &&
        !is_marked(n.next.load(std::memory_order_acquire)))
      return &n;
    return body_.list.first_from(before(key), key);
  }

  // The node of `key` that is not marked, or nullptr.
  [[nodiscard]] node* entry_of(key_type key) const {
    node& n = towers_.floor(key);
    if (!is_head(n)) {
      media::annotate_read(body_.medium, n);
      if (n.key.load(std::memory_order_acquire) == key && !is_marked(n.next.load(std::memory_order_acquire))) return &n;
    }
    const place at = place_of(key);
    return at.right != nullptr && at.right->key.load(std::memory_order_acquire) == key ? at.right : nullptr;
  }

  // ---- writing, under a guard ----

  [[nodiscard]] place place_of(key_type key) const {
    place at;
    while (!body_.list.find_place(before(key), key, at)) {
    }
    return at;
  }

  // Snips off every marked node of `key`. Returns the node behind which they were.
  node& snip(key_type key) const { return *place_of(key).left; }

  outcome take_out(key_type key) {
    const auto guard = body_.epochs.pin();
    for (;;) {
      node* const n = entry_of(key);
      if (n == nullptr) return outcome::absent;
      bool is_ours = false;
      {
        const std::scoped_lock lock(body_.lock_of(*n));
        if (is_marked(n->next.load(std::memory_order_acquire))) continue;
        is_ours = towers_.claim(*n);
        body_.list.mark_deleted(*n);
        towers_.remove(key, *n);
      }
      node& before = snip(key);
      if (is_ours) body_.retire(*n, before);
      return outcome::erased;
    }
  }

  // False: `n` is deleted.
  bool replace(node& n, value_type value) {
    const std::scoped_lock lock(body_.lock_of(n));
    if (is_marked(n.next.load(std::memory_order_acquire))) return false;
    n.value.store(value, std::memory_order_release);  // (U1) commit
    media::persist(body_.medium, n.value);            // (U2)
    // (U1) < (U2) < unlock: the value that a reader returns is durable.
    return true;
  }

  // insert and upsert: `on_existing(node)` handles a key that is present, unless the node was deleted since. Without
  // space, and without a guard, erased nodes of all threads become free.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    return detail::after_reclaiming(body_.epochs, [&] { return try_to_put(key, value, on_existing); });
  }

  template <class OnExisting>
  outcome try_to_put(key_type key, value_type value, OnExisting&& on_existing) {
    const auto guard = body_.epochs.pin();
    node* made = nullptr;
    for (node* start = &towers_.floor(key);;) {
      if (!is_head(*start)) {
        media::annotate_read(body_.medium, *start);
        if (start->key.load(std::memory_order_acquire) == key &&
            !is_marked(start->next.load(std::memory_order_acquire))) {
          if (const auto answer = on_existing(*start)) return give_up(made, *answer);
        }
        if (start->key.load(std::memory_order_acquire) == key) start = &before(key);
      }
      place at;
      if (!body_.list.find_place(*start, key, at)) {
        start = &before(key);
        continue;
      }
      if (at.right != nullptr && at.right->key.load(std::memory_order_acquire) == key) {
        if (const auto answer = on_existing(*at.right)) return give_up(made, *answer);
        continue;
      }
      if (made == nullptr) {
        made = allocate();
        if (made == nullptr) return outcome::full;
        body_.nodes.sign(*made, detail::skip_list::level_of_entries);
        made->key.store(key, std::memory_order_relaxed);
        made->value.store(value, std::memory_order_relaxed);
      }
      if (body_.list.link(at, *made)) break;
    }
    auto tower_nodes = towers_.prepare(key, *made, [this] { return allocate(); });
    build_tower(key, *made, tower_nodes);
    towers_.put_away(tower_nodes);
    return outcome::inserted;
  }

  outcome give_up(node* made, outcome answer) {
    if (made != nullptr) body_.nodes.give_back(*made);
    return answer;
  }

  node* allocate() { return body_.nodes.allocate(slab_recovery()); }

  // ---- moving: `n` is a node of a slab that is being emptied ----

  void compact() noexcept {
    const auto shrink = [this] {
      const auto guard = body_.epochs.pin();
      towers_.shrink(body_.nodes.used());
    };
    body_.compact.step(
        body_.nodes, body_.epochs, slab_recovery(), [this](node& n) { return move_away(n); }, shrink);
  }

  // Moves the content of `n`, if it is in a list. False: there is no node to move it to.
  bool move_away(node& n) {
    const auto guard = body_.epochs.pin();
    const std::uint64_t level = towers_.level_of(n);
    if (level == detail::skip_list::level_of_entries) return move_entry(n);
    return level == 0 || !towers_.is_in_list(n, level) || move_tower(n.key.load(std::memory_order_acquire));
  }

  // Puts a copy in the place of `old`, if it is an entry.
  bool move_entry(node& old) {
    const key_type key = old.key.load(std::memory_order_acquire);
    if (entry_of(key) != &old) return true;
    node* const made = body_.nodes.allocate_known();
    if (made == nullptr) return false;
    body_.nodes.sign(*made, detail::skip_list::level_of_entries);
    auto tower_nodes = towers_.prepare(key, *made, [this] { return body_.nodes.allocate_known(); });
    bool is_ours = false;
    bool is_moved = false;
    {
      const std::scoped_lock lock(body_.lock_of(old));
      if (!is_marked(old.next.load(std::memory_order_acquire))) {
        is_ours = towers_.claim(old);
        body_.list.replace(old, *made);
        towers_.remove(key, old);
        is_moved = true;
      }
    }
    if (is_moved) {
      build_tower(key, *made, tower_nodes);
      node& before = snip(key);
      if (is_ours) body_.retire(old, before);
    } else {
      body_.nodes.give_back(*made);
    }
    towers_.put_away(tower_nodes);
    return true;
  }

  // Gives the entry of `key` another tower.
  bool move_tower(key_type key) {
    node* const n = entry_of(key);
    if (n == nullptr) return true;
    auto tower_nodes = towers_.prepare(key, *n, [this] { return body_.nodes.allocate_known(); });
    bool is_done = true;
    {
      const std::scoped_lock lock(body_.lock_of(*n));
      if (!is_marked(n->next.load(std::memory_order_acquire))) is_done = towers_.renew(key, *n, tower_nodes);
    }
    towers_.put_away(tower_nodes);
    return is_done;
  }

  // The tower of an entry that was linked a moment ago.
  template <class TowerNodes>
  void build_tower(key_type key, node& made, TowerNodes& tower_nodes) {
    // A thread that has erased or moved the entry since has held this lock, and found no tower.
    const std::scoped_lock lock(body_.lock_of(made));
    if (!is_marked(made.next.load(std::memory_order_acquire))) towers_.put(key, made, tower_nodes);
  }

  [[nodiscard]] auto slab_recovery() {
    return [this](auto& slab, auto& found) {
      const auto guard = body_.epochs.pin();
      towers_.recover_slab(slab, found);
    };
  }

  [[nodiscard]] std::vector<typename body::slab_type*> slabs() const {
    return detail::skip_list::slabs_from<typename body::slab_type>(body_.medium,
                                                                   body_.root->slabs.load(std::memory_order_acquire));
  }

  mutable body body_;
  towers towers_;
};

// A skip list with towers in the medium.
template <media::medium Medium>
using skip_list_pm = skip_list<Medium, persistent_towers>;

// Follows no link that does not lead to a node of a slab, and continues only while keys ascend: so it terminates, and
// does not crash, with any content of the medium.
template <media::medium Medium, class Towers>
check_report skip_list<Medium, Towers>::check() const {
  namespace parts = detail::skip_list;
  using slab_type = typename body::slab_type;
  using table = parts::node_table<slab_type>;
  check_report report;
  try {
    const table known(slabs());
    std::vector<bool> in_list(known.size());
    std::size_t deleted = 0;
    bool first = true;
    key_type last = 0;
    const auto wrong = [&](const std::string& what) {
      report.add(what);
      return report;
    };
    for (link_word link = head().next.load(std::memory_order_acquire); parts::target_of(link) != 0;) {
      const node* const n = body_.list.unchecked_target(link);
      const std::size_t number = known.number_of(n);
      if (number == table::none) return wrong("C1: a link leads to no node");
      const link_word here = parts::target_of(link);
      link = n->next.load(std::memory_order_acquire);
      if (is_marked(link)) {
        if (++deleted > known.size()) return wrong("C1: a circle of deleted nodes");
        continue;
      }
      const key_type key = n->key.load(std::memory_order_acquire);
      if (!first && key <= last)
        return wrong("C1: key " + std::to_string(key) + " comes after " + std::to_string(last));
      const parts::origin from = parts::origin::of(n->level.load(std::memory_order_acquire), here);
      if (from.level != parts::level_of_entries || from.writer > parts::writers_of(body_.root->writers))
        return wrong("C1: a link leads to no entry");
      first = false;
      last = key;
      in_list[number] = true;
      ++report.entries;
    }
    if (is_marked(head().next.load(std::memory_order_acquire))) report.add("C1: the head is deleted");
    const parts::outside_search<Medium, slab_type> outside(body_.medium, known, parts::writers_of(body_.root->writers),
                                                           1, [&](std::size_t n) { return in_list[n]; });
    if (const std::size_t lost = outside.found().lost.size(); lost != 0) report.add("K5: " + parts::text_of_lost(lost));
    towers_.check(known, report);
    if constexpr (towers::recovers_all_slabs) {
      // Some functions that wait free memory of the towers.
      const std::size_t found = report.entries + deleted + body_.nodes.out_of_use();
      if (found > known.size()) report.add("K4: a node is in use and free");
      if (found + body_.epochs.waiting() < known.size())
        report.add("K4: a node is in no list, not free, and not retired");
    }
  } catch (const error& e) {
    report.add(e.what());
  }
  return report;
}

}  // namespace pmlab::indexes
