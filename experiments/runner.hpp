// Runs cells: each a child process of pmlab, so that one that fails takes no other one with it.
#pragma once

#include "experiments/experiment.hpp"
#include "experiments/plan.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace pmlab::experiments {

struct run_settings {
  std::string program;           // pmlab itself
  std::filesystem::path folder;  // of the results
  std::filesystem::path pools;   // where pool files are made and removed: a tmpfs, or an fsdax device
  std::filesystem::path source;  // pmlab's source tree; where there is none, cells that need it fail
  std::string scale;
  std::string command;  // as the user typed it, for the record
  bool resume = false;
  bool quiet = false;
  unsigned jobs = 1;  // cells at a time, of those whose figures do not depend on what else the machine does
};

struct run_summary {
  std::size_t done = 0;    // ended well
  std::size_t kept = 0;    // --resume: were there
  std::size_t failed = 0;  // wrong answers, no memory, ...
};

// Runs all cells and goes on after one that fails. Writes into `folder`: raw/CELL.json, as the commands write it (whole,
// or not at all); log/CELL.txt, what they printed; manifest.json after each. Progress goes to stderr: each cell, how long
// it took, about how much is left, and of a failure the complaint and how to run that cell alone.
//
// Simulated and counted cells come first, `jobs` of them at a time, since nothing beside them changes their figures;
// then the others, one after the other. Throws pmlab::error: the folder holds results and `resume` is not set, it cannot
// be written to. Throws claims::interrupted: SIGINT or SIGTERM came; the cells that ran have ended, and what was done
// before is kept.
run_summary run_cells(const std::vector<experiment>& experiments, const std::vector<cell>& cells,
                      const run_settings& settings);

}  // namespace pmlab::experiments
