// Tables of text, for people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab {

// A row of a table.
using cells = std::vector<std::string>;

// A line for each row, with columns as wide as their widest cell; the first `left` of them flush left. `rows` has at
// least one row, and all of them have as many cells.
[[nodiscard]] inline std::string aligned(const std::vector<cells>& rows, std::size_t left = 1) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < left ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace pmlab
