// Many entries at once, for any index.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail {

// The entries, `most` at most, that belong in front of the next leaf: their keys are up to `last`.
[[nodiscard]] inline std::span<const entry> fit_into_row(std::span<const entry> ascending, std::size_t most,
                                                         key_type last) noexcept {
  const auto some = ascending.first(std::min(ascending.size(), most));
  const auto end = std::partition_point(some.begin(), some.end(), [last](const entry& e) { return e.key <= last; });
  return some.first(static_cast<std::size_t>(end - some.begin()));
}

// As loadable_index::load, for an index that may link many entries at once: `load_row(ascending)` adds the first of
// these and returns how many; 0: the next one has to be inserted by itself, or there is no space.
template <class Index, class LoadRow>
std::size_t load_rows(Index& index, std::span<const entry> ascending, LoadRow&& load_row) {
  for (std::size_t done = 0; done < ascending.size();) {
    const entry& next = ascending[done];
    if (const std::size_t linked = load_row(ascending.subspan(done)); linked != 0)
      done += linked;
    else if (index.insert(next.key, next.value) != outcome::full)
      ++done;
    else
      return done;
  }
  return ascending.size();
}

// As loadable_index::load; one entry after the other if the index does not offer that.
template <class Index>
std::size_t load_into(Index& index, std::span<const entry> ascending) {
  if constexpr (requires { index.load(ascending); }) {
    return index.load(ascending);
  } else {
    return load_rows(index, ascending, [](std::span<const entry>) { return std::size_t{0}; });
  }
}

}  // namespace pmlab::indexes::detail
