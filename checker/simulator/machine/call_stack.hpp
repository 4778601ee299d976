// Who called the code that runs.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <unwind.h>

namespace pmlab::simulator {

// Enough to leave the machine's and the library's own frames behind.
inline constexpr std::size_t usual_callers = 24;

// The return addresses of the calling fiber from the one that is `first` on, at most `most`. Only `first`: the fiber
// has no frame that returns there.
[[nodiscard]] inline std::vector<const void*> callers_behind(const void* first, std::size_t most = usual_callers) {
  struct walk {
    const void* first;
    std::size_t most;
    std::vector<const void*> found;
  };
  walk w{first, most, {}};
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* argument) {
        walk& to = *static_cast<walk*>(argument);
        const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(frame));
        if (!to.found.empty() || address == to.first) to.found.push_back(address);
        return to.found.size() == to.most ? _URC_END_OF_STACK : _URC_NO_REASON;
      },
      &w);
  if (w.found.empty()) w.found.push_back(first);
  return std::move(w.found);
}

// The same in a signal handler, for the code that the signal has interrupted at `instruction`.
[[nodiscard]] inline std::vector<const void*> callers_of_interrupted(const void* instruction) {
  std::vector<const void*> found = callers_behind(instruction);
  // A return address is behind its call.
  found.front() = static_cast<const char*>(instruction) + 1;
  return found;
}

}  // namespace pmlab::simulator
