// What subcommands share.
#include <pmlab/base/spec.hpp>
#include <pmlab/cli/command.hpp>

#include <utility>

namespace pmlab::cli {

std::vector<std::string> index_names(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists)
    for (std::string& name : split_list(list)) names.push_back(std::move(name));
  return names;
}

}  // namespace pmlab::cli
