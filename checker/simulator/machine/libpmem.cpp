// libpmem, in place of the real one: its stores, flushes and fences are observed, and pools are the machine's memory.
//
// Declared here rather than included: the program need not have libpmem.
#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/caller.hpp"
#include "checker/simulator/machine/machine.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using pmlab::simulator::the_machine;

// Flags of libpmem's interface.
constexpr int file_create = 1 << 0;
constexpr int file_exclusive = 1 << 1;
constexpr unsigned no_drain = 1U << 0;
constexpr unsigned no_flush = 1U << 5;

// Stores of code that is not instrumented (libpmemobj) are recorded here, at their flush.
void flush(const void* address, std::size_t bytes, const void* caller) {
  pmlab::media::for_each_line(address, bytes, [caller](std::uintptr_t line) {
    the_machine().stored_unseen(reinterpret_cast<const void*>(line), caller);
    the_machine().flush(reinterpret_cast<const void*>(line), caller);
  });
}

// Runs `store`, which writes [target, target + bytes), and makes it durable as `flags` request.
template <class Store>
void* store(void* target, std::size_t bytes, unsigned flags, const void* caller, Store&& do_store) {
  pmlab_machine_store(target, bytes, caller);
  do_store();
  if ((flags & no_flush) == 0) flush(target, bytes, caller);
  if ((flags & (no_flush | no_drain)) == 0) the_machine().fence(caller);
  return target;
}

}  // namespace

extern "C" {

void pmem_flush(const void* address, std::size_t bytes) { flush(address, bytes, PMLAB_CALLER); }
void pmem_deep_flush(const void* address, std::size_t bytes) { flush(address, bytes, PMLAB_CALLER); }
void pmem_drain() { the_machine().fence(PMLAB_CALLER); }
int pmem_deep_drain(const void*, std::size_t) {
  the_machine().fence(PMLAB_CALLER);
  return 0;
}
void pmem_persist(const void* address, std::size_t bytes) {
  flush(address, bytes, PMLAB_CALLER);
  the_machine().fence(PMLAB_CALLER);
}
int pmem_deep_persist(const void* address, std::size_t bytes) {
  flush(address, bytes, PMLAB_CALLER);
  the_machine().fence(PMLAB_CALLER);
  return 0;
}
int pmem_msync(const void* address, std::size_t bytes) {
  flush(address, bytes, PMLAB_CALLER);
  the_machine().fence(PMLAB_CALLER);
  return 0;
}
int pmem_is_pmem(const void*, std::size_t) { return 1; }
int pmem_has_auto_flush() { return the_machine().caches_survive() ? 1 : 0; }
int pmem_has_hw_drain() { return 0; }

void* pmem_memmove(void* target, const void* source, std::size_t bytes, unsigned flags) {
  return store(target, bytes, flags, PMLAB_CALLER, [=] { std::memmove(target, source, bytes); });
}
void* pmem_memcpy(void* target, const void* source, std::size_t bytes, unsigned flags) {
  return store(target, bytes, flags, PMLAB_CALLER, [=] { std::memmove(target, source, bytes); });
}
void* pmem_memset(void* target, int byte, std::size_t bytes, unsigned flags) {
  return store(target, bytes, flags, PMLAB_CALLER, [=] { std::memset(target, byte, bytes); });
}
void* pmem_memmove_persist(void* target, const void* source, std::size_t bytes) {
  return store(target, bytes, 0, PMLAB_CALLER, [=] { std::memmove(target, source, bytes); });
}
void* pmem_memcpy_persist(void* target, const void* source, std::size_t bytes) {
  return store(target, bytes, 0, PMLAB_CALLER, [=] { std::memmove(target, source, bytes); });
}
void* pmem_memset_persist(void* target, int byte, std::size_t bytes) {
  return store(target, bytes, 0, PMLAB_CALLER, [=] { std::memset(target, byte, bytes); });
}
void* pmem_memmove_nodrain(void* target, const void* source, std::size_t bytes) {
  return store(target, bytes, no_drain, PMLAB_CALLER, [=] { std::memmove(target, source, bytes); });
}
void* pmem_memcpy_nodrain(void* target, const void* source, std::size_t bytes) {
  return store(target, bytes, no_drain, PMLAB_CALLER, [=] { std::memmove(target, source, bytes); });
}
void* pmem_memset_nodrain(void* target, int byte, std::size_t bytes) {
  return store(target, bytes, no_drain, PMLAB_CALLER, [=] { std::memset(target, byte, bytes); });
}

// Length 0: the file's own.
void* pmem_map_file(const char* path, std::size_t bytes, int flags, mode_t mode, std::size_t* mapped, int* is_pmem) {
  int how = O_RDWR;
  if ((flags & file_create) != 0) how |= O_CREAT;
  if ((flags & file_exclusive) != 0) how |= O_EXCL;
  const int file = ::open(path, how, mode);
  if (file < 0) return nullptr;
  struct stat status {};
  if (bytes != 0 && (flags & file_create) != 0 && ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    ::close(file);
    return nullptr;
  }
  if (bytes == 0 && ::fstat(file, &status) == 0) bytes = static_cast<std::size_t>(status.st_size);
  void* const area = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  errno = error;
  if (area == MAP_FAILED) return nullptr;
  if (mapped != nullptr) *mapped = bytes;
  if (is_pmem != nullptr) *is_pmem = 1;
  return area;
}
int pmem_unmap(void* address, std::size_t bytes) { return ::munmap(address, bytes); }
const char* pmem_errormsg() { return std::strerror(errno); }
const char* pmem_check_version(unsigned, unsigned) { return nullptr; }
}
