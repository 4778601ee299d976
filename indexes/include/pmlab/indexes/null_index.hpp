// An index that keeps nothing: measuring it measures the benchmark itself.
//
// Use it to see the share of the harness (keys, clocks, histograms) in a figure, and as the smallest example of the
// index concepts.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pmlab::indexes {

// Thread safety: any operation from any number of threads, wait-free. Durability: there is nothing to keep.
template <media::medium Medium>
class null_index {
 public:
  static constexpr std::string_view layout_name = "null_index";
  static constexpr std::uint64_t layout_version = 1;

  // Takes the root `name`. Throws pmlab::error: it belongs to another layout, or there is no room.
  static null_index open(Medium& medium, std::string_view name = layout_name) {
    static_cast<void>(medium.named_root(name, layout_name, layout_version));
    return null_index();
  }

  null_index(const null_index&) = delete;
  null_index& operator=(const null_index&) = delete;
  ~null_index() = default;

  outcome insert(key_type /*key*/, value_type /*value*/) { return outcome::inserted; }
  outcome update(key_type /*key*/, value_type /*value*/) { return outcome::absent; }
  outcome upsert(key_type /*key*/, value_type /*value*/) { return outcome::inserted; }
  outcome erase(key_type /*key*/) { return outcome::absent; }
  std::optional<value_type> find(key_type /*key*/) { return std::nullopt; }
  void find_batch(std::span<const key_type> /*keys*/, std::span<std::optional<value_type>> values) {
    std::fill(values.begin(), values.end(), std::nullopt);
  }
  std::size_t scan(key_type /*from*/, std::span<entry> /*out*/) { return 0; }
  template <class Function>
  void for_each_in(key_type /*first*/, key_type /*last*/, Function&& /*function*/) {}
  template <class Function>
  void for_each(Function&& /*function*/) const {}
  [[nodiscard]] std::uint64_t size() const { return 0; }
  [[nodiscard]] index_stats stats() const { return {}; }
  [[nodiscard]] check_report check() const { return {}; }

 private:
  null_index() = default;
};

}  // namespace pmlab::indexes
