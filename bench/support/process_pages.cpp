#include "bench/support/process_pages.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_parts.hpp>
#include <pmlab/media/huge_pages.hpp>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

namespace pmlab::bench {
namespace {

// The first line of a mapping in /proc/PID/maps and smaps.
struct mapping {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  bool is_writable = false;
  std::string name;  // the file's path, "[heap]", ...; empty: anonymous

  [[nodiscard]] bool is_large() const noexcept { return to - from >= media::huge_page_bytes; }
  [[nodiscard]] bool has_no_file() const noexcept {
    return is_writable && (name.empty() || name == "[heap]" || name.starts_with("[anon"));
  }
};

std::optional<mapping> mapping_of(const std::string& line) {
  mapping m;
  char rights[5] = {};
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %*u %n", &m.from, &m.to, rights, &name_at) != 3)
    return std::nullopt;
  m.is_writable = rights[1] == 'w';
  if (name_at > 0) m.name = line.substr(static_cast<std::size_t>(name_at));
  return m;
}

}  // namespace

page_share pages_in(std::istream& smaps, std::string_view path) {
  page_share sum;
  bool is_wanted = false;
  for (std::string line; std::getline(smaps, line);) {
    if (const std::optional<mapping> m = mapping_of(line)) {
      is_wanted = m->is_large() && (path.empty() ? m->has_no_file() : m->name == path);
      continue;
    }
    if (!is_wanted) continue;
    std::uint64_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "Rss: %" SCNu64, &kilobytes) == 1) sum.bytes += kilobytes << 10;
    for (const char* const field : {"AnonHugePages: %" SCNu64, "ShmemPmdMapped: %" SCNu64, "FilePmdMapped: %" SCNu64})
      if (std::sscanf(line.c_str(), field, &kilobytes) == 1) sum.huge_bytes += kilobytes << 10;
  }
  return sum;
}

page_share pages_of_process(std::string_view path) {
  std::ifstream smaps("/proc/self/smaps");
  return pages_in(smaps, path);
}

page_share pages_of_file(const std::string& path) {
  constexpr int madv_populate_read = 22;
  const descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    return {};
  // The kernel maps 2 MB pages only where their addresses are those of such pages in the file, too.
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* const room =
      ::mmap(nullptr, bytes + media::huge_page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return {};
  const std::size_t over = reinterpret_cast<std::uintptr_t>(room) % media::huge_page_bytes;
  char* const begin = static_cast<char*>(room) + (media::huge_page_bytes - over);
  page_share found;
  if (::mmap(begin, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED) {
    // A page that is not mapped is not counted.
    for_each_part_with_data(file.get(), bytes, [&](std::uint64_t at, std::uint64_t length) {
      static_cast<void>(::madvise(begin + at, length, madv_populate_read));
    });
    std::error_code unknown;
    found = pages_of_process(std::filesystem::canonical(path, unknown).string());
  }
  ::munmap(room, bytes + media::huge_page_bytes);
  return found;
}

void stay_on_small_pages() {
  if (::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
    throw error(std::string("the kernel does not keep this process on 4 KB pages: ") + std::strerror(errno),
                "leave out --pages 4K");
}

void move_to_huge_pages() {
  // All of them first: to move one changes the list.
  std::vector<mapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (std::optional<mapping> m = mapping_of(line); m && m->is_large() && m->is_writable) found.push_back(*m);
  for (const mapping& m : found) {
    if (!m.has_no_file() && !m.name.starts_with('/')) continue;
    // The kernel refuses files that are not on tmpfs.
    media::collapse_to_huge_pages(reinterpret_cast<void*>(m.from), m.to - m.from);
  }
}

}  // namespace pmlab::bench
