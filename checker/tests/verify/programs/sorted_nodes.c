/* A map of sorted nodes in transactions, as the leaves of PMDK's btree example.
   1: a node that is split is not added to the transaction. 2: the range that is added ends before the keys.
   3: the node is added after its keys have moved. */
#include "object_pool.h"

enum { node_keys = 4, inserts = 14 };
struct node {
  uint64_t count;
  uint64_t keys[node_keys];
  PMEMoid next;
};
struct root {
  PMEMoid first;
};

static struct node* at(PMEMoid oid) { return (struct node*)pmemobj_direct(oid); }

static PMEMoid split(PMEMoid full) {
  const PMEMoid other = pmemobj_tx_zalloc(sizeof(struct node), 1);
  struct node *left = at(full), *right = at(other);
  if (defect() != 1) pmemobj_tx_add_range(full, 0, sizeof(struct node));
  right->count = node_keys / 2;
  memcpy(right->keys, left->keys + node_keys / 2, sizeof(uint64_t) * node_keys / 2);
  right->next = left->next;
  left->count = node_keys / 2;
  left->next = other;
  return other;
}

static void insert(PMEMobjpool* pool, struct root* root, uint64_t key) {
  TX_BEGIN(pool) {
    PMEMoid here = root->first;
    while (!OID_IS_NULL(at(here)->next) && at(at(here)->next)->keys[0] <= key) here = at(here)->next;
    if (at(here)->count == node_keys) {
      const PMEMoid other = split(here);
      if (at(other)->keys[0] <= key) here = other;
    }
    struct node* const n = at(here);
    if (defect() != 3) pmemobj_tx_add_range(here, 0, defect() == 2 ? sizeof(uint64_t) : sizeof(struct node));
    uint64_t i = n->count;
    for (; i > 0 && n->keys[i - 1] > key; --i) n->keys[i] = n->keys[i - 1];
    if (defect() == 3) pmemobj_tx_add_range(here, 0, sizeof(struct node));
    n->keys[i] = key;
    ++n->count;
  }
  TX_END
}

static uint64_t key_of(unsigned long i) { return 1 + i * 5 % 17; }

static void run(const char* path) {
  PMEMobjpool* const pool = make_pool(path);
  struct root* const root = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  TX_BEGIN(pool) {
    pmemobj_tx_add_range_direct(root, sizeof(*root));
    root->first = pmemobj_tx_zalloc(sizeof(struct node), 1);
  }
  TX_END
  pmlab_mark("created");
  for (unsigned long i = 0; i < inserts; ++i) {
    insert(pool, root, key_of(i));
    mark("inserted", i);
  }
  pmemobj_close(pool);
}

static void check(const char* path, unsigned long made) {
  PMEMobjpool* const pool = open_pool(path, made);
  struct root* const root = (struct root*)pmemobj_direct(pmemobj_root(pool, sizeof(struct root)));
  if (made == 0) exit(0);
  int found[inserts + 1] = {0};
  uint64_t before = 0;
  for (PMEMoid o = root->first; !OID_IS_NULL(o); o = at(o)->next) {
    if (at(o)->count > node_keys) UNSOUND("a node counts %lu keys", at(o)->count);
    for (uint64_t i = 0; i < at(o)->count; ++i) {
      if (at(o)->keys[i] <= before) UNSOUND("key %lu follows key %lu", at(o)->keys[i], before);
      before = at(o)->keys[i];
      for (unsigned long k = 0; k <= inserts; ++k) found[k < inserts ? k : 0] += k < inserts && key_of(k) == before;
    }
  }
  for (unsigned long i = 0; i < inserts; ++i)
    if (found[i] > 1 || (i < made - 1 && found[i] == 0) || (i > made - 1 && found[i] != 0))
      UNSOUND("key %lu is there %d times, after %lu inserts", key_of(i), found[i], made - 1);
  pmlab_mark("recovered");
  pmemobj_close(pool);
}
