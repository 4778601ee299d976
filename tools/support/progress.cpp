// The progress line of a run.
#include "tools/support/progress.hpp"
#include "tools/support/quantity.hpp"

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::bench {

progress::style progress::style_of_stderr(bool quiet) {
  if (quiet) return style::quiet;
  return ::isatty(STDERR_FILENO) == 1 ? style::terminal : style::lines;
}

progress::~progress() { clear(); }

void progress::clear() {
  if (!line_is_up_) return;
  std::fputs("\r\x1b[K", stderr);
  line_is_up_ = false;
}

void progress::pass(const std::string& what) {
  pass_ = what;
  phase_.clear();
  if (style_ == style::lines) fmt::print(stderr, "pmlab: {}\n", what);
}

void progress::moved(std::uint64_t done, std::uint64_t total) {
  if (style_ != style::terminal) return;
  const std::string share = total == 0
                                ? fmt::format("{:.1f} M", static_cast<double>(done) / 1e6)
                                : fmt::format("{:.0f} %", 100 * static_cast<double>(done) / static_cast<double>(total));
  fmt::print(stderr, "\r\x1b[K{}: {} {}", pass_, phase_, share);
  std::fflush(stderr);
  line_is_up_ = true;
}

}  // namespace pmlab::bench
