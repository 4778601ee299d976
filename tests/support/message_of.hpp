// The message of an error.
#pragma once

#include <pmlab/base/error.hpp>

#include <string>

namespace pmlab::tests {

// The message of the pmlab::error that `action` throws. Empty if it throws none; other exceptions pass.
template <class Action>
[[nodiscard]] std::string message_of(Action&& action) {
  try {
    action();
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace pmlab::tests
