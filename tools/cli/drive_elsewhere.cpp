// The program of the simulated machine measures no drives: their model needs no machine.
#include "tools/cli/drive_run.hpp"
#include <pmlab/base/error.hpp>

namespace pmlab::cli {

int measure_drive(const drive_request& /*asked*/, const arguments& /*command_line*/) {
  throw error("pmlab-simulated measures no drives", "use `pmlab microbench --device`");
}

}  // namespace pmlab::cli
