// Lines below a table of results, of a memory or of a drive. For sources that include fmt/format.h.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab::microbench {

// The cases that were skipped, by their reasons.
template <class Report>
[[nodiscard]] std::string skipped_cases(const Report& report) {
  std::map<std::string, std::vector<std::string>> skipped;
  for (const auto& r : report.results)
    if (r.skipped) skipped[*r.skipped].push_back(r.what.name);
  std::string text;
  for (const auto& [reason, names] : skipped) {
    text += fmt::format("skipped, {}: {}", reason, names.front());
    if (names.size() > 1) text += fmt::format(" and {} more", names.size() - 1);
    text += '\n';
  }
  return text;
}

// Doubts about the figures. `spread_percent`: the limit for repetitions.
template <class Report>
[[nodiscard]] std::string table_notes(const Report& report, double spread_percent) {
  std::string text;
  if (std::ranges::any_of(report.results, [](const auto& r) { return !r.skipped && !r.steady; }))
    text += fmt::format("! repetitions differ by more than {} %\n", spread_percent);
  for (const std::string& remark : report.remarks) text += "note: " + remark + '\n';
  return text;
}

}  // namespace pmlab::microbench
