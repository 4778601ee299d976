// Changes of a radix tree of strings, each a part of one publication: with the record that is linked or unlinked.
//
// The locks of the nodes that change are held, and `end` is current. `waiting`: an item of the ledger, which names the
// node that is replaced from then on.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/ledger.hpp>
#include <pmlab/strings/detail/radix/node.hpp>
#include <pmlab/strings/detail/radix/ways.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace pmlab::strings::detail::radix {

template <media::medium Medium>
class changes {
  using publication = typename Medium::publication;

 public:
  explicit changes(Medium& medium) noexcept : medium_(medium) {}

  // A new root; its word is stored in `to`. False: no space.
  [[nodiscard]] bool make_root(publication& change, std::atomic<std::uint64_t>& to) const {
    const position top = make(change, kinds::largest, {}, 0);
    if (top.n == nullptr) return false;
    persist(top);
    change.store(to, medium_.locate(top.n).word());  // (R1)
    // (R1) < commit: the state leads to a complete root.
    return true;
  }

  // Fills the empty slot of the key's digit. REQUIRES: the node has room.
  static void fill(publication& change, const way_end& end, slot_word record) {
    kinds::as_kind(*end.at.n, end.at.kind, [&](auto& n) {
      n.add(record, [&](std::atomic<std::uint64_t>& word, std::uint64_t value) { change.store(word, value); });  // (L1)
    });
    // (L1) < commit: with the record, and in a node with an index, with the index.
  }
  // Empties it.
  static void clear(publication& change, const way_end& end) {
    change.store(slot_in(end.at, end.word.digit()), 0);  // (U1)
    // (U1) < commit: with the record's way into the ledger.
  }

  // The target of the slot and the record of `key` get a node of their own at `depth`, where they differ; the target
  // has `other_digit` there, and is `distance` deeper if it is a node. False: no space.
  [[nodiscard]] bool part(publication& change, const way_end& end, std::string_view key, slot_word record,
                          std::size_t depth, std::size_t other_digit, std::size_t distance) const {
    const position node = make(change, kinds::smallest, key, depth);
    if (node.n == nullptr) return false;
    add_privately(node, end.word.moved_to(other_digit, distance));
    add_privately(node, record.moved_to(digit_at(key, depth), 0));
    persist(node);
    change.store(slot_in(end.at, record.digit()), link_to(node, record.digit(), end.at).word());  // (L2)
    // (L2) < commit: the node is complete, and the one word leads to both keys, or to the old one alone.
    return true;
  }

  // A larger node, with the record of `key`, replaces the node. False: no space.
  [[nodiscard]] bool grow(publication& change, const way_end& end, std::string_view key, slot_word record,
                          item& waiting) const {
    const position larger = make(change, end.at.kind + 1, key, end.at.depth);
    if (larger.n == nullptr) return false;
    for_each_child(end.at, [&](slot_word child) { add_privately(larger, child); });
    add_privately(larger, record);
    replace(change, end, larger, waiting);
    return true;
  }

  // A smaller node, without the found key, replaces the node. False: no space.
  [[nodiscard]] bool shrink(publication& change, const way_end& end, std::string_view key, item& waiting) const {
    const unsigned kind = kinds::fitting(end.at.kind, children_of(end.at) - 1);
    const position smaller = make(change, kind, key, end.at.depth);
    if (smaller.n == nullptr) return false;
    for_each_child(end.at, [&](slot_word child) {
      if (child != end.word) add_privately(smaller, child);
    });
    replace(change, end, smaller, waiting);
    return true;
  }

  // The only child that is left takes the place of the node. `last`: its word; `skip`: its depth less the parent's, of
  // a node.
  static void collapse(publication& change, const way_end& end, slot_word last, std::size_t skip, item& waiting) {
    const slot_word moved = last.moved_to(end.link.digit(), skip);
    change.store(slot_in(end.parent, moved.digit()), moved.word());  // (U2)
    leave(change, end, waiting);
    // (U2) < commit: with the node's way into the ledger.
  }

 private:
  // REQUIRES: there is a child of that digit.
  [[nodiscard]] static slot& slot_in(const position& at, std::size_t digit) noexcept {
    return kinds::as_kind(*at.n, at.kind, [&](auto& n) -> slot& { return n.slot_of(digit); });
  }

  // A node that nothing leads to yet; none: no space.
  [[nodiscard]] static position make(publication& change, unsigned kind, std::string_view key, std::size_t depth) {
    void* const block = change.allocate(kinds::bytes(kind), kinds::alignment(kind));
    if (block == nullptr) return {};
    header& made = kinds::make(block, kind);
    made.set_path(key, depth);
    return {&made, kind, depth};
  }
  static void add_privately(const position& to, slot_word child) {
    kinds::as_kind(*to.n, to.kind, [&](auto& n) {
      n.add(child, [](std::atomic<std::uint64_t>& word, std::uint64_t value) {
        word.store(value, std::memory_order_relaxed);
      });
    });
  }
  void persist(const position& made) const {
    medium_.flush(made.n, kinds::bytes(made.kind));  // (N1)
    medium_.fence();                                 // (N2)
    // (N1) < (N2) < commit: a node is complete before the word that links it, which is stored with its allocation.
  }

  [[nodiscard]] slot_word link_to(const position& to, std::size_t digit, const position& from) const noexcept {
    return slot_word::link(medium_.locate(to.n).word(), to.kind, digit, to.depth - from.depth);
  }

  // `made`, which is complete but for its write-back, takes the place of the node.
  void replace(publication& change, const way_end& end, const position& made, item& waiting) const {
    persist(made);
    const std::size_t digit = end.link.digit();
    change.store(slot_in(end.parent, digit), link_to(made, digit, end.parent).word());  // (G1)
    leave(change, end, waiting);
    // (G1) < commit: with the old node's way into the ledger.
  }

  // The node is gone, and the ledger names it until no reader can be in it.
  static void leave(publication& change, const way_end& end, item& waiting) {
    change.store(end.at.n->depth_and_gone, header::gone_at(end.at.depth));  // (G2)
    media::publish_store(change, waiting.prefix, end.link.word());          // (G3)
    media::publish_store(change, waiting.what, waits_for::node);            // (G4)
    // (G2), (G3), (G4) < commit: a crash leaves the node linked, or in the ledger.
  }

  Medium& medium_;
};

}  // namespace pmlab::strings::detail::radix
