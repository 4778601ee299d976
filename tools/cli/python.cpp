// Hands `pmlab run`, `merge`, `claims`, `report` and `compare` over to Python.
#include "tools/cli/python.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/shell_form.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

// The folder of the Python package: PREFIX/share/pmlab/experiments for PREFIX/bin/pmlab, or that of the source tree
// that this program was built from.
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

// In front of the user's own path.
void add_to_python_path(const fs::path& folder) {
  const char* const before = std::getenv("PYTHONPATH");
  const std::string more = before == nullptr || *before == '\0' ? std::string() : ":" + std::string(before);
  ::setenv("PYTHONPATH", (folder.string() + more).c_str(), 1);
}

void set_environment() {
  add_to_python_path(package_folder());
  ::setenv("PMLAB_PROGRAM", this_program().c_str(), 1);
  // Otherwise a file of the current folder, such as a json.py, would be imported as a module.
  ::setenv("PYTHONSAFEPATH", "1", 1);
}

// This process becomes Python, with these arguments.
[[noreturn]] void become_python(const std::vector<std::string>& given) {
  int number = ENOENT;
  std::string missing;
  for (const std::string& python : pythons()) {
    // -B: the package may be in a read-only folder.
    std::vector<std::string> words = {python, "-B"};
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

[[noreturn]] void become_package(const arguments& given) {
  set_environment();
  std::vector<std::string> words = {"-m", "pmlab"};
  words.insert(words.end(), given.begin(), given.end());
  become_python(words);
}

// "COMMAND NAME KIND TEXT", with tabs between them (experiments/pmlab/describe.py). False: it has another form.
bool add_described(CLI::App& program, const std::string& line) {
  std::istringstream parts(line);
  std::string command, name, kind, text;
  std::getline(parts, command, '\t');
  std::getline(parts, name, '\t');
  std::getline(parts, kind, '\t');
  if (!std::getline(parts, text)) return false;
  CLI::App* const app = program.get_subcommand(command);
  if (kind == "flag")
    app->add_flag(name, std::as_const(text));
  else
    app->add_option_function<std::string>(
           name, [](const std::string&) {}, text)
        ->type_name("");
  return true;
}

}  // namespace

void become_script(const std::string& script, const std::vector<std::string>& given) {
  const fs::path path = fs::path(PMLAB_SOURCE_TREE) / script;
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw error("there is no " + path.string(), "run the pmlab of a build tree whose sources are still there");
  std::vector<std::string> words = {path.string()};
  words.insert(words.end(), given.begin(), given.end());
  become_python(words);
}

std::vector<command> add_python_commands(CLI::App& program, const arguments& given) {
  std::vector<command> commands;
  for (const auto& [name, what] :
       {std::pair{"run", "Runs experiments, and decides the claims from their results"},
        std::pair{"merge", "Joins the results of several machines, and decides the claims from all of them"},
        std::pair{"claims", "Measures and decides published claims about persistent memory"},
        std::pair{"report", "Makes a page of results: claims, charts, comparisons"},
        std::pair{"compare", "Shows which figures of two results differ by more than chance"}}) {
    CLI::App* const app = program.add_subcommand(name, what);
    app->prefix_command();
    app->set_help_flag("");
    commands.push_back({app, [given]() -> int { become_package(given); }});
  }
  return commands;
}

void describe_python_commands(CLI::App& program) {
  set_environment();
  for (const std::string& python : pythons()) {
    const std::string call = shell_form(std::string_view{python}) + " -B -m pmlab describe 2>/dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> lines(::popen(call.c_str(), "r"), ::pclose);
    if (lines == nullptr) continue;
    bool any = false;
    std::array<char, 1024> line{};
    while (std::fgets(line.data(), line.size(), lines.get()) != nullptr)
      any = add_described(program, line.data()) || any;
    if (any) return;
  }
}

}  // namespace pmlab::cli
