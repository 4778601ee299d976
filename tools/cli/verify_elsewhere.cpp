// `pmlab verify` in the program pmlab: pmlab-simulated does it.
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/verify_run.hpp"

namespace pmlab::cli {

int verify(const verify_request& request, const arguments& command_line) {
  if (request.scoreboard) return verify_scoreboard(request);
  hand_over(command_line);
  return failure;
}

}  // namespace pmlab::cli
