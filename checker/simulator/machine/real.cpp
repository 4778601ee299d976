// The C library's own functions.
#include "checker/simulator/machine/real.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>

namespace pmlab::simulator::real {
namespace {

template <class Function>
void find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

table found() {
  table t{};
  find(t.create, "pthread_create");
  find(t.join, "pthread_join");
  find(t.detach, "pthread_detach");
  find(t.mutex_lock, "pthread_mutex_lock");
  find(t.mutex_trylock, "pthread_mutex_trylock");
  find(t.mutex_unlock, "pthread_mutex_unlock");
  find(t.rwlock_rdlock, "pthread_rwlock_rdlock");
  find(t.rwlock_tryrdlock, "pthread_rwlock_tryrdlock");
  find(t.rwlock_wrlock, "pthread_rwlock_wrlock");
  find(t.rwlock_trywrlock, "pthread_rwlock_trywrlock");
  find(t.rwlock_unlock, "pthread_rwlock_unlock");
  find(t.spin_lock, "pthread_spin_lock");
  find(t.spin_trylock, "pthread_spin_trylock");
  find(t.spin_unlock, "pthread_spin_unlock");
  find(t.condition_wait, "pthread_cond_wait");
  find(t.condition_timedwait, "pthread_cond_timedwait");
  find(t.condition_clockwait, "pthread_cond_clockwait");
  find(t.condition_signal, "pthread_cond_signal");
  find(t.condition_broadcast, "pthread_cond_broadcast");
  find(t.once, "pthread_once");
  find(t.semaphore_wait, "sem_wait");
  find(t.semaphore_trywait, "sem_trywait");
  find(t.semaphore_post, "sem_post");
  find(t.yield, "sched_yield");
  find(t.sleep, "nanosleep");
  find(t.clock_sleep, "clock_nanosleep");
  find(t.clock_get, "clock_gettime");
  find(t.system_call, "syscall");
  find(t.release_guard, "__cxa_guard_release");
  return t;
}

}  // namespace

// Not a function's static: its guard would call this again while the table is being made.
const table& functions() {
  static bool ready = false;
  alignas(table) static char place[sizeof(table)];
  auto& t = *reinterpret_cast<table*>(place);
  if (!ready) {
    t = found();
    ready = true;
  }
  return t;
}

long raw_mmap(void* address, std::size_t bytes, int protection, int flags, int file, long offset) noexcept {
  long result;
  register long r10 asm("r10") = flags;
  register long r8 asm("r8") = file;
  register long r9 asm("r9") = offset;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(SYS_mmap), "D"(address), "S"(bytes), "d"(protection), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

long raw_munmap(void* address, std::size_t bytes) noexcept {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(SYS_munmap), "D"(address), "S"(bytes) : "rcx", "r11", "memory");
  return result;
}

long syscall_futex(std::uint32_t* word, int operation, std::uint32_t value) {
  return functions().system_call(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

void end_thread() noexcept {
  for (;;) asm volatile("syscall" : : "a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
}

}  // namespace pmlab::simulator::real
