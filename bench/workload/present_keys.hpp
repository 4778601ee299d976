// The keys that are there while a trace runs.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pmlab::workload {

// A set of keys in 9 to 29 bytes each. Not thread-safe.
class present_keys {
 public:
  [[nodiscard]] bool contains(std::uint64_t key) const noexcept { return states_[place_of(key)] == state::present; }

  // False: it was there.
  bool add(std::uint64_t key) {
    std::size_t at = place_of(key);
    if (states_[at] == state::present) return false;
    if (states_[at] == state::free && ++used_ * 8 > keys_.size() * 5) {
      grow();
      at = place_of(key);
    }
    keys_[at] = key;
    states_[at] = state::present;
    return true;
  }

  void remove(std::uint64_t key) noexcept {
    state& of_key = states_[place_of(key)];
    if (of_key == state::present) of_key = state::removed;
  }

 private:
  enum class state : std::uint8_t { free, present, removed };

  // Where the key is, or would be.
  [[nodiscard]] std::size_t place_of(std::uint64_t key) const noexcept {
    const std::size_t mask = keys_.size() - 1;
    std::size_t at = static_cast<std::size_t>(mix_bits(key + golden_ratio)) & mask;
    while (states_[at] != state::free && keys_[at] != key) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    const std::vector<std::uint64_t> keys = std::exchange(keys_, std::vector<std::uint64_t>(2 * keys_.size()));
    const std::vector<state> states = std::exchange(states_, std::vector<state>(keys_.size()));
    used_ = 1;  // the key that is added now
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (states[i] != state::present) continue;
      const std::size_t at = place_of(keys[i]);
      keys_[at] = keys[i];
      states_[at] = state::present;
      ++used_;
    }
  }

  static constexpr std::size_t first_size = 1024;
  std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(first_size);
  std::vector<state> states_ = std::vector<state>(first_size);
  std::size_t used_ = 0;  // places that are not free
};

}  // namespace pmlab::workload
