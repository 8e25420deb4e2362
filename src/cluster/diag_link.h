/*
 * Links that are slower than their like (diagnosis_methods.md §3 "Slow link, not
 * slow rank"), from the matrices of communication.
 *
 * A link is (source, destination, transport). Its like are the links of the same
 * transport that carry the same kind of traffic (operator and name of the group).
 * It is slow when its time per byte is far above their median: robust z > 3.5 and
 * ratio > 1.3, in at least half of the steps.
 */
#ifndef NP_CLUSTER_DIAG_LINK_H
#define NP_CLUSTER_DIAG_LINK_H

#include "cluster/diag.h"

extern const struct np_part np_part_links;

struct np_slow_link {
	int64_t src, dst; /* rank ids */
	np_id transport, kind;
	const char *group; /* name of the group, "" */
	double gbps, typical_gbps, z, ratio;
	double extra_us; /* per step: its time beyond what a typical link would take */
	size_t steps, of;
};

enum np_slow_share {
	NP_SHARE_NONE,
	NP_SHARE_PAIR, /* all are between the same two ranks */
	NP_SHARE_RANK, /* all slow links touch one rank */
	NP_SHARE_HOST, /* … or one host */
};

struct np_links {
	NP_VEC(struct np_slow_link) slow; /* by extra time, largest first */
	size_t n_links, n_unmapped;       /* unmapped: ends whose global rank is not known */
	double cost_us; /* of the worst pair of ranks, all its traffic, one direction, per step */
	enum np_slow_share share;
	int64_t rank;     /* SHARE_RANK */
	const char *host; /* SHARE_HOST */
};

/* false: out of memory. Release with np_vec_release(&out->slow). */
bool np_diag_links(struct np_diagnosis *self, struct np_links *out);

#endif
