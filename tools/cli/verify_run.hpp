// The request of `pmlab verify`, and the function that runs it.
#pragma once

#include "tools/cli/command.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::cli {

// Both included.
struct seed_range {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

struct verify_request {
  std::vector<std::string> indexes;
  std::string subject;  // a shared object that registers one
  std::string library;  // a third-party one, with PiBench's interface
  bool scans = false;
  bool crashes = false;
  bool schedules = false;
  bool quiet = false;
  unsigned threads = 0;  // 0: 1 without --schedules, 4 with it
  std::size_t operations = 0;
  std::size_t keys = 120;
  std::uint64_t seed = 1;
  std::uint64_t schedule = 0;
  bool schedule_given = false;
  std::string search;
  std::uint64_t rounds = 0;
  std::optional<seed_range> seeds;  // every round of them, whatever the others show
  std::string out;                  // the folder of their record
  bool resume = false;
  double budget = 60;
  double shrink = 20;
  std::string steps;   // "3,7,9"
  std::string io_log;  // a file that blocks::recorded has written: its crash states, in place of an index's
  std::string check;   // a command, or acknowledged
  std::string base;
  std::size_t states = 16;
  bool cut_off = false;
};

// pmlab-simulated does both; pmlab hands them over. They return the exit status, and throw pmlab::error for bad input.
[[nodiscard]] int verify_io_log(const verify_request& request);
[[nodiscard]] int verify(const verify_request& request, const arguments& command_line);

}  // namespace pmlab::cli
