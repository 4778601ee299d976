/* A named array that is allocated and made smaller, as PMDK's array example.
   1: the name, which says that the array exists, is durable before its type and place. 2: its size is set after the
   memory has shrunk. */
#include "object_pool.h"

enum { elements = 64, fewer = 8, type_of_words = 7 };
struct root {
  char name[64];
  uint64_t type;
  uint64_t size;
  PMEMoid array;
};

static void allocate(PMEMobjpool* pool, struct root* r) {
  if (defect() == 1) pmemobj_memcpy_persist(pool, r->name, "words", sizeof("words"));
  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(r, sizeof(*r));
    r->array = pmemobj_tx_zalloc(elements * sizeof(uint64_t), 1);
    r->type = type_of_words;
    r->size = elements;
    strcpy(r->name, "words");
  }
  TX_END
}

static void make_smaller(PMEMobjpool* pool, struct root* r) {
  if (defect() == 2) {
    pmemobj_realloc(pool, &r->array, fewer * sizeof(uint64_t), 1);
    r->size = fewer;
    pmemobj_persist(pool, &r->size, sizeof(r->size));
    return;
  }
  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(r, sizeof(*r));
    r->array = pmemobj_tx_realloc(r->array, fewer * sizeof(uint64_t), 1);
    r->size = fewer;
  }
  TX_END
}

static void run(const char* path) {
  PMEMobjpool* const pool = make_pool(path);
  struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  pmlab_mark("pool made");
  allocate(pool, r);
  pmlab_mark("allocated");
  make_smaller(pool, r);
  pmlab_mark("made smaller");
  pmemobj_close(pool);
}

static void check(const char* path, unsigned long made) {
  PMEMobjpool* const pool = open_pool(path, made);
  const struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  if (r->name[0] == 0) {
    if (made > 1) UNSOUND("the array has no name");
    exit(0);
  }
  if (strcmp(r->name, "words") != 0) exit(made > 1);
  if (r->type != type_of_words) UNSOUND("the array 'words' has type %lu", r->type);
  if (pmemobj_alloc_usable_size(r->array) < r->size * sizeof(uint64_t))
    UNSOUND("the array has no room for its %lu elements", r->size);
  if (made > 2 && r->size != fewer) UNSOUND("the array has %lu elements, and was made smaller", r->size);
  pmemobj_close(pool);
}
