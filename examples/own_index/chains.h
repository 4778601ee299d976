/* The hash table of chains.c. Answers: 1 yes, 0 no. */
#ifndef CHAINS_H
#define CHAINS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct chains;
struct chains* chains_create(void);
void chains_recover(struct chains* c);
int chains_insert(struct chains* c, uint64_t key, uint64_t value);
int chains_find(struct chains* c, uint64_t key, uint64_t* value);
int chains_remove(struct chains* c, uint64_t key);

#ifdef __cplusplus
}
#endif
#endif
