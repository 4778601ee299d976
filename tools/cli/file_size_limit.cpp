#include "tools/cli/file_size_limit.hpp"

#include <csignal>

namespace pmlab::cli {

void report_file_size_limit() noexcept {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  // A handler, since another program would inherit that the signal is ignored.
  action.sa_handler = [](int) {};
  ::sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace pmlab::cli
