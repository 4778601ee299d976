// Numbers as people write them on a command line: 10M, 1k, 2e6, 4G.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::bench {

// A count: digits, or a decimal number, with k, M, G or T for thousands (10^3 each). `what` names the option in the
// error. Throws pmlab::error if the text is no number, not whole, below `least`, or beyond 2^63.
[[nodiscard]] std::uint64_t parse_count(std::string_view text, const std::string& what, std::uint64_t least = 1);

// A size in bytes: as above, but K, M, G and T are 1024 each, with or without "B" or "iB".
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text, const std::string& what);

// A positive duration in seconds. Throws pmlab::error.
[[nodiscard]] double parse_seconds(std::string_view text, const std::string& what);

// A positive number. Throws pmlab::error.
[[nodiscard]] double parse_factor(std::string_view text, const std::string& what);

// 10000000 -> "10M", 1536 -> "1536": the shortest exact form.
[[nodiscard]] std::string short_count(std::uint64_t count);

// 1610612736 -> "1.5 GiB".
[[nodiscard]] std::string readable_bytes(std::uint64_t bytes);

}  // namespace pmlab::bench
