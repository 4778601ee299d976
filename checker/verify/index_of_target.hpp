// A target with the interface of an index: for layers over indexes, built by pmlab_simulate once for all of them.
#pragma once

#include "checker/verify/operations.hpp"
#include "checker/verify/target.hpp"
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::verify {

// Thread safety and durability: the target's.
class index_of_target {
 public:
  static constexpr std::string_view layout_name = "target";
  static constexpr std::uint64_t layout_version = 1;

  static index_of_target open(target& on, std::string_view /*name*/) { return index_of_target(on); }

  indexes::outcome insert(std::uint64_t key, std::uint64_t value) { return changed({action::insert, key, value}); }
  indexes::outcome update(std::uint64_t key, std::uint64_t value) { return changed({action::update, key, value}); }
  indexes::outcome upsert(std::uint64_t key, std::uint64_t value) { return changed({action::upsert, key, value}); }
  indexes::outcome erase(std::uint64_t key) { return changed({action::erase, key, 0}); }
  std::optional<std::uint64_t> find(std::uint64_t key) { return target_.perform({action::find, key, 0}).found; }
  void prefetch_find(std::uint64_t /*key*/) noexcept {}
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    target_.find_batch(keys, values);
  }
  std::size_t load(std::span<const indexes::entry> ascending) { return target_.load(ascending); }
  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) { return target_.scan(from, out); }
  template <class Function>
  void for_each(Function&& function) const {
    std::vector<indexes::entry> all;
    target_.entries(all);
    for (const indexes::entry& e : all) function(e.key, e.value);
  }
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    for_each([&](std::uint64_t, std::uint64_t) { ++entries; });
    return entries;
  }
  [[nodiscard]] indexes::index_stats stats() const { return {}; }
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    if (std::string wrong = target_.check(); !wrong.empty()) report.add(std::move(wrong));
    return report;
  }

 private:
  explicit index_of_target(target& on) : target_(on) {}
  indexes::outcome changed(const step& s) { return *target_.perform(s).changed; }

  target& target_;
};

}  // namespace pmlab::verify
