// An index that hands on every operation to another one: a test changes those that it is about.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pmlab::tests {

// Base class of such an index; functions of its own hide those here. `Inner` is any point index, or an ordered one.
template <class Inner>
class forwarding_index {
 public:
  static constexpr std::string_view layout_name = Inner::layout_name;
  static constexpr std::uint64_t layout_version = Inner::layout_version;

  indexes::outcome insert(std::uint64_t key, std::uint64_t value) { return inner_.insert(key, value); }
  indexes::outcome update(std::uint64_t key, std::uint64_t value) { return inner_.update(key, value); }
  indexes::outcome upsert(std::uint64_t key, std::uint64_t value) { return inner_.upsert(key, value); }
  indexes::outcome erase(std::uint64_t key) { return inner_.erase(key); }
  std::optional<std::uint64_t> find(std::uint64_t key) { return inner_.find(key); }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    inner_.find_batch(keys, values);
  }
  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) requires indexes::ordered_index<Inner> {
    return inner_.scan(from, out);
  }
  template <class Function>
  requires indexes::ordered_index<Inner>
  void for_each_in(std::uint64_t first, std::uint64_t last, Function&& function) {
    inner_.for_each_in(first, last, function);
  }
  template <class Function>
  void for_each(Function&& function) const {
    inner_.for_each(function);
  }
  [[nodiscard]] std::uint64_t size() const { return inner_.size(); }
  [[nodiscard]] indexes::index_stats stats() const { return inner_.stats(); }
  [[nodiscard]] indexes::check_report check() const { return inner_.check(); }

 protected:
  // `open()` makes the inner index.
  template <class Open>
  explicit forwarding_index(Open&& open) : inner_(open()) {}

  [[nodiscard]] Inner& inner() noexcept { return inner_; }

 private:
  Inner inner_;
};

}  // namespace pmlab::tests
