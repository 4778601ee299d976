// pmlab verify --scoreboard: searches for the planted twins of published bugs.
#include "tools/cli/python.hpp"
#include "tools/cli/verify_run.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {

int verify_scoreboard(const verify_request& request) {
  const std::filesystem::path programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> words = {"--program", (programs / "pmlab-simulated").string(), "--budget",
                                    fmt::format("{}", request.budget)};
  if (request.clean_states != 0) {
    words.emplace_back("--clean-states");
    words.push_back(fmt::format("{}", request.clean_states));
  }
  if (!request.markdown.empty()) {
    words.emplace_back("--markdown");
    words.push_back(request.markdown);
  }
  if (request.quiet) words.emplace_back("--quiet");
  if (!request.bugs.empty()) words.push_back(request.bugs);
  become_script("checker/tests/verify/scoreboard/scoreboard.py", words);
}

}  // namespace pmlab::cli
