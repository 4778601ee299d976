// What the machine cannot get from the host that it runs on.
#pragma once

#include <pmlab/base/error.hpp>

#include <string>
#include <utility>

namespace pmlab::simulator {

// Nothing is known of the code that runs on the machine: memory or a thread of the host is lacking.
class host_refusal : public error {
 public:
  host_refusal(std::string problem, std::string remedy)
      : error(problem, remedy), problem_(std::move(problem)), remedy_(std::move(remedy)) {}
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }

 private:
  std::string problem_, remedy_;
};

}  // namespace pmlab::simulator
