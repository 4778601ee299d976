// The states that a crash of a recorded program may leave in its pool, each given to a check.
//
// Stores only add states until something becomes durable: so the crash points are those before each step that makes
// stores durable, after each mark, and the end. Each pass over the run examines more states at each point, all of them
// where they are few, until the budget ends or every state has been examined.
#pragma once

#include "checker/programs/program_run.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::programs {

struct state_options {
  std::string check;  // a command
  double check_seconds = 30;
  std::string check_server;  // a shared object by which it is started once; "": it is started for each state
  std::uint64_t seed = 1;
  std::size_t states_per_point = 0;  // at most; 0: as many as the budget allows
  double budget_seconds = 60;
  unsigned checks_at_once = 2;
  std::string after;  // the mark from which on crashes are examined; empty: from the beginning
  std::string keep;   // path, without suffix, of the first unsound state
  // The check opens a state and recovers it, which ends where it makes the mark `recovered`. If that changes other
  // lines than in states before, the recovery is recorded and crashed in turn, for this part of the time. 0: never.
  double recovery_share = 0.3;
  std::string recorder;                     // for that
  std::string until;                        // the mark at which crashes end; empty: the end of the run
  std::vector<std::string> marks_of_state;  // marks of a recovery: those before the crash that it recovers from
};

struct program_violation {
  std::string what;                // as the check says
  std::string crash;               // its place in the program
  std::string lost;                // stores, a line for each place of the source
  std::string image;               // a file with the state
  std::string marks_file;          // with the marks before the crash
  std::vector<std::string> marks;  // the last ones of them
};

struct state_counts {
  std::uint64_t stores = 0;
  std::uint64_t flushes = 0;
  std::uint64_t fences = 0;
  std::uint64_t marks = 0;
  std::uint64_t points = 0;
  std::uint64_t checked = 0;          // different states
  bool whole_run = false;             // one pass at least reached the end
  std::uint64_t sampled_points = 0;   // in the last pass that did; 0: every state of the run has been checked
  std::uint64_t steps = 0;            // steps of the record
  std::uint64_t reached_step = 0;     // last step at which a pass was
  std::uint64_t recoveries = 0;       // that were crashed in turn
  std::uint64_t recovery_states = 0;  // states of recoveries among them, checked
  std::string no_recoveries;          // why none was crashed
  double seconds = 0;
  std::optional<program_violation> found;
};

inline constexpr const char* recovered_mark = "recovered";

// Throws pmlab::error: the check cannot be run or gives no verdict; the record and the file differ; no room.
[[nodiscard]] state_counts explore_program(const program_run& run, const state_options& options,
                                           const std::function<void(const state_counts&)>& progress);

}  // namespace pmlab::programs
