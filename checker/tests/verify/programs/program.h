/* Shared by the programs of this folder: `PROGRAM run POOL` works on a new pool and marks its promises, `PROGRAM check POOL`
   judges one that a crash has left. The environment variable PMLAB_DEFECT chooses a defect; 0: none. */
#pragma once

#include <pmlab/programs/mark.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#ifndef POOL_BYTES
#define POOL_BYTES ((size_t)8 << 20)
#endif

static inline int defect(void) {
  const char* const given = getenv("PMLAB_DEFECT");
  return given != NULL ? atoi(given) : 0;
}

static inline void mark(const char* what, unsigned long number) {
  char text[64];
  snprintf(text, sizeof(text), "%s %lu", what, number);
  pmlab_mark(text);
}

/* Promises before the crash. */
static inline unsigned long promises(void) {
  unsigned long lines = 0;
  const char* const path = getenv("PMLAB_IO_MARKS");
  FILE* const file = path != NULL ? fopen(path, "r") : NULL;
  for (int c = 0; file != NULL && (c = fgetc(file)) != EOF;) lines += c == '\n';
  if (file != NULL) fclose(file);
  return lines;
}

/* Ends a check with a verdict. */
#define UNSOUND(...) (printf(__VA_ARGS__), puts(""), exit(1))

static void run(const char* path);
/* `made`: promises before the crash. */
static void check(const char* path, unsigned long made);

int main(int count, char** words) {
  if (count != 3) {
    fprintf(stderr, "usage: run POOL | check POOL\n");
    return 2;
  }
  if (strcmp(words[1], "run") == 0)
    run(words[2]);
  else
    check(words[2], promises());
  return 0;
}
