// Work on a pool that may be damaged, in a child process: this process reports the outcome.
#pragma once

#include <pmlab/base/error.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace pmlab::pool {

// The child was killed by a signal, or was still at it when its time was over: the pool is damaged.
class damage : public error {
 public:
  explicit damage(const std::string& what) : error(what, std::string(remedy)), problem(what) {}
  static constexpr std::string_view remedy = "it is damaged: `pmlab pool repair` copies the readable entries";
  std::string problem;
};

// Runs `work` in a child process made by fork, and returns its result; its output to stderr is lost. `doing` begins the
// error: "opening pool /x". REQUIRES: this process has one thread. Throws `damage`; pmlab::error with the message of
// the exception that left `work`; pmlab::error if no process can be made.
[[nodiscard]] std::string in_child(const std::string& doing, std::chrono::seconds patience,
                                   const std::function<std::string()>& work);

}  // namespace pmlab::pool
