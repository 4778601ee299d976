// A new pool from the readable entries of a damaged one.
#pragma once

#include "tools/pool/inspect.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::pool {

struct salvaged_root {
  root_report before;  // the check of the damaged pool's index
  std::uint64_t entries = 0;
  std::uint64_t contradictions = 0;  // keys that occurred twice with different values: the first was kept
  std::string problem;               // why there may have been more entries; empty: these are all

  // Nothing was lost: every entry was read, and there is no sign of missing ones.
  [[nodiscard]] bool is_whole() const noexcept {
    return problem.empty() && contradictions == 0 && before.problem.empty() && before.violations.empty();
  }
};

// Copies the entries of `chosen` into the new pool `path`, which is then checked. The damaged pool is only read.
// `bytes`: of the new pool; 0: as large as the old one, and large enough. Throws as make_pool does.
[[nodiscard]] std::vector<salvaged_root> repair(const contents& damaged, const std::vector<root>& chosen,
                                                const std::string& path, std::uint64_t bytes,
                                                patience each = default_patience);

}  // namespace pmlab::pool
