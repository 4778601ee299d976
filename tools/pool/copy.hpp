// A private mapping of a pool for inspection: changes by recovery, and by an index of it, stay in the memory of one
// process. The file is only read.
#pragma once

#include <pmlab/media/pmem.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace pmlab::pool {

// Time limit of each step of an inspection: opening the pool, opening an index, walking it.
using patience = std::chrono::seconds;
inline constexpr patience default_patience{600};

// Throws pmlab::error with the exact reason why nothing can be opened at `path`: it does not exist, is no pool, is a
// pool of another program or version, or is open in another process.
void refuse_what_is_no_pool(const std::string& path);

// Opens the pool at `path` in a child process (child.hpp), calls `look` with it there, and returns its result. A device
// is no file, and cannot be mapped privately: changes by recovery are written to it. Throws as refuse_what_is_no_pool
// and in_child do.
[[nodiscard]] std::string look_at(const std::string& path, const std::string& doing, patience each,
                                  const std::function<std::string(media::pmem&)>& look);

}  // namespace pmlab::pool
