// A table that is full in part, for the index of a key-value device.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/chains.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace pmlab::verify {

// The first slots of one hash in eight find no space, when it has had so many entries since it was opened that a round
// has seen how a table with space goes.
template <media::medium Medium>
class partly_full {
 public:
  static partly_full open(Medium& medium, std::string_view name) { return partly_full(medium, name); }
  static std::uint64_t directory_sum(Medium& medium, std::string_view name) {
    return indexes::cceh<Medium>::directory_sum(medium, name);
  }

  indexes::outcome insert(std::uint64_t key, std::uint64_t value) {
    ++inserts_;
    return refuses(key) ? indexes::outcome::full : table_.insert(key, value);
  }
  indexes::outcome insert_without_split(std::uint64_t key, std::uint64_t value) {
    return refuses(key) ? indexes::outcome::full : table_.insert_without_split(key, value);
  }
  indexes::outcome update(std::uint64_t key, std::uint64_t value) { return table_.update(key, value); }
  indexes::outcome erase(std::uint64_t key) { return table_.erase(key); }
  std::optional<std::uint64_t> find(std::uint64_t key) { return table_.find(key); }
  template <class Function>
  void for_each(Function&& function) const {
    table_.for_each(function);
  }
  template <class Function>
  void for_each_beside_writers(Function&& function) {
    table_.for_each_beside_writers(function);
  }
  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t key) noexcept { return indexes::cceh<Medium>::hash_of(key); }
  template <class Right>
  std::size_t mend_hashes(Right&& right) {
    return table_.mend_hashes(right);
  }
  [[nodiscard]] indexes::index_stats stats() const { return table_.stats(); }
  [[nodiscard]] indexes::check_report check() const { return table_.check(); }

 private:
  partly_full(Medium& medium, std::string_view name) : table_(indexes::cceh<Medium>::open(medium, name)) {}
  [[nodiscard]] bool refuses(std::uint64_t key) const noexcept {
    using namespace stores::detail::kv_ssd;
    return inserts_ > accepted && key == base_of_slot(key) && mix_bits(key) % 8 == 0;
  }

  static constexpr std::uint64_t accepted = 40;

  indexes::cceh<Medium> table_;
  std::atomic<std::uint64_t> inserts_{0};
};

}  // namespace pmlab::verify
