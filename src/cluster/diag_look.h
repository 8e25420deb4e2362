/*
 * A closer look at a rank that is accused: its kernels and its host beside those
 * of one typical peer. The few files that it takes are read now.
 */
#ifndef NP_CLUSTER_DIAG_LOOK_H
#define NP_CLUSTER_DIAG_LOOK_H

#include "cluster/diag_cost.h"

struct np_look {
	const char *code;   /* of the finding; never NULL */
	const char *what;   /* "it computes longer: MatMulV3 …"; in the cluster's arena */
	const char *advice; /* what to do */
	uint32_t peer;      /* row of the rank it was compared with, NP_DIAG_NONE */
};

/* false: out of memory. A rank that cannot be read again is not an error: the look is
 * then what the cause alone tells. */
bool np_diag_look(struct np_diagnosis *self, const struct np_diag_cause *cause,
                  struct np_look *out);

/* What the cause alone tells, without looking; true. */
bool np_diag_look_by_cause(const struct np_diag_cause *cause, struct np_look *out);

#endif
