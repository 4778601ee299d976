// The forms of traces. docs/traces.md shows an example of each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pmlab::workload {

enum class trace_format : std::uint8_t {
  automatic,         // by the content of each file
  ycsb,              // what YCSB and go-ycsb print
  index_microbench,  // KEYWORD NUMBER, as index-microbench and RECIPE have it
  twitter,           // Twitter's cache traces, as CSV
  kvcache,           // CacheLib's traces of kvcache, as CSV
  oracle_general,    // libCacheSim's binary traces
  sosd_uint32,       // keys of SOSD: their number in 8 bytes, and 4 bytes for each
  sosd_uint64,       // or 8
};

// In the order of the values; the first one is of `automatic`.
inline constexpr std::array<std::string_view, 8> trace_format_names = {
    "auto", "ycsb", "index-microbench", "twitter", "kvcache", "oracle-general", "sosd-uint32", "sosd-uint64"};

[[nodiscard]] constexpr std::string_view to_string(trace_format format) noexcept {
  return trace_format_names[static_cast<std::size_t>(format)];
}

// The format of that name. Throws pmlab::error with the nearest one.
[[nodiscard]] trace_format parse_trace_format(std::string_view name);

}  // namespace pmlab::workload
