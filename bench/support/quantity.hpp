// Numbers as people write them on a command line: 10M, 1k, 2e6, 4G.
#pragma once

#include <pmlab/base/quantity.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::bench {

using pmlab::parse_bytes;
using pmlab::parse_count;

// A positive duration in seconds, at most 30 years: clocks have more, in nanoseconds. Throws pmlab::error.
[[nodiscard]] double parse_seconds(std::string_view text, const std::string& what);
// As above, or 0.
[[nodiscard]] double parse_seconds_or_none(std::string_view text, const std::string& what);

// A positive number. Throws pmlab::error.
[[nodiscard]] double parse_factor(std::string_view text, const std::string& what);

// The factor of --emulation-scale: at most 10'000, where a write takes a millisecond. Throws pmlab::error.
[[nodiscard]] double parse_emulation_scale(std::string_view text);

// 10000000 -> "10M", 1536 -> "1536": the shortest exact form.
[[nodiscard]] std::string short_count(std::uint64_t count);

// 1610612736 -> "1.5 GiB".
[[nodiscard]] std::string readable_bytes(std::uint64_t bytes);

}  // namespace pmlab::bench
