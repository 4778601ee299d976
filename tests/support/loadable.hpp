// Shared by tests of loading: the loadable indexes, and their entries.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests {

namespace detail {

template <class Kinds>
struct loadable_of;
template <class... Kinds>
struct loadable_of<testing::Types<Kinds...>> {
  template <class Kind>
  using if_loadable = std::conditional_t<indexes::loadable_index<typename Kind::template index<media::dram>>,
                                         testing::Types<Kind>, testing::Types<>>;
  using type = typename joined<testing::Types<>, if_loadable<Kinds>...>::type;
};

}  // namespace detail

using loadable_kinds = typename detail::loadable_of<offered_kinds>::type;

// As all_settings.
#if defined(PMLAB_SANITIZED)
using loadable_settings = detail::on_media<loadable_kinds, media::dram>::all;
#else
using loadable_settings = detail::on_media<loadable_kinds, media::dram, media::pmem, restartable_medium>::all;
#endif
using loadable_concurrent_settings = detail::on_media<loadable_kinds, media::dram>::all;

[[nodiscard]] inline std::vector<indexes::entry> sorted_entries(key_set kind, std::size_t count) {
  random source(count);
  std::vector<indexes::entry> entries;
  for (const std::uint64_t key : make_keys(kind, count, source)) entries.push_back({key, source.next()});
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return entries;
}

[[nodiscard]] inline contents contents_of(std::span<const indexes::entry> entries) {
  contents model;
  for (const indexes::entry& e : entries) model.emplace(e.key, e.value);
  return model;
}

}  // namespace pmlab::tests
