/*
 * What kind of work a kernel is. By core type and operator type first, by name
 * only last: names lie, and `hcom_*` in any case is communication.
 */
#ifndef NP_ANALYSIS_CLASSIFY_H
#define NP_ANALYSIS_CLASSIFY_H

#include "profile/profile.h"

/* id, name */
#define NP_CLASS_MAP(X)              \
	X(COMM, "communication")     \
	X(ATTENTION, "attention")    \
	X(MATMUL, "matmul/conv")     \
	X(VECTOR, "vector")          \
	X(TRANSFER, "transfer/cast") \
	X(AICPU, "AI CPU")           \
	X(OTHER, "other")            \
	X(SYNC, "sync")

enum np_class {
#define X(id, name) NP_CLASS_##id,
	NP_CLASS_MAP(X)
#undef X
		NP_N_CLASSES,
};

const char *np_class_name(enum np_class class);

/* Pure. Texts are empty where the capture does not record them (old Level0). AI_CORE
 * of a type that no word names counts as cube work, as on chips with split cores. */
enum np_class np_classify(np_str name, np_str type, np_str core);

/* Class of every kernel row into out[kernels.n]. Each distinct (name, type, core) is
 * looked at once. Where no kernel has a vector or mixed core (910A), AI_CORE of a type
 * that no word names is vector work. false: out of memory. */
bool np_classify_all(const struct np_profile *profile, uint8_t *out);

#endif
