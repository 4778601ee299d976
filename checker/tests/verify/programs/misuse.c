/* `misuse HOW POOL`: runs that give no verdict, each in its own way; `sound`: one that does. */
#define _GNU_SOURCE
#include <pmlab/programs/mark.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { bytes = 1 << 16, threads = 4, stores = 64 };

static size_t size = bytes; /* of the pool */
static volatile uint64_t* pool;

static uint64_t* map(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, (off_t)size) != 0) exit(3);
  return (uint64_t*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void* store_own_part(void* part) {
  for (int i = 0; i < stores; ++i) ((volatile uint64_t*)part)[i * 8] = (uint64_t)i + 1;
  return NULL;
}

/* The parts have lines of their own in each page, and processors of their own if there are some. */
static void* flush_own_lines(void* part) {
  const unsigned number = *(unsigned*)part;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(number % 2, &one);
  if (number % 4 < 2)
    sched_setaffinity(0, sizeof(one), &one);
  else
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
  const size_t lines = size / 64;
  for (size_t line = 64; line < lines; ++line) {
    if (line / 4 % threads != number) continue;
    /* At any time of the others' steps. */
    for (volatile size_t i = line * 7919 % 5000; i > 0; --i) continue;
    pool[line * 8] = line;
    msync((void*)&pool[line * 8], 64, MS_SYNC);
  }
  return NULL;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const char* const how = words[1];
  if (strcmp(how, "no_pool") == 0) return 0;
  if (strcmp(how, "odd_size") == 0) size = bytes + 64;
  if (strcmp(how, "sparse") == 0) size = (size_t)256 << 20;
  if (strcmp(how, "repeats") == 0) size = 32 * 4096;
  if (strcmp(how, "flushed_by_threads") == 0) size = 128 * 4096;
  uint64_t* const words_of_pool = map(words[2]);
  pool = words_of_pool;
  words_of_pool[0] = 1;
  msync(words_of_pool, bytes, MS_SYNC);
  pmlab_mark("one");
  if (strcmp(how, "fork") == 0) {
    if (fork() == 0) _exit(0);
    wait(NULL);
  } else if (strcmp(how, "aborts") == 0) {
    abort();
  } else if (strcmp(how, "faults") == 0) {
    *(volatile int*)8 = 1;
  } else if (strcmp(how, "fails") == 0) {
    puts("no luck today");
    return 3;
  } else if (strcmp(how, "never_ends") == 0) {
    for (;;) sleep(1);
  } else if (strcmp(how, "second_file") == 0) {
    char other[4096];
    snprintf(other, sizeof(other), "%s.other", words[2]);
    map(other)[0] = 1;
  } else if (strcmp(how, "writes_around") == 0) {
    const int file = open(words[2], O_RDWR);
    if (pwrite(file, "around", 6, 4096) != 6) return 3;
  } else if (strcmp(how, "threads") == 0) {
    pthread_t all[threads];
    for (int t = 0; t < threads; ++t) pthread_create(&all[t], NULL, store_own_part, words_of_pool + 8 + t * stores * 8);
    for (int t = 0; t < threads; ++t) pthread_join(all[t], NULL);
    msync(words_of_pool, bytes, MS_SYNC);
  } else if (strcmp(how, "flushed_by_threads") == 0) {
    pthread_t all[threads];
    unsigned numbers[threads];
    for (unsigned t = 0; t < threads; ++t) {
      numbers[t] = t;
      pthread_create(&all[t], NULL, flush_own_lines, &numbers[t]);
    }
    for (int t = 0; t < threads; ++t) pthread_join(all[t], NULL);
    pmlab_mark("flushed");
  } else if (strcmp(how, "repeats") == 0) {
    /* In one instruction more pages than the recorder opens at once. */
    size_t left = 30 * 512;
    void* from = words_of_pool;
    void* to = words_of_pool + 512;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    msync(words_of_pool, size, MS_SYNC);
  } else if (strcmp(how, "blocks_signals") == 0) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    ((volatile uint64_t*)words_of_pool)[8] = 2;
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    ((volatile uint64_t*)words_of_pool)[16] = 3;
  } else if (strcmp(how, "points") == 0) {
    /* So many crash points of 16 states each: four lines, independent of each other. */
    for (uint64_t i = 1; i <= 100; ++i) {
      for (int line = 1; line <= 4; ++line) ((volatile uint64_t*)words_of_pool)[line * 8] = i;
      msync(words_of_pool, bytes, MS_SYNC);
    }
  }
  return 0;
}
