/*
 * One log summed up, and put to the others. Private to comm_sum.
 *
 * While a log is read, keys are the offsets of its strings as they are, so that no text is
 * looked at per record; np_clog_merge() turns them into ids once per sum.
 */
#ifndef NP_COLLECT_COMM_TALLY_H
#define NP_COLLECT_COMM_TALLY_H

#include "collect/comm_sum.h"

/* Names of a record, as they are in the log. */
struct np_clog_raw {
	uint32_t name, stage; /* offsets */
	uint64_t hash;
	int32_t world;
	bool counts;              /* of the filter, and of what is shown */
	struct np_clog_cell cell; /* its ids are not set */
};

enum { NP_CLOG_RECENT = 64 };

struct np_clog_tally {
	struct np_keys cell_keys, slice_keys, bucket_keys;
	uint32_t recent[NP_CLOG_RECENT]; /* cells, by a cheap hash: most calls are of a few kinds */
	NP_VEC(struct np_clog_raw) cells;
	NP_VEC(struct np_clog_slice) slices;   /* stage: offset */
	NP_VEC(struct np_clog_bucket) buckets; /* likewise */
	struct np_clog log;                    /* still open for its strings */
	bool open, failed;                     /* failed: memory ran out */
	uint64_t moves, out_of_order;
};

/* Read `file`, fill its counters. bucket_ns 0: no buckets. */
void np_clog_tally_read(struct np_clog_tally *self, const struct np_clog_options *options,
                        np_ns bucket_ns, struct np_clog_file *file);
void np_clog_tally_release(struct np_clog_tally *self);

/* Is it of the stage, operation and group that are asked for? */
bool np_clog_matches(const struct np_clog *log, const struct np_clog_options *options,
                     const struct np_comm_record *record);

struct np_clog_merge {
	struct np_clog_sum *sum;
	struct np_keys group_keys, cell_keys, slice_keys, bucket_keys;
};

enum np_status np_clog_merge(struct np_clog_merge *self, uint32_t file, struct np_clog_tally *tally,
                             struct np_err *err);
void np_clog_merge_release(struct np_clog_merge *self);

#endif
