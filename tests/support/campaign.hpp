// How long the randomised tests run, with which seeds, and the command that replays one of their failures.
//
//   PMLAB_SEED=n     run with this seed only
//   PMLAB_ROUNDS=n   run n times as many rounds as a plain `ctest` does
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {

namespace detail {

// The number in environment variable `name`, or `otherwise` where there is none.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

}  // namespace detail

[[nodiscard]] inline std::uint64_t rounds(std::uint64_t in_a_plain_run) {
  return in_a_plain_run * detail::number_from_environment("PMLAB_ROUNDS", 1);
}

// The seeds of a test that runs `in_a_plain_run` rounds.
[[nodiscard]] inline std::vector<std::uint64_t> seeds(std::uint64_t in_a_plain_run) {
  if (std::getenv("PMLAB_SEED") != nullptr) return {detail::number_from_environment("PMLAB_SEED", 1)};
  std::vector<std::uint64_t> all(rounds(in_a_plain_run));
  for (std::uint64_t seed = 0; auto& s : all) s = ++seed;
  return all;
}

// The shell command that runs the current test again with `seed`.
[[nodiscard]] inline std::string replay_command(std::uint64_t seed) {
  std::string command = "PMLAB_SEED=" + std::to_string(seed);
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::vector<std::string>& arguments = testing::internal::GetArgvs();
  command += " " + (arguments.empty() ? std::string("TEST") : arguments.front());
  if (test != nullptr) command += std::string(" '--gtest_filter=") + test->test_suite_name() + "." + test->name() + "'";
  return command;
}

}  // namespace pmlab::tests
