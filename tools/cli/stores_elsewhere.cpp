// The program of the simulated machine measures no stores.
#include "tools/cli/stores_run.hpp"
#include <pmlab/base/error.hpp>

namespace pmlab::cli {

int measure_stores(const stores_options& /*given*/, const arguments& /*command_line*/) {
  throw error("pmlab-simulated measures no stores", "use `pmlab stores bench`");
}

}  // namespace pmlab::cli
