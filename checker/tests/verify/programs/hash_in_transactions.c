/* A hash table in transactions, as PMDK's hashmap_tx.
   1: the count of entries is not added to the transaction. 2: the table is exchanged for a larger one outside of a
   transaction that moves its entries. */
#include "object_pool.h"

enum { inserts = 12, small = 2, large = 8 };
struct entry {
  uint64_t key;
  uint64_t value;
  PMEMoid next;
};
struct root {
  uint64_t count;
  char line[56];
  uint64_t buckets;
  PMEMoid table; /* of heads */
};

static struct entry* at(PMEMoid oid) { return (struct entry*)pmemobj_direct(oid); }
static PMEMoid* heads(const struct root* r) { return (PMEMoid*)pmemobj_direct(r->table); }

static void grow(PMEMobjpool* pool, struct root* r) {
  if (defect() == 2) {
    r->buckets = large;
    pmemobj_persist(pool, &r->buckets, sizeof(r->buckets));
  }
  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(&r->buckets, sizeof(r->buckets) + sizeof(r->table));
    const PMEMoid table = pmemobj_tx_zalloc(large * sizeof(PMEMoid), 2);
    PMEMoid* const to = (PMEMoid*)pmemobj_direct(table);
    for (uint64_t b = 0; b < small; ++b)
      for (PMEMoid o = heads(r)[b]; !OID_IS_NULL(o);) {
        const PMEMoid next = at(o)->next;
        pmemobj_tx_add_range_direct(&at(o)->next, sizeof(PMEMoid));
        at(o)->next = to[at(o)->key % large];
        to[at(o)->key % large] = o;
        o = next;
      }
    pmemobj_tx_free(r->table);
    r->table = table;
    r->buckets = large;
  }
  TX_END
}

static void insert(PMEMobjpool* pool, struct root* r, uint64_t key) {
  TX_BEGIN(pool) {
    const PMEMoid made = pmemobj_tx_alloc(sizeof(struct entry), 1);
    PMEMoid* const head = &heads(r)[key % r->buckets];
    *at(made) = (struct entry){key, key + 100, *head};
    pmemobj_tx_add_range_direct(head, sizeof(*head));
    *head = made;
    if (defect() != 1) pmemobj_tx_add_range_direct(&r->count, sizeof(r->count));
    ++r->count;
  }
  TX_END
  if (defect() == 1) pmemobj_persist(pool, &r->count, sizeof(r->count));
}

static void run(const char* path) {
  PMEMobjpool* const pool = make_pool(path);
  struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(r, sizeof(*r));
    r->buckets = small;
    r->table = pmemobj_tx_zalloc(small * sizeof(PMEMoid), 2);
  }
  TX_END
  pmlab_mark("created");
  for (unsigned long i = 0; i < inserts; ++i) {
    if (i == inserts / 2) grow(pool, r);
    insert(pool, r, i);
    mark("inserted", i);
  }
  pmemobj_close(pool);
}

static void check(const char* path, unsigned long made) {
  PMEMobjpool* const pool = open_pool(path, made);
  const struct root* const r = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  if (made == 0) exit(0);
  uint64_t found = 0;
  if (pmemobj_alloc_usable_size(r->table) < r->buckets * sizeof(PMEMoid))
    UNSOUND("the table has no room for its %lu buckets", r->buckets);
  for (uint64_t b = 0; b < r->buckets; ++b)
    for (PMEMoid o = heads(r)[b]; !OID_IS_NULL(o); o = at(o)->next, ++found)
      if (at(o)->key % r->buckets != b || at(o)->value != at(o)->key + 100)
        UNSOUND("bucket %lu holds key %lu with value %lu", b, at(o)->key, at(o)->value);
  if (found != r->count) UNSOUND("the table counts %lu entries, and has %lu", r->count, found);
  if (found < made - 1 || found > made) UNSOUND("%lu entries after %lu inserts", found, made - 1);
  pmemobj_close(pool);
}
