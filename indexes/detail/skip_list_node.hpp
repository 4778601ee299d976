// The words of a skip list in the medium: nodes, links, slabs, root.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::skip_list {

// A link leads to the node that follows: a pointer's word, whose lower bits are free because nodes are aligned.
using link_word = std::uint64_t;
inline constexpr link_word mark = 1;   // the node that holds this link is deleted; the link never changes again
inline constexpr link_word dirty = 2;  // it is not certain yet that this word is durable
inline constexpr link_word flag_bits = 31;

[[nodiscard]] constexpr bool is_marked(link_word link) noexcept { return (link & mark) != 0; }
[[nodiscard]] constexpr bool is_dirty(link_word link) noexcept { return (link & dirty) != 0; }
[[nodiscard]] constexpr link_word target_of(link_word link) noexcept { return link & ~flag_bits; }

//   0     8       16     24      32
//   | key | value | next | level |        two nodes to a line, none in two lines (S4)
//
// `level` 1: an entry. `level` n + 1: a stone of a persistent tower, in the list of level n; its value is then the word
// of what is below it. 0: never used.
struct alignas(32) node {
  std::atomic<key_type> key;
  std::atomic<value_type> value;
  std::atomic<link_word> next;
  std::atomic<std::uint64_t> level;
};
static_assert(sizeof(node) == 32 && media::cache_line_bytes % sizeof(node) == 0);
static_assert(sizeof(node) == flag_bits + 1);

// How large the slabs are that nodes come from. Small on media that want many of them (`Medium::lock_stripes`).
template <class Medium>
[[nodiscard]] constexpr std::size_t slab_bytes() noexcept {
  if constexpr (requires { Medium::lock_stripes; })
    return std::size_t{1} << 10;
  else
    return std::size_t{64} << 10;
}

//   0       8        64      96
//   | next  |        | node  | node  | ...       all slabs of an index are a list, which begins in its root
template <std::size_t Bytes>
struct alignas(media::cache_line_bytes) slab {
  static constexpr std::size_t capacity = (Bytes - media::cache_line_bytes) / sizeof(node);

  std::atomic<std::uint64_t> next;
  alignas(media::cache_line_bytes) std::array<node, capacity> nodes;
};
static_assert(sizeof(slab<1024>) == 1024 && offsetof(slab<1024>, nodes) == media::cache_line_bytes);

// What the named root leads to. `heads[n]` is where the list of level n begins; its key and value mean nothing.
template <std::size_t Levels>
struct alignas(media::cache_line_bytes) root_object {
  static constexpr std::uint64_t right_magic = 0x7473696c70696b73;  // "skiplist"

  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> slabs;
  alignas(media::cache_line_bytes) std::array<node, Levels> heads;
};

}  // namespace pmlab::indexes::detail::skip_list
