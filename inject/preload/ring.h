/*
 * Writing one log of collectives (include/npuprof/comm_log.h): the file of one thread.
 *
 *   np_ring_open() ─▶ { np_ring_begin() ─▶ fill ─▶ np_ring_commit() }… ─▶ np_ring_close()
 *
 * The file is mapped and stored to in place. A page of a map that has no block on a full disk
 * is a SIGBUS in the user's process; so blocks are reserved (posix_fallocate) before a page is
 * touched, some thousand records ahead, and when that fails the log stops and counts what is
 * lost. No descriptor stays open.
 *
 * A ring belongs to one thread. It is absent in a child of fork() (MADV_DONTFORK): the owner's
 * pointer dangles there and must be forgotten. All are in a list, for np_ring_close_all().
 */
#ifndef NP_PRELOAD_RING_H
#define NP_PRELOAD_RING_H

#include "text.h"

#include "npuprof/comm_log.h"

struct np_ring {
	struct np_comm_log_header *header; /* the map */
	char *strings;                     /* in it */
	struct np_comm_record *records;    /* in it */
	uint64_t capacity;                 /* records */
	uint64_t next;                     /* number of the next record, from 1 */
	uint64_t slot;                     /* (next - 1) % capacity */
	uint64_t reserved;                 /* records that have their blocks */
	uint64_t string_bytes, string_reserved;
	int stopped;                    /* errno that ended the recording; 0: it goes on */
	struct np_ring *before, *after; /* in the list */
	uint64_t dev, ino;
	size_t map_bytes;
	uint32_t offsets[NP_TEXT_MAX]; /* of texts in this file; 0: not yet */
	char path[4352];
};

struct np_ring_options {
	const char *dir;      /* absolute */
	const char *name;     /* of the layer in the file's name, "hccl" */
	const char *recorder; /* name and version */
	uint32_t layer;       /* enum np_comm_layer */
	uint64_t capacity;    /* records */
};

/* 0, or the errno of what failed: then *out is NULL and nothing is left behind. */
int np_ring_open(const struct np_ring_options *options, struct np_ring **out);

/* The slot of the next record, not valid until committed (its seq is 0). NULL: the disk is
 * full; the call is counted as lost. Fields may hold an older record. */
struct np_comm_record *np_ring_begin(struct np_ring *self);
void np_ring_commit(struct np_ring *self);

/* The string's offset in this file, written at its first use; 0 for NULL. */
uint32_t np_ring_text(struct np_ring *self, const struct np_text *text);

void np_ring_lost(struct np_ring *self, uint64_t calls);

/* In order: the header says so. The ring is gone then. */
void np_ring_close(struct np_ring *self);
/* All rings are marked as closed in order; they stay mapped, their threads may still run. */
void np_ring_close_all(void);

void np_ring_after_fork(void);

#endif
