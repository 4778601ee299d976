// Comes first in every simulated source (-include).
//
// A copy of constant size becomes plain moves that no compiler reports, while a call is seen. -fno-builtin-memcpy makes
// calls of memcpy, but headers write __builtin_memcpy (libstdc++ everywhere).
#pragma once

#ifndef __ASSEMBLER__

#include <string.h>

#ifdef __cplusplus
#define __builtin_memcpy ::memcpy
#define __builtin_memmove ::memmove
#define __builtin_memset ::memset
#else
#define __builtin_memcpy memcpy
#define __builtin_memmove memmove
#define __builtin_memset memset
#endif

#endif
