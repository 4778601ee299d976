// A range of keys, read by scans of a few entries at a time.
#pragma once

#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/index.hpp>

#include <array>
#include <cstddef>
#include <limits>

namespace pmlab::indexes::detail {

// Calls function(key, value) for every entry of [first, last], ascending. Writers may run between two scans; each scan
// has the guarantees of `index.scan`. Throws pmlab::error: a scan ends with a key below those that it was to read.
template <class Index, class Function>
void for_each_in_by_scan(Index& index, key_type first, key_type last, Function&& function) {
  std::array<entry, 64> chunk;
  for (;;) {
    const std::size_t count = index.scan(first, chunk);
    for (std::size_t i = 0; i < count; ++i) {
      if (chunk[i].key > last) return;
      function(chunk[i].key, chunk[i].value);
    }
    if (count < chunk.size() || chunk.back().key == std::numeric_limits<key_type>::max()) return;
    if (chunk.back().key < first)  // or it would not end
      throw damaged_tree("index", "its keys do not ascend");
    first = chunk.back().key + 1;
  }
}

}  // namespace pmlab::indexes::detail
