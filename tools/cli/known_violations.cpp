// Violations by kind and place.
#include "tools/cli/known_violations.hpp"

#include "checker/verify/campaign.hpp"
#include "checker/verify/source_lines.hpp"
#include <pmlab/base/error.hpp>
#include "bench/input/text_lines.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

constexpr std::string_view replay = "; pmlab verify ";

// The address in braces after the first of these words that the text has, or the first one of all; without callers.
std::string address_in(std::string_view what) {
  std::size_t from = 0;
  for (const std::string_view words : {"first the one at {", "submitted at {", "last access before the crash: {"})
    if (const std::size_t at = what.find(words); at != std::string_view::npos) {
      from = at;
      break;
    }
  const std::size_t open = what.find("{0x", from);
  if (open == std::string_view::npos) return {};
  const std::string_view addresses = what.substr(open, what.find('}', open) - open);
  return std::string(addresses.substr(0, addresses.find('>'))) + '}';
}

// Its first line without the answers that were possible, N for each number, and without places.
std::string kind_of(std::string_view what) {
  what = what.substr(0, what.find('\n'));
  what = what.substr(0, what.find(", and "));
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto belongs = [&](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || c == 'x'; };
  std::string kind;
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (what[i] == '{') {
      i = std::min(what.find('}', i), what.size());
    } else if (is_digit(what[i])) {
      while (i + 1 < what.size() && belongs(what[i + 1])) ++i;
      kind += 'N';
    } else if (what[i] != ';') {
      kind += what[i];
    }
  }
  while (kind.ends_with(' ')) kind.pop_back();
  return kind.ends_with(" at") ? kind.substr(0, kind.size() - 3) : kind;
}

}  // namespace

std::string line_of(const std::string& name, const verify::violation& found) {
  const std::string place = verify::with_source_lines(address_in(found.what));
  return fmt::format("{}: {}{}{}; ", name, kind_of(found.what), place.empty() ? "" : ", ", place);
}

known_violations::known_violations(const std::string& file) {
  if (file.empty()) return;
  input::text_lines lines(file, "the known violations in");
  // All that --all prints may be in it: its summary, too.
  bool is_empty = true;
  for (std::string_view line; lines.next(line);) {
    is_empty = is_empty && line.empty();
    if (const std::size_t end = line.find(replay); end != std::string_view::npos)
      of_file_.emplace(line.substr(0, end + 2));
  }
  if (of_file_.empty() && !is_empty)
    throw error("no line of " + file + " is a violation", "give a file of lines that --all has printed");
}

bool known_violations::holds(const std::string& line) {
  if (of_file_.count(line) == 0) return listed_.count(line) != 0;
  seen_.insert(line);
  return true;
}

}  // namespace pmlab::cli
