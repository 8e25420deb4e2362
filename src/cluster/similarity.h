/*
 * How alike two names are: 2 * M / (length of both), M bytes in common blocks, as
 * Python's difflib counts them (the longest common block, then left and right of it
 * again). 1 for equal texts, 0 for nothing in common.
 */
#ifndef NP_CLUSTER_SIMILARITY_H
#define NP_CLUSTER_SIMILARITY_H

#include "base/str.h"

enum { NP_SIMILARITY_BYTES = 512 }; /* of each text; what is behind them is not looked at */

/* NaN-free; below `least` the exact value may be replaced by 0, which is faster. */
double np_similarity(np_str a, np_str b, double least);

#endif
