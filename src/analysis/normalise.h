/*
 * Names as two runs can share them: what changes from run to run is taken out.
 *
 *   trans_TransData_12                       trans_TransData        trailing counters
 *   Conv2D7 (type Conv2D)                    Conv2D                 counter behind the type
 *   hcom_allReduce__271_0_1@4629841820…      hcom_allReduce         hash, then counters
 *   triton_poi_0x7f3a22d0                    triton_poi             address
 *   graph_6f1e…-4a11-…_op                    graph_op               uuid
 *
 * The rules are a table, applied in its order; digits that belong to a name
 * (MatMulV3, Conv2D, layers.3.norm) stay.
 */
#ifndef NP_ANALYSIS_NORMALISE_H
#define NP_ANALYSIS_NORMALISE_H

#include "base/str.h"

/* id, name, what is removed */
#define NP_NORMALISE_MAP(X)                                                                 \
	X(UUID, "uuid", "8-4-4-4-12 hexadecimal digits")                                    \
	X(ADDRESS, "address", "0x and at least four hexadecimal digits")                    \
	X(HASH, "hash", "a word of 12 or more digits, or of 16 or more hexadecimal digits") \
	X(TYPE_COUNTER, "type counter", "digits behind a name that else equals the type")   \
	X(COUNTER, "counter", "numbers at the end, each behind one of _ . - # @ : / or -op")

enum np_normalise_rule {
#define X(id, name, help) NP_NORMALISE_##id,
	NP_NORMALISE_MAP(X)
#undef X
		NP_NORMALISE_RULES
};

const char *np_normalise_rule_name(enum np_normalise_rule rule);

/*
 * The normalised `name` into `out` (emptied first). Returns the rules that changed it,
 * bit by enum np_normalise_rule; 0: `out` equals `name`. `type` may be empty. A name of
 * which nothing would be left stays as it is. Linear. out->failed: out of memory.
 */
unsigned np_normalise(np_str name, np_str type, struct np_buf *out);

#endif
