// What the compiler and the instrument call, for the test of forms. Every function here leaves the registers that a
// function may change in disorder, as the machine may.
#include "checker/tests/simulator/store_forms/recorder.hpp"

#include "checker/simulator/calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <execinfo.h>

#define CALLER __builtin_return_address(0)

namespace {

using forms::record;
using what = record::what;
using int8 = std::uint8_t;
using int16 = std::uint16_t;
using int32 = std::uint32_t;
using int64 = std::uint64_t;
__extension__ using int128 = unsigned __int128;

void keep(what kind, const volatile void* address, std::size_t bytes, const void* caller) {
  std::size_t beyond = 0;
  if (kind == what::flush || kind == what::fence) {
    std::array<void*, 32> frames;
    const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
    const auto end = frames.begin() + count;
    beyond = static_cast<std::size_t>(end - std::find(frames.begin(), end, caller));
  }
  record& r = forms::records().emplace_back();
  r = {kind, static_cast<const char*>(const_cast<const void*>(address)), bytes, caller, beyond, false, {}};
  std::memcpy(r.target_then.data(), forms::forms_target, r.target_then.size());
}

// g++ reports the copy of a structure as so many bytes written, as many read, and then copies: one event.
void keep_write(const void* address, std::size_t bytes, const void* caller) {
  keep(what::store, address, bytes, caller);
  forms::records().back().may_be_a_copy = true;
}
void keep_read(const void* address, std::size_t bytes, const void* caller) {
  const auto& all = forms::records();
  const bool copies = !all.empty() && all.back().may_be_a_copy && all.back().bytes == bytes &&
                      std::memcmp(all.back().target_then.data(), forms::forms_target, forms::area_bytes) == 0;
  if (!copies) keep(what::load, address, bytes, caller);
}

void disturb_registers() {
  asm volatile(
      "fninit; pcmpeqd %%xmm0, %%xmm0; movdqa %%xmm0, %%xmm1; movdqa %%xmm0, %%xmm7; movdqa %%xmm0, %%xmm8;"
      "movdqa %%xmm0, %%xmm15; xorl %%eax, %%eax; xorl %%ecx, %%ecx; xorl %%edx, %%edx; xorl %%esi, %%esi;"
      "xorl %%edi, %%edi; movl $-1, %%r8d; movl $-1, %%r9d; movl $-1, %%r10d; movl $-1, %%r11d; cmpl $1, %%eax"
      :
      :
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm7", "xmm8", "xmm15", "cc");
  if (__builtin_cpu_supports("avx")) asm volatile("vzeroall" ::: "memory");
  if (__builtin_cpu_supports("avx512f"))
    asm volatile(
        "kxnorw %%k1, %%k1, %%k1; kmovw %%k1, %%k2; kmovw %%k1, %%k7; vpternlogd $255, %%zmm16, %%zmm16, %%zmm16;"
        "vpternlogd $255, %%zmm31, %%zmm31, %%zmm31; vpternlogd $255, %%zmm3, %%zmm3, %%zmm3" ::
            : "memory");
}

template <class T>
T change(volatile T* address, T value, const void* caller) {
  const T old = *address;
  *address = value;
  keep(what::store_with_value, address, sizeof(T), caller);
  return old;
}

template <class T>
bool compare_exchange(volatile T* address, T* expected, T desired, const void* caller) {
  const T old = *address;
  if (old == *expected) {
    change(address, desired, caller);
    return true;
  }
  *expected = old;
  return false;
}

}  // namespace

// The names are the compilers'; the machine's own are in checker/simulator/machine/hooks.cpp.
#define PLAIN(bytes)                                                                     \
  void __tsan_read##bytes(void* a) { keep_read(a, bytes, CALLER); }                      \
  void __tsan_unaligned_read##bytes(void* a) { keep_read(a, bytes, CALLER); }            \
  void __tsan_volatile_read##bytes(void* a) { keep_read(a, bytes, CALLER); }             \
  void __tsan_unaligned_volatile_read##bytes(void* a) { keep_read(a, bytes, CALLER); }   \
  void __tsan_write##bytes(void* a) { keep_write(a, bytes, CALLER); }                    \
  void __tsan_unaligned_write##bytes(void* a) { keep_write(a, bytes, CALLER); }          \
  void __tsan_volatile_write##bytes(void* a) { keep_write(a, bytes, CALLER); }           \
  void __tsan_unaligned_volatile_write##bytes(void* a) { keep_write(a, bytes, CALLER); } \
  void __tsan_read_write##bytes(void* a) { keep_write(a, bytes, CALLER); }               \
  void __tsan_unaligned_read_write##bytes(void* a) { keep_write(a, bytes, CALLER); }

#define FETCH(bits, name, expression)                                                     \
  int##bits __tsan_atomic##bits##_fetch_##name(volatile int##bits* a, int##bits v, int) { \
    const int##bits old = *a;                                                             \
    return change(a, int##bits(expression), CALLER);                                      \
  }

#define ATOMIC(bits)                                                                                                 \
  int##bits __tsan_atomic##bits##_load(const volatile int##bits* a, int) {                                           \
    keep(what::load, a, sizeof *a, CALLER);                                                                          \
    return *a;                                                                                                       \
  }                                                                                                                  \
  void __tsan_atomic##bits##_store(volatile int##bits* a, int##bits v, int) { change(a, v, CALLER); }                \
  int##bits __tsan_atomic##bits##_exchange(volatile int##bits* a, int##bits v, int) { return change(a, v, CALLER); } \
  FETCH(bits, add, old + v)                                                                                          \
  FETCH(bits, sub, old - v)                                                                                          \
  FETCH(bits, and, old& v)                                                                                           \
  FETCH(bits, or, old | v)                                                                                           \
  FETCH(bits, xor, old ^ v)                                                                                          \
  FETCH(bits, nand, ~(old & v))                                                                                      \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile int##bits* a, int##bits* e, int##bits v, int, int) {    \
    return compare_exchange(a, e, v, CALLER);                                                                        \
  }                                                                                                                  \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile int##bits* a, int##bits* e, int##bits v, int, int) {      \
    return compare_exchange(a, e, v, CALLER);                                                                        \
  }                                                                                                                  \
  int##bits __tsan_atomic##bits##_compare_exchange_val(volatile int##bits* a, int##bits e, int##bits v, int, int) {  \
    compare_exchange(a, &e, v, CALLER);                                                                              \
    return e;                                                                                                        \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
ATOMIC(128)
void __tsan_read_range(void* a, std::size_t bytes) { keep_read(a, bytes, CALLER); }
void __tsan_write_range(void* a, std::size_t bytes) { keep_write(a, bytes, CALLER); }
void __tsan_vptr_update(void** a, void*) { keep(what::store, a, sizeof(void*), CALLER); }
void __tsan_vptr_read(void** a) { keep(what::load, a, sizeof(void*), CALLER); }
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
void* __tsan_memcpy(void* target, const void* source, std::size_t bytes) {
  keep(what::store, target, bytes, CALLER);
  return std::memcpy(target, source, bytes);
}
void* __tsan_memmove(void* target, const void* source, std::size_t bytes) {
  keep(what::store, target, bytes, CALLER);
  return std::memmove(target, source, bytes);
}
void* __tsan_memset(void* target, int byte, std::size_t bytes) {
  keep(what::store, target, bytes, CALLER);
  return std::memset(target, byte, bytes);
}

void pmlab_machine_flush(const void* address, unsigned instruction, const void* caller) noexcept {
  keep(what::flush, address, instruction, caller);
  disturb_registers();
}
void pmlab_machine_fence(unsigned instruction, const void* caller) noexcept {
  keep(what::fence, nullptr, instruction, caller);
  disturb_registers();
}
void pmlab_machine_ntstore(void* address, std::size_t bytes, const void* caller) noexcept {
  keep(what::store, address, bytes, caller);
  disturb_registers();
}
void pmlab_machine_store(void* address, std::size_t bytes, const void* caller) noexcept {
  keep(what::store, address, bytes, caller);
  disturb_registers();
}
void pmlab_machine_load(const void* address, std::size_t bytes, const void* caller) noexcept {
  keep(what::load, address, bytes, caller);
}
}
