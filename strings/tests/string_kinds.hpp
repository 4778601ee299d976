// The kinds of the typed tests of indexes/tests when they are compiled for string keys: over a hash table, a cache in
// front of a tree, a hybrid index, and a tree of strings; with both kinds of values.
#pragma once

#include <pmlab/cache/async_cache.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/numbered.hpp>

#include <memory>
#include <string_view>

#include <gtest/gtest.h>

#include "support/forwarding_index.hpp"

namespace pmlab::tests {

template <class Medium>
using hybrid_of = hybrid::hybrid_index<indexes::cceh<media::dram>, indexes::fast_fair<Medium>, hybrid::primary::tree>;

// Made before the index that lives in it.
struct owned_dram {
  std::unique_ptr<media::dram> dram = std::make_unique<media::dram>();
};

// A tree in the medium, and a hash table in DRAM that belongs to the index.
template <class Medium>
class small_hybrid : private owned_dram, public forwarding_index<hybrid_of<Medium>> {
  using forwarding = forwarding_index<hybrid_of<Medium>>;

 public:
  static constexpr std::string_view layout_name = "hybrid";

  static small_hybrid open(Medium& medium, std::string_view name = {}) { return small_hybrid(medium, name); }

 private:
  small_hybrid(Medium& medium, std::string_view name)
      : forwarding([&] { return hybrid_of<Medium>::open(*dram, medium, named(name)); }) {}

  static hybrid::options named(std::string_view name) {
    hybrid::options o;
    o.name = name;
    return o;
  }
};

template <class Medium>
using strings_cceh = strings::numbered<Medium, indexes::cceh<Medium>, strings::blob_values>;
template <class Medium>
using strings_cached = strings::numbered<Medium, cache::async_cache<indexes::fp_tree<Medium>>, strings::blob_values>;
template <class Medium>
using strings_hybrid = strings::numbered<Medium, small_hybrid<Medium>>;
template <class Medium>
using strings_woart = strings::numbered<Medium, indexes::woart<Medium>, strings::blob_values>;

}  // namespace pmlab::tests
