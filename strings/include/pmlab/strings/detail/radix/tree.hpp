// The keys of a WOART: a radix tree whose digits are the bytes of the keys, and whose entries are records.
//
//   named root NAME:s -> state: | tree | ... |
//                                  |
//                                  v
//          root: | slot for each digit |         node: | depth | slots |         record: | value | key |
//                      |                                        |
//                      +--> node or record                      +--> node or record
//
// A node has the depth of the byte that selects the slot there; bytes that are the same in all keys below are skipped,
// and no search compares them: it compares the key with the record that it ends at. A writer of a new key must know
// where the key leaves its way: it compares the skipped bytes with the 8 in the header, and if there are more, with a
// record below.
//
// Each change is one publication: of the key's record, of the node if a new one is made, and of one link. So a reader
// needs no lock, and depends on nothing that a crash undoes; and nothing is left for the ledger but blocks that wait
// for their readers.
//
//   the slot of the key's digit is empty     the record is linked there
//   a record or a node is in the way         a new node for it and for the record, where they differ
//   the node is full                         a larger one, with the record, replaces it
//   the key is erased                        the slot becomes empty; or a smaller node replaces it; or its last child
//                                            takes its place
//
// Invariants:
//   T1  All keys below a node begin with its path, the bytes on the way to it. Neither path nor depth ever change; the
//       depth is greater than the parent's.
//   T2  A node has at most one child for each digit, and each node but the root has two or more children.
//   T3  The root is never replaced. Any other node is linked by exactly one slot.
//   T4  A node is `gone`, and does not change any more, when its link was replaced, with the locks of both nodes held.
//       A writer that locked a node checks that. A reader in such a node reads the state at that time, which is within
//       its own operation: the link was replaced after the operation had begun.
//   T5  A slot changes with the lock of its node held.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/detail/radix/changes.hpp>
#include <pmlab/strings/detail/radix/check.hpp>
#include <pmlab/strings/detail/radix/node.hpp>
#include <pmlab/strings/detail/radix/ways.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/sync/several_locks.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace pmlab::strings::detail::radix {

template <media::medium Medium, class Index>
class tree : private parts<Medium, Index> {
  using base = parts<Medium, Index>;
  using publication = typename Medium::publication;
  using base::locks;
  using base::medium;
  using base::place_of;
  using base::stored;

 public:
  static constexpr std::string_view name = tree_words;
  static constexpr bool links_at_once = true;

  // Opens the tree that `all.stored` names, or makes an empty one. Throws pmlab::error: no space; it is damaged.
  explicit tree(const base& all) : base(all), changes_(all.medium), ways_(all.medium, root_of(all, changes_)) {}

  // What a writer does with a slot.
  enum class step : std::uint8_t {
    in_place,  // the slot of the key's digit is filled, or emptied
    part,      // its target and the new record get a node of their own
    grow,      // a larger node replaces the full one
    shrink,    // a smaller node replaces the sparse one
    collapse   // the last child takes the place of the node
  };

  // Where a key is, or would be. While it exists, the nodes that change are locked.
  struct place {
    sync::several_locks lock;
    way_end end;
    record* found = nullptr;  // record of the key itself
    step what = step::in_place;
    std::size_t depth = 0;        // depth of the new node of `part`
    std::size_t other_digit = 0;  // and the digit of the old target in it

    // True: a node will be unlinked.
    [[nodiscard]] bool replaces() const noexcept {
      return what == step::grow || what == step::shrink || what == step::collapse;
    }
  };

  // There is nothing to prefetch.
  struct search {};
  [[nodiscard]] static search begin(std::string_view /*key*/) noexcept { return {}; }

  // Calls read(record) with the record of `key`, if there is one, and returns whether.
  template <class Read>
  bool find(std::string_view key, const search& /*s*/, Read&& read) const {
    slot_word word;
    for (position at = ways_.root(); (word = ways_.step(key, at)).is_link();) {
    }
    if (word.is_empty()) return false;
    const record& r = ways_.record_in(word);
    const bool found = ways_.key_of(r) == key;
    if (found) read(r);
    return found;
  }

  // Prefetches the lines that `find` of these keys reads, all at once.
  void prefetch(std::span<const std::string_view> keys) const {
    struct walk {
      std::size_t key;
      position at;
    };
    std::array<walk, batch_width> walks;
    std::size_t walking = keys.size();
    for (std::size_t i = 0; i < walking; ++i) walks[i] = {i, ways_.root()};
    while (walking > 0) {
      std::size_t still = 0;
      for (std::size_t i = 0; i < walking; ++i) {
        walk w = walks[i];
        const std::string_view key = keys[w.key];
        const slot_word word = ways_.step(key, w.at);
        if (word.is_link()) {
          ways_.prefetch(w.at, digit_at(key, w.at.depth));
          walks[still++] = w;
        } else if (!word.is_empty()) {
          media::prefetch(medium, &ways_.record_in(word), media::cache_line_bytes);
        }
      }
      walking = still;
    }
  }
  static constexpr std::size_t batch_width = 16;

  // For an update: the place of a key that is present, or nothing is found and locked.
  [[nodiscard]] place seek_present(std::string_view key) const {
    for (;;) {
      place p;
      p.end = ways_.descend(key, any_depth);
      if (!ways_.leads_to_key(p.end.word, key) || lock_slot(p, key)) return p;
    }
  }

  // The place of a key that may be new.
  [[nodiscard]] place seek(std::string_view key) const {
    std::uint64_t passed = 0;
    for (std::size_t limit = any_depth;;) {
      place p;
      p.end = ways_.descend(key, limit);
      if (ways_.leads_to_key(p.end.word, key)) {
        if (lock_slot(p, key)) return p;
        limit = any_depth;
        continue;
      }
      if (!p.end.word.is_empty() || !p.end.is_sure) {
        const std::string_view other = ways_.key_of(ways_.some_record(p.end.word, p.end.at));
        p.depth = same_bytes(other, key);
        if (p.depth < p.end.at.depth) {
          limit = p.depth;  // the key leaves its way above this node
          continue;
        }
        if (p.end.word.is_link() && p.depth >= ways_.depth_below(p.end.word, p.end.at)) {
          // Another writer changed the way since it was limited: that happens once for each node.
          if (std::exchange(passed, p.end.word.place()) == p.end.word.place()) throw damaged("a path");
          limit = any_depth;
          continue;
        }
        p.other_digit = digit_at(other, p.depth);
      }
      if (lock_for_insert(p, key)) return p;
      limit = any_depth;
    }
  }

  // For an erasure: as `seek_present`, with the parent locked, too, if the node must be replaced.
  [[nodiscard]] place seek_to_erase(std::string_view key) const {
    for (;;) {
      place p = seek_present(key);
      if (p.found == nullptr) return p;
      p.what = step_of_erasure(p.end);
      if (!p.replaces()) return p;
      p.lock.unlock();
      if (!lock_both(p, key)) continue;
      p.what = step_of_erasure(p.end);
      return p;
    }
  }

  // Adds to `change`: the record `made` of `key` is linked at `p`. `waiting`: of a place that replaces a node, an item
  // for it. False: no space.
  [[nodiscard]] bool link(publication& change, const place& p, std::string_view key, const record& made,
                          item* waiting) const {
    const slot_word own = slot_word::record(place_of(made), digit_at(key, p.end.at.depth));
    if (p.what == step::grow) return changes_.grow(change, p.end, key, own, *waiting);
    if (p.what == step::part)
      return changes_.part(change, p.end, key, own, p.depth, p.other_digit,
                           ways_.depth_below(p.end.word, p.end.at) - p.depth);
    changes_.fill(change, p.end, own);
    return true;
  }

  // Adds to `change`: nothing leads to the found record. `waiting`: as above. Returns whether the node is replaced:
  // without space for a smaller one it stays.
  [[nodiscard]] bool unlink(publication& change, const place& p, item* waiting) const {
    if (p.what == step::collapse) {
      slot_word last;
      for_each_child(p.end.at, [&](slot_word child) {
        if (child != p.end.word) last = child;
      });
      changes_.collapse(change, p.end, last, ways_.depth_below(last, p.end.at) - p.end.parent.depth, *waiting);
      return true;
    }
    if (p.what == step::shrink && changes_.shrink(change, p.end, p.found->key(), *waiting)) return true;
    changes_.clear(change, p.end);
    return false;
  }

  // Adds to `change`: the block of a node that the ledger names is free.
  void release_node(publication& change, const item& of) const {
    const slot_word link(of.prefix.load(std::memory_order_relaxed));
    if (!kinds::is_kind(link.kind())) throw damaged("its ledger");
    change.release(medium.resolve(media::pointer<header>(link.place())), kinds::bytes(link.kind()));
  }
  [[nodiscard]] static std::uint64_t bytes_of_node(const item& of) noexcept {
    return kinds::bytes(slot_word(of.prefix.load(std::memory_order_acquire)).kind());
  }

  // See ways::walk.
  template <class Function>
  void walk(std::string_view from, std::size_t most, Function&& function) const {
    ways_.walk(from, most, function);
  }

  template <class Function>
  void for_each(Function&& function) const {
    ways_.walk({}, any_number, [&](const record& r) {
      function(r);
      return true;
    });
  }

  // The bytes of the nodes; depth = nodes on the longest way; nodes = all nodes; load factor = records and links /
  // slots.
  void add_to(indexes::index_stats& stats) const {
    std::uint64_t slots = 0;
    std::uint64_t children = 0;
    stats.nodes = 0;
    stats.depth = 0;
    ways_.for_each_node([&](const position& at, std::size_t level) {
      ++stats.nodes;
      stats.depth = std::max<std::uint64_t>(stats.depth, level);
      stats.medium_bytes += kinds::bytes(at.kind);
      slots += kinds::capacity(at.kind);
      children += children_of(at);
    });
    stats.load_factor = static_cast<double>(children) / static_cast<double>(slots);
  }
  // Checks every invariant above.
  void check(indexes::check_report& report, std::uint64_t /*unlinked*/) const { checker(medium, ways_, report).run(); }

 private:
  [[nodiscard]] static position root_of(const base& all, const changes<Medium>& by) {
    if (all.stored.tree.load(std::memory_order_acquire) == 0) {
      publication change(all.medium);
      if (!by.make_root(change, all.stored.tree))
        throw error("no space for an empty radix tree of strings", "use a larger medium");
      change.commit();
    }
    const media::pointer<header> at(all.stored.tree.load(std::memory_order_acquire));
    if (!media::can_name(all.medium, at, kinds::bytes(kinds::largest))) throw damaged("its root");
    return {all.medium.resolve(at), kinds::largest, 0};
  }

  // ---- locks ----

  [[nodiscard]] sync::version_lock& lock_of(const header* n) const noexcept {
    return locks[reinterpret_cast<std::uintptr_t>(n) / media::cache_line_bytes];
  }

  // Locks the node of the slot, and notes its record if it is the key's. False: another writer changed the slot, or
  // unlinked the node.
  [[nodiscard]] bool lock_slot(place& p, std::string_view key) const {
    p.lock = sync::several_locks{&lock_of(p.end.at.n)};
    if (!is_current(p, key)) {
      p.lock.unlock();
      return false;
    }
    if (ways_.leads_to_key(p.end.word, key)) p.found = &ways_.record_in(p.end.word);
    return true;
  }

  [[nodiscard]] bool is_current(const place& p, std::string_view key) const {
    return !p.end.at.n->is_gone() && ways_.word_in(p.end.at, digit_at(key, p.end.at.depth)) == p.end.word;
  }

  // The same with its parent, whose link to it must be as before.
  [[nodiscard]] bool lock_both(place& p, std::string_view key) const {
    p.lock = sync::several_locks{&lock_of(p.end.parent.n), &lock_of(p.end.at.n)};
    const bool linked = !p.end.parent.n->is_gone() && ways_.word_in(p.end.parent, p.end.link.digit()) == p.end.link;
    if (linked && is_current(p, key)) return true;
    p.lock.unlock();
    return false;
  }

  [[nodiscard]] bool lock_for_insert(place& p, std::string_view key) const {
    if (!lock_slot(p, key)) return false;
    if (!p.end.word.is_empty()) {
      if (p.depth <= p.end.at.depth) throw damaged("a record is below another key's way");
      p.what = step::part;
      return true;
    }
    if (has_room(p.end.at)) return true;
    p.lock.unlock();
    if (!lock_both(p, key)) return false;
    p.what = has_room(p.end.at) ? step::in_place : step::grow;
    return true;
  }

  [[nodiscard]] static bool has_room(const position& at) noexcept {
    return kinds::as_kind(std::as_const(*at.n), at.kind, [&](const auto& n) {
      return n.capacity == digit_values ||
             std::any_of(n.slots.begin(), n.slots.end(), [](const slot& of) { return load(of).is_empty(); });
    });
  }

  // A large node is counted only if the line of the slot has no other child: its slots are many lines.
  [[nodiscard]] static step step_of_erasure(const way_end& end) noexcept {
    if (end.at.depth == 0) return step::in_place;
    if (children_of(end.at, 3) == 2) return step::collapse;
    if (end.at.kind == kinds::largest) {
      constexpr std::size_t line = 8;
      const auto& slots = static_cast<const direct_node&>(*end.at.n).slots;
      const std::size_t first = end.word.digit() / line * line;
      for (std::size_t i = first; i < std::min(first + line, slots.size()); ++i)
        if (i != end.word.digit() && !load(slots[i]).is_empty()) return step::in_place;
    }
    return kinds::fitting(end.at.kind, children_of(end.at) - 1) != 0 ? step::shrink : step::in_place;
  }

  changes<Medium> changes_;
  ways<Medium> ways_;
};

}  // namespace pmlab::strings::detail::radix
