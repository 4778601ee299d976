// The request of `pmlab verify`, and the function that runs it.
#pragma once

#include "tools/cli/command.hpp"
#include "tools/cli/verify_hosts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::verify {
struct subject;
struct violation;
}  // namespace pmlab::verify

namespace pmlab::cli {

// Both included.
struct seed_range {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

inline constexpr unsigned most_jobs = 64;
inline constexpr std::size_t keys_of_joins = 30;  // the fewest

struct verify_request {
  std::vector<std::string> indexes;
  std::string subject;  // a shared object that registers one
  std::string library;  // a third-party one, with PiBench's interface
  bool scans = false;
  bool without_update = false;  // the library has none
  bool without_remove = false;
  std::uint64_t pool_bytes = 0;  // bytes of a library's pool; 0: the usual
  bool crashes = false;
  std::string persistence = "adr";
  bool kills = false;  // the process alone, before the crash
  bool schedules = false;
  bool short_dram = false;
  bool pauses = false;
  bool joins = false;
  std::string memory_order;  // sc, tso; empty: half of the rounds one, half the other
  host_request hosts;
  bool exhaustive = false;   // every state of every crash point of one history
  bool every_state = false;  // with it: none is merged
  std::size_t window = 0;    // with it: lines wait for so many answers at most; 0: for ever
  bool quiet = false;
  bool performance = false;  // count flushes and fences without effect, in place of a verdict
  unsigned threads = 0;      // 0: 1 without --schedules, 4 with it
  std::size_t operations = 0;
  std::size_t keys = 120;
  bool keys_given = false;
  bool budget_given = false;
  std::uint64_t seed = 1;
  std::uint64_t schedule = 0;
  bool schedule_given = false;
  std::string search;
  std::uint64_t rounds = 0;
  std::optional<seed_range> seeds;  // every round of them, whatever the others show
  std::string out;                  // the folder of their record
  bool resume = false;
  double budget = 60;
  unsigned jobs = 0;  // 0: as many as there are processors, for a budget; one for rounds
  double shrink = 20;
  std::string steps;   // "3,7,9"
  std::string io_log;  // a file that blocks::recorded has written: its crash states, in place of an index's
  std::string check;   // a command, or acknowledged
  std::string base;
  std::size_t states = 0;  // 0: 16 of a log, and as many as the budget allows of a program
  bool cut_off = false;
  bool scoreboard = false;
  std::string bugs;                // bugs of the scoreboard; empty: all
  std::uint64_t clean_states = 0;  // judged for each twin without its defect
  std::string markdown;            // the file of the page
  std::string program;  // a command that runs a program with a pool: its crash states, in place of an index's
  std::string after;    // the mark of it from which on it is crashed
  bool all = false;     // a violation does not end the search
  std::string known;    // a file of violations that do not count
  std::string keep;     // path of its first unsound state; empty: its name, in this folder
};

// pmlab-simulated does them; pmlab hands them over. They return the exit status, and throw pmlab::error for bad input.
[[nodiscard]] int verify_io_log(const verify_request& request);
// In pmlab alone: it starts pmlab-simulated for each planted defect.
[[nodiscard]] int verify_scoreboard(const verify_request& request);
[[nodiscard]] int verify_program(const verify_request& request);
// The numbers in `--steps`.
[[nodiscard]] std::vector<std::size_t> parse_steps(const std::string& text);
// The options that name the subject `name`.
[[nodiscard]] std::string made_with(const verify_request& request, const std::string& name);
void print(const verify::violation& v, const std::string& replay);
[[nodiscard]] int verify_completely(const verify_request& request, const std::vector<const verify::subject*>& kinds);
[[nodiscard]] int verify(const verify_request& request, const arguments& command_line);

}  // namespace pmlab::cli
