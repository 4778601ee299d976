// The kinds of the typed tests of indexes/tests when they are compiled for the cache.
#pragma once

#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>

#include <string_view>

#include <gtest/gtest.h>

namespace pmlab::tests {

// So small that it evicts all the time.
template <class Index>
class small_cache : public cache::async_cache<Index> {
 public:
  template <class Medium>
  static small_cache open(Medium& medium, std::string_view name = Index::layout_name) {
    return small_cache(medium, name);
  }

 private:
  template <class Medium>
  small_cache(Medium& medium, std::string_view name)
      : cache::async_cache<Index>(medium, name, {.size = cache::capacity::entries(100)}) {}
};

template <class Medium>
using cached_cceh = small_cache<indexes::cceh<Medium>>;
template <class Medium>
using cached_fast_fair = small_cache<indexes::fast_fair<Medium>>;

}  // namespace pmlab::tests
