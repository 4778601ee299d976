#include "tools/cli/outputs.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/complaint.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/colour.hpp"
#include "bench/support/json_text.hpp"
#include "bench/support/output_file.hpp"
#include "bench/support/write_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

constexpr const char* standard_output = "-";

[[noreturn]] void refuse(const std::string& path, const std::string& why, const char* remedy) {
  throw error("cannot write results to " + path + ": " + why, remedy);
}

// "-", or a path to what standard output leads to, such as /dev/stdout. Nothing mixes in /dev/null.
bool is_on_standard_output(const std::string& path) {
  struct stat file {};
  if (path == standard_output) return true;
  if (path.empty() || ::stat(path.c_str(), &file) != 0) return false;
  const bool is_null = S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 3);
  return !is_null && is_standard_output(file);
}

// /dev/full, which takes nothing; what another device takes is not known before.
bool is_full_device(const struct stat& file) { return S_ISCHR(file.st_mode) && file.st_rdev == makedev(1, 7); }

void check_standard_output() {
  struct stat out {};
  // A closed one is held by a descriptor that cannot be written to (standard_streams.hpp).
  const int access = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (access < 0 || (access & O_ACCMODE) == O_RDONLY || ::fstat(STDOUT_FILENO, &out) != 0)
    refuse("standard output", "it is closed", "give it a file or a pipe");
  if (is_full_device(out)) refuse("standard output", std::strerror(ENOSPC), "give it a file or a pipe");
}

// Makes the file that will replace this one, with a block of bytes in it, and removes it again: so every reason that
// the kernel has is met now.
void try_to_write(const std::string& path) {
  constexpr std::size_t block = 64 << 10;
  output_file file(path);
  file.write(std::string(block, ' '));
  file.flush();
}

// A device may be there and refuse to be opened, as /dev/tty does without a terminal.
void try_to_open(const std::string& device) {
  const int opened = ::open(device.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) refuse(device, std::strerror(errno), "name a file");
  ::close(opened);
}

// A result replaces another one, and no other text.
void refuse_what_is_no_json(const std::string& path) {
  std::ifstream file(path);
  char first = 0;
  if (file >> first && first != '{' && first != '[')
    refuse(path, "the file that is there is no JSON",
           "nothing was overwritten: name another path, or remove it yourself");
}

void check_writable(const std::string& path, bool is_json) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::file_status there = fs::status(path, unknown);
  if (fs::is_directory(there)) refuse(path, "it is a folder", "name a file");
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    struct stat file {};
    if (::access(path.c_str(), W_OK) != 0) refuse(path, std::strerror(errno), "check its permissions");
    if (::stat(path.c_str(), &file) == 0 && is_full_device(file)) refuse(path, std::strerror(ENOSPC), "name a file");
    if (S_ISSOCK(file.st_mode)) refuse(path, "it is a socket", "name a file");
    if (S_ISCHR(file.st_mode)) try_to_open(path);
    return;
  }
  // A regular file is replaced by a new one in its folder.
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, unknown)) refuse(path, "there is no folder " + folder.string(), "make it first");
  if (::access(folder.c_str(), W_OK) != 0) refuse(path, std::strerror(errno), "check the folder's permissions");
  try_to_write(path);
  if (is_json) refuse_what_is_no_json(path);
}

// Where links lead in the end, be there a file or not: a canonical path ends at a link to nothing.
std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int most_links = 40;  // as the kernel follows
  std::error_code is_no_link;
  for (int i = 0; i < most_links; ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, is_no_link);
    if (is_no_link) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

// The same file under two options: the second one would replace the first.
void refuse_one_file_twice(const std::vector<output_path>& outputs) {
  std::vector<std::pair<std::filesystem::path, const char*>> seen;
  for (const output_path& o : outputs) {
    std::error_code unknown;
    if (o.path.empty() || is_on_standard_output(o.path) || std::filesystem::is_other(o.path, unknown)) continue;
    const std::filesystem::path file = std::filesystem::weakly_canonical(end_of_links(o.path), unknown);
    for (const auto& [other, option] : seen)
      if (file == other && !unknown)
        throw error(fmt::format("{} and {} would both write {}", option, o.option, o.path),
                    "give each a file of its own");
    seen.emplace_back(file, o.option);
  }
}

// Why the file was not written; empty: it was.
std::string failure_of(const output_text& file) {
  try {
    if (!file.path.empty()) write_file(file.path, file.text());
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

void check_outputs(const std::vector<output_path>& outputs) {
  std::optional<std::string> first;  // "--json -"
  for (const output_path& o : outputs) {
    const bool is_on_output = is_on_standard_output(o.path);
    if (is_on_output && first)
      throw error(fmt::format("{} and {} {} would both write to standard output", *first, o.option, o.path),
                  "give one of them a file");
    if (is_on_output) {
      check_standard_output();
      first = fmt::format("{} {}", o.option, o.path);
    } else if (!o.path.empty()) {
      check_writable(o.path, o.option == std::string_view("--json"));
    }
  }
  refuse_one_file_twice(outputs);
}

std::string text_of(const bench::json_document& document) { return json_text(document.content(), 2) + "\n"; }

int write(const run_end& end) {
  // The table is shown, and the other files are written, also where one could not be.
  std::vector<std::string> not_written;
  for (const output_text& file : end.files)
    if (std::string why = failure_of(file); !why.empty()) not_written.push_back(std::move(why));
  const bool is_taken =
      std::ranges::any_of(end.files, [](const output_text& file) { return is_on_standard_output(file.path); });
  std::FILE* const shown = is_taken ? stderr : stdout;
  fmt::print(shown, "{}", shows_colours(shown) ? reddened(end.table, "INVALID") : end.table);
  std::fflush(stdout);
  for (const std::string& wrong : end.first_wrong) fmt::print(stderr, "pmlab: wrong answer: {}\n", wrong);
  if (end.wrong_answers > 0) complain(fmt::format("{} wrong answers; {}", end.wrong_answers, end.about_wrong));
  if (end.failure) complain(*end.failure);
  for (const std::string& why : not_written) complain(why);
  return end.failure || end.wrong_answers > 0 || !not_written.empty() ? failure : success;
}

}  // namespace pmlab::cli
