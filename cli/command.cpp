// What subcommands share.
#include <pmlab/cli/command.hpp>
#include <pmlab/experiments/plan.hpp>

namespace pmlab::cli {

std::string as_typed(const arguments& given) { return experiments::shell_form(given); }

}  // namespace pmlab::cli
