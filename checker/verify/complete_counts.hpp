// What a complete search has done.
#pragma once

#include <cstdint>

namespace pmlab::verify {

struct complete_counts {
  std::uint64_t points = 0;          // crash points of the history
  std::uint64_t points_covered = 0;  // all of whose states have a verdict
  std::uint64_t joints = 0;          // groups of points that are searched as one set of states
  std::uint64_t openings = 0;        // recoveries and checks that were executed
  // States that recovery and check can tell apart: each has its own values of all that is read. And a hash of these.
  std::uint64_t outcomes = 0;
  std::uint64_t fingerprint = 0;
  // Where the search is: the group of points, and how many operations of the history have begun by then.
  std::uint64_t joint = 0;
  std::uint64_t operations_begun = 0;
  // The sum over the crash points of the number of states at each.
  long double states = 0;
};

}  // namespace pmlab::verify
