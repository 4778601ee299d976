/*
 * A hash table in C with chains of nodes from the heap, written without any knowledge of pmlab: it allocates by
 * posix_memalign, flushes by clflush and mfence, and has a lock in the first node of each chain. -DWITHOUT_FLUSH
 * plants a bug. chains_library.cpp makes a library of it, and docs/own-index.md has the commands.
 */
#include "chains.h"

#include <sched.h>
#include <stdlib.h>

enum { chains_of_table = 4, pairs_of_node = 3, line = 64 };

/* One cache line. */
struct node {
  volatile uint64_t lock; /* of the chain, in its first node */
  struct {
    uint64_t key; /* 0: free */
    uint64_t value;
  } pairs[pairs_of_node];
  struct node* next;
};

struct chains {
  struct node* first[chains_of_table];
};

static inline void clflush(const void* address) {
  __asm__ volatile("clflush %0" ::"m"(*(const volatile char*)address) : "memory");
}

static inline void mfence(void) { __asm__ volatile("mfence" ::: "memory"); }

static struct node* new_node(void) {
  void* made = NULL;
  if (posix_memalign(&made, line, sizeof(struct node)) != 0) abort();
  struct node* n = made;
  n->lock = 0;
  for (int i = 0; i < pairs_of_node; ++i) n->pairs[i].key = n->pairs[i].value = 0;
  n->next = NULL;
  return n;
}

struct chains* chains_create(void) {
  struct chains* c = malloc(sizeof *c);
  if (c == NULL) abort();
  for (int i = 0; i < chains_of_table; ++i) {
    c->first[i] = new_node();
    clflush(c->first[i]);
    clflush(&c->first[i]);
  }
  mfence();
  return c;
}

/* A crash may have left a lock taken, and its owner is gone. */
void chains_recover(struct chains* c) {
  for (int i = 0; i < chains_of_table; ++i) c->first[i]->lock = 0;
}

static struct node* lock(struct chains* c, uint64_t key) {
  struct node* first = c->first[key * 0x9e3779b97f4a7c15u >> 62];
  while (__sync_lock_test_and_set(&first->lock, 1) != 0) sched_yield();
  return first;
}

static void unlock(struct node* first) { __sync_lock_release(&first->lock); }

static uint64_t* value_of(struct node* n, uint64_t key) {
  for (; n != NULL; n = n->next)
    for (int i = 0; i < pairs_of_node; ++i)
      if (n->pairs[i].key == key) return &n->pairs[i].value;
  return NULL;
}

/* The value before the key, in one line: no crash shows the key without it. */
static void put(struct node* n, int i, uint64_t key, uint64_t value) {
  *(volatile uint64_t*)&n->pairs[i].value = value;
  *(volatile uint64_t*)&n->pairs[i].key = key;
}

static void add(struct node* n, uint64_t key, uint64_t value) {
  for (;; n = n->next) {
    for (int i = 0; i < pairs_of_node; ++i)
      if (n->pairs[i].key == 0) {
        put(n, i, key, value);
        clflush(n);
        mfence();
        return;
      }
    if (n->next == NULL) break;
  }
  struct node* fresh = new_node();
  put(fresh, 0, key, value);
#if !defined(WITHOUT_FLUSH)
  clflush(fresh);
#endif
  mfence();
  n->next = fresh;
  clflush(n);
  mfence();
}

int chains_insert(struct chains* c, uint64_t key, uint64_t value) {
  struct node* first = lock(c, key);
  const int absent = value_of(first, key) == NULL;
  if (absent) add(first, key, value);
  unlock(first);
  return absent;
}

int chains_find(struct chains* c, uint64_t key, uint64_t* value) {
  struct node* first = lock(c, key);
  const uint64_t* found = value_of(first, key);
  if (found != NULL) *value = *found;
  unlock(first);
  return found != NULL;
}

int chains_remove(struct chains* c, uint64_t key) {
  struct node* first = lock(c, key);
  uint64_t* value = value_of(first, key);
  if (value != NULL) {
    uint64_t* found = value - 1;
    *(volatile uint64_t*)found = 0;
    clflush(found);
    mfence();
  }
  unlock(first);
  return value != NULL;
}
