// Which pages the kernel put under a region.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace pmlab::microbench {

// "2 MB pages", "4 KB pages", "part in 2 MB pages" of this process's [start, start + bytes); "unknown" where
// /proc/self/smaps cannot be read.
[[nodiscard]] std::string pages_under(const void* start, std::uint64_t bytes);

// The same from text in the format of smaps.
[[nodiscard]] std::string pages_under(std::istream& smaps, std::uint64_t start, std::uint64_t bytes);

}  // namespace pmlab::microbench
