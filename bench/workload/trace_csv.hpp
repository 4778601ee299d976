// Traces of caches that are tables with commas: Twitter's, and CacheLib's of kvcache.
#pragma once

#include "bench/workload/trace_line.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace pmlab::workload::detail {

// The format of a table that this line is a row or the header of.
[[nodiscard]] std::optional<trace_format> csv_format_of_line(std::string_view line);

// REQUIRES: `twitter` or `kvcache`.
[[nodiscard]] std::unique_ptr<line_parser> csv_parser_of(trace_format format);

}  // namespace pmlab::workload::detail
