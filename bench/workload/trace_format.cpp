#include "bench/workload/trace_format.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>

#include <algorithm>
#include <string>

namespace pmlab::workload {

trace_format parse_trace_format(std::string_view name) {
  const auto* const found = std::find(trace_format_names.begin(), trace_format_names.end(), name);
  if (found != trace_format_names.end()) return static_cast<trace_format>(found - trace_format_names.begin());
  std::string all;
  for (const std::string_view known : trace_format_names) all += (all.empty() ? "" : ", ") + std::string(known);
  throw error("there is no format of traces '" + std::string(name) + "'",
              "did you mean " + nearest(name, trace_format_names) + "? The formats are " + all);
}

}  // namespace pmlab::workload
