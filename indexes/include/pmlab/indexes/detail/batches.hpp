// Searches for any number of keys, some at a time.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>
#include <span>

namespace pmlab::indexes::detail {

// Calls find_some(keys, values) for one part of `keys` and `values` after the other, until all were its arguments: each
// has the next `width` of them, the last one those that are left. Sizes must be equal.
template <std::size_t width, class FindSome>
void in_batches(std::span<const key_type> keys, std::span<std::optional<value_type>> values, FindSome&& find_some) {
  assert(keys.size() == values.size());
  for (std::size_t done = 0; done < keys.size(); done += width) {
    const std::size_t count = std::min(width, keys.size() - done);
    find_some(keys.subspan(done, count), values.subspan(done, count));
  }
}

}  // namespace pmlab::indexes::detail
