// `pmlab report`: hands a folder of results to scripts/report, which draws and writes the page.
#include "tools/cli/command.hpp"
#include "tools/cli/source_tree.hpp"
#include <pmlab/base/error.hpp>
#include "claims/child.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace pmlab::cli {

namespace fs = std::filesystem;

fs::path source_tree() {
  std::error_code ignored;
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const fs::path& folder : {prefix / "share/pmlab", fs::path(PMLAB_SOURCE_TREE)})
    if (fs::exists(folder / "scripts/report/__main__.py", ignored)) return folder;
  return {};
}

namespace {

struct given_options {
  std::vector<std::string> folders, compared;
  std::string output;
  bool headline = false;
};

// Debian's own Python first: packages of the system are invisible to any other one.
std::string python() {
  std::vector<std::string> candidates = {"/usr/bin/python3", "python3"};
  if (const char* const named = std::getenv("PMLAB_PYTHON"); named != nullptr && *named != '\0')
    candidates.insert(candidates.begin(), named);
  for (const std::string& candidate : candidates) {
    try {
      if (claims::run_program({candidate, "-c", "import matplotlib"}, "/dev/null", claims::complaints::to_output) == 0)
        return candidate;
    } catch (const error&) {
      // Not there: the next one.
    }
  }
  throw error("no Python with matplotlib is there, which draws the charts",
              "install package python3-matplotlib, or name a Python in PMLAB_PYTHON");
}

int run(const given_options& given) {
  if (given.folders.empty() == given.compared.empty())
    throw error("a report is of one folder of results, or compares two", "give FOLDER, or --compare A B");
  if (given.folders.size() > 1)
    throw error("a report is of one folder of results", "give one, or --compare A B for two side by side");
  std::vector<std::string> words = {python(), "-B", "-m", "report"};
  for (const std::string& folder : given.folders.empty() ? given.compared : given.folders) {
    if (!fs::is_directory(folder)) throw error("no folder " + folder, "name a folder that `pmlab run --out` wrote");
    words.push_back(fs::absolute(folder).string());
  }
  if (!given.compared.empty()) words.emplace_back("--compare");
  if (!given.output.empty()) words.insert(words.end(), {"--out", fs::absolute(given.output).string()});
  if (given.headline) words.emplace_back("--headline");
  const fs::path scripts = source_tree();
  if (scripts.empty())
    throw error("the scripts that draw the report are not beside this program",
                "run a pmlab that was built in its source tree, or install all of it");
  ::setenv("PYTHONPATH", (scripts / "scripts").c_str(), 1);
  return claims::run_program(words, {}) == 0 ? success : failure;
}

}  // namespace

command add_report(CLI::App& program) {
  CLI::App* const app = program.add_subcommand("report", "Makes a page of results: claims, charts, comparisons");
  const auto given = std::make_shared<given_options>();
  app->add_option("folder", given->folders, "FOLDER that `pmlab run --out` wrote; the page is its index.html")
      ->type_name("");
  app->add_option("--compare", given->compared, "A B: two folders side by side, with ratios of B to A")
      ->type_name("")
      ->expected(2);
  app->add_option("--out", given->output, "FILE of the page; if not given index.html of FOLDER, or compare.html of B")
      ->type_name("");
  app->add_flag("--headline", given->headline, "Also print the headline figures");
  app->footer(
      "  pmlab report results/mine\n"
      "  pmlab report --compare results/before results/after --out compare.html");
  return {app, [given] { return run(*given); }};
}

}  // namespace pmlab::cli
