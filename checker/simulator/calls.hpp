// The functions that simulated code calls: the interface between a target built by `pmlab_simulate` and the machine.
//
// Compilers call the functions of -fsanitize=thread (machine/hooks.cpp); the assembler stubs, the wrapped memory
// functions and the medium `simulated` call these. All of them may be called from any fiber; outside a run they only
// perform the named operation. `caller` is the address in the simulated code, for reports.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// instruction: 0 clwb, 1 clflushopt, 2 clflush. Writes the line of `address` back.
void pmlab_machine_flush(const void* address, unsigned instruction, const void* caller) noexcept;

// instruction: 0 sfence, 1 mfence. Waits for this thread's write-backs and non-temporal stores.
void pmlab_machine_fence(unsigned instruction, const void* caller) noexcept;

// Called before a non-temporal store of `bytes` bytes.
void pmlab_machine_ntstore(void* address, std::size_t bytes, const void* caller) noexcept;

// A prefetch of `bytes` bytes, in place of the instruction (instrument/prelude.h).
void pmlab_machine_prefetch(const void* address, std::size_t bytes) noexcept;

// Called before a plain store, or load, that the compiler did not report.
void pmlab_machine_store(void* address, std::size_t bytes, const void* caller) noexcept;
void pmlab_machine_load(const void* address, std::size_t bytes, const void* caller) noexcept;

// Virtual time of the calling fiber, in picoseconds; 0 if no clock runs. media/clock.hpp, which must not depend on a
// simulator, declares it too. NOLINTNEXTLINE(readability-redundant-declaration)
std::uint64_t pmlab_machine_now() noexcept;

// From begin to end, accesses of the calling fiber take virtual time; outside they are free. No effect in other runs.
void pmlab_machine_begin_timing() noexcept;
void pmlab_machine_end_timing() noexcept;

// ---- several hosts on one memory ----

// How many there are, and the number of the one that the calling fiber runs on.
unsigned pmlab_machine_hosts() noexcept;
unsigned pmlab_machine_host() noexcept;
// False: the host has died, and this is known. True for some time behind its death.
bool pmlab_machine_host_is_alive(unsigned host) noexcept;
// Whether the line of `address` is the same for all hosts.
bool pmlab_machine_is_coherent(const void* address) noexcept;
// A compare-exchange by the device, atomic for all hosts. `expected` becomes the value that was there; true: equal, and
// `desired` was stored.
bool pmlab_machine_device_exchange(std::uint64_t* word, std::uint64_t* expected, std::uint64_t desired,
                                   const void* caller) noexcept;

// ---- the medium `simulated`: memories of the machine, by handles ----

// `current`: the memory that the machine observes, nullptr if there is none.
void* pmlab_memory_current() noexcept;
// A separate memory, whose stores are not logged. nullptr: no space.
void* pmlab_memory_make(std::size_t bytes) noexcept;
void pmlab_memory_drop(void* memory) noexcept;
void* pmlab_memory_start(const void* memory) noexcept;
std::size_t pmlab_memory_bytes(const void* memory) noexcept;
std::size_t pmlab_memory_allocated(const void* memory) noexcept;

// Blocks: nullptr if there is no room; reserved ones go back by cancel, or are kept by a publication.
void* pmlab_memory_reserve(void* memory, std::size_t bytes, std::size_t alignment) noexcept;
// The same in the coherent part of a memory that several hosts share; anywhere, if that has no room or all is alike.
void* pmlab_memory_reserve_coherent(void* memory, std::size_t bytes, std::size_t alignment) noexcept;
void pmlab_memory_cancel(void* memory, void* block) noexcept;

// The medium in DRAM of an index on the machine: false: it shall have no room for the next block.
bool pmlab_machine_has_room(std::size_t bytes) noexcept;

// One change of a publication. All of a publication becomes durable at one instant.
struct pmlab_change {
  unsigned kind;  // 0 keep the reserved block at `address`, 1 store `value` there, 2 release `value` bytes there
  void* address;
  std::uint64_t value;
};
void pmlab_memory_publish(void* memory, const pmlab_change* changes, std::size_t count, const void* caller) noexcept;

// ---- the device `simulated_drive`: drives of the machine, by handles ----

struct pmlab_drive_shape {
  std::uint64_t blocks;
  std::uint32_t block_bytes;
  std::uint32_t atomic_bytes;
  std::uint32_t volatile_cache;
};
struct pmlab_drive_request {
  unsigned what;  // blocks::operation
  std::uint32_t count;
  std::uint64_t first;
  void* data;
  std::uint64_t tag;
};

// The one with this number that the machine observes, nullptr if there is none.
void* pmlab_drive_watched(unsigned number) noexcept;
// A separate drive, which no crash cuts off. nullptr: impossible shape.
void* pmlab_drive_make(const pmlab_drive_shape* shape) noexcept;
void pmlab_drive_drop(void* drive) noexcept;
void pmlab_drive_shape_of(const void* drive, pmlab_drive_shape* shape) noexcept;

// A queue belongs to one thread. Closing it waits for its requests.
void* pmlab_drive_open_queue(void* drive) noexcept;
void pmlab_drive_close_queue(void* queue) noexcept;
// The queue has room. A request beyond the end of the drive is refused; otherwise it is possible.
void pmlab_drive_submit(void* queue, const pmlab_drive_request* request, const void* caller) noexcept;
// Waits until at least so many are there (or all in flight, if these are fewer); writes at most `room` tags. Requests
// succeed, unless they were refused.
std::size_t pmlab_drive_reap(void* queue, std::uint64_t* tags, std::size_t room, std::size_t at_least,
                             const void* caller) noexcept;
// The request with this tag, which was reaped, was refused. True once.
bool pmlab_drive_was_refused(void* queue, std::uint64_t tag) noexcept;
std::size_t pmlab_drive_in_flight(const void* queue) noexcept;  // submitted and not reaped
}
