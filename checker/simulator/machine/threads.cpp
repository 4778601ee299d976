// The C library's threads, locks and waits, for fibers. A caller that is no fiber of the machine gets the real ones.
//
// The state of a lock stays in the C library's object: a fiber tries to lock, and while that fails waits for the
// unlock.
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/real.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdint>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

using pmlab::simulator::fiber;
using pmlab::simulator::machine;
using pmlab::simulator::the_machine;
namespace real = pmlab::simulator::real;

namespace {

constexpr std::uint64_t picoseconds_per_nanosecond = 1000;

bool fibers() noexcept { return the_machine().on_a_fiber(); }

// Every one of these calls is a moment at which another fiber may go on, as an access is.
void moment(const void* object, const char* what, const void* caller) {
  the_machine().needs_one_kernel(object, what, caller);
  the_machine().access(object, 1, pmlab::simulator::access_kind::read_modify_write, caller);
  the_machine().locked_instruction();
}

// The same of a call that ends a lock.
void moment_of_end(const void* lock, const char* what, const void* caller) {
  fiber& f = *the_machine().current();
  f.gives_up = true;
  moment(lock, what, caller);
  f.gives_up = false;
}

template <class Try>
int take(const void* object, const char* why, Try&& attempt) {
  for (;;) {
    const int result = attempt();
    if (result != EBUSY) return result;
    the_machine().wait_for(object, why);
  }
}

// Virtual time of a deadline on a clock of the C library: 0 means "none", so it is at least 1.
std::uint64_t deadline_of(clockid_t clock, const timespec* at) {
  timespec now{};
  clock_gettime(clock, &now);
  const auto ns = (at->tv_sec - now.tv_sec) * 1'000'000'000 + (at->tv_nsec - now.tv_nsec);
  const std::uint64_t left = ns > 0 ? static_cast<std::uint64_t>(ns) * picoseconds_per_nanosecond : 0;
  return the_machine().current()->clock + left + 1;
}

int wait_on_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, std::uint64_t deadline) {
  machine& m = the_machine();
  // No step happens between the unlock and the wait: fibers switch only at explicit calls.
  real::functions().mutex_unlock(mutex);
  m.quietly([&] { m.wake(mutex, true); });
  const bool woken = m.wait_for(condition, "a condition variable", deadline);
  take(mutex, "a mutex", [&] { return real::functions().mutex_trylock(mutex); });
  return woken ? 0 : ETIMEDOUT;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  if (!fibers()) return real::functions().create(id, attributes, start, argument);
  fiber* const f = the_machine().spawn(start, argument);
  *id = static_cast<pthread_t>(f->thread_pointer);
  int state = PTHREAD_CREATE_JOINABLE;
  if (attributes != nullptr) pthread_attr_getdetachstate(attributes, &state);
  f->detached = state == PTHREAD_CREATE_DETACHED;
  return 0;
}

int pthread_join(pthread_t id, void** result) {
  fiber* const f = fibers() ? the_machine().find(id) : nullptr;
  if (f == nullptr) return real::functions().join(id, result);
  void* const value = the_machine().join(f);
  if (result != nullptr) *result = value;
  return 0;
}

int pthread_detach(pthread_t id) {
  fiber* const f = fibers() ? the_machine().find(id) : nullptr;
  if (f == nullptr) return real::functions().detach(id);
  f->detached = true;
  return 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!fibers()) return real::functions().mutex_lock(mutex);
  moment(mutex, "a mutex", __builtin_return_address(0));
  return take(mutex, "a mutex", [&] { return real::functions().mutex_trylock(mutex); });
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  if (fibers()) moment(mutex, "a mutex", __builtin_return_address(0));
  return real::functions().mutex_trylock(mutex);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (!fibers()) return real::functions().mutex_unlock(mutex);
  moment_of_end(mutex, "a mutex", __builtin_return_address(0));
  const int result = real::functions().mutex_unlock(mutex);
  the_machine().wake(mutex, true);
  return result;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  if (!fibers()) return real::functions().rwlock_rdlock(lock);
  moment(lock, "a shared lock", __builtin_return_address(0));
  return take(lock, "a shared lock", [&] { return real::functions().rwlock_tryrdlock(lock); });
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  if (!fibers()) return real::functions().rwlock_wrlock(lock);
  moment(lock, "a shared lock", __builtin_return_address(0));
  return take(lock, "a shared lock", [&] { return real::functions().rwlock_trywrlock(lock); });
}
int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  if (!fibers()) return real::functions().rwlock_unlock(lock);
  moment_of_end(lock, "a shared lock", __builtin_return_address(0));
  const int result = real::functions().rwlock_unlock(lock);
  the_machine().wake(lock, true);
  return result;
}

int pthread_spin_lock(pthread_spinlock_t* lock) {
  if (!fibers()) return real::functions().spin_lock(lock);
  moment(const_cast<const int*>(lock), "a spin lock", __builtin_return_address(0));
  return take(const_cast<const int*>(lock), "a spin lock", [&] { return real::functions().spin_trylock(lock); });
}
int pthread_spin_unlock(pthread_spinlock_t* lock) {
  if (!fibers()) return real::functions().spin_unlock(lock);
  moment_of_end(const_cast<const int*>(lock), "a spin lock", __builtin_return_address(0));
  const int result = real::functions().spin_unlock(lock);
  the_machine().wake(const_cast<const int*>(lock), true);
  return result;
}

// Those that never wait are no moments.
int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  if (fibers()) the_machine().needs_one_kernel(lock, "a shared lock", __builtin_return_address(0));
  return real::functions().rwlock_tryrdlock(lock);
}
int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  if (fibers()) the_machine().needs_one_kernel(lock, "a shared lock", __builtin_return_address(0));
  return real::functions().rwlock_trywrlock(lock);
}
int pthread_spin_trylock(pthread_spinlock_t* lock) {
  if (fibers())
    the_machine().needs_one_kernel(const_cast<const int*>(lock), "a spin lock", __builtin_return_address(0));
  return real::functions().spin_trylock(lock);
}
int sem_trywait(sem_t* semaphore) {
  if (fibers()) the_machine().needs_one_kernel(semaphore, "a semaphore", __builtin_return_address(0));
  return real::functions().semaphore_trywait(semaphore);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!fibers()) return real::functions().condition_wait(condition, mutex);
  moment(condition, "a condition variable", __builtin_return_address(0));
  return wait_on_condition(condition, mutex, 0);
}
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* at) {
  if (!fibers()) return real::functions().condition_timedwait(condition, mutex, at);
  moment(condition, "a condition variable", __builtin_return_address(0));
  return wait_on_condition(condition, mutex, deadline_of(CLOCK_REALTIME, at));
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* at) {
  if (!fibers()) return real::functions().condition_clockwait(condition, mutex, clock, at);
  moment(condition, "a condition variable", __builtin_return_address(0));
  return wait_on_condition(condition, mutex, deadline_of(clock, at));
}
int pthread_cond_signal(pthread_cond_t* condition) {
  if (!fibers()) return real::functions().condition_signal(condition);
  moment(condition, "a condition variable", __builtin_return_address(0));
  the_machine().wake(condition, false);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!fibers()) return real::functions().condition_broadcast(condition);
  moment(condition, "a condition variable", __builtin_return_address(0));
  the_machine().wake(condition, true);
  return 0;
}

// 0: not begun, 1: running, 2: done; the same as the C library's own states, which it never sees half way.
int pthread_once(pthread_once_t* control, void (*initialise)()) {
  if (!fibers()) return real::functions().once(control, initialise);
  moment(const_cast<const int*>(control), "a pthread_once", __builtin_return_address(0));
  while (*control == 1) the_machine().wait_for(const_cast<const int*>(control), "pthread_once");
  if (*control == 2) return 0;
  *control = 1;
  try {
    initialise();
  } catch (...) {
    *control = 0;
    the_machine().wake(const_cast<const int*>(control), true);
    throw;
  }
  *control = 2;
  the_machine().wake(const_cast<const int*>(control), true);
  return 0;
}

// Releases the guard of a function's static, which other threads may use from now on: a locked instruction of code that
// is not instrumented. NOLINTNEXTLINE(bugprone-reserved-identifier)
void __cxa_guard_release(void* guard) noexcept {
  if (fibers()) the_machine().settle();
  real::functions().release_guard(guard);
}

int sem_wait(sem_t* semaphore) {
  if (!fibers()) return real::functions().semaphore_wait(semaphore);
  moment(semaphore, "a semaphore", __builtin_return_address(0));
  while (real::functions().semaphore_trywait(semaphore) != 0) {
    if (errno != EAGAIN) return -1;
    the_machine().wait_for(semaphore, "a semaphore");
  }
  return 0;
}
int sem_post(sem_t* semaphore) {
  if (fibers()) the_machine().needs_one_kernel(semaphore, "a semaphore", __builtin_return_address(0));
  if (fibers()) the_machine().settle();
  const int result = real::functions().semaphore_post(semaphore);
  if (fibers()) the_machine().wake(semaphore, false);
  return result;
}

int sched_yield() noexcept {
  if (!fibers()) return real::functions().yield();
  the_machine().yield();
  return 0;
}

int nanosleep(const timespec* duration, timespec* left) {
  if (!fibers()) return real::functions().sleep(duration, left);
  const auto ns =
      static_cast<std::uint64_t>(duration->tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(duration->tv_nsec);
  the_machine().sleep_until(the_machine().current()->clock + ns * picoseconds_per_nanosecond);
  return 0;
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  if (!fibers()) return real::functions().clock_sleep(clock, flags, time, left);
  if ((flags & TIMER_ABSTIME) == 0) return nanosleep(time, left);
  the_machine().sleep_until(deadline_of(clock, time));
  return 0;
}
int usleep(useconds_t microseconds) {
  const timespec duration{static_cast<time_t>(microseconds / 1'000'000),
                          static_cast<long>(microseconds % 1'000'000) * 1000};
  return nanosleep(&duration, nullptr);
}

// Time is the machine's, since its beginning.
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool thread_time = clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
  if (!fibers() || thread_time) return real::functions().clock_get(clock, time);
  const std::uint64_t ns = the_machine().read_clock() / picoseconds_per_nanosecond;
  time->tv_sec = static_cast<time_t>(ns / 1'000'000'000);
  time->tv_nsec = static_cast<long>(ns % 1'000'000'000);
  return 0;
}

// std::atomic::wait and oneTBB wait by futex.
long syscall(long number, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& one : a) one = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_futex && fibers()) {
    auto* const word = reinterpret_cast<std::uint32_t*>(a[0]);
    the_machine().needs_one_kernel(word, "a futex (atomic::wait, atomic::notify)", __builtin_return_address(0));
    switch (a[1] & FUTEX_CMD_MASK) {
      case FUTEX_WAIT:
      case FUTEX_WAIT_BITSET: {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != static_cast<std::uint32_t>(a[2])) {
          errno = EAGAIN;
          return -1;
        }
        std::uint64_t deadline = 0;
        if (const auto* const time = reinterpret_cast<const timespec*>(a[3]); time != nullptr) {
          const auto ns =
              static_cast<std::uint64_t>(time->tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time->tv_nsec);
          deadline = (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT
                         ? the_machine().current()->clock + ns * picoseconds_per_nanosecond + 1
                         : deadline_of(CLOCK_MONOTONIC, time);
        }
        if (the_machine().wait_for(word, "a futex", deadline)) return 0;
        errno = ETIMEDOUT;
        return -1;
      }
      case FUTEX_WAKE:
      case FUTEX_WAKE_BITSET: the_machine().wake(word, a[2] > 1); return 1;
      default: break;
    }
  }
  return real::functions().system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
}
