// The C library's functions that read and write ranges, and libatomic's, as simulated code calls them: they inform the
// machine, and the library does the work. The assembler wrapper (as) gives calls these names. Not built as simulated
// code.
#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/caller.hpp"

#include <cstddef>
#include <cstring>

#include <strings.h>

namespace {

constexpr unsigned mfence = 1;

// The store is last: its value is visible when the machine handles the next event.
void reads_and_writes(void* target, const void* source, std::size_t bytes, const void* caller) noexcept {
  pmlab_machine_load(source, bytes, caller);
  pmlab_machine_store(target, bytes, caller);
}

}  // namespace

extern "C" {

void* pmlab_memcpy(void* target, const void* source, std::size_t bytes) noexcept {
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  return std::memcpy(target, source, bytes);
}

void* pmlab_memmove(void* target, const void* source, std::size_t bytes) noexcept {
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  return std::memmove(target, source, bytes);
}

void* pmlab_mempcpy(void* target, const void* source, std::size_t bytes) noexcept {
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  return static_cast<char*>(std::memcpy(target, source, bytes)) + bytes;
}

void* pmlab_memset(void* target, int byte, std::size_t bytes) noexcept {
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  return std::memset(target, byte, bytes);
}

void pmlab_bzero(void* target, std::size_t bytes) noexcept {
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  std::memset(target, 0, bytes);
}

int pmlab_memcmp(const void* left, const void* right, std::size_t bytes) noexcept {
  pmlab_machine_load(left, bytes, PMLAB_CALLER);
  pmlab_machine_load(right, bytes, PMLAB_CALLER);
  return std::memcmp(left, right, bytes);
}

char* pmlab_strcpy(char* target, const char* source) noexcept {
  const std::size_t bytes = std::strlen(source) + 1;
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  std::memcpy(target, source, bytes);
  return target;
}

char* pmlab_strncpy(char* target, const char* source, std::size_t bytes) noexcept {
  const std::size_t length = strnlen(source, bytes);
  pmlab_machine_load(source, length < bytes ? length + 1 : bytes, PMLAB_CALLER);
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  std::memcpy(target, source, length);
  std::memset(target + length, 0, bytes - length);
  return target;
}

// The functions of _FORTIFY_SOURCE, which checked the sizes where it could.
void* pmlab_memcpy_chk(void* target, const void* source, std::size_t bytes, std::size_t room) noexcept {
  if (bytes > room) __builtin_trap();
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  return std::memcpy(target, source, bytes);
}

void* pmlab_memmove_chk(void* target, const void* source, std::size_t bytes, std::size_t room) noexcept {
  if (bytes > room) __builtin_trap();
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  return std::memmove(target, source, bytes);
}

void* pmlab_mempcpy_chk(void* target, const void* source, std::size_t bytes, std::size_t room) noexcept {
  if (bytes > room) __builtin_trap();
  reads_and_writes(target, source, bytes, PMLAB_CALLER);
  return static_cast<char*>(std::memcpy(target, source, bytes)) + bytes;
}

void* pmlab_memset_chk(void* target, int byte, std::size_t bytes, std::size_t room) noexcept {
  if (bytes > room) __builtin_trap();
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  return std::memset(target, byte, bytes);
}

// The functions of libatomic, for sizes that the CPU has no atomic instruction for. The machine is one kernel thread,
// and no other simulated thread runs between the report and the copy.
void pmlab_atomic_load(std::size_t bytes, const void* object, void* result, int) noexcept {
  pmlab_machine_load(object, bytes, PMLAB_CALLER);
  std::memcpy(result, object, bytes);
}

// They take a lock: all of such an operation is one to other threads.
void pmlab_atomic_store(std::size_t bytes, void* object, const void* value, int) noexcept {
  pmlab_machine_fence(mfence, PMLAB_CALLER);
  pmlab_machine_store(object, bytes, PMLAB_CALLER);
  std::memcpy(object, value, bytes);
}

void pmlab_atomic_exchange(std::size_t bytes, void* object, const void* value, void* result, int) noexcept {
  pmlab_machine_load(object, bytes, PMLAB_CALLER);
  pmlab_machine_fence(mfence, PMLAB_CALLER);
  pmlab_machine_store(object, bytes, PMLAB_CALLER);
  std::memcpy(result, object, bytes);
  std::memcpy(object, value, bytes);
}

bool pmlab_atomic_compare_exchange(std::size_t bytes, void* object, void* expected, const void* value, int,
                                   int) noexcept {
  pmlab_machine_load(object, bytes, PMLAB_CALLER);
  pmlab_machine_fence(mfence, PMLAB_CALLER);
  pmlab_machine_store(object, bytes, PMLAB_CALLER);
  if (std::memcmp(object, expected, bytes) != 0) {
    std::memcpy(expected, object, bytes);
    return false;
  }
  std::memcpy(object, value, bytes);
  return true;
}
}
