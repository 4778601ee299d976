// Containers for tests of the benchmark: one that is right, and a family of which each member is wrong in one way.
#pragma once

#include "bench/catalogue/peers/peer.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/subject.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace pmlab::tests {

enum class flaw : std::uint8_t {
  none,
  loses_inserts,        // says inserted, and keeps nothing
  forgets_updates,      // says updated, and keeps the old value
  keeps_erased,         // says erased, and keeps the entry
  mixes_values_up,      // finds the value of another key
  answers_wrong_kind,   // says exists where it inserted
  scan_leaves_out,      // skips an entry
  scan_repeats,         // gives an entry twice
  scan_starts_early,    // begins below the start
  scan_shows_old_value  // gives a value that is no more
};

// Every `period`-th chance is used.
template <flaw Flaw>
class small_map {
 public:
  static constexpr bool durable = false;
  static constexpr std::uint64_t period = 1000;

  explicit small_map(const bench::subject_setup& /*setup*/) {}

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    const std::scoped_lock hold(mutex_);
    if (map_.contains(key)) return indexes::outcome::exists;
    if (is_time(flaw::loses_inserts)) return indexes::outcome::inserted;
    map_.emplace(key, value);
    return is_time(flaw::answers_wrong_kind) ? indexes::outcome::exists : indexes::outcome::inserted;
  }

  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    const std::scoped_lock hold(mutex_);
    const auto place = map_.find(key);
    if (place == map_.end()) return indexes::outcome::absent;
    if (!is_time(flaw::forgets_updates)) {
      old_value_ = place->second;
      old_key_ = key;
      place->second = value;
    }
    return indexes::outcome::updated;
  }

  indexes::outcome erase(indexes::key_type key) {
    const std::scoped_lock hold(mutex_);
    if (!map_.contains(key)) return indexes::outcome::absent;
    if (!is_time(flaw::keeps_erased)) map_.erase(key);
    return indexes::outcome::erased;
  }

  std::optional<indexes::value_type> find(indexes::key_type key) {
    const std::scoped_lock hold(mutex_);
    const auto place = map_.find(key);
    if (place == map_.end()) return std::nullopt;
    if (is_time(flaw::mixes_values_up)) return map_.begin()->second;
    return place->second;
  }

  std::size_t scan(indexes::key_type key, std::span<indexes::entry> out) {
    const std::scoped_lock hold(mutex_);
    auto place = map_.lower_bound(key);
    if (place != map_.begin() && is_time(flaw::scan_starts_early)) --place;
    std::size_t count = 0;
    for (; place != map_.end() && count < out.size(); ++place) {
      if (count == 2 && is_time(flaw::scan_leaves_out)) continue;
      out[count++] = {place->first, place->second};
      if (count == 2 && count < out.size() && is_time(flaw::scan_repeats)) out[count++] = out[1];
      if (place->first == old_key_ && Flaw == flaw::scan_shows_old_value) out[count - 1].value = old_value_;
    }
    return count;
  }

  bench::space_used space() { return {map_.size(), 0, 48 * map_.size()}; }

 private:
  bool is_time(flaw f) { return f == Flaw && ++chances_ % period == 0; }

  std::mutex mutex_;
  std::map<indexes::key_type, indexes::value_type> map_;
  std::uint64_t chances_ = 0;
  indexes::key_type old_key_ = 0;
  indexes::value_type old_value_ = 0;
};

template <flaw Flaw = flaw::none>
bench::index_description describe(std::string name) {
  bench::index_description d;
  d.name = std::move(name);
  d.ordered = true;
  d.place = bench::placement::own_dram;
  d.refusal = [](workload::operation_kind, unsigned) { return std::string(); };
  d.make = [](const bench::subject_setup& setup) -> std::unique_ptr<bench::subject> {
    return std::make_unique<bench::peers::peer<small_map<Flaw>>>(setup);
  };
  return d;
}

}  // namespace pmlab::tests
