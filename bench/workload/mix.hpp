// The shares of a workload's kinds of operations.
#pragma once

#include "bench/workload/distribution.hpp"
#include "bench/workload/operation.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::workload {

struct mix {
  std::string name;                             // as the user wrote it
  std::array<double, operation_kinds> share{};  // by operation_kind; the sum is 1
  // The default distribution of its keys: the definition's for YCSB, else uniform.
  distribution usual_keys;

  [[nodiscard]] double operator[](operation_kind kind) const noexcept { return share[static_cast<std::size_t>(kind)]; }
};

// Reads "ycsb-a" ... "ycsb-f" (the core workloads of YCSB), or shares such as "read=.9,update=.1". The kinds are those
// of to_string(operation_kind), or "rmw" for read-modify-write. Throws pmlab::error for anything else: an unknown name
// (with the nearest known one), a share that is not a number of [0, 1], one given twice, a sum that is not 1 within
// 1e-6.
[[nodiscard]] mix parse_mix(std::string_view text);

// The names that parse_mix accepts beside shares, for lists and help texts.
[[nodiscard]] std::span<const std::string_view> mix_names() noexcept;

}  // namespace pmlab::workload
