// A B+tree whose nodes are all in the medium: what it has besides them, and what it does with any kind of them.
//
// The root's word leads to the root node; the nodes of a level are a list by `sibling`, in ascending order of keys. A
// node has a version lock in DRAM, which it may share with others. Nodes that an erase leaves over are retired
// (detail/retired_nodes.hpp).
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/after_reclaiming.hpp>
#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/detail/retired_nodes.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/several_locks.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

namespace pmlab::indexes::detail {

// A Node is one of retired_nodes, with `sibling` and `high_key`; `ends_above(low)`: false if its words contradict a low
// key of `low`; and a new one is an empty leaf.
//
// Thread safety: every operation from any number of threads, but for the constructor and `begin`.
template <media::medium Medium, class Node>
class node_tree {
  using node_pointer = media::pointer<Node>;
  using publication = typename Medium::publication;

 public:
  // Makes an empty tree if `root` is 0. Throws pmlab::error: no space for its first node.
  node_tree(Medium& medium, std::atomic<std::uint64_t>& root)
      : medium_(medium),
        locks_(lock_stripes),
        root_(root),
        retired_(medium),
        epochs_(media::reclaim_batch_on<Medium>(sync::epochs::usual_batch)) {
    if (root_.load(std::memory_order_acquire) == 0) create();
  }

  // Releases the nodes that the last run retired. Throws pmlab::error: their queue is corrupt.
  void begin(Node& leftmost_leaf) { retired_.begin(leftmost_leaf); }

  [[nodiscard]] Medium& medium() const noexcept { return medium_; }
  [[nodiscard]] Node* root() const noexcept {
    return medium_.resolve(node_pointer(root_.load(std::memory_order_acquire)));
  }
  // The word changes with this guard held until the publication has returned: no two publications under way store it.
  [[nodiscard]] std::atomic<std::uint64_t>& root_word() const noexcept { return root_; }
  [[nodiscard]] std::unique_lock<std::mutex> lock_root() { return std::unique_lock(root_mutex_); }

  [[nodiscard]] sync::version_lock& lock_of(const Node* n) const noexcept { return locks_[stripe_of(n)]; }

  // The members that a search reads, besides the nodes. Passed by value, since the compiler must reload members after
  // each load with acquire order: a find then executes three or four loads less for each level.
  struct search_parts {
    Medium* medium;
    const sync::version_lock* locks;  // by stripe

    [[nodiscard]] const sync::version_lock& lock_of(const Node* n) const noexcept { return locks[stripe_of(n)]; }
  };
  [[nodiscard]] search_parts parts_for_searches() const noexcept { return {&medium_, &locks_[0]}; }

  // Links lead to nodes, children are on lower levels, and high keys ascend along siblings, after any crash. If this
  // does not hold, the medium was damaged: a search throws, and neither crashes nor loops for ever. (A check detects
  // more: a search may also miss entries that a damaged word hides.)
  [[noreturn]] static void throw_damaged() { throw damaged_tree(Node::tree_name, "a link"); }

  // `low`: the high key of the node that has the link.
  [[nodiscard]] static Node* sibling_at(const Medium& medium, node_pointer link, key_type low) {
    if (!media::can_name(medium, link) || !medium.resolve(link)->ends_above(low)) [[unlikely]]
      throw_damaged();
    return medium.resolve(link);
  }

  // Calls function(node) for `first` and the nodes behind it on its level.
  template <class Function>
  void for_each_from(Node* first, Function&& function) const {
    for (Node* n = first;;) {
      function(*n);
      const node_pointer next = n->sibling.load(std::memory_order_acquire);
      if (!next) return;
      n = sibling_at(medium_, next, n->high_key.load(std::memory_order_acquire));
    }
  }

  // The statistics of a tree with so many entries, and room for `capacity` in each leaf. first_of(level) is the
  // leftmost node of a level. The bytes in the medium include retired nodes.
  template <class FirstOf>
  [[nodiscard]] index_stats stats(std::uint64_t entries, std::uint64_t levels, std::size_t capacity,
                                  FirstOf&& first_of) const {
    index_stats result;
    result.entries = entries;
    result.depth = levels;
    std::uint64_t leaves = 0;
    for (std::uint64_t level = 0; level < levels; ++level)
      for_each_from(first_of(level), [&](const Node&) { (level == 0 ? leaves : result.nodes) += 1; });
    result.nodes += leaves;
    result.load_factor = static_cast<double>(entries) / static_cast<double>(leaves * capacity);
    result.medium_bytes = (result.nodes + retired_.count()) * sizeof(Node);
    result.dram_bytes = locks_.bytes();
    return result;
  }

  // ---- writing ----

  // Readers and writers have one while they may be in a node.
  [[nodiscard]] auto pin() { return epochs_.pin(); }

  // As detail::after_reclaiming.
  template <class Attempt>
  outcome after_reclaiming(Attempt&& attempt) {
    return detail::after_reclaiming(epochs_, attempt);
  }

  // Commits `change`, which unlinks these nodes. The caller holds their locks, and calls `retire` for each afterwards,
  // without a lock.
  void commit_unlinking(publication& change, std::span<Node* const> unlinked) { retired_.commit(change, unlinked); }

  // Releases the block of a node that is gone when no reader can be in it. No memory for that: the next open does it.
  void retire(Node& gone) {
    epochs_.retire([this, &gone] { retired_.release(gone); });
  }

  // Joins sparse neighbours upwards from the leaves: join(level) joins two nodes of a level, or returns false; the
  // parent of those has lost a child. Then a root that has one child is removed: only_child(locked root), null if it
  // has more or is a leaf.
  template <class Join, class OnlyChild>
  void join_upwards(Join&& join, OnlyChild&& only_child) {
    std::uint64_t level = 0;
    while (join(level)) ++level;
    if (level > 0)
      while (lower_root(only_child)) {
      }
  }

 private:
  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 16);

  [[nodiscard]] static std::uint64_t stripe_of(const Node* n) noexcept {
    return reinterpret_cast<std::uintptr_t>(n) / sizeof(Node) % lock_stripes;
  }

  // Makes an empty tree: its leaf is durable before the root names it (A6).
  void create() {
    publication change(medium_);
    auto* const leaf = media::create<Node>(change);
    if (leaf == nullptr) throw error("no space for an empty " + std::string(Node::tree_name), "use a larger pool");
    media::persist(medium_, *leaf);                    // (M1)
    change.store(root_, medium_.locate(leaf).word());  // (M2)
    // (M1) < (M2): the root never names memory that is not durable.
    change.commit();
  }

  // False: the root has no only child.
  template <class OnlyChild>
  bool lower_root(OnlyChild& only_child) {
    const auto guard = lock_root();
    Node& top = *root();
    {
      const sync::several_locks held{&lock_of(&top)};
      const node_pointer child = only_child(top);
      if (!child) return false;
      publication change(medium_);
      change.store(root_, child.word());  // (K1)
      // (K1) < return: in one publication with the root's way into the queue (Q1).
      Node* const gone[] = {&top};
      retired_.commit(change, gone);
    }
    retire(top);
    return true;
  }

  Medium& medium_;
  sync::version_lock_table locks_;
  std::atomic<std::uint64_t>& root_;
  std::mutex root_mutex_;
  retired_nodes<Medium, Node> retired_;
  sync::epochs epochs_;  // its destructor releases retired nodes
};

}  // namespace pmlab::indexes::detail
