// Rounds of an index, in a child process: finds violations, minimizes them, and prints the command to reproduce them.
#pragma once

#include "checker/verify/round_counts.hpp"
#include "checker/verify/round_plan.hpp"
#include "checker/verify/target.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::verify {

// The order in which the stores of one thread become visible to others.
enum class memory_order : std::uint8_t {
  by_seed,  // half of the rounds one, half the other
  sc,       // sequentially consistent
  tso,      // x86's: through store buffers
};

struct violation {
  std::string what;                  // code addresses in braces
  round_options round;               // that shows it
  std::vector<std::string> history;  // its operations
  std::size_t operations = 0;        // before it was made shorter
  std::uint64_t rounds_before = 0;   // those that its process had run before
  // What shows it in a process that has run no round before: its round, behind so many rounds like it, of the seeds
  // before its own. Nothing: no number of them that was tried.
  std::optional<std::uint64_t> replayed_behind = 0;
};

// Many keys take long: a caller that requests fewer than these gets short rounds. (No round of many has fewer than
// requested.)
inline constexpr std::size_t keys_of_long_rounds = 30;

struct campaign_options {
  round_options round;  // seed: of the first round; the following ones count up
  bool crashes = true;
  bool schedules = false;
  memory_order order = memory_order::by_seed;  // order of rounds with threads
  // With both: mostly rounds with both, some with schedules, few with crashes only. With several hosts: crashes in few
  // rounds, of an index that says that it survives them.
  bool mixed = true;
  bool short_dram_by_seed = false;    // in one round of four
  bool pauses_by_seed = false;        // in half of the rounds with threads
  bool joins_by_seed = false;         // in two of sixteen rounds with threads
  bool threads_by_seed = false;       // with several hosts: each has two in one round of four
  bool operations_by_seed = false;    // with several hosts: rounds that begin grown have three times as many
  bool schedule_follows_seed = true;  // false: the schedule is round.schedule_seed
  double budget_seconds = 60;
  std::uint64_t rounds = 0;    // 0: as many as the budget allows
  unsigned jobs = 1;           // processes that have rounds at the same time
  double shrink_seconds = 20;  // for making the history of a violation shorter
  bool finds_miss = true;      // with several hosts: find_decisive_miss of a violation
  // The round of the first seed alone: each host dies before each of its events, with each choice of what the device
  // gets, up to simulator::one_death::most_choices.
  bool every_death = false;
  // Called with each violation, before its replay is tried and its history is made shorter. True: the search goes on
  // with the next seed, for the rest of its budget or rounds. Empty: the first one ends it. Not for a bounded search.
  std::function<bool(const violation&)> goes_on{};
};

struct campaign_result {
  round_counts counts;
  double seconds = 0;
  std::optional<violation> found;
  // Not empty: bad input, so that there is no verdict. Code addresses in braces; and the remedy.
  std::string problem;
  std::string remedy;
};

// The options of the round with number `seed` of a campaign: one thread and every crash, or all threads and many
// schedules, or both together.
[[nodiscard]] round_options round_of(const subject& kind, const campaign_options& options, std::uint64_t seed);

// Tries the replay of a violation as its command runs it, in a process that has run no round before: the round alone,
// and if that does not show it, behind more and more rounds like it. Sets `replayed_behind`; behind some, the round and
// its history are those that the replay shows. Takes less than a minute, or some if it waits for ever.
void find_replay(const subject& kind, violation& found);

// Leaves operations of the round out, first many at a time, as long as the violation remains, each time in a process
// that has run no round before.
void shorten(const subject& kind, violation& found, double seconds);

// Lets as few loads as the violation takes miss a store of another host, from the first one on: so the last of these,
// which the report names, is one that it needs. Nothing, if the round has one host. Takes some seconds.
void find_decisive_miss(const subject& kind, violation& found);

// `progress` (may be empty) is called with the current counts, a few times a second. Never crashes or hangs itself,
// with any index. Call it before any thread is made.
[[nodiscard]] campaign_result run_campaign(const subject& kind, const campaign_options& options,
                                           const std::function<void(const round_counts&, double seconds)>& progress);

}  // namespace pmlab::verify
