// An index in DRAM whose operations a test may interfere with.
#pragma once

#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/dram.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace pmlab::tests {

// `on_call` is called before each update and find; set it before the index is used.
class wrapped_index {
  using inner = indexes::cceh<media::dram>;

 public:
  static constexpr std::string_view layout_name = inner::layout_name;
  static constexpr std::uint64_t layout_version = inner::layout_version;
  static inline std::function<void()> on_call = [] {};

  static wrapped_index open(media::dram& medium, std::string_view name) { return wrapped_index(medium, name); }

  indexes::outcome insert(std::uint64_t key, std::uint64_t value) { return inner_.insert(key, value); }
  indexes::outcome update(std::uint64_t key, std::uint64_t value) {
    on_call();
    return inner_.update(key, value);
  }
  indexes::outcome upsert(std::uint64_t key, std::uint64_t value) { return inner_.upsert(key, value); }
  indexes::outcome erase(std::uint64_t key) { return inner_.erase(key); }
  std::optional<std::uint64_t> find(std::uint64_t key) {
    on_call();
    return inner_.find(key);
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    inner_.find_batch(keys, values);
  }
  template <class Function>
  void for_each(Function&& function) const {
    inner_.for_each(function);
  }
  [[nodiscard]] std::uint64_t size() const { return inner_.size(); }
  [[nodiscard]] indexes::index_stats stats() const { return inner_.stats(); }
  [[nodiscard]] indexes::check_report check() const { return inner_.check(); }

 private:
  wrapped_index(media::dram& medium, std::string_view name) : inner_(inner::open(medium, name)) {}
  inner inner_;
};

}  // namespace pmlab::tests
