/* A pool of libpmemobj, for the programs of this folder. */
#pragma once

#include "program.h"

#include <libpmemobj.h>

static inline PMEMobjpool* make_pool(const char* path) {
  unlink(path);
  PMEMobjpool* const pool = pmemobj_create(path, "program", POOL_BYTES, 0600);
  if (pool == NULL) {
    fprintf(stderr, "%s\n", pmemobj_errormsg());
    exit(2);
  }
  return pool;
}

/* Ends the check as sound if the pool was not created yet: libpmemobj does not promise that a creation is atomic. */
static inline PMEMobjpool* open_pool(const char* path, unsigned long made) {
  PMEMobjpool* const pool = pmemobj_open(path, "program");
  if (pool != NULL) return pool;
  if (made == 0) exit(0);
  UNSOUND("the pool cannot be opened: %s", pmemobj_errormsg());
  return NULL;
}
