/* "4096,1024;1024": recorded shapes as numbers. Private to src/advice/. */
#ifndef NP_ADVICE_DIMS_H
#define NP_ADVICE_DIMS_H

#include <stdint.h>

#include "base/str.h"

enum { NP_MAX_DIMS = 12 };

struct np_dims {
	int n;
	int64_t of[NP_MAX_DIMS];
};

/* The shape number `index`, quotes around them all left out; n = 0: there is none, it has no
 * dimensions, or it can't be read. */
struct np_dims np_dims_of(np_str shapes, int index);

/* Elements of a shape, as a double: a hostile one may be any. 0 for none. */
double np_dims_elements(const struct np_dims *dims);

/* How many shapes there are, empty ones too. */
int np_dims_count(np_str shapes);

#endif
