// Shared by the trees of pmlab's libraries: maps pmlab's outcomes to PiBench's results.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace pmlab::pibench {

// Whether the operation succeeded. Throws pmlab::error if `medium` has no space for it, since `false` would mean that
// the key was present.
template <class Medium>
[[nodiscard]] bool changed(indexes::outcome done, const Medium& medium) {
  if (done == indexes::outcome::full)
    throw error("there is no space left in " + medium.name(), "use fewer records, or a new pool with more --pool_size");
  return done != indexes::outcome::exists && done != indexes::outcome::absent;
}

// Throws pmlab::error if `what` ("key" or "value") does not have the size that was passed to create_tree.
inline void check_size(std::string_view what, std::size_t given, std::size_t announced) {
  if (given == announced) return;
  throw error("a " + std::string(what) + " of " + std::to_string(given) + " bytes, where " + std::to_string(announced) +
                  " were announced",
              "give every key and value the size that was passed to create_tree");
}

inline constexpr std::string_view no_order = "a hash table has no order to scan: scans answer 0 records";

}  // namespace pmlab::pibench
