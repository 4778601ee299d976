// A report as bytes, on its way from the process that measured to the one that goes on.
#pragma once

#include "bench/stores/engine.hpp"
#include "bench/stores/pair_engine.hpp"

#include <string>
#include <string_view>

namespace pmlab::store_bench {

// The report, with the texts of its drives.
template <class Report>
struct outcome {
  Report report;
  std::string scale, way;
};

// The cases of results stay behind: they are those of the options, with their numbers.
[[nodiscard]] std::string bytes_of(const outcome<run_report>& measured);
[[nodiscard]] std::string bytes_of(const outcome<pair_report>& measured);

// REQUIRES: `bytes` are of bytes_of, in the same program, of a run with these options.
[[nodiscard]] outcome<run_report> outcome_of(std::string_view bytes, const run_options& options);
[[nodiscard]] outcome<pair_report> outcome_of(std::string_view bytes, const pair_run_options& options);

}  // namespace pmlab::store_bench
