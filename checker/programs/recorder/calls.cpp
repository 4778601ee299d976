// The functions of the C library and of libpmem that the recorder takes the place of, and its begin and end.
#include "checker/programs/recorder/log.hpp"
#include "checker/programs/recorder/pool.hpp"
#include "checker/programs/recorder/steps.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define PMLAB_EXPORT extern "C" __attribute__((visibility("default")))

namespace pmlab::programs::recorder {
namespace {

// The next definition after ours.
template <class Function>
Function real(const char* name) noexcept {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_of_the_pool(const void* address) noexcept {
  if (!is_recording()) return false;
  const locked own;
  return holds(address);
}

void record_flush(const void* address, std::size_t bytes) noexcept {
  const locked own;
  flush(address, bytes, false, this_stack());
}

void record_fence() noexcept {
  if (!is_recording()) return;
  const locked own;
  fence(this_stack());
}

// Flags of libpmem.
constexpr unsigned no_drain = 1, no_flush = 32;

void record_copy(void* target, const void* source, int value, std::size_t bytes, unsigned flags) noexcept {
  // The ranges may overlap, and lines are stored one by one.
  void* const buffer = source != nullptr && bytes != 0 ? std::malloc(bytes) : nullptr;
  if (buffer != nullptr) std::memcpy(buffer, source, bytes);
  {
    const locked own;
    const std::uint32_t stack = this_stack();
    store(target, buffer, value, bytes, stack);
    if ((flags & no_flush) == 0) flush(target, bytes, false, stack);
    if ((flags & (no_flush | no_drain)) == 0) fence(stack);
  }
  std::free(buffer);
}

void* copy(void* target, const void* source, std::size_t bytes, unsigned flags) noexcept {
  if (bytes != 0 && is_of_the_pool(target)) {
    record_copy(target, source, 0, bytes, flags);
    return target;
  }
  using function = void* (*)(void*, const void*, std::size_t, unsigned);
  return real<function>("pmem_memmove")(target, source, bytes, flags);
}

void* set(void* target, int value, std::size_t bytes, unsigned flags) noexcept {
  if (bytes != 0 && is_of_the_pool(target)) {
    record_copy(target, nullptr, value, bytes, flags);
    return target;
  }
  using function = void* (*)(void*, int, std::size_t, unsigned);
  return real<function>("pmem_memset")(target, value, bytes, flags);
}

void pin() noexcept {
  // On one processor, a store of another thread beside a step is rare.
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof(all), &all) != 0) return;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &all)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    ::syscall(SYS_sched_setaffinity, 0, sizeof(one), &one);
    return;
  }
}

__attribute__((constructor)) void begin() noexcept {
  open_log();
  if (!is_recording()) return;
  // Processes that the program starts are no part of it.
  ::unsetenv("LD_PRELOAD");
  ::unsetenv(record_variable);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // without pmlab its run is of no use
  pin();
  watch_stores();
}

__attribute__((destructor)) void end() noexcept { finish(); }

}  // namespace
}  // namespace pmlab::programs::recorder

using namespace pmlab::programs;  // NOLINT: the functions below are all of this file
namespace rec = pmlab::programs::recorder;

// The system's.

PMLAB_EXPORT void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  const long at = ::syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  if (at == -1) return MAP_FAILED;
  auto* const mapped = reinterpret_cast<void*>(at);
  if (!rec::is_recording()) return mapped;
  const rec::locked own;
  if ((flags & MAP_FIXED) != 0) rec::remove_mapping(mapped, bytes);
  const int shared = flags & MAP_TYPE;
  if ((shared == MAP_SHARED || shared == MAP_SHARED_VALIDATE) && (flags & MAP_ANONYMOUS) == 0 &&
      (protection & PROT_WRITE) != 0)
    rec::add_mapping(mapped, bytes, file, static_cast<std::uint64_t>(offset));
  return mapped;
}

PMLAB_EXPORT void* mmap64(void* address, std::size_t bytes, int protection, int flags, int file,
                          off_t offset) noexcept {
  return mmap(address, bytes, protection, flags, file, offset);
}

PMLAB_EXPORT int munmap(void* address, std::size_t bytes) noexcept {
  if (rec::is_recording()) {
    const rec::locked own;
    rec::remove_mapping(address, bytes);
  }
  return static_cast<int>(::syscall(SYS_munmap, address, bytes));
}

PMLAB_EXPORT int msync(void* address, std::size_t bytes, int flags) {
  if (!rec::is_of_the_pool(address)) return static_cast<int>(::syscall(SYS_msync, address, bytes, flags));
  const rec::locked own;
  const std::uint32_t stack = rec::this_stack();
  rec::flush(address, bytes, false, stack);
  rec::fence(stack);
  return 0;
}

PMLAB_EXPORT int fsync(int file) {
  if (rec::is_recording()) {
    const rec::locked own;
    if (rec::is_pool(file)) rec::sync(rec::this_stack());
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

PMLAB_EXPORT int fdatasync(int file) {
  if (rec::is_recording()) {
    const rec::locked own;
    if (rec::is_pool(file)) rec::sync(rec::this_stack());
  }
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}

// The kernel may not store to the pool either: it stores elsewhere first.
PMLAB_EXPORT ssize_t pread(int file, void* target, std::size_t bytes, off_t offset) {
  if (!rec::is_of_the_pool(target)) return ::syscall(SYS_pread64, file, target, bytes, offset);
  void* const buffer = std::malloc(bytes);
  const ssize_t got = ::syscall(SYS_pread64, file, buffer, bytes, offset);
  if (got > 0) rec::record_copy(target, buffer, 0, static_cast<std::size_t>(got), rec::no_flush);
  std::free(buffer);
  return got;
}

PMLAB_EXPORT ssize_t pread64(int file, void* target, std::size_t bytes, off_t offset) {
  return pread(file, target, bytes, offset);
}

PMLAB_EXPORT ssize_t read(int file, void* target, std::size_t bytes) {
  if (!rec::is_of_the_pool(target)) return ::syscall(SYS_read, file, target, bytes);
  void* const buffer = std::malloc(bytes);
  const ssize_t got = ::syscall(SYS_read, file, buffer, bytes);
  if (got > 0) rec::record_copy(target, buffer, 0, static_cast<std::size_t>(got), rec::no_flush);
  std::free(buffer);
  return got;
}

PMLAB_EXPORT pid_t fork() noexcept {
  if (rec::is_recording())
    rec::refuse("it makes a process by fork, and a crash state is one of one process", "let it do its work itself");
  return static_cast<pid_t>(::syscall(SYS_fork));
}

// It stays on the processor of pin().
PMLAB_EXPORT int sched_setaffinity(pid_t thread, std::size_t bytes, const cpu_set_t* wanted) noexcept {
  if (rec::is_recording()) return 0;
  return static_cast<int>(::syscall(SYS_sched_setaffinity, thread, bytes, wanted));
}

PMLAB_EXPORT int pthread_setaffinity_np(pthread_t thread, std::size_t bytes, const cpu_set_t* wanted) noexcept {
  if (rec::is_recording()) return 0;
  using function = int (*)(pthread_t, std::size_t, const cpu_set_t*);
  return rec::real<function>("pthread_setaffinity_np")(thread, bytes, wanted);
}

PMLAB_EXPORT void _exit(int status) {
  rec::finish();
  ::syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

PMLAB_EXPORT void _Exit(int status) { _exit(status); }

// pmlab's.

PMLAB_EXPORT void pmlab_recorder_mark(const char* text) {
  if (!rec::is_recording()) return;
  const rec::locked own;
  const std::size_t length = std::strlen(text);
  rec::append(event::mark, 0, 0, rec::this_stack(), text, length < most_mark_bytes ? length : most_mark_bytes);
}

// libpmem's.

PMLAB_EXPORT int pmem_is_pmem(const void* address, std::size_t bytes) {
  if (rec::is_of_the_pool(address)) return 1;
  return rec::real<int (*)(const void*, std::size_t)>("pmem_is_pmem")(address, bytes);
}

PMLAB_EXPORT int pmem_has_auto_flush() { return 0; }

PMLAB_EXPORT void pmem_flush(const void* address, std::size_t bytes) {
  if (rec::is_of_the_pool(address)) return rec::record_flush(address, bytes);
  rec::real<void (*)(const void*, std::size_t)>("pmem_flush")(address, bytes);
}

PMLAB_EXPORT void pmem_drain() { rec::record_fence(); }

PMLAB_EXPORT void pmem_persist(const void* address, std::size_t bytes) {
  pmem_flush(address, bytes);
  rec::record_fence();
}

PMLAB_EXPORT int pmem_msync(const void* address, std::size_t bytes) {
  if (!rec::is_of_the_pool(address)) return rec::real<int (*)(const void*, std::size_t)>("pmem_msync")(address, bytes);
  pmem_persist(address, bytes);
  return 0;
}

PMLAB_EXPORT void pmem_deep_flush(const void* address, std::size_t bytes) { pmem_flush(address, bytes); }

PMLAB_EXPORT int pmem_deep_drain(const void* /*address*/, std::size_t /*bytes*/) {
  rec::record_fence();
  return 0;
}

PMLAB_EXPORT int pmem_deep_persist(const void* address, std::size_t bytes) {
  pmem_persist(address, bytes);
  return 0;
}

PMLAB_EXPORT void* pmem_memmove(void* target, const void* source, std::size_t bytes, unsigned flags) {
  return rec::copy(target, source, bytes, flags);
}

PMLAB_EXPORT void* pmem_memcpy(void* target, const void* source, std::size_t bytes, unsigned flags) {
  return rec::copy(target, source, bytes, flags);
}

PMLAB_EXPORT void* pmem_memset(void* target, int value, std::size_t bytes, unsigned flags) {
  return rec::set(target, value, bytes, flags);
}

PMLAB_EXPORT void* pmem_memmove_persist(void* target, const void* source, std::size_t bytes) {
  return pmem_memmove(target, source, bytes, 0);
}

PMLAB_EXPORT void* pmem_memcpy_persist(void* target, const void* source, std::size_t bytes) {
  return pmem_memmove(target, source, bytes, 0);
}

PMLAB_EXPORT void* pmem_memset_persist(void* target, int value, std::size_t bytes) {
  return pmem_memset(target, value, bytes, 0);
}

PMLAB_EXPORT void* pmem_memmove_nodrain(void* target, const void* source, std::size_t bytes) {
  return pmem_memmove(target, source, bytes, rec::no_drain);
}

PMLAB_EXPORT void* pmem_memcpy_nodrain(void* target, const void* source, std::size_t bytes) {
  return pmem_memmove(target, source, bytes, rec::no_drain);
}

PMLAB_EXPORT void* pmem_memset_nodrain(void* target, int value, std::size_t bytes) {
  return pmem_memset(target, value, bytes, rec::no_drain);
}
