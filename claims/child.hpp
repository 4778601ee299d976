// Another program, run to its end.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::claims {

// Where the child's complaints (stderr) go.
enum class complaints : std::uint8_t { as_ours, to_output };

// SIGINT or SIGTERM ended the work.
class interrupted : public error {
 public:
  explicit interrupted(int signal, const std::string& problem = "interrupted",
                       const std::string& remedy = "run it again")
      : error(problem, remedy), signal_(signal) {}
  [[nodiscard]] int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

// Runs `words[0]` (a path, or a name that is looked for in PATH) with its output in the file `output` (empty: where ours
// goes), in a process group of its own, which SIGINT and SIGTERM are passed on to. It does not outlive this process.
// Returns its exit status. Throws `interrupted` if one of these signals ended it, another pmlab::error: it cannot be
// run, another signal ended it. Any number of threads may run children at a time.
[[nodiscard]] int run_program(const std::vector<std::string>& words, const std::string& output,
                              complaints to = complaints::as_ours);

// While one of these lives, SIGINT and SIGTERM do not end this process: all children get them, since they may have things
// to put back, and `stop_signal` says so. A second one kills the children.
class signals_for_children {
 public:
  signals_for_children();
  signals_for_children(const signals_for_children&) = delete;
  signals_for_children& operator=(const signals_for_children&) = delete;
  ~signals_for_children();
};

// The first signal since the first of the `signals_for_children` that live; 0: none came.
[[nodiscard]] int stop_signal() noexcept;

// Whether PATH has a program of that name.
[[nodiscard]] bool has_program(const std::string& name);

}  // namespace pmlab::claims
