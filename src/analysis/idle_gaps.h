/*
 * The gaps in which the device did nothing, each parted by whose fault it was.
 * What idle.c tells.
 */
#ifndef NP_ANALYSIS_IDLE_GAPS_H
#define NP_ANALYSIS_IDLE_GAPS_H

#include "analysis/host_time.h"

enum np_gap_kind {
	NP_GAP_INTERNAL,  /* inside of a span: part of Free */
	NP_GAP_PREPARING, /* host start of the step (or the last work before) to the first kernel */
	NP_GAP_TAIL,      /* last kernel to the host's end of the step (or the next work) */
};

struct np_gap {
	np_ns start, end;
	uint32_t kernel;  /* T: the kernel row that ends it, NP_NO_U32 for tails */
	uint32_t span;    /* in spans */
	uint32_t row;     /* host row of the largest part, NP_NO_U32 */
	np_ns largest_ns; /* the largest part */
	uint8_t class;    /* of that part */
	uint8_t kind;
	uint32_t part, n_parts; /* in parts: one per class, in order of class */
};

struct np_gaps {
	NP_VEC(struct np_gap) v; /* in order of time */
	struct np_host_part *parts;
};

/* After np_links_build(). false: out of memory; np_gaps_release() in every case. */
bool np_gaps_find(const struct np_analysis *analysis, struct np_gaps *out);
void np_gaps_release(struct np_gaps *self);

#endif
