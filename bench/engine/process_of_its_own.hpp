// Measurements on a simulated machine in a process of their own: what was measured before leaves nothing behind that
// their figures depend on.
#pragma once

#include <functional>
#include <string>

namespace pmlab::bench {

// What `measure` returns, called in a process and a thread of its own. `what`: who measures, for errors: "the simulated
// machine of cceh"; `remedy`: against a process that died, which memory that was short may be the cause of. Throws
// pmlab::error: an exception has left `measure`, or its process died.
[[nodiscard]] std::string in_process_of_its_own(const std::string& what, const std::string& remedy,
                                                const std::function<std::string()>& measure);

}  // namespace pmlab::bench
