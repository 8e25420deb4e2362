/*
 * What the modes about mstx share: the step of a time, the task and the operator of a
 * connection.
 */
#ifndef NP_CLUSTER_MSTX_H
#define NP_CLUSTER_MSTX_H

#include "profile/profile.h"

/* The steps of a profile by time. */
struct np_step_times {
	struct np_step_time {
		np_ns start, end;
		int64_t id;
	} * v;
	size_t n;
};

/* false: out of memory; np_step_times_release() in every case. */
bool np_step_times_make(const struct np_profile *profile, struct np_step_times *out);
void np_step_times_release(struct np_step_times *self);
/* The step with start ≤ from and to ≤ end, of several the first; NP_NO_I64: none. */
int64_t np_step_of(const struct np_step_times *self, np_ns from, np_ns to);

/* The tasks by connection, those of one connection by start. */
struct np_conn_tasks {
	const struct np_tasks *tasks;
	uint32_t *order; /* rows of tasks that have a connection */
	size_t n;
};

bool np_conn_tasks_make(const struct np_profile *profile, struct np_conn_tasks *out);
void np_conn_tasks_release(struct np_conn_tasks *self);
/* The first position in `order` with this connection; self->n: none. */
size_t np_conn_tasks_find(const struct np_conn_tasks *self, int64_t conn);

/* Does `text` contain `part`, letters without case? */
static inline bool np_mstx_says(const struct np_profile *profile, size_t row, np_str part)
{
	return np_str_icontains(np_intern_get(&profile->strings, profile->mstx.message[row]), part);
}

#endif
