// The states that a crash of a recorded run may have left (blocks/io_log.hpp), each given to a check.
//
// The log is replayed on a drive of the simulated machine. Before each flush or durable write completes, after each
// mark, and at the end, the states of now are enumerated: of each unit any version since the last durable one. All of
// them if they are few, otherwise the most telling and some at random. A state that was checked before, after the same
// marks, is not checked again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::verify {

struct io_log_options {
  std::string log;
  std::string base;  // the content of the device when the log began; empty: zeros
  std::uint64_t seed = 1;
  std::size_t states_per_point = 16;
  double budget_seconds = 60;
  bool may_be_cut_off = false;
};

// One state. `image`: a file of the device's size, which the check may change.
struct io_log_state {
  const std::string& image;
  const std::vector<std::string>& marks;  // before the crash
};

struct io_log_violation {
  std::string what;                // as the check says
  std::string lost;                // by the crash, a line for each request
  std::string image;               // a file with the state, which is kept
  std::vector<std::string> marks;  // the last ones before the crash
};

struct io_log_result {
  std::uint64_t writes = 0;
  std::uint64_t flushes = 0;
  std::uint64_t marks = 0;
  std::uint64_t points = 0;
  std::uint64_t states = 0;
  std::uint64_t checked = 0;  // the others were equal to one of these
  double seconds = 0;
  std::uint64_t log_bytes = 0;  // examined
  bool whole_log = true;        // the budget was enough
  bool cut_off = false;         // the log ends within a record
  std::uint64_t unflushed = 0;  // writes that had completed before a mark, and that no flush covered by then
  std::optional<io_log_violation> found;
};

// `check` returns "" or the violation; null: states are only counted. `progress` (may be empty) is called now and then.
// Throws pmlab::error: no log, a damaged one, one of another device than `base`, no room for the image.
[[nodiscard]] io_log_result explore_io_log(const io_log_options& options,
                                           const std::function<std::string(const io_log_state&)>& check,
                                           const std::function<void(const io_log_result&)>& progress);

// A check by a command of the shell, which is given the path of the image as its last argument, and in the environment
// variable PMLAB_IO_MARKS the path of a file with the marks before the crash, a line for each. Status 0: sound.
[[nodiscard]] std::function<std::string(const io_log_state&)> check_by_command(const std::string& command,
                                                                               double seconds);

}  // namespace pmlab::verify
