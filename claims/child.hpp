// Another program, run to its end.
#pragma once

#include <pmlab/base/error.hpp>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::claims {

// Where the child's complaints (stderr) go.
enum class complaints : std::uint8_t { as_ours, to_output };

// Ctrl-C ended a child.
class interrupted : public error {
 public:
  interrupted() : error("interrupted", "run it again") {}
};

// Runs `words[0]` (a path, or a name that is looked for in PATH) with its output in the file `output` (empty: where ours goes). Returns its exit
// status. Throws `interrupted` if Ctrl-C ended it, another pmlab::error: it cannot be run, a signal ended it.
// Any number of threads may run children at a time if one of them holds an `interrupts_ignored` all the while.
[[nodiscard]] int run_program(const std::vector<std::string>& words, const std::string& output,
                              complaints to = complaints::as_ours);

// As system(3) does: while children work, an interrupt is for them, which may have things to put back.
class interrupts_ignored {
 public:
  interrupts_ignored();
  interrupts_ignored(const interrupts_ignored&) = delete;
  interrupts_ignored& operator=(const interrupts_ignored&) = delete;
  ~interrupts_ignored();

 private:
  struct sigaction before_ = {};
};

// Whether PATH has a program of that name.
[[nodiscard]] bool has_program(const std::string& name);

}  // namespace pmlab::claims
