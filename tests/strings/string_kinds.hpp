// What the typed tests of tests/indexes run on when they are compiled for string keys: over a hash table, a cache in front of a
// tree, and a hybrid index; with both kinds of values.
#pragma once

#include <pmlab/cache/async_cache.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/numbered.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

namespace pmlab::tests {

// A tree in the medium, and a hash table in DRAM that belongs to the index.
template <class Medium>
class small_hybrid {
  using index = hybrid::hybrid_index<indexes::cceh<media::dram>, indexes::fast_fair<Medium>, hybrid::primary::tree>;

 public:
  static constexpr std::string_view layout_name = "hybrid";
  static constexpr std::uint64_t layout_version = index::layout_version;

  static small_hybrid open(Medium& medium, std::string_view name = {}) { return small_hybrid(medium, name); }

  indexes::outcome insert(std::uint64_t key, std::uint64_t value) { return index_.insert(key, value); }
  indexes::outcome update(std::uint64_t key, std::uint64_t value) { return index_.update(key, value); }
  indexes::outcome upsert(std::uint64_t key, std::uint64_t value) { return index_.upsert(key, value); }
  indexes::outcome erase(std::uint64_t key) { return index_.erase(key); }
  std::optional<std::uint64_t> find(std::uint64_t key) { return index_.find(key); }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    index_.find_batch(keys, values);
  }
  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) { return index_.scan(from, out); }
  template <class Function>
  void for_each_in(std::uint64_t first, std::uint64_t last, Function&& function) {
    index_.for_each_in(first, last, function);
  }
  template <class Function>
  void for_each(Function&& function) const {
    index_.for_each(function);
  }
  [[nodiscard]] std::uint64_t size() const { return index_.size(); }
  [[nodiscard]] indexes::index_stats stats() const { return index_.stats(); }
  [[nodiscard]] indexes::check_report check() const { return index_.check(); }

 private:
  small_hybrid(Medium& medium, std::string_view name) : index_(index::open(*dram_, medium, named(name))) {}

  static hybrid::options named(std::string_view name) {
    hybrid::options o;
    o.name = name;
    return o;
  }

  std::unique_ptr<media::dram> dram_ = std::make_unique<media::dram>();
  index index_;
};

template <class Medium>
using strings_cceh = strings::numbered<Medium, indexes::cceh<Medium>, strings::blob_values>;
template <class Medium>
using strings_cached = strings::numbered<Medium, cache::async_cache<indexes::fp_tree<Medium>>, strings::blob_values>;
template <class Medium>
using strings_hybrid = strings::numbered<Medium, small_hybrid<Medium>>;

}  // namespace pmlab::tests
