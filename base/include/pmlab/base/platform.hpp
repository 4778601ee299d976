// Facts of the target platform, for headers of the library that depend on one.
//
// A build for another machine defines PMLAB_PLATFORM_HEADER: the name of a header that states all of these facts of
// that machine, and takes the place of the statements below.
#pragma once

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

// An instrument watches the heap: each block of DRAM is an allocation of its own, so that it notices an access to a
// freed one.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PMLAB_HEAP_IS_WATCHED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(PMLAB_HEAP_IS_WATCHED)
inline constexpr bool watches_heap = true;
#else
inline constexpr bool watches_heap = false;
#endif
#undef PMLAB_HEAP_IS_WATCHED

// An instrument watches atomic words: shared words are read by atomic loads alone, not by vectors.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool watches_words = true;
#else
inline constexpr bool watches_words = false;
#endif

// Threads that an index uses to recover, unless its user gives a number. 0: as many as the CPU runs at once.
inline constexpr unsigned recovery_threads = 0;

// Time is virtual: `now` is the clock.
inline constexpr bool has_virtual_time = false;
// The virtual time of the calling thread, in picoseconds. Defined only where time is virtual. Thread-safe.
std::uint64_t now() noexcept;

}  // namespace pmlab::platform

#endif
