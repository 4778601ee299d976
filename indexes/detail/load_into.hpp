// Many entries at once, for any index.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <span>

namespace pmlab::indexes::detail {

// As loadable_index::load; one entry after the other if the index does not offer that.
template <class Index>
std::size_t load_into(Index& index, std::span<const entry> ascending) {
  if constexpr (requires { index.load(ascending); }) {
    return index.load(ascending);
  } else {
    std::size_t done = 0;
    while (done < ascending.size() && index.insert(ascending[done].key, ascending[done].value) != outcome::full) ++done;
    return done;
  }
}

}  // namespace pmlab::indexes::detail
