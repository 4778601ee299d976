// The kinds of nodes of a radix tree, by their numbers.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstddef>
#include <new>
#include <tuple>
#include <type_traits>

namespace pmlab::indexes::detail::radix {

// The number of a node's kind is its position in `Node`, from 1, by ascending capacity. The last one is the root's.
// `Header`: the base of all of them.
template <class Header, class... Node>
struct node_kinds {
  static constexpr unsigned smallest = 1;
  static constexpr unsigned largest = sizeof...(Node);

  [[nodiscard]] static constexpr bool is_kind(unsigned kind) noexcept { return kind >= smallest && kind <= largest; }
  [[nodiscard]] static constexpr std::size_t bytes(unsigned kind) noexcept {
    return std::array{sizeof(Node)...}[kind - smallest];
  }
  [[nodiscard]] static constexpr std::size_t capacity(unsigned kind) noexcept {
    return std::array{Node::capacity...}[kind - smallest];
  }
  [[nodiscard]] static constexpr std::size_t alignment(unsigned kind) noexcept {
    return std::array{alignof(Node)...}[kind - smallest];
  }
  // The kind below `kind` that a node with so many children should have. 0: there is none. One slot stays free,
  // so that the next insert does not replace it again.
  [[nodiscard]] static constexpr unsigned fitting(unsigned kind, std::size_t count) noexcept {
    for (unsigned k = smallest; k < kind; ++k)
      if (count < capacity(k)) return k;
    return 0;
  }

  // An empty node in a block of `bytes(kind)`.
  [[nodiscard]] static Header& make(void* block, unsigned kind) noexcept {
    Header* made = nullptr;
    unsigned number = smallest;
    static_cast<void>(((number++ == kind && ((made = ::new (block) Node), true)) || ...));
    return *made;
  }

  // Calls function(node) with the node as what it is. `AnyHeader`: Header or const Header.
  template <unsigned Kind = largest, class AnyHeader, class Function>
  [[gnu::always_inline]] static decltype(auto) as_kind(AnyHeader& n, unsigned kind, Function&& function) {
    using node = std::tuple_element_t<Kind - 1, std::tuple<Node...>>;
    using as_const_as_header = std::conditional_t<std::is_const_v<AnyHeader>, const node, node>;
    if constexpr (Kind == smallest) {
      return function(static_cast<as_const_as_header&>(n));
    } else {
      if (kind == Kind) return function(static_cast<as_const_as_header&>(n));
      return as_kind<Kind - 1>(n, kind, function);
    }
  }
};

}  // namespace pmlab::indexes::detail::radix
