// Walks over a radix tree that may be damaged: validates it, and reads the entries that are left.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/radix/limbo.hpp>
#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>

namespace pmlab::indexes::detail::radix {

// True if the link can lead to a node below one of this depth.
template <class Kinds, class Medium>
[[nodiscard]] bool is_link_to_node(const Medium& medium, slot_word link, unsigned depth) noexcept {
  return Kinds::is_kind(link.kind()) && link.depth() > depth && link.depth() < Kinds::digits::per_key &&
         media::can_name(medium, media::pointer<header>(link.child()), Kinds::bytes(link.kind()));
}

// Throws pmlab::error: there is no head.
template <class Medium>
[[nodiscard]] tree_head& head_at(const Medium& medium, media::pointer<tree_head> head) {
  if (!media::can_name(medium, head)) throw corrupt("its head");
  return *medium.resolve(head);
}

// Throws pmlab::error: there is no root node.
template <class Kinds, class Medium>
[[nodiscard]] header& root_at(const Medium& medium, const tree_head& head) {
  const media::pointer<header> root(head.root.load(std::memory_order_acquire));
  if (!media::can_name(medium, root, Kinds::bytes(Kinds::largest))) throw corrupt("its root");
  header& top = *medium.resolve(root);
  if (top.path() != 0 || top.depth() != 0 || top.is_gone()) throw corrupt("its root");
  return top;
}

// A node as its link describes it.
struct walked_node {
  header* n;
  unsigned kind;
  unsigned depth;
  unsigned level;  // nodes above it
  key_type path;   // all keys below begin with these digits,
  unsigned known;  // so many

  // False: the header is damaged, or the link is.
  template <class Digits>
  [[nodiscard]] bool has_its_header() const noexcept {
    key_type in_header = 0;
    return n->template is_of<Digits>(path, known, depth, in_header) && (in_header & ~Digits::mask_before(depth)) == 0;
  }
};

// True if this entry can be in the node: its key begins with the digits that are known.
template <class Digits>
[[nodiscard]] bool may_have(const walked_node& at, slot_word entry) noexcept {
  return entry.is_entry() && (entry.key(at.path) & Digits::mask_before(at.known)) == at.path;
}

// Looks at the slots that no search finds: a crash leaves entries there, but nothing else. If the index of the node is
// damaged, `found` gets those entries. REQUIRES: `found` has all children of the node, or it has no index.
template <class Digits, class Node, class Visitor>
void walk_invisible_slots(const Node& n, const walked_node& at, children& found, Visitor& visitor) {
  if constexpr (requires { n.index; }) {
    static_assert(Node::capacity <= children::most);
    const bool has_sound_index = n.has_sound_index();
    if (!has_sound_index) visitor.damage("an index");
    for (std::size_t i = 0; i < n.capacity; ++i) {
      const slot_word word = n.slots[i].load();
      if (word.is_empty() || n.has_child(i, at.depth)) continue;
      if (!may_have<Digits>(at, word)) {
        visitor.damage("a slot with an impossible word");
      } else if (const std::size_t digit = word.template digit<Digits>(at.depth);
                 !has_sound_index && !found.has(digit)) {
        found.insert({digit, word, n.slots[i].value.load(std::memory_order_acquire)});
      }
    }
  }
}

// Visits nodes and entries in ascending order. `Visitor`:
//   bool node(walked_node)     false: do not enter it
//   void entry(key, value)
//   void damage(text)          at a word that no operation stores there
// Follows no link that cannot be one. Terminates, since depths increase. REQUIRES: no writer.
template <class Kinds, class Medium, class Visitor>
void walk_below(const Medium& medium, walked_node at, Visitor& visitor) {
  using digits = typename Kinds::digits;
  if (!visitor.node(at)) return;
  if (at.template has_its_header<digits>()) {
    at.path = at.n->path();
    at.known = at.depth;
  }
  children found;
  for (std::size_t next = 0; next < digits::values;) {
    found.clear();
    next = Kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
      const std::size_t end = n.collect(next, at.depth, found, [](const auto&) {});
      walk_invisible_slots<digits>(n, at, found, visitor);
      return end;
    });
    for (const child& c : found.all()) {
      walked_node below = at;
      if (at.known == at.depth) {
        below.path |= key_type{c.digit} << (64 - digits::bits * (at.depth + 1));
        below.known = at.depth + 1;
      }
      const key_type key = c.word.key(below.path);
      if (c.word.is_link() && is_link_to_node<Kinds>(medium, c.word, at.depth)) {
        below.n = medium.resolve(media::pointer<header>(c.word.child()));
        below.kind = c.word.kind();
        below.depth = c.word.depth();
        below.level = at.level + 1;
        walk_below<Kinds>(medium, below, visitor);
      } else if (may_have<digits>(below, c.word) && digits::at(key, at.depth) == c.digit) {
        visitor.entry(key, c.value);
      } else {
        visitor.damage("a slot with an impossible word");
      }
    }
  }
}

template <class Kinds, class Medium, class Visitor>
void walk_from(const Medium& medium, header& root, Visitor&& visitor) {
  walk_below<Kinds>(medium, {&root, Kinds::largest, 0, 0, 0, 0}, visitor);
}

// Calls on_node(walked_node) and on_entry(key, value). Throws pmlab::error: the tree is damaged.
template <class Kinds, class OnNode, class OnEntry>
struct trusting_visitor {
  OnNode& on_node;
  OnEntry& on_entry;

  // A node that two links lead to does not fit one of the ways: so the walk is no longer than the tree is large.
  bool node(const walked_node& at) {
    if (!at.template has_its_header<typename Kinds::digits>()) throw corrupt("a header");
    on_node(at);
    return true;
  }
  void entry(key_type key, value_type value) { on_entry(key, value); }
  [[noreturn]] void damage(const char* found) { throw corrupt(found); }
};

template <class Kinds, class Medium, class OnNode, class OnEntry>
void walk(const Medium& medium, header& root, OnNode&& on_node, OnEntry&& on_entry) {
  walk_from<Kinds>(medium, root, trusting_visitor<Kinds, OnNode, OnEntry>{on_node, on_entry});
}

// Reports what violates an invariant.
template <class Kinds>
struct checking_visitor {
  check_report report;
  std::unordered_set<const header*> met;
  key_type last = 0;

  bool node(const walked_node& at) {
    if (!at.template has_its_header<typename Kinds::digits>())
      report.add("X1: a node has another header than the way to it shows");
    if (at.n->is_gone()) report.add("R2: an unlinked node is linked");
    if (met.insert(at.n).second) return true;
    report.add("R1: two links lead to one node");
    return false;
  }
  void entry(key_type key, value_type /*value*/) {
    if (report.entries != 0 && key <= last) report.add("X2: key " + std::to_string(key) + " is there twice");
    last = key;
    ++report.entries;
  }
  void damage(const char* found) { report.add(std::string("R3: ") + found); }
};

template <class Kinds, class Medium>
[[nodiscard]] check_report check(const Medium& medium, header& root) {
  checking_visitor<Kinds> visitor;
  walk_from<Kinds>(medium, root, visitor);
  return visitor.report;
}

// Passes the entries on, and counts the damaged places.
template <class Kinds, class Function>
struct salvaging_visitor {
  Function& function;
  std::unordered_set<const header*> met{};
  std::size_t damaged = 0;

  bool node(const walked_node& at) {
    if (!at.template has_its_header<typename Kinds::digits>()) ++damaged;
    return met.insert(at.n).second;
  }
  void entry(key_type key, value_type value) { function(key, value); }
  void damage(const char* /*found*/) { ++damaged; }
};

// Calls function(key, value) for the entries of the tree at `root_word` that links still lead to. Throws pmlab::error
// at the end if some may be missing.
template <class Kinds, class Medium, class Function>
void salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  if (root_word == 0) return;
  const tree_head& head = head_at(medium, media::pointer<tree_head>(root_word));
  const media::pointer<header> root(head.root.load(std::memory_order_acquire));
  if (!media::can_name(medium, root, Kinds::bytes(Kinds::largest))) throw corrupt("its root");
  salvaging_visitor<Kinds, Function> visitor{function};
  walk_from<Kinds>(medium, *medium.resolve(root), visitor);
  if (visitor.damaged != 0)
    throw corrupt(std::to_string(visitor.damaged) + " of its nodes or slots, and what they led to");
}

}  // namespace pmlab::indexes::detail::radix
