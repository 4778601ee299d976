#include "tools/cli/complaint.hpp"
#include "bench/support/colour.hpp"
#include "bench/support/printable.hpp"

#include <cstddef>
#include <cstdio>
#include <string>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// The problem is at the front, the remedy at the end.
std::string shortened(std::string_view text) {
  constexpr std::size_t most = 4096;
  constexpr std::size_t kept = 1000;  // at each end
  if (text.size() <= most) return std::string(text);
  return fmt::format("{} [... {} bytes ...] {}", text.substr(0, kept), text.size() - 2 * kept,
                     text.substr(text.size() - kept));
}

}  // namespace

void complain(std::string_view problem) {
  const std::string who = "pmlab: error:";
  const std::string line =
      fmt::format("{} {}\n", shows_colours(stderr) ? reddened(who, who) : who, one_line(shortened(problem)));
  std::fputs(line.c_str(), stderr);
}

}  // namespace pmlab::cli
