/* Several hosts on one memory, for a library that `pmlab verify --library FILE.so --hosts N` runs (docs/hosts.md). C and
   C++; needs no library of pmlab. Elsewhere there is one host, host 0. Safe for threads. */
#ifndef PMLAB_PROGRAMS_HOSTS_H
#define PMLAB_PROGRAMS_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Those of the simulated machine, where it runs the library. */
__attribute__((weak)) unsigned pmlab_machine_hosts(void);
__attribute__((weak)) unsigned pmlab_machine_host(void);
__attribute__((weak)) bool pmlab_machine_host_is_alive(unsigned host);
__attribute__((weak)) bool pmlab_machine_device_exchange(uint64_t* word, uint64_t* expected, uint64_t desired,
                                                         const void* caller);
#ifdef __cplusplus
}
#endif

/* Returns the number of hosts: 1 or more. */
static inline unsigned pmlab_hosts(void) { return pmlab_machine_hosts ? pmlab_machine_hosts() : 1; }

/* Returns the number of the host that the caller runs on, from 0 on. */
static inline unsigned pmlab_host(void) { return pmlab_machine_host ? pmlab_machine_host() : 0; }

/* Returns 0 if the host has died and this is known, which is so some time behind its death; 1 otherwise. */
static inline int pmlab_host_is_alive(unsigned host) {
  return !pmlab_machine_host_is_alive || pmlab_machine_host_is_alive(host);
}

/* A compare-exchange that the memory's device makes: atomic for all hosts, around their caches. Returns 1 and stores
   `desired` if the word is `*expected`; otherwise 0, and `*expected` becomes the word. The word must not be dirty in a
   cache: no other instruction may store to its line. */
static inline int pmlab_device_compare_exchange(uint64_t* word, uint64_t* expected, uint64_t desired) {
  if (pmlab_machine_device_exchange)
    return pmlab_machine_device_exchange(word, expected, desired, __builtin_return_address(0));
  return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#endif
