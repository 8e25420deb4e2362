/*
 * One log summed up, and put to the others. Private to comm_sum.
 *
 * While a log is read, keys are the offsets of its strings as they are, so that no text is
 * looked at per record; np_comm_merge() turns them into ids once per sum.
 */
#ifndef NP_COLLECT_COMM_TALLY_H
#define NP_COLLECT_COMM_TALLY_H

#include "collect/comm_sum.h"

/* Names of a record, as they are in the log. */
struct np_comm_raw {
	uint32_t name, stage; /* offsets */
	uint64_t hash;
	int32_t world;
	bool counts;              /* of the filter, and of what is shown */
	struct np_comm_cell cell; /* its ids are not set */
};

struct np_comm_tally {
	struct np_keys cell_keys, slice_keys, bucket_keys;
	NP_VEC(struct np_comm_raw) cells;
	NP_VEC(struct np_comm_slice) slices;   /* stage: offset */
	NP_VEC(struct np_comm_bucket) buckets; /* likewise */
	struct np_comm_log log;                /* still open for its strings */
	bool open, failed;                     /* failed: memory ran out */
	uint64_t moves, out_of_order;
};

/* Read `file`, fill its counters. bucket_ns 0: no buckets. */
void np_comm_tally_read(struct np_comm_tally *self, const struct np_comm_options *options,
                        np_ns bucket_ns, struct np_comm_file *file);
void np_comm_tally_release(struct np_comm_tally *self);

struct np_comm_merge {
	struct np_comm_sum *sum;
	struct np_keys group_keys, cell_keys, slice_keys, bucket_keys;
};

enum np_status np_comm_merge(struct np_comm_merge *self, uint32_t file, struct np_comm_tally *tally,
                             struct np_err *err);
void np_comm_merge_release(struct np_comm_merge *self);

#endif
