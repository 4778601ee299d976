// Included first in every simulated source (-include).
//
// A copy of constant size becomes plain moves that no compiler reports, while a call is seen. -fno-builtin-memcpy makes
// calls of memcpy, but headers call __builtin_memcpy (libstdc++ everywhere).
//
// Nor does a compiler report a prefetch: this reports it to the machine. Its line arrives while the program continues.
#pragma once

#ifndef __ASSEMBLER__

#ifdef __cplusplus
#include <string.h>

#define __builtin_memcpy ::memcpy
#define __builtin_memmove ::memmove
#define __builtin_memset ::memset

extern "C" void pmlab_machine_prefetch(const void* address, __SIZE_TYPE__ bytes) noexcept;
inline void pmlab_prefetch(const volatile void* address, int /*for_writing*/ = 0, int /*locality*/ = 0) noexcept {
  pmlab_machine_prefetch(const_cast<const void*>(address), 1);
}
#define __builtin_prefetch ::pmlab_prefetch
#else
// In C, no header of the system before the source's own: it may choose their features by macros.
void* memcpy(void*, const void*, __SIZE_TYPE__);
void* memmove(void*, const void*, __SIZE_TYPE__);
void* memset(void*, int, __SIZE_TYPE__);
void pmlab_machine_prefetch(const void* address, __SIZE_TYPE__ bytes);
#define __builtin_prefetch(address, ...) pmlab_machine_prefetch((const void*)(address), 1)
#define __builtin_memcpy memcpy
#define __builtin_memmove memmove
#define __builtin_memset memset
#endif

#endif
