// Facts of the target platform, for headers of the library that depend on one.
//
// A build for another machine defines PMLAB_PLATFORM_HEADER: the name of a header that states all of these facts of
// that machine, and takes the place of the statements below.
#pragma once

#include <pmlab/base/requirements.hpp>

#if defined(PMLAB_PLATFORM_HEADER)
#include PMLAB_PLATFORM_HEADER
#else

#include <cstdint>

namespace pmlab::platform {

// The CPU may have hardware transactions; whether it has is found out at run time.
inline constexpr bool may_have_transactions = true;

// A thread can be bound to a CPU.
inline constexpr bool binds_threads = true;

// The kernel backs memory with huge pages on request.
inline constexpr bool has_huge_pages = true;

// g++ tells of its sanitizers by macros, and clang by __has_feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PMLAB_HAS_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define PMLAB_HAS_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PMLAB_HAS_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define PMLAB_HAS_THREAD_SANITIZER
#endif

// An instrument watches atomic words: shared words are read by atomic loads alone, not by vectors.
#if defined(PMLAB_HAS_THREAD_SANITIZER)
inline constexpr bool watches_words = true;
#else
inline constexpr bool watches_words = false;
#endif

// An instrument watches the heap: each block of DRAM is an allocation of its own, so that it notices an access to a
// freed one.
#if defined(PMLAB_HAS_ADDRESS_SANITIZER)
inline constexpr bool watches_heap = true;
#else
inline constexpr bool watches_heap = watches_words;
#endif

#undef PMLAB_HAS_ADDRESS_SANITIZER
#undef PMLAB_HAS_THREAD_SANITIZER

// Threads that an index uses to recover, unless its user gives a number. 0: as many as the CPU runs at once.
inline constexpr unsigned recovery_threads = 0;

// Time is virtual: `now` is the clock.
inline constexpr bool has_virtual_time = false;
// The virtual time of the calling thread, in picoseconds. Defined only where time is virtual. Thread-safe.
std::uint64_t now() noexcept;

}  // namespace pmlab::platform

#endif
