// The program pmlab and the one that has the simulated machine, pmlab-simulated: two programs for one command line.
//
// In pmlab-simulated, threads, locks and clocks are the machine's, and indexes are built to report each access. No
// other code can run in its process, so pmlab does everything else and hands over simulated work. Each of the two has
// its own definition of these functions: tools/cli/hand_over.cpp and tools/cli/simulated_program.cpp.
#pragma once

#include "tools/cli/command.hpp"

#include <string>
#include <vector>

namespace pmlab::cli {

// Called first of all, with the arguments of main.
void start_program(char** values);

// pmlab: runs pmlab-simulated in the place of this process; throws pmlab::error if it cannot. pmlab-simulated: returns.
void hand_over(const arguments& given);

// Commands that only pmlab has; none in pmlab-simulated.
[[nodiscard]] std::vector<command> own_commands(CLI::App& program, const arguments& given);

// Why a simulated run may not repeat to the digit here; empty: it does.
[[nodiscard]] std::string doubt_about_simulation();

// Before this process opens the pool: libpmemobj, or an index, may fault on one that is damaged. Throws pmlab::error as
// pool::refuse_damaged does. pmlab-simulated opens no pool, and this does nothing there.
void refuse_damaged_pool(const std::string& path);

// Whether pmlab-simulated is installed and works, as text. For `pmlab doctor`.
[[nodiscard]] std::string state_of_simulation();

}  // namespace pmlab::cli
