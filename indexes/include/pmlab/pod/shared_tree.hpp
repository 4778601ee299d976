// An ordered index that several hosts share in one memory, coherent or not: FAST-FAIR's tree [FAST-FAIR], whose locks
// are where all hosts see them.
//
//   head   a line with the root, the lock of the root, and locks that the nodes share: in coherent memory, where there
//          is some
//   node   as FAST-FAIR's (indexes/fast_fair/node.hpp), anywhere
//
// A reader takes no lock. It looks at the version of the node's lock, refreshes the node, reads, and looks at the
// version again; it leaves the refresh out if the version is the one behind which its host has refreshed this node
// last. So the upper levels, which hardly change, cost a look at a coherent word each, and nothing of the device.
//
// (S1) < (S2) < (S3): a node is refreshed behind the look at its version, and read behind the refresh. The version that
// is remembered is that of (S1): one that was read behind the refresh might be newer than what was refreshed (V1).
// (S4) < (S5): a writer refreshes under the lock, too. It changes parts of lines, and the rest is written back with
// them; a copy of before the lock would go over what others have stored.
// (S6) comes last: every store of the node was published by then (fast_fair/node.hpp, changes.hpp: each line is
// durable before another one is stored to, and the last one at the end), which is rule (L2) of the lock.
// (S7) < (S8): the root's word changes under its lock, and is refreshed behind it: two hosts would each put a root
// there.
//
// FAST-FAIR's invariants N1, N2, T1 and T2 hold after every store. So a host that died under a lock has left a node
// that is valid, with its last change or without: the next holder repairs nothing, but refreshes what it has locked
// (S9): what the dead stored is on the device behind the version of before. A node that its parent does not know yet is
// announced by the next writer that comes by (T2).
//
// Nodes are not joined: an erase frees its slot for other keys of the leaf, a node stays where it is, and no host can
// be in one that is gone. So there are no epochs, and a root of before is a way into the tree still: a host keeps it in
// DRAM, and asks for a newer one only where this one has a sibling.
//
// Papers: Hwang et al., FAST'18 [FAST-FAIR]; Tigon, OSDI'25, which remembers what a host has in its caches; CXL0, whose
// rules a coherent memory has; a part that is not coherent is outside of them.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/fast_fair/changes.hpp>
#include <pmlab/indexes/fast_fair/check.hpp>
#include <pmlab/indexes/fast_fair/leaf.hpp>
#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/pod/refreshed_versions.hpp>
#include <pmlab/pod/shared_head.hpp>
#include <pmlab/pod/version_lock.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace pmlab::pod {

// The sizes of a shared_tree beside its entries.
struct tree_sizes {
  // Locks, a line of coherent memory each, which the nodes share; a power of two, and the same for all hosts of a tree.
  // A change of a node makes other hosts refresh the nodes that share its lock, too.
  std::size_t locks = 256;
  // Nodes of which a host remembers that it has refreshed them; a power of two, 32 bytes of its DRAM each.
  std::size_t remembered = 4096;
};

// A B+tree for several hosts. Operations: O(log n); a scan of m entries O(log n + m).
//
// Thread safety: every operation from any number of threads of any number of hosts, which may die (`check`, `stats`,
// `size`, `for_each`: no concurrent writer). Progress: readers write nothing shared; they wait while a living writer
// changes a node that they read, or one that shares its lock. Writers lock one node at a time. Behind a death they wait
// until it is known. Durability: strict durable linearizability. The result of an operation survives the death of any
// host, and a power failure that all have: changes are published before the lock is released, and searches answer
// only what they read while it was free. Space: nodes of 512 bytes, which are never joined or freed.
//
// REQUIRES: the first host has opened it before others do. A single host (media::hosts_of is 1) opens it once, as
// behind a power failure of all: that frees the locks. A host that is started again has another number.
//
// A damaged memory: operations throw pmlab::error at an invalid link, and `check` names it.
template <media::medium Medium, tree_sizes Sizes = tree_sizes{}>
class shared_tree : indexes::detail::fast_fair::node_changes<Medium> {
  using changes = indexes::detail::fast_fair::node_changes<Medium>;
  using changes::medium_;
  using node = indexes::detail::fast_fair::node;
  using node_pointer = media::pointer<node>;
  using unannounced = indexes::detail::fast_fair::unannounced;
  using key_type = indexes::key_type;
  using value_type = indexes::value_type;
  using outcome = indexes::outcome;
  static_assert(std::has_single_bit(Sizes.locks) && std::has_single_bit(Sizes.remembered));

 public:
  static constexpr std::string_view layout_name = "shared_tree";  // name in pools
  static constexpr std::uint64_t layout_version = 1;              // version of its bytes in the medium
  // Several hosts may open it.
  static constexpr bool shared_by_hosts = true;
  // A single host opens what a power failure of all has left.
  static constexpr bool survives_power_failure = true;

  // Makes it, or joins those that have it open; takes the same time for a tree of any size. `medium` must outlive it.
  // Throws pmlab::error: no space for the locks and the first node, the name is another layout's, or the tree has
  // another number of locks.
  [[nodiscard]] static shared_tree open(Medium& medium, std::string_view name = layout_name) {
    return shared_tree(medium, name);
  }

  shared_tree(const shared_tree&) = delete;
  shared_tree& operator=(const shared_tree&) = delete;
  ~shared_tree() = default;

  // Adds (key, value). inserted; exists: the key is there, and nothing changed; full: no space, and nothing changed.
  outcome insert(key_type key, value_type value) {
    return put(key, value, [](std::atomic<value_type>&) { return outcome::exists; });
  }
  // Adds (key, value), or replaces the value of the key. inserted; updated; full: no space, and nothing changed.
  outcome upsert(key_type key, value_type value) {
    return put(key, value,
               [&](std::atomic<value_type>& stored) { return indexes::detail::replace_value(medium_, stored, value); });
  }
  // Replaces the value of a key that is there. updated; absent: nothing changed.
  outcome update(key_type key, value_type value) {
    return change(key, [&](node& leaf) {
      std::atomic<value_type>* const stored = indexes::detail::fast_fair::stored_value(leaf, key);
      return stored == nullptr ? outcome::absent : indexes::detail::replace_value(medium_, *stored, value);
    });
  }
  // Removes the key. erased; absent: nothing changed. Its slot is free for other keys of the leaf.
  outcome erase(key_type key) {
    return change(key, [&](node& leaf) { return this->remove(leaf, key); });
  }

  // The value of the key; nothing: it is absent. Reads one node per level.
  [[nodiscard]] std::optional<value_type> find(key_type key) const {
    unannounced ignored;
    return *at(key, 0, ignored, [key](node& leaf) -> std::optional<value_type> {
      const std::atomic<value_type>* const stored = indexes::detail::fast_fair::stored_value(leaf, key);
      return stored == nullptr ? std::nullopt : std::optional(stored->load(std::memory_order_acquire));
    });
  }
  // As find of each key. REQUIRES: as many values as keys.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) const {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. Each leaf is read as of one
  // moment; entries that are there during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<indexes::entry> out) const {
    if (out.empty()) return 0;
    std::size_t count = 0;
    unannounced ignored;
    const auto copy = [&](node& leaf) {
      return neighbour{indexes::detail::fast_fair::copy_entries(leaf, from, out.subspan(count)),
                       leaf.sibling.load(std::memory_order_acquire), leaf.high_key.load(std::memory_order_acquire)};
    };
    neighbour leaf = *at(from, 0, ignored, copy);
    for (;;) {
      count += leaf.entries;
      if (count == out.size() || !leaf.next) return count;
      leaf = next_of(leaf, copy);
    }
  }
  // Calls function(key, value) for every entry of [first, last], ascending. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) const {
    indexes::detail::for_each_in_by_scan(*this, first, last, function);
  }
  // Calls function(key, value) for every entry, ascending.
  template <class Function>
  void for_each(Function&& function) const {
    for_each_in(0, indexes::detail::fast_fair::greatest_key, function);
  }

  // How many entries there are; walks the leaves.
  [[nodiscard]] std::uint64_t size() const { return indexes::detail::count_entries(*this); }
  // nodes = all nodes of the tree; depth = levels; load factor = entries / slots of leaves.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    result.entries = size();
    result.depth = levels();
    std::uint64_t leaves = 0;
    for (std::uint64_t level = result.depth; level > 0; --level) result.nodes += leaves = nodes_of(level - 1);
    result.load_factor =
        static_cast<double>(result.entries) / static_cast<double>(leaves * indexes::detail::fast_fair::capacity);
    result.medium_bytes = sizeof(head) + result.nodes * sizeof(node);
    result.dram_bytes = refreshed_.bytes();
    return result;
  }
  // Checks FAST-FAIR's invariants. A node that its parent does not know (T2) is no violation.
  [[nodiscard]] indexes::check_report check() const {
    try {
      const std::uint64_t depth = levels();
      // The check reads as on one host: this refreshes each node.
      if (media::hosts_of(medium_) > 1)
        for (std::uint64_t level = depth; level > 0; --level) static_cast<void>(nodes_of(level - 1));
      return indexes::detail::fast_fair::checker<Medium>(medium_).run(medium_.locate(&root()), depth);
    } catch (const error& e) {
      indexes::check_report report;
      report.add(e.what());
      return report;
    }
  }

 private:
  using word = std::atomic<std::uint64_t>;

  struct head {
    static constexpr std::uint64_t sizes = Sizes.locks;
    alignas(media::cache_line_bytes) word root{0};
    word made_with{sizes};
    version_lock growing{};
    std::array<version_lock, Sizes.locks> locks{};
  };

  // What a walk along a level takes of a node.
  struct neighbour {
    std::size_t entries = 0;
    node_pointer next{};
    key_type high = 0;
  };

  shared_tree(Medium& medium, std::string_view name)
      : changes(medium),
        head_(head_of<head>(medium, name, layout_name, layout_version, [&](word& named) { make(medium, named); })),
        refreshed_(Sizes.remembered),
        root_(nullptr) {
    if (media::hosts_of(medium_) == 1) {
      // A crash of all hosts has left them as they were.
      for (version_lock& l : head_.locks) l.reset(medium_);
      head_.growing.reset(medium_);
    }
    static_cast<void>(newest_root());
  }

  static void make(Medium& medium, word& named) {
    typename Medium::publication made(medium);
    auto* const h = media::create_coherent<head>(made);
    auto* const leaf = media::create<node>(made);
    if (h == nullptr || leaf == nullptr)
      throw error("no space for a shared_tree", "give the medium 32 KiB, and the coherent part half of it");
    media::publish(medium, *leaf);  // (M1)
    h->root.store(medium.locate(leaf).word(), std::memory_order_relaxed);
    media::publish(medium, *h);  // (M2)
    made.store(named, medium.locate(h).word());
    // (M1), (M2) < return: a host that finds the name finds all that it leads to.
    made.commit();
  }

  [[noreturn]] static void throw_damaged() { throw indexes::detail::damaged_tree(layout_name, "a link"); }

  [[nodiscard]] node& named_by(node_pointer link) const {
    if (!media::can_name(medium_, link)) throw_damaged();
    return *medium_.resolve(link);
  }
  [[nodiscard]] std::uint64_t position_of(const node& n) const noexcept {
    return medium_.locate(&n).word() / sizeof(node);
  }
  [[nodiscard]] version_lock& lock_of(const node& n) const noexcept {
    return head_.locks[position_of(n) % Sizes.locks];
  }

  // ---- the root ----

  // One that was the root at some time: a way to every key.
  [[nodiscard]] node& root() const noexcept { return *root_.load(std::memory_order_acquire); }
  node& newest_root() const {
    media::refresh(medium_, head_.root);
    node& newest = named_by(node_pointer(head_.root.load(std::memory_order_acquire)));
    root_.store(&newest, std::memory_order_release);
    return newest;
  }
  [[nodiscard]] std::uint64_t level_of(node& n) const {
    return looked_at(n, [](node& at) { return at.level.load(std::memory_order_acquire); });
  }
  [[nodiscard]] std::uint64_t levels() const {
    const std::uint64_t top = level_of(newest_root());
    if (top >= indexes::detail::fast_fair::most_levels) throw_damaged();
    return top + 1;
  }

  // ---- reading ----

  // This host's loads of the node see all that was published up to this version of its lock.
  void refresh(const node& n, std::uint64_t version) const {
    if (refreshed_.has(position_of(n), version)) return;
    media::refresh(medium_, n);  // (S2)
    refreshed_.note(position_of(n), version);
  }

  // What look(n) returns, as of one moment.
  template <class Look>
  auto looked_at(node& n, Look&& look) const {
    version_lock& lock = lock_of(n);
    for (;;) {
      const std::optional<std::uint64_t> version = lock.read_begin(medium_);  // (S1)
      if (!version) {
        // Its holder has died, and has left valid nodes.
        static_cast<void>(lock.lock(medium_));
        lock.unlock(medium_);
        continue;
      }
      refresh(n, *version);
      media::annotate_read(medium_, n);
      auto result = look(n);  // (S3)
      if (lock.read_validate(medium_, *version)) return result;
    }
  }

  // What look(node) returns of the node of `level` that has the key; nothing: there is no such level. `passed` becomes
  // a link that the way led over.
  template <class Look>
  auto at(key_type key, std::uint64_t level, unannounced& passed, Look&& look) const {
    struct step {
      std::optional<std::invoke_result_t<Look&, node&>> found{};
      node_pointer next{};
      std::uint64_t level = 0;
      key_type high = 0;
      bool is_beyond = false;
    };
    node* n = &root();
    bool is_newest = false;
    std::optional<std::uint64_t> right_level;
    for (key_type low = 0;;) {
      const step s = looked_at(*n, [&](node& here) {
        step result;
        result.level = here.level.load(std::memory_order_acquire);
        result.high = here.high_key.load(std::memory_order_acquire);
        result.is_beyond = here.is_beyond(key);
        if (result.is_beyond)
          result.next = here.sibling.load(std::memory_order_acquire);
        else if (result.level > level)
          result.next = here.child_of(indexes::detail::fast_fair::routing_key(key));
        else if (result.level == level)
          result.found.emplace(look(here));
        return result;
      });
      // Levels descend, and high keys ascend along siblings: so it ends, with any content of the memory.
      if (s.high <= low || s.level >= indexes::detail::fast_fair::most_levels ||
          (right_level && s.level != *right_level))
        throw_damaged();
      if (s.found) return s.found;
      if (!right_level && !is_newest && (s.is_beyond || s.level < level)) {
        n = &newest_root();
        is_newest = true;
        continue;
      }
      if (s.level < level) return s.found;
      if (s.is_beyond) passed = {s.high, s.next, s.level + 1};
      low = s.is_beyond ? s.high : 0;
      right_level = s.is_beyond ? s.level : s.level - 1;
      n = &named_by(s.next);
    }
  }

  // What look(node) returns of the one behind `last`.
  template <class Look>
  neighbour next_of(const neighbour& last, Look&& look) const {
    const neighbour result = looked_at(named_by(last.next), look);
    if (result.high <= last.high) throw_damaged();
    return result;
  }

  [[nodiscard]] std::uint64_t nodes_of(std::uint64_t level) const {
    unannounced ignored;
    const auto look = [](node& n) {
      return neighbour{0, n.sibling.load(std::memory_order_acquire), n.high_key.load(std::memory_order_acquire)};
    };
    std::uint64_t count = 1;
    for (neighbour n = *at(0, level, ignored, look); n.next; n = next_of(n, look)) ++count;
    return count;
  }

  // ---- writing ----

  // The locked node of `level` that has the key, or none if there is no such level. Holds one lock at a time.
  class locked_node {
   public:
    // Built behind the first step: a damaged link that throws releases the lock.
    locked_node(shared_tree& tree, key_type key, std::uint64_t level) : locked_node(tree) {
      const auto found = tree.at(key, level, passed_, [](node& n) { return &n; });
      if (!found) return;
      node_ = *found;
      for (key_type low = 0;;) {
        lock();
        const key_type high = node_->high_key.load(std::memory_order_acquire);
        if (high <= low) throw_damaged();
        if (!node_->is_beyond(key)) return;
        low = high;
        passed_ = {high, node_->sibling.load(std::memory_order_acquire), level + 1};
        unlock();
        node_ = &tree.named_by(passed_.child);
      }
    }
    locked_node(const locked_node&) = delete;
    locked_node& operator=(const locked_node&) = delete;
    ~locked_node() { unlock(); }

    void unlock() noexcept {
      if (!is_locked_) return;
      is_locked_ = false;
      tree_.refreshed_.note(tree_.position_of(*node_), tree_.lock_of(*node_).unlock(tree_.medium_));  // (S6)
    }
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }
    [[nodiscard]] node& operator*() const noexcept { return *node_; }
    // A link that the way here led over.
    [[nodiscard]] const unannounced& passed() const noexcept { return passed_; }

   private:
    explicit locked_node(shared_tree& tree) noexcept : tree_(tree) {}

    void lock() {
      std::uint64_t version = 0;
      const acquired how = tree_.lock_of(*node_).lock(tree_.medium_, version);  // (S4)
      is_locked_ = true;
      // Stores of a holder that has died have no version of their own.
      if (how == acquired::inherited)
        media::refresh(tree_.medium_, *node_);  // (S9)
      else
        tree_.refresh(*node_, version);  // (S5)
    }

    shared_tree& tree_;
    node* node_ = nullptr;
    bool is_locked_ = false;
    unannounced passed_;
  };

  // Runs operation(leaf) with the leaf of `key` locked, then tells a parent of the link that the way led over (T2).
  template <class Operation>
  auto change(key_type key, Operation&& operation) {
    locked_node leaf(*this, key, 0);
    const auto result = operation(*leaf);
    leaf.unlock();
    announce(leaf.passed());
    return result;
  }

  // insert and upsert: `on_existing(value word)` handles a key that is there.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    for (;;) {
      unannounced split_off;
      const std::optional<outcome> answer = change(key, [&](node& leaf) -> std::optional<outcome> {
        if (auto* const stored = indexes::detail::fast_fair::stored_value(leaf, key)) return on_existing(*stored);
        return this->add(leaf, key, value, split_off);
      });
      if (answer) return *answer;
      announce(split_off);
    }
  }

  // Adds `link.child` to its parent, if it is not there yet. Without space it stays as it is: siblings lead to it.
  void announce(unannounced link) {
    while (link.parent_level != 0) {
      unannounced split_off;
      {
        locked_node parent(*this, link.separator, link.parent_level);
        if (!parent) {
          if (!grow(link.parent_level)) return;
          continue;
        }
        if (this->add_child(*parent, link, split_off)) return;
      }
      announce(split_off);
    }
  }

  // Puts a root of this level above the one below, if no other host has. False: no space.
  bool grow(std::uint64_t level) {
    const growing_root alone(*this);  // (S7)
    node& top = newest_root();        // (S8)
    return level_of(top) >= level || put_above(top, level);
  }
  // The lock of the root, also where a publication or a damaged root throws.
  class growing_root {
   public:
    explicit growing_root(shared_tree& tree) noexcept : tree_(tree) {
      // Inherited: the root changes by a publication.
      static_cast<void>(tree_.head_.growing.lock(tree_.medium_));
    }
    growing_root(const growing_root&) = delete;
    growing_root& operator=(const growing_root&) = delete;
    ~growing_root() { tree_.head_.growing.unlock(tree_.medium_); }

   private:
    shared_tree& tree_;
  };
  // It knows its first child alone: `announce` adds the second.
  bool put_above(node& top, std::uint64_t level) {
    typename Medium::publication change(medium_);
    auto* const made = media::create<node>(change);
    if (made == nullptr) return false;
    made->level.store(level, std::memory_order_relaxed);
    made->first_child.store(medium_.locate(&top), std::memory_order_relaxed);
    media::publish(medium_, *made);                         // (R1)
    change.store(head_.root, medium_.locate(made).word());  // (R2)
    // (R1) < (R2): the root never names what others cannot see, and no crash keeps.
    change.commit();
    return true;
  }

  head& head_;
  mutable refreshed_versions refreshed_;
  mutable std::atomic<node*> root_;
};

}  // namespace pmlab::pod
