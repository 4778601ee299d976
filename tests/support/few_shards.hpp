// A medium in which an index that divides itself into shards has few of them, so that short tests make them grow.
#pragma once

#include <cstddef>

namespace pmlab::tests {

template <class Medium, std::size_t Shards>
struct of_shards : Medium {
  using Medium::Medium;
  [[nodiscard]] static constexpr std::size_t shards(std::size_t /*usual*/) noexcept { return Shards; }
};

}  // namespace pmlab::tests
