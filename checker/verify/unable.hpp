// The end of a campaign that cannot judge its subject: bad input, and no verdict.
#pragma once

#include <exception>
#include <string>

namespace pmlab::verify {

// In a process of a campaign: ends it, and the campaign with it. `problem` may hold code addresses in braces.
[[noreturn]] void end_unable(const std::string& problem, const std::string& remedy);

// The text of an exception that came out of the code that is verified. A host_refusal is no deed of that code: it ends
// the process as end_unable does.
[[nodiscard]] std::string thrown_text(const std::exception& e);

// The status of a process that end_unable has ended. One that waits for it ends with it, too.
inline constexpr int unable_status = 4;

// SIGKILL has ended a process, which is no deed of a subject: as when the kernel has no more memory.
inline constexpr const char* was_killed = "a process of the search was killed";
inline constexpr const char* after_a_kill = "free memory, or give fewer --operations";

// While one lives, this process may fork. A fork at any other time is the subject's, and ends the campaign.
class fork_permit {
 public:
  fork_permit() noexcept { ++count(); }
  fork_permit(const fork_permit&) = delete;
  fork_permit& operator=(const fork_permit&) = delete;
  ~fork_permit() { --count(); }
  [[nodiscard]] static bool is_given() noexcept { return count() != 0; }

 private:
  static unsigned& count() noexcept {
    static unsigned permits = 0;
    return permits;
  }
};

}  // namespace pmlab::verify
