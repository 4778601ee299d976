// The size of an index that does not count its entries.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <cstdint>

namespace pmlab::indexes::detail {

// The entries of an index; walks it. REQUIRES: no concurrent writer.
template <class Index>
[[nodiscard]] std::uint64_t count_entries(const Index& index) {
  std::uint64_t entries = 0;
  index.for_each([&](key_type, value_type) { ++entries; });
  return entries;
}

}  // namespace pmlab::indexes::detail
