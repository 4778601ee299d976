// The functions that -fsanitize=thread makes the compiler call, at every load, store and atomic operation.
//
// Their names and signatures are the compilers': g++ 12 and clang++ 14 agree on them but for a few forms of the latter.
// A plain access is announced before it happens and carries no value; the value of a store is taken from memory when
// anything else happens on this machine. Atomic operations are done here, and carry their value.
#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/caller.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine_counts.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

using pmlab::simulator::access_kind;
using pmlab::simulator::machine;
using pmlab::simulator::the_machine;
using pmlab::simulator::timing;

namespace {

using int8 = std::uint8_t;
using int16 = std::uint16_t;
using int32 = std::uint32_t;
using int64 = std::uint64_t;
__extension__ using int128 = unsigned __int128;

// One kernel thread runs everything: the operations themselves need no lock, and the actual order is never weaker than
// the requested one.
template <class T>
T atomic_load(const volatile T* address, const void* caller) {
  the_machine().access(const_cast<const T*>(address), sizeof(T), access_kind::atomic_read, caller);
  return *address;
}

// With sequentially consistent order it is an exchange, which waits for all that was stored before.
template <class T>
void atomic_store(volatile T* address, T value, int order, const void* caller) {
  machine& m = the_machine();
  const bool exchange = order == __ATOMIC_SEQ_CST;
  m.access(const_cast<T*>(address), sizeof(T), exchange ? access_kind::read_modify_write : access_kind::atomic_write,
           caller);
  if (exchange) m.locked_instruction();
  *address = value;
  m.stored_atomically(const_cast<T*>(address), sizeof(T), caller);
}

timing::media_traffic traffic() noexcept {
  const machine& m = the_machine();
  return m.running() && m.cost() != nullptr ? m.cost()->traffic() : timing::media_traffic{};
}

// change(old) is the new value. Returns the old one.
template <class T, class Change>
T read_modify_write(volatile T* address, const void* caller, Change&& change) {
  machine& m = the_machine();
  m.access(const_cast<T*>(address), sizeof(T), access_kind::read_modify_write, caller);
  m.locked_instruction();
  const T old = *address;
  *address = change(old);
  m.stored_atomically(const_cast<T*>(address), sizeof(T), caller);
  return old;
}

template <class T>
bool compare_exchange(volatile T* address, T* expected, T desired, const void* caller) {
  machine& m = the_machine();
  m.access(const_cast<T*>(address), sizeof(T), access_kind::read_modify_write, caller);
  m.locked_instruction();
  const T old = *address;
  if (old != *expected) {
    *expected = old;
    m.exchange_failed(const_cast<T*>(address), sizeof(T), caller);
    return false;
  }
  *address = desired;
  m.stored_atomically(const_cast<T*>(address), sizeof(T), caller);
  return true;
}

}  // namespace

// Macros, because the names of these functions are made of sizes and operations.
#define PMLAB_PLAIN(bytes)                                                                                          \
  void __tsan_read##bytes(void* a) { the_machine().plain_read(a, bytes, PMLAB_CALLER); }                            \
  void __tsan_write##bytes(void* a) { the_machine().access(a, bytes, access_kind::write, PMLAB_CALLER); }           \
  void __tsan_unaligned_read##bytes(void* a) { the_machine().plain_read(a, bytes, PMLAB_CALLER); }                  \
  void __tsan_unaligned_write##bytes(void* a) { the_machine().access(a, bytes, access_kind::write, PMLAB_CALLER); } \
  void __tsan_volatile_read##bytes(void* a) { the_machine().access(a, bytes, access_kind::read, PMLAB_CALLER); }    \
  void __tsan_volatile_write##bytes(void* a) { the_machine().access(a, bytes, access_kind::write, PMLAB_CALLER); }  \
  void __tsan_unaligned_volatile_read##bytes(void* a) {                                                             \
    the_machine().access(a, bytes, access_kind::read, PMLAB_CALLER);                                                \
  }                                                                                                                 \
  void __tsan_unaligned_volatile_write##bytes(void* a) {                                                            \
    the_machine().access(a, bytes, access_kind::write, PMLAB_CALLER);                                               \
  }                                                                                                                 \
  void __tsan_read_write##bytes(void* a) { the_machine().access(a, bytes, access_kind::write, PMLAB_CALLER); }      \
  void __tsan_unaligned_read_write##bytes(void* a) { the_machine().access(a, bytes, access_kind::write, PMLAB_CALLER); }

#define PMLAB_FETCH(bits, name, expression)                                                          \
  int##bits __tsan_atomic##bits##_fetch_##name(volatile int##bits* a, int##bits value, int) {        \
    return read_modify_write(a, PMLAB_CALLER, [=](int##bits old) { return int##bits(expression); }); \
  }

#define PMLAB_ATOMIC(bits)                                                                                            \
  int##bits __tsan_atomic##bits##_load(const volatile int##bits* a, int) { return atomic_load(a, PMLAB_CALLER); }     \
  void __tsan_atomic##bits##_store(volatile int##bits* a, int##bits value, int order) {                               \
    atomic_store(a, value, order, PMLAB_CALLER);                                                                      \
  }                                                                                                                   \
  int##bits __tsan_atomic##bits##_exchange(volatile int##bits* a, int##bits value, int) {                             \
    return read_modify_write(a, PMLAB_CALLER, [=](int##bits) { return value; });                                      \
  }                                                                                                                   \
  PMLAB_FETCH(bits, add, old + value)                                                                                 \
  PMLAB_FETCH(bits, sub, old - value)                                                                                 \
  PMLAB_FETCH(bits, and, old& value)                                                                                  \
  PMLAB_FETCH(bits, or, old | value)                                                                                  \
  PMLAB_FETCH(bits, xor, old ^ value)                                                                                 \
  PMLAB_FETCH(bits, nand, ~(old & value))                                                                             \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile int##bits* a, int##bits* expected, int##bits value, int, \
                                                    int) {                                                            \
    return compare_exchange(a, expected, value, PMLAB_CALLER) ? 1 : 0;                                                \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile int##bits* a, int##bits* expected, int##bits value, int,   \
                                                  int) {                                                              \
    return compare_exchange(a, expected, value, PMLAB_CALLER) ? 1 : 0;                                                \
  }                                                                                                                   \
  int##bits __tsan_atomic##bits##_compare_exchange_val(volatile int##bits* a, int##bits expected, int##bits value,    \
                                                       int, int) {                                                    \
    compare_exchange(a, &expected, value, PMLAB_CALLER);                                                              \
    return expected;                                                                                                  \
  }

// The compilers chose these names. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}

PMLAB_PLAIN(1)
PMLAB_PLAIN(2)
PMLAB_PLAIN(4)
PMLAB_PLAIN(8)
PMLAB_PLAIN(16)

PMLAB_ATOMIC(8)
PMLAB_ATOMIC(16)
PMLAB_ATOMIC(32)
PMLAB_ATOMIC(64)
PMLAB_ATOMIC(128)

void __tsan_read_range(void* a, std::size_t bytes) { the_machine().read_range(a, bytes, PMLAB_CALLER); }
void __tsan_write_range(void* a, std::size_t bytes) { the_machine().write_range(a, bytes, PMLAB_CALLER); }

void __tsan_vptr_update(void** a, void*) { the_machine().access(a, sizeof(void*), access_kind::write, PMLAB_CALLER); }
void __tsan_vptr_read(void** a) { the_machine().access(a, sizeof(void*), access_kind::read, PMLAB_CALLER); }

// An mfence, also if the program requests a sequentially consistent one.
void __tsan_atomic_thread_fence(int order) {
  if (order == __ATOMIC_SEQ_CST) the_machine().fence(PMLAB_CALLER, true);
}
void __tsan_atomic_signal_fence(int) {}

// clang calls these in place of the C library's.
void* __tsan_memcpy(void* target, const void* source, std::size_t bytes) {
  pmlab_machine_load(source, bytes, PMLAB_CALLER);
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  return __builtin_memcpy(target, source, bytes);
}
void* __tsan_memmove(void* target, const void* source, std::size_t bytes) {
  pmlab_machine_load(source, bytes, PMLAB_CALLER);
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  return __builtin_memmove(target, source, bytes);
}
void* __tsan_memset(void* target, int byte, std::size_t bytes) {
  pmlab_machine_store(target, bytes, PMLAB_CALLER);
  return __builtin_memset(target, byte, bytes);
}

// NOLINTEND(bugprone-reserved-identifier)

void pmlab_machine_flush(const void* address, unsigned instruction, const void* caller) noexcept {
  constexpr unsigned clwb = 0;
  the_machine().flush(address, caller, instruction != clwb);
}
void pmlab_machine_fence(unsigned instruction, const void* caller) noexcept {
  constexpr unsigned mfence = 1;
  the_machine().fence(caller, instruction == mfence);
}
void pmlab_machine_ntstore(void* address, std::size_t bytes, const void* caller) noexcept {
  the_machine().store_around(address, bytes, caller);
}
void pmlab_machine_prefetch(const void* address, std::size_t bytes) noexcept { the_machine().prefetch(address, bytes); }
void pmlab_machine_store(void* address, std::size_t bytes, const void* caller) noexcept {
  if (bytes != 0) the_machine().announced_store(address, bytes, caller);
}
void pmlab_machine_load(const void* address, std::size_t bytes, const void* caller) noexcept {
  if (bytes != 0) the_machine().access(address, bytes, access_kind::read, caller);
}

std::uint64_t pmlab_machine_now() noexcept {
  const machine& m = the_machine();
  return m.running() ? m.current()->clock : 0;
}
unsigned pmlab_machine_persistence() noexcept { return static_cast<unsigned>(the_machine().loses_power_as()); }
std::uint64_t pmlab_machine_flushes() noexcept { return the_machine().persists().flushes; }
std::uint64_t pmlab_machine_fences() noexcept { return the_machine().persists().fences; }
std::uint64_t pmlab_machine_media_bytes_read() noexcept { return traffic().read; }
std::uint64_t pmlab_machine_media_bytes_written() noexcept { return traffic().written; }
std::uint64_t pmlab_machine_granule_bytes() noexcept { return traffic().granule; }
void pmlab_machine_begin_timing() noexcept { the_machine().begin_timing(); }
void pmlab_machine_end_timing() noexcept { the_machine().end_timing(); }
}
