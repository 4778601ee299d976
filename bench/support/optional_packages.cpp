#include "bench/support/optional_packages.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pmlab::bench {

bool optional_package::is_there() const { return built_in || (!program.empty() && path_of_program(program)); }

std::string optional_package::state() const {
  if (built_in) return title + ": built in";
  if (program.empty()) return fmt::format("{}: absent when pmlab was built; left out: {}; {}", title, brings, remedy());
  if (const std::optional<std::string> path = path_of_program(program)) return title + ": " + *path;
  return fmt::format("{}: not on PATH; left out: {}; {}", title, brings, remedy());
}

std::string optional_package::remedy() const {
  return "install package " + package + (program.empty() ? ", and build pmlab again" : "");
}

nlohmann::ordered_json left_out_to_json(const std::vector<optional_package>& packages) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const optional_package& p : packages)
    if (!p.is_there())
      all.push_back({{"title", p.title},
                     {"package", p.package},
                     {"brings", p.brings},
                     {"indexes", p.indexes},
                     {"stores", p.stores},
                     {"remedy", p.remedy()}});
  return all;
}

void refuse_left_out(std::string_view name, const std::vector<optional_package>& packages) {
  for (const optional_package& p : packages) {
    const auto has = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, name) != names.end();
    };
    if (!p.is_there() && (has(p.indexes) || has(p.stores)))
      throw error(fmt::format("there is no {} here: this program was built without {}", name, p.title), p.remedy());
  }
}

std::optional<std::string> path_of_program(std::string_view name) {
  const char* const folders = std::getenv("PATH");
  std::istringstream each(folders == nullptr ? "" : folders);
  for (std::string folder; std::getline(each, folder, ':');)
    if (const std::string path = fmt::format("{}/{}", folder, name); ::access(path.c_str(), X_OK) == 0) return path;
  return std::nullopt;
}

}  // namespace pmlab::bench
