// The words of a skip list in the medium: nodes, links, slabs, root.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pmlab::indexes::detail::skip_list {

inline constexpr const char* remedy_of_corrupt = "`pmlab pool repair` copies the readable entries";
[[nodiscard]] inline error corrupt(const std::string& what) {
  return {"this skip list is corrupt: " + what, remedy_of_corrupt};
}
[[nodiscard]] inline error corrupt(const std::string& name, const std::string& what) {
  return {"the skip list '" + name + "' is corrupt: " + what, remedy_of_corrupt};
}

// A link leads to the node that follows: a pointer's word, whose lower bits are free because nodes are aligned.
using link_word = std::uint64_t;
inline constexpr link_word mark = 1;   // the node that holds this link is deleted, or another one of its key has taken
                                       // its place, to which the link leads; the link never changes again
inline constexpr link_word dirty = 2;  // this word may not be durable yet
inline constexpr link_word flag_bits = 31;

[[nodiscard]] constexpr bool is_marked(link_word link) noexcept { return (link & mark) != 0; }
[[nodiscard]] constexpr bool is_dirty(link_word link) noexcept { return (link & dirty) != 0; }
[[nodiscard]] constexpr link_word target_of(link_word link) noexcept { return link & ~flag_bits; }

//   0     8       16     24      32
//   | key | value | next | level |        two nodes to a line, none in two lines (S4)
//
// `level` is the word of an origin (below): level 1 is an entry; level n + 1 a tower node of a persistent tower, in the
// list of level n, whose value is the word of the node below it; 0 was never used, or withdrawn.
struct alignas(32) node {
  std::atomic<key_type> key;
  std::atomic<value_type> value;
  std::atomic<link_word> next;
  std::atomic<std::uint64_t> level;
};
static_assert(sizeof(node) == 32 && media::cache_line_bytes % sizeof(node) == 0);
static_assert(sizeof(node) == flag_bits + 1);

// The level of a node, its writer and the writer's turn: `writer` is a number that no other thread of any run has,
// `turn` counts the nodes that it wrote. Nodes of lists of earlier releases without origins have writer 0.
//
//   0       8        36     64
//   | level | writer | turn |       xor'ed with a number that is computed from the node's place
//
// So the earlier content of a block is not mistaken for an origin, nor is a word that was copied from another node.
struct origin {
  std::uint64_t level = 0;
  std::uint64_t writer = 0;
  std::uint64_t turn = 0;

  static constexpr unsigned level_bits = 8;
  static constexpr unsigned writer_bits = 28;
  static constexpr std::uint64_t most_levels = (std::uint64_t{1} << level_bits) - 1;
  static constexpr std::uint64_t most_writers = (std::uint64_t{1} << writer_bits) - 1;
  static constexpr std::uint64_t most_turns = (std::uint64_t{1} << (64 - level_bits - writer_bits)) - 1;

  [[nodiscard]] constexpr std::uint64_t word(link_word place) const noexcept {
    return (level | writer << level_bits | turn << (level_bits + writer_bits)) ^ number_of(place);
  }
  // The origin in the word `level` of the node at `place`.
  [[nodiscard]] static constexpr origin of(std::uint64_t word, link_word place) noexcept {
    if (word <= most_levels) return {word, 0, 0};
    const std::uint64_t plain = word ^ number_of(place);
    return {plain & most_levels, plain >> level_bits & most_writers, plain >> (level_bits + writer_bits)};
  }

 private:
  [[nodiscard]] static constexpr std::uint64_t number_of(link_word place) noexcept {
    const std::uint64_t mixed = (place + 0x632be59bd9b4e019U) * golden_ratio;
    return mixed ^ mixed >> 32;
  }
};

inline constexpr std::uint64_t level_of_entries = 1;

// Bytes of a slab.
template <class Medium>
[[nodiscard]] constexpr std::size_t slab_bytes() noexcept {
  return std::size_t{media::sizes_on<Medium>.small_slabs ? 1 : 64} << 10;
}

//   0       8        64      96
//   | next  | kind   | node  | node  | ...       all slabs of an index are a list, which begins in its root
//
// `kind`: `kind_at(place)` if all its nodes keep their origin; else the slab is of a list from before that.
template <std::size_t Bytes>
struct alignas(media::cache_line_bytes) slab {
  static constexpr std::size_t capacity = (Bytes - media::cache_line_bytes) / sizeof(node);

  [[nodiscard]] static constexpr std::uint64_t kind_at(link_word place) noexcept { return place ^ 0x736e696769726f00U; }

  std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> kind;
  alignas(media::cache_line_bytes) std::array<node, capacity> nodes;
};
static_assert(sizeof(slab<1024>) == 1024 && offsetof(slab<1024>, nodes) == media::cache_line_bytes);

// The root object. `heads[n]` is the head of the list of level n; its key and value mean nothing.
template <std::size_t Levels>
struct alignas(media::cache_line_bytes) root_object {
  static constexpr std::uint64_t right_magic = 0x7473696c70696b73;  // "skiplist"

  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> slabs;
  std::atomic<std::uint64_t> writers;  // that have a number (origin); 0 in lists from before that
  alignas(media::cache_line_bytes) std::array<node, Levels> heads;
};

}  // namespace pmlab::indexes::detail::skip_list
