// The C library's own functions, behind those that the machine puts in their place.
#pragma once

#include <cstddef>
#include <cstdint>

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

extern "C" {
void* __libc_malloc(std::size_t bytes) noexcept;
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept;
void* __libc_realloc(void* block, std::size_t bytes) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t bytes) noexcept;
void __libc_free(void* block) noexcept;
}

namespace pmlab::simulator::real {

struct table {
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*join)(pthread_t, void**);
  int (*detach)(pthread_t);
  int (*mutex_lock)(pthread_mutex_t*);
  int (*mutex_trylock)(pthread_mutex_t*);
  int (*mutex_unlock)(pthread_mutex_t*);
  int (*rwlock_rdlock)(pthread_rwlock_t*);
  int (*rwlock_tryrdlock)(pthread_rwlock_t*);
  int (*rwlock_wrlock)(pthread_rwlock_t*);
  int (*rwlock_trywrlock)(pthread_rwlock_t*);
  int (*rwlock_unlock)(pthread_rwlock_t*);
  int (*spin_lock)(pthread_spinlock_t*);
  int (*spin_trylock)(pthread_spinlock_t*);
  int (*spin_unlock)(pthread_spinlock_t*);
  int (*condition_wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*condition_timedwait)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  int (*condition_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  int (*condition_signal)(pthread_cond_t*);
  int (*condition_broadcast)(pthread_cond_t*);
  int (*once)(pthread_once_t*, void (*)());
  int (*semaphore_wait)(sem_t*);
  int (*semaphore_trywait)(sem_t*);
  int (*semaphore_post)(sem_t*);
  int (*yield)();
  int (*sleep)(const timespec*, timespec*);
  int (*clock_sleep)(clockid_t, int, const timespec*, timespec*);
  int (*clock_get)(clockid_t, timespec*);
  long (*system_call)(long, ...);
  void (*release_guard)(void*);
};

[[nodiscard]] const table& functions();

// Calls the kernel directly; -errno on failure. The C library maps memory before anything else is initialized.
long raw_mmap(void* address, std::size_t bytes, int protection, int flags, int file, long offset) noexcept;
long raw_munmap(void* address, std::size_t bytes) noexcept;

// Waits or wakes on `word`, past the interposed `syscall`.
long syscall_futex(std::uint32_t* word, int operation, std::uint32_t value);
// Ends the calling thread at once: no destructor of its thread-local objects runs. It can be joined.
[[noreturn]] void end_thread() noexcept;

}  // namespace pmlab::simulator::real
