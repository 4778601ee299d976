// Chooses the kinds of operations of a workload.
#pragma once

#include <pmlab/base/random.hpp>
#include "bench/workload/mix.hpp"
#include "bench/workload/operation.hpp"

#include <array>
#include <cstddef>

namespace pmlab::workload {

// Chooses kinds of operations in the proportions of a mix.
class kind_chooser {
 public:
  explicit kind_chooser(const mix& shares) noexcept {
    double sum = 0;
    for (std::size_t kind = 0; kind < operation_kinds; ++kind) {
      if (shares.share[kind] > 0) last_ = kind;
      bounds_[kind] = sum += shares.share[kind];
    }
  }

  operation_kind operator()(random_source& random) const noexcept {
    const double point = random.unit();
    // Rounding may leave the last bound a little below 1; the rest belongs to the last kind with a share.
    std::size_t kind = 0;
    while (kind < last_ && point >= bounds_[kind]) ++kind;
    return static_cast<operation_kind>(kind);
  }

 private:
  std::array<double, operation_kinds> bounds_{};
  std::size_t last_ = 0;
};

}  // namespace pmlab::workload
