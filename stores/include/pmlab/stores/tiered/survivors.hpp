// Which versions a new set has: those that a reader may still ask for.
#pragma once

#include <pmlab/stores/tiered/versions.hpp>

#include <cstdint>
#include <string>

namespace pmlab::stores::detail::tiered {

// Versions are shown to it in their order. All above the horizon stay, and of each key the newest at or below it. That
// one goes, too, if it erases and no older set may have the key.
class survivors {
 public:
  survivors(std::uint64_t horizon, bool is_lowest) : horizon_(horizon), is_lowest_(is_lowest) {}

  [[nodiscard]] bool stays(const found_version& v) {
    if (!any_ || v.table != table_ || v.key != key_) {
      any_ = true;
      table_ = v.table;
      key_ = v.key;
      is_covered_ = false;
    }
    if (v.sequence > horizon_) return true;
    if (is_covered_) return false;
    is_covered_ = true;
    return !(is_lowest_ && v.kind == change_kind::erase);
  }

 private:
  std::uint64_t horizon_;
  bool is_lowest_;
  bool any_ = false;
  std::uint16_t table_ = 0;
  std::string key_;
  bool is_covered_ = false;
};

}  // namespace pmlab::stores::detail::tiered
