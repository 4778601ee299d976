// Which pages the kernel put under a region.
#include "microbench/memory/page_sizes.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <istream>

namespace pmlab::microbench {

std::string pages_under(std::istream& smaps, std::uint64_t start, std::uint64_t bytes) {
  const std::uint64_t end = start + bytes;
  std::uint64_t inside = 0;  // bytes inside of the mapping that is being read
  std::uint64_t covered = 0;
  std::uint64_t huge = 0;
  bool any = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2) {
      inside = std::min(to, end) > std::max(from, start) ? std::min(to, end) - std::max(from, start) : 0;
      covered += inside;
      any = true;
      continue;
    }
    if (inside == 0) continue;
    // Huge pages of anonymous memory, of tmpfs, of files (fsdax).
    for (const char* const field : {"AnonHugePages: %" SCNu64, "ShmemPmdMapped: %" SCNu64, "FilePmdMapped: %" SCNu64})
      if (std::sscanf(line.c_str(), field, &kilobytes) == 1) huge += std::min(kilobytes << 10, inside);
  }
  if (!any || covered == 0) return "unknown";
  if (huge == 0) return "4 KB pages";
  // The ends of a region need not fill a page.
  return huge + (std::uint64_t{4} << 20) >= covered ? "2 MB pages" : "part in 2 MB pages";
}

std::string pages_under(const void* start, std::uint64_t bytes) {
  std::ifstream smaps("/proc/self/smaps");
  return pages_under(smaps, reinterpret_cast<std::uintptr_t>(start), bytes);
}

}  // namespace pmlab::microbench
