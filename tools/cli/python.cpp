// Hands `pmlab run`, `claims` and `report` over to Python.
#include "tools/cli/python.hpp"
#include <pmlab/base/error.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

// The folder of the Python package: PREFIX/share/pmlab/experiments for PREFIX/bin/pmlab, or that of the source tree that
// this program was built from.
fs::path package_folder() {
  const fs::path prefix = this_program().parent_path().parent_path();
  for (const fs::path& folder : {prefix / "share/pmlab/experiments", fs::path(PMLAB_SOURCE_TREE) / "experiments"}) {
    std::error_code ignored;
    if (fs::exists(folder / "pmlab/__main__.py", ignored)) return folder;
  }
  throw error("the Python package of pmlab is not beside this program",
              "run a pmlab that was built in its source tree, or install all of it");
}

// Debian's own Python first: packages of the system (matplotlib) are invisible to any other one.
std::vector<std::string> pythons() {
  if (const char* const named = std::getenv("PMLAB_PYTHON"); named != nullptr && *named != '\0') return {named};
  return {"/usr/bin/python3", "python3"};
}

// In front of what the user has there.
void add_to_python_path(const fs::path& folder) {
  const char* const before = std::getenv("PYTHONPATH");
  const std::string more = before == nullptr || *before == '\0' ? std::string() : ":" + std::string(before);
  ::setenv("PYTHONPATH", (folder.string() + more).c_str(), 1);
}

[[noreturn]] void become_python(const arguments& given) {
  add_to_python_path(package_folder());
  ::setenv("PMLAB_PROGRAM", this_program().c_str(), 1);
  // Otherwise a file of the current folder, such as a json.py, would be taken for a module.
  ::setenv("PYTHONSAFEPATH", "1", 1);
  int number = ENOENT;
  std::string missing;
  for (const std::string& python : pythons()) {
    // -B: the package may lie where nothing is to be written.
    std::vector<std::string> words = {python, "-B", "-m", "pmlab"};
    words.insert(words.end(), given.begin(), given.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execvp(pointers.front(), pointers.data());
    number = errno;
    missing = python;
  }
  throw error("cannot run " + missing + ": " + std::strerror(number),
              "install package python3, or name a Python in PMLAB_PYTHON");
}

}  // namespace

std::vector<command> add_python_commands(CLI::App& program, const arguments& given) {
  std::vector<command> commands;
  for (const auto& [name, what] : {std::pair{"run", "Runs experiments, and judges the claims from what they show"},
                                   std::pair{"claims", "Measures and judges what is claimed of persistent memory"},
                                   std::pair{"report", "Makes a page of results: claims, charts, comparisons"}}) {
    CLI::App* const app = program.add_subcommand(name, what);
    app->prefix_command();
    app->set_help_flag("");
    commands.push_back({app, [given]() -> int { become_python(given); }});
  }
  return commands;
}

}  // namespace pmlab::cli
