// The time that a search has taken, and how long it waits for what gives no sign.
#pragma once

#include <chrono>

namespace pmlab::verify {

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A hang is shown by the machine's steps. Without a step for so many seconds of processor time, or of waiting outside
// of the machine, there is no verdict.
inline constexpr unsigned computing_patience = 30;
inline constexpr unsigned waiting_patience = 60;

}  // namespace pmlab::verify
