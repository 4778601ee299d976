// mmap and its family, in place of the C library's.
#include "checker/simulator/machine/pool_file.hpp"
#include "checker/simulator/machine/caller.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/real.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pmlab::simulator {
namespace {

struct served_file {
  std::string path;
  persistent_memory* memory = nullptr;
};

// The most libraries of a run. Not a vector: its allocations in a run would outlive the run.
using served_files = std::array<served_file, 32>;
served_files& served() {
  static served_files files;
  return files;
}

// Read before any constructor has run: the C library maps memory early.
unsigned serves = 0;

// The memory of the file behind `file`; nullptr: it is not served.
persistent_memory* memory_of(int file) {
  if (serves == 0 || file < 0) return nullptr;
  std::array<char, 64> link;
  std::array<char, 4096> path;
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  if (length <= 0) return nullptr;
  const std::string_view name(path.data(), static_cast<std::size_t>(length));
  for (const served_file& f : served())
    if (f.memory != nullptr && name.starts_with(f.path) && (name.size() == f.path.size() || name[f.path.size()] == '/'))
      return f.memory;
  return nullptr;
}

// Where the next mapping of a library of simulated code lies, whatever else is mapped: the kernel's choice would depend
// on that. Never where one was before. nullptr: the kernel chooses.
void* place_for(std::size_t bytes, int flags, const void* caller) noexcept {
  const machine& m = the_machine();
  if ((flags & MAP_ANONYMOUS) == 0 || !m.heap_of_libraries() || !m.owns_blocks_of(caller)) return nullptr;
  static std::uintptr_t next = mapped_by_libraries;
  return reinterpret_cast<void*>(
      std::exchange(next, next + (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes));
}

void* map(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset, const void* caller) {
  persistent_memory* const found = (flags & MAP_TYPE) != MAP_PRIVATE ? memory_of(file) : nullptr;
  if (found != nullptr) {
    persistent_memory& memory = *found;
    const bool fixed = (flags & MAP_FIXED) != 0 && address != memory.start();
    if (fixed || offset != 0 || bytes > memory.bytes()) {
      std::fprintf(stderr,
                   "pmlab: the library maps %zu bytes of its pool at offset %ld%s; the simulated machine serves one "
                   "mapping of the whole file, of at most %zu bytes\n",
                   bytes, static_cast<long>(offset), fixed ? ", at a fixed address" : "", memory.bytes());
      errno = EINVAL;
      return MAP_FAILED;
    }
    return memory.start();
  }
  if (address == nullptr) address = place_for(bytes, flags, caller);
  const long result = real::raw_mmap(address, bytes, protection, flags, file, offset);
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return MAP_FAILED;
  }
  if ((flags & MAP_ANONYMOUS) != 0) the_machine().has_mapped(reinterpret_cast<void*>(result), bytes);
  return reinterpret_cast<void*>(result);
}

bool in_served(const void* address) noexcept {
  if (serves == 0) return false;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  return std::any_of(served().begin(), served().end(),
                     [a](const served_file& f) { return f.memory != nullptr && f.memory->contains(a); });
}

}  // namespace

void serve_file(const std::string& path, persistent_memory* memory) {
  if (memory != nullptr) memory->cover_all();
  served_files& files = served();
  auto place = std::find_if(files.begin(), files.end(), [&](const served_file& f) { return f.path == path; });
  if (place == files.end() && memory == nullptr) return;
  if (place == files.end())
    place = std::find_if(files.begin(), files.end(), [](const served_file& f) { return f.memory == nullptr; });
  if (place == files.end()) throw std::runtime_error("the simulated machine serves too many files at once");
  *place = memory == nullptr ? served_file() : served_file{path, memory};
  serves = static_cast<unsigned>(
      std::count_if(files.begin(), files.end(), [](const served_file& f) { return f.memory != nullptr; }));
}

}  // namespace pmlab::simulator

using namespace pmlab::simulator;

extern "C" {

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return map(address, bytes, protection, flags, file, offset, PMLAB_CALLER);
}
void* mmap64(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return map(address, bytes, protection, flags, file, offset, PMLAB_CALLER);
}

// The memory stays: the file would.
int munmap(void* address, std::size_t bytes) noexcept {
  if (in_served(address)) return 0;
  the_machine().has_unmapped(address, bytes);
  const long result = real::raw_munmap(address, bytes);
  if (result == 0) return 0;
  errno = static_cast<int>(-result);
  return -1;
}

// As an unmapping and a mapping. A served file keeps its one mapping.
void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
  if (in_served(address)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  void* target = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    std::va_list more;
    va_start(more, flags);
    target = va_arg(more, void*);
    va_end(more);
  }
  machine& m = the_machine();
  m.quietly([] {});  // the stores in this thread's buffer come first
  const long result = real::functions().system_call(SYS_mremap, address, bytes, new_bytes, flags, target);
  if (result == -1) return MAP_FAILED;
  m.has_unmapped(address, bytes);
  m.has_mapped(reinterpret_cast<void*>(result), new_bytes);
  return reinterpret_cast<void*>(result);
}

// Flushes and waits.
int msync(void* address, std::size_t bytes, int flags) {
  if (!in_served(address)) return static_cast<int>(real::functions().system_call(SYS_msync, address, bytes, flags));
  machine& m = the_machine();
  pmlab::media::for_each_line(address, bytes,
                              [&](std::uintptr_t line) { m.flush(reinterpret_cast<const void*>(line), PMLAB_CALLER); });
  m.fence(PMLAB_CALLER, true);
  return 0;
}

// A served file needs a size and no blocks: its bytes are elsewhere.
int posix_fallocate(int file, off_t offset, off_t bytes) {
  if (memory_of(file) != nullptr) {
    struct stat status {};
    if (::fstat(file, &status) == 0 && status.st_size >= offset + bytes) return 0;
    return ::ftruncate(file, offset + bytes) == 0 ? 0 : errno;
  }
  return real::functions().system_call(SYS_fallocate, file, 0, offset, bytes) == 0 ? 0 : errno;
}
int posix_fallocate64(int file, off_t offset, off_t bytes) { return posix_fallocate(file, offset, bytes); }
}
