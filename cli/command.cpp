// What subcommands share.
#include <pmlab/cli/command.hpp>

namespace pmlab::cli {

std::string as_typed(const arguments& given) {
  std::string text = "pmlab";
  for (const std::string& a : given) {
    const bool plain = !a.empty() && a.find_first_of(" \t\"'$&|;<>()*?") == std::string::npos;
    text += plain ? " " + a : " '" + a + "'";
  }
  return text;
}

}  // namespace pmlab::cli
