// The versions of one line on a shared device: what each write-back left there, the newest last.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::simulator {

using line_words = std::array<std::uint64_t, words_per_line>;

struct device_version {
  std::uint64_t number = 0;  // grows by one with each version of the line
  line_words words{};
  unsigned host = 0;             // its writer
  const void* caller = nullptr;  // place of the last store in it; null: the content of before
};

class line_versions {
 public:
  static constexpr std::size_t most = 8;

  void begin(const line_words& words) {
    versions_.clear();
    versions_.push_back({.number = 1, .words = words});
  }
  const device_version& add(const line_words& words, unsigned host, const void* caller) {
    versions_.push_back({newest().number + 1, words, host, caller});
    return versions_.back();
  }
  [[nodiscard]] const device_version& newest() const noexcept { return versions_.back(); }
  // REQUIRES: it is kept.
  [[nodiscard]] const device_version& at(std::uint64_t number) const noexcept {
    return versions_[static_cast<std::size_t>(number - versions_.front().number)];
  }
  // The oldest version that may stay, so that at most `most` are kept.
  [[nodiscard]] std::uint64_t oldest_allowed() const noexcept {
    return newest().number < most ? 1 : newest().number - most + 1;
  }
  // No host can reach the versions before this one any more.
  void drop_before(std::uint64_t number) {
    const std::uint64_t first = versions_.front().number;
    if (number <= first) return;
    const std::size_t count = std::min<std::size_t>(number - first, versions_.size() - 1);
    versions_.erase(versions_.begin(), versions_.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  std::vector<device_version> versions_;
};

}  // namespace pmlab::simulator
