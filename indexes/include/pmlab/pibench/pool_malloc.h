/*
 * Allocation of an index that calls malloc or new, in a pool. For a compiler's -include, before each source file of the
 * index, in C or C++: its source stays as it is. One file of the library includes pool.hpp, which opens the pool.
 *
 *   malloc, calloc, realloc, posix_memalign, aligned_alloc, memalign, free    of this file
 *   new, new[], delete, delete[]    of the whole library, if the file that includes pool.hpp is under this header too;
 *                                   not if it defines PMLAB_POOL_WITHOUT_NEW. A library for real memory is linked with
 *                                   -Wl,-Bsymbolic, as pmlab-c++ does it: otherwise the program's own new is called
 *
 * While no pool is open they are those of the C library: DRAM. The rest is documented at each function of pool.hpp.
 * Functions with the same names in namespaces (but std), classes and structures stay as they are.
 * Blocks from elsewhere (strdup, getline, other libraries) are DRAM; freeing them here is right. No block of the pool
 * may be freed or enlarged elsewhere.
 */
#ifndef PMLAB_PIBENCH_POOL_MALLOC_H
#define PMLAB_PIBENCH_POOL_MALLOC_H

/* No header of the system before the index's own: the index may choose features of theirs by macros. */
#ifdef __cplusplus
#define PMLAB_POOL_NOEXCEPT noexcept
extern "C" {
#else
#define PMLAB_POOL_NOEXCEPT
#endif

void* malloc(__SIZE_TYPE__) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_malloc");
void* calloc(__SIZE_TYPE__, __SIZE_TYPE__) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_calloc");
void* realloc(void*, __SIZE_TYPE__) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_realloc");
int posix_memalign(void**, __SIZE_TYPE__, __SIZE_TYPE__) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_posix_memalign");
void* aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_aligned_alloc");
void* memalign(__SIZE_TYPE__, __SIZE_TYPE__) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_aligned_alloc");
void free(void*) PMLAB_POOL_NOEXCEPT __asm__("pmlab_pool_free");

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
#include <cstddef>
/* The compiled functions of std::string in the C++ library would free by its delete what our new has allocated: the
   file gets its own. */
#ifdef __GLIBCXX__
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE -1
#endif
#endif

#undef PMLAB_POOL_NOEXCEPT
#endif
