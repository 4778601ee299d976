// `pmlab verify --all` and `--known`: violations by kind and place, a line for each.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace pmlab::verify {
struct violation;
}  // namespace pmlab::verify

namespace pmlab::cli {

// "NAME: KIND, PLACE; ": the same for all violations of one kind whose first lost store or write is at one line; where
// none was lost, with the line of the last access. The replay command follows it in a file.
[[nodiscard]] std::string line_of(const std::string& name, const verify::violation& found);

// The violations that do not count: those of a file, and those that were listed.
class known_violations {
 public:
  // "": of no file. Throws pmlab::error: it cannot be read, or has text and no line of --all.
  explicit known_violations(const std::string& file);
  // The counts of another subject begin.
  void begin_subject() { seen_.clear(); }
  [[nodiscard]] bool holds(const std::string& line);
  void add(const std::string& line) { listed_.insert(line); }
  // So many of the file's have been asked for.
  [[nodiscard]] std::size_t seen() const noexcept { return seen_.size(); }

 private:
  std::set<std::string> of_file_;
  std::set<std::string> listed_;
  std::set<std::string> seen_;
};

}  // namespace pmlab::cli
