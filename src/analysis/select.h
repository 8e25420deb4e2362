/* The k-th smallest of many durations, without sorting them all. */
#ifndef NP_ANALYSIS_SELECT_H
#define NP_ANALYSIS_SELECT_H

#include <stddef.h>

#include "base/time.h"

/* The k-th smallest, k < n; reorders v. Linear on average and on sorted input. */
np_ns np_select_ns(np_ns *v, size_t n, size_t k);

/* The value below or at which `percent` % of them are (nearest rank), n > 0; reorders v. */
np_ns np_percentile_ns(np_ns *v, size_t n, unsigned percent);

#endif
