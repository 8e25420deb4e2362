/*
 * Rows with equal keys, brought together in linear time.
 *
 *   rows 0 1 2 3 4      keys a b a c b
 *   groups 0:{0,2} 1:{1,4} 2:{3}, numbered by first appearance
 *   order  0 2 1 4 3,  start 0 2 4 5
 */
#ifndef NP_CLUSTER_GROUPING_H
#define NP_CLUSTER_GROUPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct np_groups {
	size_t n;
	uint32_t *order; /* all rows, those of a group together and in their order */
	size_t *start;   /* n + 1: group g is order[start[g]] … order[start[g + 1] - 1] */
};

/* Group n rows (< 2^32 - 1) by n_keys columns of 32-bit ids. false: out of memory.
 * np_groups_release() in every case. */
bool np_group_rows(size_t n, const uint32_t *const *keys, size_t n_keys, struct np_groups *out);
void np_groups_release(struct np_groups *self);

/* The first row of a group: its keys are those of all. */
static inline uint32_t np_group_row(const struct np_groups *self, size_t g)
{
	return self->order[self->start[g]];
}

static inline size_t np_group_size(const struct np_groups *self, size_t g)
{
	return self->start[g + 1] - self->start[g];
}

#endif
