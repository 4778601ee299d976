// The progress line of a run.
#pragma once

#include <cstdint>
#include <string>

namespace pmlab::bench {

// On a terminal one line that moves; into a file one line for each pass of a run, none for the phases in it. Quiet:
// nothing. Writes to stderr. Not thread-safe.
class progress {
 public:
  enum class style : std::uint8_t { quiet, lines, terminal };
  explicit progress(style s) : style_(s) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();

  // Quiet if requested; otherwise by the kind of stderr.
  [[nodiscard]] static style style_of_stderr(bool quiet);

  void pass(const std::string& what);
  void phase(const std::string& what) { phase_ = what; }
  // True if a moving line would be seen, so that frequent calls are useful.
  [[nodiscard]] bool moves() const noexcept { return style_ == style::terminal; }
  // `total` 0: not known.
  void moved(std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  style style_;
  std::string pass_;
  std::string phase_;
  bool line_is_up_ = false;
};

}  // namespace pmlab::bench
