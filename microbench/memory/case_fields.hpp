// The fields of a case by name: how a suite sets each.
#pragma once

#include "microbench/memory/case.hpp"
#include "microbench/memory/suite_value.hpp"

#include <string_view>
#include <vector>

namespace pmlab::microbench {

struct case_field {
  std::string_view key;
  void (*set)(bench_case& c, const suite_value& value);
};

// nullptr: there is no such field.
[[nodiscard]] const case_field* find_field(std::string_view key);
[[nodiscard]] std::vector<std::string_view> field_names();

}  // namespace pmlab::microbench
