// Every state that a crash may leave at any point of one history, divided among processes.
#pragma once

#include "checker/verify/campaign.hpp"
#include "checker/verify/complete_counts.hpp"
#include "checker/verify/target.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace pmlab::verify {

struct complete_request {
  std::uint64_t seed = 1;
  std::size_t operations = 1000;
  std::size_t keys = 1000;
  std::vector<std::size_t> steps{};  // not empty: only these of the operations
  bool every_state = false;          // merge none
  std::size_t window = 0;            // see complete_options
  double budget_seconds = 600;
  double shrink_seconds = 20;  // for making the history of a violation shorter
  unsigned processes = 2;
};

struct complete_result {
  complete_counts counts;
  std::size_t operations = 0;
  double seconds = 0;
  bool complete = false;  // every state of every point was opened and judged, or is one with such a state
  std::optional<violation> found;
  // Not empty: bad input, so that there is no verdict. Code addresses in braces; and the remedy.
  std::string problem;
  std::string remedy;
};

// Throws pmlab::error if the subject is of a kind that it cannot search.
void check_searchable(const subject& kind);

// `progress` (may be empty) is called with the current counts, a few times a second. Never crashes or hangs itself,
// with any index. Call it before any thread is made. REQUIRES: check_searchable returns.
[[nodiscard]] complete_result search_completely(
    const subject& kind, const complete_request& request,
    const std::function<void(const complete_counts& done, const complete_counts& all)>& progress);

}  // namespace pmlab::verify
