/* The promises of a program, for `pmlab verify --program` (docs/programs.md). C and C++; needs no library of pmlab. */
#ifndef PMLAB_PROGRAMS_MARK_H
#define PMLAB_PROGRAMS_MARK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <stddef.h>

/* Says that the program has made a promise: the check of a crash state after this call reads `text`, one line of at
   most 4 KiB without its end. Without a recorder around the program it does nothing, and is cheap. Makes
   nothing durable. Safe for threads. Returns 1 if the program is recorded, 0 if not. */
static inline int pmlab_mark(const char* text) {
  typedef void (*mark_function)(const char*);
  union {
    void* object;
    mark_function function;
  } found;
  found.object = dlsym(NULL, "pmlab_recorder_mark"); /* NULL: in all objects of the process */
  if (found.object == NULL) return 0;
  found.function(text);
  return 1;
}

#endif
