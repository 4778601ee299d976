// malloc and its family, and operator new: allocations of simulated code are in the machine's heap, all others in the C
// library's. A block is returned to its own heap, by any caller of free.
#include "checker/simulator/machine/caller.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/real.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

using pmlab::simulator::machine;
using pmlab::simulator::the_machine;

namespace {

constexpr std::size_t natural_alignment = 16;

bool simulated(const void* caller) noexcept { return the_machine().owns_blocks_of(caller); }

bool is_simulated(const void* block) noexcept {
  return pmlab::simulator::heap::contains(reinterpret_cast<std::uintptr_t>(block));
}

void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) noexcept {
  if (simulated(caller)) return the_machine().dram()->allocate(bytes, alignment, the_machine().block_owner_at(caller));
  return alignment <= natural_alignment ? __libc_malloc(bytes) : __libc_memalign(alignment, bytes);
}

void release(void* block) noexcept {
  if (block == nullptr) return;
  if (!is_simulated(block)) return __libc_free(block);
  the_machine().about_to_free(block);
  if (!the_machine().dram()->release(block) && the_machine().running())
    the_machine().violated("memory that is not allocated is freed: freed twice?");
}

// nullptr: the heap is full, or a limit refuses the block. malloc has none, as an exception is allocated by it.
void* new_or_null(std::size_t bytes, std::size_t alignment, const void* caller) noexcept {
  if (simulated(caller) && the_machine().limit_of_heap().refuses(bytes, 0)) return nullptr;
  return allocate(bytes, alignment, caller);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment, const void* caller) {
  void* const block = new_or_null(bytes, alignment, caller);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) noexcept { return allocate(bytes, natural_alignment, PMLAB_CALLER); }
void free(void* block) noexcept { release(block); }

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  if (!simulated(PMLAB_CALLER)) return __libc_calloc(count, bytes);
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  void* const block = allocate(all, natural_alignment, PMLAB_CALLER);
  if (block != nullptr) std::memset(block, 0, all);
  return block;
}

void* realloc(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return allocate(bytes, natural_alignment, PMLAB_CALLER);
  if (!is_simulated(block)) return __libc_realloc(block, bytes);
  void* const moved = allocate(bytes, natural_alignment, PMLAB_CALLER);
  if (moved == nullptr) return nullptr;
  const std::size_t before = the_machine().dram()->size_of(block);
  std::memcpy(moved, block, before < bytes ? before : bytes);
  release(block);
  return moved;
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept { return allocate(bytes, alignment, PMLAB_CALLER); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return allocate(bytes, alignment, PMLAB_CALLER);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  *block = allocate(bytes, alignment, PMLAB_CALLER);
  return *block == nullptr ? ENOMEM : 0;
}
}

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, natural_alignment, PMLAB_CALLER); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes, natural_alignment, PMLAB_CALLER); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(a), PMLAB_CALLER);
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(a), PMLAB_CALLER);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return new_or_null(bytes, natural_alignment, PMLAB_CALLER);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return new_or_null(bytes, natural_alignment, PMLAB_CALLER);
}
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return new_or_null(bytes, static_cast<std::size_t>(a), PMLAB_CALLER);
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return new_or_null(bytes, static_cast<std::size_t>(a), PMLAB_CALLER);
}
void operator delete(void* block) noexcept { release(block); }
void operator delete[](void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { release(block); }
