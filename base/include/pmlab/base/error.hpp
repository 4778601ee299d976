// The exception of pmlab.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <stdexcept>
#include <string>

namespace pmlab {

// A failure that a user can act on: `what()` is "<problem>; <remedy>". Throwing one leaves every pool and every index
// as valid as it was.
class error : public std::runtime_error {
 public:
  // `problem` names the error; `remedy` states what the user can do. Neither ends in a full stop.
  error(const std::string& problem, const std::string& remedy)
      : std::runtime_error(remedy.empty() ? problem : problem + "; " + remedy) {}
};

}  // namespace pmlab
