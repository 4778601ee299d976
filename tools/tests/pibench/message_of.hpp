// The exception and the message of a library.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace pmlab::tests {

// The message of the exception of `call`, which it must also print to stderr.
[[nodiscard]] inline std::string message_of(const std::function<void()>& call) {
  testing::internal::CaptureStderr();
  std::string thrown;
  try {
    call();
  } catch (const std::exception& e) {
    thrown = e.what();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(thrown, "") << "nothing was thrown";
  EXPECT_NE(said.find(thrown), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  return thrown;
}

}  // namespace pmlab::tests
