// A pool as it is looked at: mapped privately, so that whatever opening it recovers, and whatever an index of it does,
// stays in the memory of one process. The file is only read.
#pragma once

#include <pmlab/media/pmem.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace pmlab::pool {

// What a look at a pool may take, for each step: opening the pool, opening an index, walking it.
using patience = std::chrono::seconds;
inline constexpr patience default_patience{600};

// Throws pmlab::error that says exactly why nothing can be opened at `path`: there is nothing, it is no pool, a pool of
// something else, of another version, open in another process.
void refuse_what_is_no_pool(const std::string& path);

// Opens the pool at `path` in a child process (child.hpp), calls `look` with it there, and returns what that returns.
// A device is no file, and cannot be mapped privately: what opening it recovers is written to it. Throws as
// refuse_what_is_no_pool and in_child do.
[[nodiscard]] std::string look_at(const std::string& path, const std::string& doing, patience each,
                                  const std::function<std::string(media::pmem&)>& look);

}  // namespace pmlab::pool
