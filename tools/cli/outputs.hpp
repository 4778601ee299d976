// The end of every command that measures: its files, its table, and what was wrong.
#pragma once

#include "bench/engine/json_document.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::cli {

// A file that was asked for: the option and its path, which is empty if the option was not given; "-": standard output.
struct output_path {
  const char* option;
  const std::string& path;
};

// Checks, before the work, that the files can be written. Throws pmlab::error: a folder is missing, not writable or
// full; the path is a folder; standard output is closed or full; two of them would be one file.
void check_outputs(const std::vector<output_path>& outputs);

// A file and its text, which is made only if the file was asked for.
struct output_text {
  const std::string& path;  // as in output_path
  std::function<std::string()> text;
};

// The text of a document. Bytes that are not UTF-8 are escaped (json_text.hpp).
[[nodiscard]] std::string text_of(const bench::json_document& document);

// All that a run leaves.
struct run_end {
  std::vector<output_text> files{};
  std::string table{};                     // empty: there is nothing to show
  std::vector<std::string> first_wrong{};  // the first few wrong answers, in words
  std::uint64_t wrong_answers = 0;
  const char* about_wrong = "do not trust these figures";
  std::optional<std::string> failure{};  // why the run ended early
};

// Writes the files, then prints the table (to standard error, if a file is standard output), then what was wrong, and
// which files were not written. Returns the exit status.
[[nodiscard]] int write(const run_end& end);

}  // namespace pmlab::cli
