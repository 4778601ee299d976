// A check that has been started once: for each state it is copied where main would begin.
//
// Most of the time of a small check goes into loading its libraries. This object, loaded into the check, stands before
// its main: it says that it is ready, and for each byte from pmlab makes a copy of the process, which calls main; the
// copy's end, as waitpid has it, goes back to pmlab.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using main_function = int (*)(int, char**, char**);
using start_function = int (*)(main_function, int, char**, void (*)(), void (*)(), void (*)(), void*);

main_function real_main = nullptr;

int serve(int count, char** words, char** environment) {
  const char* const files = std::getenv("PMLAB_CHECK_SERVER");
  int requests = -1, answers = -1;
  if (files == nullptr || std::sscanf(files, "%d,%d", &requests, &answers) != 2)
    return real_main(count, words, environment);
  // Processes that the check starts are none of it.
  ::unsetenv("PMLAB_CHECK_SERVER");
  ::unsetenv("LD_PRELOAD");
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int status = 0;
  if (::write(answers, &status, sizeof(status)) != sizeof(status)) ::_exit(1);
  for (char request; ::read(requests, &request, 1) == 1;) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(requests);
      ::close(answers);
      return real_main(count, words, environment);
    }
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (child < 0 || ::write(answers, &status, sizeof(status)) != sizeof(status)) break;
  }
  ::_exit(0);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int __libc_start_main(  // NOLINT: the C library's name
    main_function main, int count, char** words, void (*init)(), void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  real_main = main;
  const auto real = reinterpret_cast<start_function>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(serve, count, words, init, fini, rtld_fini, stack_end);
}
