// The message of an error, and a look at it: EXPECT_PRED2(says, message, "a part of it").
#pragma once

#include <pmlab/base/error.hpp>

#include <string>
#include <string_view>

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

[[nodiscard]] inline bool says(std::string_view message, std::string_view part) {
  return message.find(part) != std::string_view::npos;
}

}  // namespace pmlab::tests
