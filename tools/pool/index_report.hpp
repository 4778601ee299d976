// The report of an index on itself.
#pragma once

#include <pmlab/indexes/index.hpp>

namespace pmlab::pool {

struct index_report {
  indexes::check_report found;  // empty, unless a check was requested
  indexes::index_stats shape;   // all zero if something was found: the walk might not end
};

// The report of an index of numbers or of strings. `checks`: with its invariants.
template <class Index>
[[nodiscard]] index_report report_on_index(const Index& index, bool checks) {
  index_report report;
  if (checks) report.found = index.check();
  if (report.found.ok()) report.shape = index.stats();
  return report;
}

}  // namespace pmlab::pool
