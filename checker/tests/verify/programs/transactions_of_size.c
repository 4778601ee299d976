/* Two transactions that once left libpmemobj's own pool damaged: one that allocates zeroed memory alone (issue 4945 of
   pmdk, mended in 1.9.1), and a large one, whose undo log has several parts (issue 5461, mended in 1.12.1). */
#define POOL_BYTES ((size_t)16 << 20) /* for the undo log */
#include "object_pool.h"

enum { ranges = 600, words = 4 };
struct root {
  uint64_t filled;
  uint64_t other[ranges * words * 8];
};

static void run(const char* path) {
  PMEMobjpool* const pool = make_pool(path);
  struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  pmlab_mark("created");
  TX_BEGIN(pool) { pmemobj_tx_zalloc(304, 100); }
  TX_END
  pmlab_mark("allocated");
  TX_BEGIN(pool) {
    for (int i = 0; i < ranges; ++i) {
      pmemobj_tx_add_range_direct(&r->other[i * words * 8], words * sizeof(uint64_t));
      r->other[i * words * 8] = 1;
    }
    pmemobj_tx_add_range_direct(&r->filled, sizeof(r->filled));
    r->filled = 1;
  }
  TX_ONABORT { exit(2); }
  TX_END
  pmlab_mark("filled");
  pmemobj_close(pool);
}

static void check(const char* path, unsigned long made) {
  PMEMobjpool* pool = open_pool(path, made);
  struct root* r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  for (int i = 0; i < ranges; ++i)
    if (r->other[i * words * 8] != r->filled)
      UNSOUND("range %d holds %lu, not %lu", i, r->other[i * words * 8], r->filled);
  if (made > 2 && r->filled != 1) UNSOUND("the transaction is lost");
  /* It remains usable. */
  PMEMoid more = OID_NULL;
  if (made > 0 && pmemobj_zalloc(pool, &more, 1000, 1) != 0) UNSOUND("the pool has no room: %s", pmemobj_errormsg());
  if (made > 0) pmemobj_free(&more);
  TX_BEGIN(pool) {
    for (int i = 0; i < ranges; ++i) pmemobj_tx_add_range_direct(&r->other[i * words * 8], words * sizeof(uint64_t));
  }
  TX_ONABORT { UNSOUND("a further transaction fails: %s", pmemobj_errormsg()); }
  TX_END
  pmemobj_close(pool);
  if (pmemobj_check(path, "program") != 1) UNSOUND("the pool is damaged: %s", pmemobj_errormsg());
}
