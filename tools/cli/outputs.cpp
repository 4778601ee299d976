#include "tools/cli/outputs.hpp"
#include "tools/cli/command.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/colour.hpp"
#include "bench/support/write_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pmlab::cli {
namespace {

constexpr const char* standard_output = "-";

[[noreturn]] void refuse(const std::string& path, const std::string& why, const char* remedy) {
  throw error("cannot write results to " + path + ": " + why, remedy);
}

void check_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::file_status there = fs::status(path, unknown);
  if (fs::is_directory(there)) refuse(path, "it is a folder", "name a file");
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    if (::access(path.c_str(), W_OK) != 0) refuse(path, std::strerror(errno), "check its permissions");
    return;
  }
  // A regular file is replaced by a new one in its folder.
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, unknown)) refuse(path, "there is no folder " + folder.string(), "make it first");
  if (::access(folder.c_str(), W_OK) != 0) refuse(path, std::strerror(errno), "check the folder's permissions");
}

}  // namespace

void check_outputs(const std::vector<output_path>& outputs) {
  const char* first = nullptr;
  for (const output_path& o : outputs) {
    if (o.path == standard_output && first != nullptr)
      throw error(fmt::format("{} - and {} - would both write to standard output", first, o.option),
                  "give one of them a file");
    if (o.path == standard_output)
      first = o.option;
    else if (!o.path.empty())
      check_writable(o.path);
  }
}

std::string text_of(const bench::json_document& document) {
  return document.content().dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int write(const run_end& end) {
  for (const output_text& file : end.files)
    if (!file.path.empty()) write_file(file.path, file.text());
  const bool is_taken =
      std::ranges::any_of(end.files, [](const output_text& file) { return file.path == standard_output; });
  std::FILE* const shown = is_taken ? stderr : stdout;
  fmt::print(shown, "{}", shows_colours(shown) ? reddened(end.table, "INVALID") : end.table);
  std::fflush(stdout);
  for (const std::string& wrong : end.first_wrong) fmt::print(stderr, "pmlab: wrong answer: {}\n", wrong);
  if (end.wrong_answers > 0)
    fmt::print(stderr, "pmlab: error: {} wrong answers; {}\n", end.wrong_answers, end.about_wrong);
  if (end.failure) fmt::print(stderr, "pmlab: error: {}\n", *end.failure);
  return end.failure || end.wrong_answers > 0 ? failure : success;
}

}  // namespace pmlab::cli
