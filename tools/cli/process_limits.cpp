#include "tools/cli/process_limits.hpp"
#include <pmlab/base/error.hpp>

#include <csignal>

#include <fmt/format.h>
#include <sys/resource.h>

namespace pmlab::cli {

void report_file_size_limit() noexcept {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  // A handler, since another program would inherit that the signal is ignored.
  action.sa_handler = [](int) {};
  ::sigaction(SIGXFSZ, &action, nullptr);
}

void check_stack_limit() {
  constexpr rlim_t least_kib = 1024;
  struct rlimit stack {};
  // No limit is the largest number.
  if (::getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur / 1024 >= least_kib) return;
  throw error(fmt::format("this process may have {} KiB of stack, and needs {}", stack.rlim_cur / 1024, least_kib),
              "let it have the usual 8 MiB: ulimit -s 8192");
}

}  // namespace pmlab::cli
