// Which memory the kernel really backs with 2 MB pages on this machine.
#include "bench/support/huge_page_probe.hpp"
#include <pmlab/media/huge_pages.hpp>
#include "bench/support/machine.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

namespace pmlab::bench {
namespace {

constexpr std::size_t tried_bytes = 4 * media::huge_page_bytes;

// The figure in kB behind `field` for the mapping that holds `address`, as /proc/self/smaps gives it.
std::uint64_t kilobytes_of(const void* address, std::string_view field) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with(field)) return std::strtoull(line.c_str() + field.size(), nullptr, 10);
  }
  return 0;
}

// A mapping that holds at least one aligned huge page, at any address.
char* huge_page_in(void* area) {
  const auto start = reinterpret_cast<std::uintptr_t>(area);
  return reinterpret_cast<char*>((start + media::huge_page_bytes - 1) & ~(media::huge_page_bytes - 1));
}

bool anonymous_huge_pages() {
  void* const area = mmap(nullptr, tried_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return false;
  madvise(area, tried_bytes, MADV_HUGEPAGE);
  std::memset(area, 1, tried_bytes);
  const bool huge = kilobytes_of(huge_page_in(area), "AnonHugePages:") > 0;
  munmap(area, tried_bytes);
  return huge;
}

// Returns why it did not work; empty: it did.
std::string collapse_on_tmpfs() {
  std::string name = "/dev/shm/pmlab-doctor-XXXXXX";
  const int file = ::mkstemp(name.data());
  if (file < 0) return std::string("no file on /dev/shm: ") + std::strerror(errno);
  ::unlink(name.c_str());
  void* area = MAP_FAILED;
  if (::ftruncate(file, tried_bytes) == 0)
    area = mmap(nullptr, tried_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (area == MAP_FAILED) return std::string("no mapping of a file on /dev/shm: ") + std::strerror(errno);
  std::string problem;
  std::memset(area, 1, tried_bytes);
  if (!media::collapse_to_huge_pages(area, tried_bytes))
    problem = std::string("the kernel refused: ") + std::strerror(errno);
  else if (kilobytes_of(huge_page_in(area), "ShmemPmdMapped:") == 0)
    problem = "the kernel agreed and did nothing";
  munmap(area, tried_bytes);
  return problem;
}

}  // namespace

huge_page_probe probe_huge_pages() {
  huge_page_probe found;
  found.anonymous_setting = chosen_word(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  found.shmem_setting = chosen_word(first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  found.anonymous = anonymous_huge_pages();
  found.tmpfs_problem = collapse_on_tmpfs();
  found.tmpfs_collapse = found.tmpfs_problem.empty();
  return found;
}

}  // namespace pmlab::bench
