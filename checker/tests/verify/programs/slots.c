/* Items in slots on libpmem, which an item's flag makes valid, as in memcached for persistent memory.
   1: the flag is not ordered after the item. 2: the same, and the program's own instruction flushes them. */
#include "program.h"

#include <libpmem.h>
#include <stdint.h>

#include <emmintrin.h>

enum { inserts = 8, slots = 16, item_words = 24 };
struct item {
  uint64_t linked;
  uint64_t words[item_words + 7];
};

static void flush(const void* start, size_t bytes) {
  if (defect() != 2 && defect() != 3) {
    pmem_flush(start, bytes);
    return;
  }
  for (uintptr_t line = (uintptr_t)start & ~(uintptr_t)63; line < (uintptr_t)start + bytes; line += 64)
    _mm_clflush((const void*)line);
}

static void fence(void) {
  if (defect() == 3)
    _mm_sfence();
  else
    pmem_drain();
}

static void insert(struct item* s, uint64_t value) {
  for (int i = 0; i < item_words; ++i) s->words[i] = value + (uint64_t)i;
  if (defect() == 0 || defect() == 3) {
    flush(s, sizeof(*s));
    fence();
  }
  s->linked = 1;
  flush(s, sizeof(*s));
  fence();
}

static void run(const char* path) {
  unlink(path);
  struct item* const all =
      (struct item*)pmem_map_file(path, slots * sizeof(struct item), PMEM_FILE_CREATE, 0600, NULL, NULL);
  if (all == NULL) exit(2);
  for (uint64_t i = 0; i < inserts; ++i) {
    insert(&all[i], 100 * (i + 1));
    mark("inserted", i);
  }
  pmem_unmap(all, slots * sizeof(struct item));
}

static void check(const char* path, unsigned long made) {
  size_t bytes = 0;
  const struct item* const all = (const struct item*)pmem_map_file(path, 0, 0, 0, &bytes, NULL);
  if (all == NULL) UNSOUND("the file cannot be mapped");
  for (uint64_t i = 0; i < slots; ++i) {
    if (all[i].linked == 0 && i < made) UNSOUND("item %lu is lost", i);
    for (int w = 0; w < item_words && all[i].linked != 0; ++w)
      if (all[i].words[w] != 100 * (i + 1) + (uint64_t)w) UNSOUND("word %d of item %lu is %lu", w, i, all[i].words[w]);
  }
}
