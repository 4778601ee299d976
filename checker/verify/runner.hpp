// Runs rounds of a subject, one after the other.
#pragma once

#include "checker/verify/round_plan.hpp"

#include <functional>
#include <string>

namespace pmlab::verify {

// Keeps expensive state between the rounds of a process.
class runner {
 public:
  runner() = default;
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;
  virtual ~runner() = default;

  virtual void run(const round_options& options) = 0;
  // False: the round is one that the last one has shown not to be.
  [[nodiscard]] virtual bool is_one(const round_options& /*options*/) { return true; }

  // Called before every round with its operations, a line for each.
  std::function<void(const std::string&)> on_history;
};

}  // namespace pmlab::verify
