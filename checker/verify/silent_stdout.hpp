// The standard output of code that is loaded: no part of the report.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace pmlab::verify {

// This process's standard output goes nowhere from now on.
inline void lose_stdout() noexcept {
  std::fflush(stdout);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
}

// While one lives, standard output goes nowhere; and again when the process ends, after the report: objects that were
// loaded meanwhile run their destructors then.
class silent_stdout {
 public:
  silent_stdout() noexcept {
    std::fflush(stdout);
    kept_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    lose_stdout();
  }
  silent_stdout(const silent_stdout&) = delete;
  silent_stdout& operator=(const silent_stdout&) = delete;
  ~silent_stdout() {
    std::fflush(stdout);
    if (kept_ < 0) return;
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
    // Registered after the objects' own, so called before them.
    std::atexit([] { lose_stdout(); });
  }

 private:
  int kept_ = -1;
};

}  // namespace pmlab::verify
