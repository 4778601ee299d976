/* A hash table on atomic allocation, as PMDK's hashmap_atomic: it counts its entries again after a crash if the flag
   `count_dirty` is set.
   1: the flag is not durable before the entry is. 2: the number of buckets is durable before the table is allocated.
   3: the constructor of an entry does not make it durable. 4: the recovery clears the flag before the count is durable. */
#include "object_pool.h"

enum { inserts = 8, buckets = 4 };
struct entry {
  uint64_t key;
  uint64_t value;
  char rest[112];
  uint64_t sum;
  PMEMoid next;
};
struct root {
  uint64_t count;
  char line[56];
  uint64_t count_dirty;
  char line_of_dirty[56];
  uint64_t buckets;
  PMEMoid table;
};
struct wanted {
  uint64_t key;
  PMEMoid next;
};

static struct entry* at(PMEMoid oid) { return (struct entry*)pmemobj_direct(oid); }

static int make_entry(PMEMobjpool* pool, void* memory, void* argument) {
  struct entry* const e = (struct entry*)memory;
  const struct wanted* const w = (const struct wanted*)argument;
  memset(e, 0, sizeof(*e));
  e->key = w->key;
  e->value = w->key + 100;
  e->sum = e->key + e->value;
  e->next = w->next;
  if (defect() != 3) pmemobj_persist(pool, e, sizeof(*e));
  return 0;
}

static void set(PMEMobjpool* pool, uint64_t* word, uint64_t value) {
  *word = value;
  pmemobj_persist(pool, word, sizeof(*word));
}

static void create(PMEMobjpool* pool, struct root* r) {
  if (defect() == 2) set(pool, &r->buckets, buckets);
  pmemobj_zalloc(pool, &r->table, buckets * sizeof(PMEMoid), 2);
  if (defect() != 2) set(pool, &r->buckets, buckets);
}

static void insert(PMEMobjpool* pool, struct root* r, uint64_t key) {
  PMEMoid* const head = (PMEMoid*)pmemobj_direct(r->table) + key % buckets;
  struct wanted w = {key, *head};
  r->count_dirty = 1;
  if (defect() != 1) pmemobj_persist(pool, &r->count_dirty, sizeof(r->count_dirty));
  pmemobj_alloc(pool, head, sizeof(struct entry), 1, make_entry, &w);
  set(pool, &r->count, r->count + 1);
  set(pool, &r->count_dirty, 0);
}

static void run(const char* path) {
  PMEMobjpool* const pool = make_pool(path);
  struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  pmlab_mark("pool made");
  create(pool, r);
  for (unsigned long i = 0; i < inserts; ++i) {
    insert(pool, r, i);
    mark("inserted", i);
  }
  pmemobj_close(pool);
}

static void check(const char* path, unsigned long made) {
  PMEMobjpool* const pool = open_pool(path, made);
  struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  if (r->buckets == 0) {
    if (made > 1) UNSOUND("there is no table after %lu inserts", made - 1);
    exit(0);
  }
  if (OID_IS_NULL(r->table)) UNSOUND("there are %lu buckets, and no table", r->buckets);
  uint64_t found = 0;
  for (uint64_t b = 0; b < r->buckets; ++b)
    for (PMEMoid o = ((PMEMoid*)pmemobj_direct(r->table))[b]; !OID_IS_NULL(o); o = at(o)->next, ++found)
      if (at(o)->key % buckets != b || at(o)->value != at(o)->key + 100 || at(o)->sum != at(o)->key + at(o)->value)
        UNSOUND("bucket %lu holds key %lu with value %lu", b, at(o)->key, at(o)->value);
  if (r->count_dirty != 0) {
    if (defect() == 4) set(pool, &r->count_dirty, 0);
    set(pool, &r->count, found);
    set(pool, &r->count_dirty, 0);
  }
  pmlab_mark("recovered");
  if (r->count != found) UNSOUND("the table counts %lu entries, and has %lu", r->count, found);
  if (made > 0 && (found < made - 1 || found > made)) UNSOUND("%lu entries after %lu inserts", found, made - 1);
  pmemobj_close(pool);
}
