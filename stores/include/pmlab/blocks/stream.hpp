// The purpose of a request's bytes.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pmlab::blocks {

// A store says with each request which stream it belongs to; `counted` keeps the sums apart.
enum class stream : std::uint8_t { data, index, merge, log, keys, values, manifest, other };

// The names, in the order of the enumerators.
inline constexpr std::array<std::string_view, 8> stream_names{"data", "index",  "merge",    "log",
                                                              "keys", "values", "manifest", "other"};
// The number of streams.
inline constexpr std::size_t streams = stream_names.size();

// The enumerator's name.
[[nodiscard]] constexpr std::string_view name_of(stream of) noexcept {
  return stream_names[static_cast<std::size_t>(of)];
}

}  // namespace pmlab::blocks
