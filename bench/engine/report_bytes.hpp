// A report as bytes, on its way from the process that measured to the one that goes on.
#pragma once

#include "bench/engine/result.hpp"

#include <string>
#include <string_view>

namespace pmlab::bench {

[[nodiscard]] std::string bytes_of(const bench_report& report);

// REQUIRES: `bytes` are of bytes_of, in the same program.
[[nodiscard]] bench_report report_of(std::string_view bytes);

}  // namespace pmlab::bench
