// Code that may fault or hang, run where it cannot take the test with it.
#pragma once

#include <pmlab/base/child_process.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace pmlab::tests {

// in_child_process whose stderr is kept: a sanitizer reports there.
[[nodiscard]] inline child_end run_in_child(const std::function<std::string()>& work, std::chrono::milliseconds limit) {
  return in_child_process(limit, work, child_stderr::kept);
}

}  // namespace pmlab::tests
