/*
 * A secret for hash tables.
 *
 * Keys come from files that somebody else wrote. With a hash that is known,
 * 200,000 step ids can be chosen that all want the same slot, and a second of
 * work becomes an hour. A table hashes with a seed that its file cannot know.
 * Results never depend on it: tables are looked up, not walked.
 */
#ifndef NP_BASE_SEED_H
#define NP_BASE_SEED_H

#include <stdint.h>

/* A random number, another one for each table. Any thread. */
uint64_t np_hash_seed(void);

#endif
