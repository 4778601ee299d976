// Counters of layers over indexes (a cache in front of one, a hybrid of two).
#pragma once

#include <pmlab/cache/statistics.hpp>
#include <pmlab/hybrid/options.hpp>

#include <type_traits>
#include <variant>

namespace pmlab::bench {

// The counts of a layer over an index. std::monostate: the index stands alone.
using layer_statistics = std::variant<std::monostate, cache::statistics, hybrid::statistics>;

// The counts of `now` since `before`, which is of the same layer or nothing.
[[nodiscard]] inline layer_statistics counts_since(layer_statistics now, const layer_statistics& before) {
  std::visit(
      [&](auto& counts) {
        using kind = std::remove_reference_t<decltype(counts)>;
        if constexpr (!std::is_same_v<kind, std::monostate>)
          if (const auto* const then = std::get_if<kind>(&before)) counts -= *then;
      },
      now);
  return now;
}

}  // namespace pmlab::bench
