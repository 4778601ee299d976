// Replaces the machine: records the reports of the instrument.
#pragma once

#include "checker/tests/simulator/store_forms/form.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forms {

struct record {
  enum class what { load, store, store_with_value, flush, fence };
  what kind;
  const char* address;  // null for a fence
  std::size_t bytes;    // size; a flush or fence: which instruction
  const void* caller;
  std::size_t frames_beyond_caller;  // 0: unwinding did not reach its caller
  bool may_be_a_copy;
  std::array<char, area_bytes> target_then;
};

// Cleared at the begin of a recording.
inline std::vector<record>& records() {
  static std::vector<record> all;
  return all;
}

}  // namespace forms
