/*
 * Which of some ranges, that may overlap, is the first to hold a time.
 *
 *   range      0 ├──────┤
 *              1     ├─────────┤
 *              2              ├────┤
 *   reach        max end of 0…i: not falling, so the first range that could
 *                end late enough is found by bisection
 *   from         min start of i…n-1: tells when to stop
 *
 * The exporter gives a kernel to the first step whose window holds its start
 * (torch_npu.md §3.12), and windows of steps overlap when the device lags.
 */
#ifndef NP_CAPTURE_DB_RANGES_H
#define NP_CAPTURE_DB_RANGES_H

#include "base/mem.h"
#include "base/time.h"

struct np_range {
	np_ns start, end;
	np_ns reach, from;
	uint32_t row; /* in steps */
};

/* Zeroed memory is an empty set. Release with np_vec_release(). */
struct np_ranges {
	struct np_range *v;
	size_t n, cap;
};

/* Fill reach and from; to be called after starts or ends have changed. */
void np_ranges_index(struct np_ranges *self);

/* The first range with start <= from and to <= end; SIZE_MAX when there is none. */
size_t np_ranges_find(const struct np_ranges *self, np_ns from, np_ns to);

#endif
